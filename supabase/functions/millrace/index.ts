import { serveMillrace } from '../_millrace/serve-millrace.ts';

serveMillrace();
