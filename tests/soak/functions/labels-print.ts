import { serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { paidBatch } from './paid-work.ts';
import { labels } from './parcel-pipelines.ts';

serveStage(paidBatch(labels, 'print', 25));
