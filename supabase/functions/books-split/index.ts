import { serveStage } from '../_millrace/mod.ts';
import { split } from './handler.ts';

serveStage(split);
