import { serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { paidWork } from './paid-work.ts';
import { parcels } from './parcel-pipelines.ts';

serveStage(paidWork(parcels, 'weigh'));
