import { servePaidWork } from './paid-work.ts';
import { parcels } from './parcel-pipelines.ts';

servePaidWork(parcels, 'weigh');
