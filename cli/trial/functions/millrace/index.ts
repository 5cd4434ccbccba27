import '../_trial/count-calls.ts';
import { serveMillrace } from '../../../../supabase/functions/_millrace/serve-millrace.ts';

serveMillrace();
