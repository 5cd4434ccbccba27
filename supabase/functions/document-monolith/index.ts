import { serveStage } from '../_millrace/mod.ts';
import { monolith } from './handler.ts';

serveStage(monolith);
