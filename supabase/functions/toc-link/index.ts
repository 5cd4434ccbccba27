import { serveStage } from '../_shared/serve-stage.ts';
import { link } from './handler.ts';

serveStage(link);
