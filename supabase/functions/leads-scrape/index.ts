import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { scrape } from './handler.ts';

serveStage(scrape);
