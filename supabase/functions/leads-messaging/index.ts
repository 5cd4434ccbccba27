import { serveStage } from '../_millrace/mod.ts';
import { messaging } from './handler.ts';

serveStage(messaging);
