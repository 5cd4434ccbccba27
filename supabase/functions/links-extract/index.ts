import { serveStage } from '../_millrace/mod.ts';
import { extract } from './handler.ts';

serveStage(extract);
