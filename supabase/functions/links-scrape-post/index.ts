import { serveStage } from '../_millrace/mod.ts';
import { scrapePost } from './handler.ts';

serveStage(scrapePost);
