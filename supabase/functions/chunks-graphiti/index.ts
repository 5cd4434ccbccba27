import { serveStage } from '../_millrace/mod.ts';
import { graphiti } from './handler.ts';

serveStage(graphiti);
