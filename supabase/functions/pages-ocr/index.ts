import { serveStage } from '../_millrace/worker/serve-stage.ts';
import { ocr } from './handler.ts';

serveStage(ocr);
