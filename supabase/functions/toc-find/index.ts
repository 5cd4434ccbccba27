import { serveStage } from '../_shared/serve-stage.ts';
import { find } from './handler.ts';

serveStage(find);
