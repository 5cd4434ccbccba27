import { serveStage } from '../_shared/serve-stage.ts';
import { structure } from './handler.ts';

serveStage(structure);
