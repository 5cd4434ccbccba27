// Names that the examples in docstrings use: a pipeline of orders, and the arguments of a handler. None of it ever
// runs.
import type { z } from 'zod';
import {
  definePipeline,
  type Env,
  type FinishContext,
  type HandlerContext,
} from '../../supabase/functions/_millrace/mod.ts';

const work = {
  kind: 'function' as const,
  batchSize: 10,
  maxWorkers: 2,
  leaseSeconds: 60,
  timeoutSeconds: 30,
  retry: { maxAttempts: 4, backoff: { kind: 'list' as const, seconds: [5, 60] } },
};

export const orders = definePipeline({
  name: 'orders',
  entity: { table: 'public.orders', key: 'id', projection: 'columns' },
  stages: {
    pack: { ...work, function: 'orders-pack' },
    notify: {
      ...work,
      kind: 'external',
      function: 'orders-notify',
      needs: ['pack'],
      completion: { callback: true, pollSeconds: 30, deadlineSeconds: 3600 },
    },
    research: { ...work, kind: 'agent', function: 'orders-research', agent: { maxTurns: 10 } },
    parcels: { ...work, kind: 'map', function: 'orders-parcels', child: { pipeline: 'parcels' } },
  },
});

/** The row of an order, as a stage's input has it. */
export declare const entity: { id: string; email: string; body: string; audio_url: string };
export declare const context: HandlerContext;
export declare const finishContext: FinishContext;
export declare const env: Env;
/** A file's content. */
export declare const bytes: Uint8Array<ArrayBuffer>;
/** A service's answer once its job has ended. */
export declare const job: unknown;
/** A schema of a model's answer. */
export declare const answerSchema: z.ZodObject<{ summary: z.ZodString }>;
