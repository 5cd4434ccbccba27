import { serveStage } from '../../../../../supabase/functions/_millrace/worker/serve-stage.ts';
import { noOp } from '../_no-op.ts';

serveStage(noOp('three'));
