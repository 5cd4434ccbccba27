import { serveStage } from '../_shared/serve-stage.ts';
import { monolith } from './handler.ts';

serveStage(monolith);
