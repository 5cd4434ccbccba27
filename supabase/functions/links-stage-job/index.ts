import { serveStage } from '../_millrace/mod.ts';
import { stageJob } from './handler.ts';

serveStage(stageJob);
