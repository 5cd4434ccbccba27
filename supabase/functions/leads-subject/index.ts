import { serveStage } from '../_millrace/mod.ts';
import { subject } from './handler.ts';

serveStage(subject);
