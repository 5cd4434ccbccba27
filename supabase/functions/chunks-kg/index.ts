import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { kg } from './handler.ts';

serveStage(kg);
