import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { find } from './handler.ts';

serveStage(find);
