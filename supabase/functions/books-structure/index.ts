import { serveStage } from '../_millrace/mod.ts';
import { structure } from './handler.ts';

serveStage(structure);
