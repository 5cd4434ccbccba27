import { serveStage } from '../_millrace/mod.ts';
import { strategy } from './handler.ts';

serveStage(strategy);
