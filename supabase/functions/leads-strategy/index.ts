import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { strategy } from './handler.ts';

serveStage(strategy);
