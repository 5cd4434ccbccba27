import { serveStage } from '../_shared/serve-stage.ts';
import { outline } from './handler.ts';

serveStage(outline);
