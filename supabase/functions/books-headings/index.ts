import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { headings } from './handler.ts';

serveStage(headings);
