import { distributeBatches } from '../../../supabase/functions/_millrace/batches/model-batches.ts';
import { serveStage } from '../../../supabase/functions/_millrace/mod.ts';

serveStage(distributeBatches());
