import { serveStage } from '../_millrace/mod.ts';
import { label } from './handler.ts';

serveStage(label);
