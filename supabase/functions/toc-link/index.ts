import { serveStage } from '../_millrace/mod.ts';
import { link } from './handler.ts';

serveStage(link);
