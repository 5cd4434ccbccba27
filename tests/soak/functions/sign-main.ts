// The worker of a host of one's own, which signs parcels.
import { serveWorker } from '../../../supabase/functions/_millrace/serve-worker.ts';
import { paidWork } from './paid-work.ts';
import { parcels } from './parcel-pipelines.ts';

await serveWorker([paidWork(parcels, 'sign')]);
