import { serveStage } from '../_shared/serve-stage.ts';
import { assemble } from './handler.ts';

serveStage(assemble);
