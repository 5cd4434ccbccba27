import { serveStage } from '../../../../../supabase/functions/_millrace/mod.ts';
import { noOp } from '../_no-op.ts';

serveStage(noOp('two'));
