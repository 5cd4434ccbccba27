import { serveStage } from '../_shared/serve-stage.ts';
import { subject } from './handler.ts';

serveStage(subject);
