import { servePaidWork } from './paid-work.ts';
import { labels } from './parcel-pipelines.ts';

servePaidWork(labels, 'print');
