import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { pageNumbers } from './handler.ts';

serveStage(pageNumbers);
