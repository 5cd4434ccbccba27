import { serveStage } from '../_millrace/mod.ts';
import { outline } from './handler.ts';

serveStage(outline);
