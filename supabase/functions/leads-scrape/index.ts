import { serveStage } from '../_millrace/mod.ts';
import { scrape } from './handler.ts';

serveStage(scrape);
