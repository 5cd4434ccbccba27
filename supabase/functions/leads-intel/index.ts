import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { intel } from './handler.ts';

serveStage(intel);
