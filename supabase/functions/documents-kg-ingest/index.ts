import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { kgIngest } from './handler.ts';

serveStage(kgIngest);
