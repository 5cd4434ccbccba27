import '../_trial/count-calls.ts';
import { serveStage } from '../../../../supabase/functions/_millrace/mod.ts';
import { render } from './handler.ts';

serveStage(render);
