import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { assemble } from './handler.ts';

serveStage(assemble);
