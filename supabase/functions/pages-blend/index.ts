import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { blend } from './handler.ts';

serveStage(blend);
