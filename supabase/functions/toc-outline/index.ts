import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { outline } from './handler.ts';

serveStage(outline);
