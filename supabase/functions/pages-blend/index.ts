import { serveStage } from '../_shared/serve-stage.ts';
import { blend } from './handler.ts';

serveStage(blend);
