import { serveStage } from '../_shared/serve-stage.ts';
import { chunking } from './handler.ts';

serveStage(chunking);
