import { serveStage } from '../_shared/serve-stage.ts';
import { messaging } from './handler.ts';

serveStage(messaging);
