import { serveStage } from '../_shared/serve-stage.ts';
import { scrape } from './handler.ts';

serveStage(scrape);
