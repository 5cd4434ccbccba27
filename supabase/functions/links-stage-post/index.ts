import { serveStage } from '../_millrace/mod.ts';
import { stagePost } from './handler.ts';

serveStage(stagePost);
