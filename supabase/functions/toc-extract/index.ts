import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { extract } from './handler.ts';

serveStage(extract);
