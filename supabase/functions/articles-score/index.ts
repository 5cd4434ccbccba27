import { serveStage } from '../_millrace/mod.ts';
import { scoreStage } from './handler.ts';

serveStage(scoreStage);
