import { serveStage } from '../_millrace/mod.ts';
import { find } from './handler.ts';

serveStage(find);
