import { serveCallbacks } from '../_millrace/jobs/answer-callback.ts';

serveCallbacks();
