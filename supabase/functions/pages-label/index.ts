import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { label } from './handler.ts';

serveStage(label);
