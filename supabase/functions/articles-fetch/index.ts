import { serveStage } from '../_millrace/mod.ts';
import { fetchStage } from './handler.ts';

serveStage(fetchStage);
