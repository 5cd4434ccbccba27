import { serveStage } from '../_millrace/mod.ts';
import { assemble } from './handler.ts';

serveStage(assemble);
