import { serveStage } from '../_millrace/mod.ts';
import { scrapeJob } from './handler.ts';

serveStage(scrapeJob);
