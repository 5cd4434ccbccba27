import { serveStage } from '../_millrace/mod.ts';
import { thumbnailStage } from './handler.ts';

serveStage(thumbnailStage);
