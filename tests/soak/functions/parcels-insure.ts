import { servePaidWork } from './paid-work.ts';
import { changedParcels } from './parcel-pipelines.ts';

servePaidWork(changedParcels, 'insure');
