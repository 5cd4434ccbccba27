import { serveStage } from '../_millrace/mod.ts';
import { intel } from './handler.ts';

serveStage(intel);
