import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { chunking } from './handler.ts';

serveStage(chunking);
