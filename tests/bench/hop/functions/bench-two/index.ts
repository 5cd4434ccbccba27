import { serveStage } from '../../../../../supabase/functions/_shared/serve-stage.ts';
import { noOp } from '../_no-op.ts';

serveStage(noOp('two'));
