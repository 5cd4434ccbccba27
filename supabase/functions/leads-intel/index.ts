import { serveStage } from '../_shared/serve-stage.ts';
import { intel } from './handler.ts';

serveStage(intel);
