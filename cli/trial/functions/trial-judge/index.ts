import '../_trial/count-calls.ts';
import { serveStage } from '../../../../supabase/functions/_millrace/mod.ts';
import { judge } from './handler.ts';

serveStage(judge);
