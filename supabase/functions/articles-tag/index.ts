import { serveStage } from '../_millrace/mod.ts';
import { tagStage } from './handler.ts';

serveStage(tagStage);
