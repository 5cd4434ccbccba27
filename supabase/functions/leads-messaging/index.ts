import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { messaging } from './handler.ts';

serveStage(messaging);
