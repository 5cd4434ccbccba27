import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { subject } from './handler.ts';

serveStage(subject);
