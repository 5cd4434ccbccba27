// Pipelines of the soak's own: hundreds of rows at once through quick handlers, past a gate, under limits of all kinds, with
// children, a stage on a worker of its own and one that takes many rows in a call. The work that each stage does is paid for (toll.ts) and booked (parcels.ts), so that both can be counted.
import { definePipeline, defineSharedLimits } from '../../../supabase/functions/_millrace/mod.ts';

const work = {
  kind: 'function' as const,
  batchSize: 40,
  maxWorkers: 2,
  leaseSeconds: 60,
  timeoutSeconds: 20,
  retry: {
    maxAttempts: 8,
    backoff: { kind: 'exponential' as const, baseSeconds: 1, factor: 2, capSeconds: 30, jitter: 0.2 },
  },
  apply: 'public.book_work',
};

export const parcelLimits = defineSharedLimits({
  lorries: { rate: { count: 600, perSeconds: 60 }, maxInFlight: 120 },
});

/** The columns that a parcel consists of. */
export const labels = definePipeline({
  name: 'labels',
  entity: { table: 'public.labels', key: 'id', projection: 'none' },
  retention: { days: 1 },
  stages: { print: { ...work, function: 'labels-print' } },
});

function parcelPipeline(changed: boolean) {
  return definePipeline({
    name: 'parcels',
    entity: { table: 'public.parcels', key: 'id', projection: 'columns' },
    retention: { days: 1 },
    quota: { column: 'sender', starts: { count: 20_000, perSeconds: 3600 } },
    stages: {
      weigh: {
        ...work,
        function: 'parcels-weigh',
        limits: {
          concurrency: { column: 'sender', limit: changed ? 25 : 60 },
          backPressure: { stage: 'carry', backlog: changed ? 300 : 500 },
        },
      },
      // A parcel that has been weighed waits here until there is room in the lorries.
      dispatch: {
        kind: 'gate',
        needs: ['weigh'],
        limits: { rate: { count: 900, perSeconds: 60 }, backPressure: { stage: 'carry', backlog: 250 } },
      },
      carry: {
        ...work,
        batchSize: changed ? 15 : 40,
        function: 'parcels-carry',
        needs: ['dispatch'],
        limits: { concurrency: { column: 'sender', limit: 50 }, shared: ['lorries'] },
      },
      unpack: {
        kind: 'map',
        function: 'parcels-unpack',
        needs: ['carry'],
        when: '$.entity.weight > 5',
        batchSize: 20,
        maxWorkers: 1,
        leaseSeconds: work.leaseSeconds,
        timeoutSeconds: work.timeoutSeconds,
        retry: work.retry,
        child: { pipeline: 'labels', insert: 'public.insert_labels' },
      },
      ...(changed && { insure: { ...work, function: 'parcels-insure', needs: ['carry'] } }),
      sign: { ...work, host: 'worker', function: 'parcels-sign', needs: changed ? ['unpack', 'insure'] : ['unpack'] },
    },
  });
}

export const parcels = parcelPipeline(false);
/** The same with another stage, and other limits and batches. */
export const changedParcels = parcelPipeline(true);

/** Whose work is paid for and booked. */
export const bookedStages = ['weigh', 'carry', 'insure', 'sign', 'print', 'judge', 'reply'];
