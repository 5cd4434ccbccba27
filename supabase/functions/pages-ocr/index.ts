import { serveStage } from '../_shared/serve-stage.ts';
import { ocr } from './handler.ts';

serveStage(ocr);
