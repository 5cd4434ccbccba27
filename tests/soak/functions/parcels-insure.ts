import { serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { paidWork } from './paid-work.ts';
import { changedParcels } from './parcel-pipelines.ts';

serveStage(paidWork(changedParcels, 'insure'));
