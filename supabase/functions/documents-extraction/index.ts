import { serveStage } from '../_millrace/mod.ts';
import { extraction } from './handler.ts';

serveStage(extraction);
