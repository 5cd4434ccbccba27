import { serveStage } from '../_millrace/mod.ts';
import { ocr } from './handler.ts';

serveStage(ocr);
