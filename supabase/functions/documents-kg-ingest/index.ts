import { serveStage } from '../_shared/serve-stage.ts';
import { kgIngest } from './handler.ts';

serveStage(kgIngest);
