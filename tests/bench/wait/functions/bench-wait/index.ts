import { serveStage } from '../../../../../supabase/functions/_millrace/mod.ts';
import { call } from '../_wait.ts';

serveStage(call);
