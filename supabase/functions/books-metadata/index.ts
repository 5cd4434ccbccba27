import { serveStage } from '../_shared/serve-stage.ts';
import { metadata } from './handler.ts';

serveStage(metadata);
