import { serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { remarkStage } from './remark-pipelines.ts';

serveStage(remarkStage('reply'));
