import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { extraction } from './handler.ts';

serveStage(extraction);
