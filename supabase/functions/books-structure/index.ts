import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { structure } from './handler.ts';

serveStage(structure);
