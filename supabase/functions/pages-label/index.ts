import { serveStage } from '../_shared/serve-stage.ts';
import { label } from './handler.ts';

serveStage(label);
