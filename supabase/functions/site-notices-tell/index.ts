import { serveStage } from '../_millrace/mod.ts';
import { tellStage } from './handler.ts';

serveStage(tellStage);
