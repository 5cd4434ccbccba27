import { serveStage } from '../_shared/serve-stage.ts';
import { kg } from './handler.ts';

serveStage(kg);
