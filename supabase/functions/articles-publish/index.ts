import { serveStage } from '../_millrace/mod.ts';
import { publishStage } from './handler.ts';

serveStage(publishStage);
