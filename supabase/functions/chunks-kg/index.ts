import { serveStage } from '../_millrace/mod.ts';
import { kg } from './handler.ts';

serveStage(kg);
