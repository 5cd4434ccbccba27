import { serveStage } from '../_millrace/mod.ts';
import { embedStage } from './handler.ts';

serveStage(embedStage);
