import { serveStage } from '../_millrace/mod.ts';
import { poll } from './handler.ts';

serveStage(poll);
