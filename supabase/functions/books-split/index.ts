import { serveStage } from '../_shared/serve-stage.ts';
import { split } from './handler.ts';

serveStage(split);
