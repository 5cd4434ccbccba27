import { serveStage } from '../_millrace/mod.ts';
import { blend } from './handler.ts';

serveStage(blend);
