import { serveStage } from '../_millrace/mod.ts';
import { pageNumbers } from './handler.ts';

serveStage(pageNumbers);
