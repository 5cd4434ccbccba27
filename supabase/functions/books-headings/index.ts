import { serveStage } from '../_millrace/mod.ts';
import { headings } from './handler.ts';

serveStage(headings);
