import { serveStage } from '../_millrace/mod.ts';
import { republishStage } from './handler.ts';

serveStage(republishStage);
