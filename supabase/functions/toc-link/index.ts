import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { link } from './handler.ts';

serveStage(link);
