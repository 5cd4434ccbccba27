import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { metadata } from './handler.ts';

serveStage(metadata);
