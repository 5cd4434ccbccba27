import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { split } from './handler.ts';

serveStage(split);
