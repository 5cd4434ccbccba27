import { serveStage } from '../_millrace/mod.ts';
import { summarizeStage } from './handler.ts';

serveStage(summarizeStage);
