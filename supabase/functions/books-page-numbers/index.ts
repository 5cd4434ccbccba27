import { serveStage } from '../_shared/serve-stage.ts';
import { pageNumbers } from './handler.ts';

serveStage(pageNumbers);
