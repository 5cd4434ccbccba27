import { serveStage } from '../_millrace/mod.ts';
import { textLayer } from './handler.ts';

serveStage(textLayer);
