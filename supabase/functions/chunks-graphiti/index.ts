import { serveStage } from '../_shared/serve-stage.ts';
import { graphiti } from './handler.ts';

serveStage(graphiti);
