import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { graphiti } from './handler.ts';

serveStage(graphiti);
