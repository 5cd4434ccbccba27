import { serveStage } from '../_shared/serve-stage.ts';
import { strategy } from './handler.ts';

serveStage(strategy);
