import { serveStage } from '../_millrace/mod.ts';
import { chunking } from './handler.ts';

serveStage(chunking);
