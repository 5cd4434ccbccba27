import { serveStage } from '../_shared/serve-stage.ts';
import { extraction } from './handler.ts';

serveStage(extraction);
