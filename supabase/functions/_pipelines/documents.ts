import { definePipeline } from '../_millrace/mod.ts';
import { documentQuota } from './document-monolith.ts';
import { ownWork, throughOutages } from './stage-defaults.ts';

const work = throughOutages(ownWork);
/** Organisations take turns, and none has more than this in work at a stage. */
const turns = { concurrency: { column: 'clerk_org_id', limit: 10 } };

/** From a file to its text, its chunks and the facts in them. After a change run `npm run pipelines:sync`. */
export const documents = definePipeline({
  name: 'documents',
  entity: {
    table: 'public.document',
    key: 'id',
    projection: 'columns',
    metadata: 'metadata',
    startableBy: ['authenticated'],
  },
  quota: documentQuota,
  stages: {
    // Opening a file takes most of what a function has of CPU and memory, which workers share that are in one isolate: few of
    // them, one file at a time each. Audio and pictures are jobs elsewhere.
    extraction: {
      ...work,
      maxWorkers: 2,
      kind: 'external',
      function: 'documents-extraction',
      completion: { callback: true, pollSeconds: 5, deadlineSeconds: 3600 },
      // A transcriber cannot be asked whether a recording still waits, so its hour counts from the submission: no more than
      // it gets through in that time.
      limits: { maxInFlight: 20, ...turns },
      slaSeconds: 15 * 60,
    },
    chunking: {
      ...work,
      function: 'documents-chunking',
      needs: ['extraction'],
      apply: 'public.apply_chunks',
      limits: turns,
      slaSeconds: 5 * 60,
    },
    kg_ingest: {
      ...work,
      kind: 'map',
      function: 'documents-kg-ingest',
      needs: ['chunking'],
      child: { pipeline: 'chunks' },
      // A graph with a hole in it that nobody knows of is worse than none: retry() asks for the failed chunks alone.
      fanIn: { failedChildren: 'fail' },
      // A document is in work here until its chunks are read, so one organisation's do not fill their stages.
      limits: turns,
      slaSeconds: 60 * 60,
    },
  },
});
