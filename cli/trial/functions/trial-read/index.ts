import '../_trial/count-calls.ts';
import { serveStage } from '../../../../supabase/functions/_millrace/mod.ts';
import { read } from './handler.ts';

serveStage(read);
