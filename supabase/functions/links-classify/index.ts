import { serveStage } from '../_millrace/mod.ts';
import { classify } from './handler.ts';

serveStage(classify);
