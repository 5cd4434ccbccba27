// One invocation of a stage's function over the real engine: the runtime's own drain, handler, spawning and collecting children.

import { databaseRpc } from '../../../packages/test/database-rpc.ts';
import { keepCheckpoints } from '../../../packages/test/kept-turns.ts';
import { createEngine, type Rpc } from '../../../supabase/functions/_millrace/engine/engine-client.ts';
import type { WakeTarget } from '../../../supabase/functions/_millrace/engine/engine-contract.ts';
import { createChildren } from '../../../supabase/functions/_millrace/stage/spawn-children.ts';
import type { Stage } from '../../../supabase/functions/_millrace/stage/stage.ts';
import { ChildCollector } from '../../../supabase/functions/_millrace/worker/collect-children.ts';
import { Drain, type DrainEnd } from '../../../supabase/functions/_millrace/worker/drain.ts';
import { Isolate } from '../../../supabase/functions/_millrace/worker/isolate.ts';
import { runHandler } from '../../../supabase/functions/_millrace/worker/run-handler.ts';
import type { Engine } from '../engine.ts';
import { until } from '../until.ts';
import { budgetOf, keepLog } from './make-drain.ts';

type Args = Record<string, unknown>;

/** Called around each call of the engine's functions, after it with the answer; true ends the function on the spot. */
export type Interruption = (name: string, args: Args, answer?: unknown) => boolean | undefined | Promise<unknown>;

/**
 * Runs a stage's function once, until its stage is empty or `interrupt` ends it. Once dead it hears and says nothing. Calls by
 * `through` where it is given, else in a session of its own.
 */
export async function invoke(engine: Engine, stage: Stage, interrupt: Interruption = () => false, through?: Rpc) {
  const carryOut = through ?? databaseRpc(await engine.database.connect('service_role'));
  const calls: { name: string; args: Args }[] = [];
  const woken: WakeTarget[] = [];
  let dead = false;
  const live = async (...told: Parameters<Interruption>) => {
    dead ||= (await interrupt(...told)) === true;
    if (dead) await new Promise<never>(() => {});
  };
  const rpc: Rpc = async (name, args, signal) => {
    await live(name, args);
    calls.push({ name, args });
    const answer = await carryOut(name, args, signal);
    await live(name, args, answer.data);
    return answer;
  };
  const log = keepLog();
  const client = createEngine({ rpc, retryUntil: () => 0, log });
  const waker = { wake: (stages: WakeTarget[]) => void woken.push(...stages), settled: async () => {} };
  const { definition } = stage;
  const drain = new Drain({
    pipeline: stage.pipeline.name,
    stage: stage.name,
    engine: client,
    budget: budgetOf(30_000),
    waker,
    collector: new ChildCollector({ engine: client, waker, log }),
    log,
    isolate: new Isolate(),
    probe: async () => true,
    assumed: {
      batch_size: definition.batchSize ?? 10,
      timeout_ms: 10_000,
      result_limit_bytes: definition.resultLimitBytes,
    },
    run: (item, { worker, ...context }) => {
      const children = createChildren({ engine: client, waker, worker, item, signal: context.controller.signal });
      const checkpoints = keepCheckpoints();
      const callbackUrl = 'http://callback.test';
      return runHandler({ stage, item, ...context, env: {}, callbackUrl, checkpoints, children });
    },
  });
  const ended = drain.run();
  const end = await Promise.race([ended, until(() => dead, 30_000).then((): DrainEnd | 'dead' => 'dead')]);
  return { end, calls, woken, log };
}
