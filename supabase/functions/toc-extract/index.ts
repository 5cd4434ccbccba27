import { serveStage } from '../_shared/serve-stage.ts';
import { extract } from './handler.ts';

serveStage(extract);
