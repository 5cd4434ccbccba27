import { serveStage } from '../_millrace/mod.ts';
import { kgIngest } from './handler.ts';

serveStage(kgIngest);
