import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { monolith } from './handler.ts';

serveStage(monolith);
