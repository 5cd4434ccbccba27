import { serveStage } from '../_shared/serve-stage.ts';
import { headings } from './handler.ts';

serveStage(headings);
