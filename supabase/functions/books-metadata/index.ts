import { serveStage } from '../_millrace/mod.ts';
import { metadata } from './handler.ts';

serveStage(metadata);
