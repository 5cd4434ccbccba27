// AlertLinks to play a scenario on the pipelines of a page: starting runs, doing the work of stages, looking at what came of it.

import { databaseRpc } from '../../packages/test/database-rpc.ts';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { createEngine } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import type { Item, Outcome } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import { createCheckpoints } from '../../supabase/functions/_millrace/stage/agent-checkpoints.ts';
import { createChildren } from '../../supabase/functions/_millrace/stage/spawn-children.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { runHandler } from '../../supabase/functions/_millrace/worker/run-handler.ts';
import type { Engine, Row } from '../support/engine.ts';
import { keepLog } from '../support/runtime/make-drain.ts';
import { type Claimed, completed, failed, Worker, waiting } from '../support/worker.ts';

/** Starts a run of a row; returns its number. */
export async function start(engine: Engine, pipeline: PipelineDefinition, id: unknown): Promise<string> {
  return engine.value<string>('select millrace.start($1, $2)', [pipeline.name, id]);
}

/** The work that the sweep does every ten seconds: it collects, among other things, what children have reported. */
export async function sweep(engine: Engine): Promise<void> {
  await engine.sql.query('select millrace.sweep()');
}

/** Claims what is ready at a stage; returns it with its worker. */
export async function claim(engine: Engine, pipeline: PipelineDefinition, stage: string, limit = 1000) {
  const worker = await Worker.of(engine, stage, pipeline.name);
  return { worker, items: await worker.take(limit) };
}

/** Completes all that is ready at a stage with this result and sweeps; returns what it was given. */
export async function finish(
  engine: Engine,
  pipeline: PipelineDefinition,
  stage: string,
  result: unknown = {},
): Promise<Claimed[]> {
  const { worker, items } = await claim(engine, pipeline, stage);
  if (items.length > 0) await worker.report(...items.map((item) => completed(item, result)));
  await worker.leave();
  engine.database.giveBack(worker.client);
  await sweep(engine);
  return items;
}

/** Fails for good what is ready at a stage, or the rows named, and sweeps; the others are left in work. */
export async function fail(engine: Engine, pipeline: PipelineDefinition, stage: string, ids?: string[]): Promise<void> {
  const { worker, items } = await claim(engine, pipeline, stage);
  const bad = items.filter((item) => !ids || ids.includes(item.entity_id));
  await worker.report(
    ...items.map((item) =>
      bad.includes(item)
        ? failed(item, { permanent: true, code: 'no_content', message: 'it is blank' })
        : completed(item),
    ),
  );
  await sweep(engine);
}

/** Claims one attempt, runs the stage's handler as its function would, and reports what came of it. */
export async function work(
  engine: Engine,
  stage: Stage,
  env: Env = {},
  callbackUrl = 'http://callback.test',
): Promise<Outcome | null> {
  const worker = await Worker.of(engine, stage.name, stage.pipeline.name);
  const item = (await worker.takeOne()) as Item;
  const controller = new AbortController();
  const client = createEngine({ rpc: databaseRpc(worker.client), retryUntil: () => 0, log: keepLog() });
  const held = { engine: client, worker: worker.id, item, signal: controller.signal };
  const outcome = await runHandler({
    stage,
    item,
    limits: { batch_size: 1, timeout_ms: 10_000, result_limit_bytes: 1_000_000 },
    env,
    callbackUrl,
    checkpoints: createCheckpoints(held),
    children: createChildren({ ...held, waker: { wake: () => {} } }),
    controller,
  });
  if (outcome) await worker.report({ attempt: item.attempt, token: item.token, ...outcome });
  await worker.leave();
  await sweep(engine);
  return outcome;
}

/** Claims a map stage and starts a child for each key, as its function does; its attempt waits for them then. */
export async function spawn(
  engine: Engine,
  pipeline: PipelineDefinition,
  stage: string,
  keys: string[],
): Promise<void> {
  const { worker, items } = await claim(engine, pipeline, stage, 1);
  const { attempt, token } = items[0] as Claimed;
  const chunk = JSON.stringify(keys.map((key) => ({ key })));
  const { rows } = await worker.client.query('select public.millrace_spawn($1, $2, $3, $4, true) as answer', [
    worker.id,
    attempt,
    token,
    chunk,
  ]);
  await worker.report(waiting({ attempt, token }, String(rows[0].answer.fan_out), 'children'));
  await sweep(engine);
}

/** The state of each stage of a run. */
export async function states(engine: Engine, run: string): Promise<Row> {
  const rows = await engine.rows<{ stage: string; state: string }>(
    'select stage, state from millrace.stage_runs where run_id = $1',
    [run],
  );
  return Object.fromEntries(rows.map(({ stage, state }) => [stage, state]));
}

/** The status of a run. */
export async function status(engine: Engine, run: string): Promise<string> {
  return engine.value<string>('select status from millrace.runs where id = $1', [run]);
}

/** The message of the newest failure of a run. */
export async function errorOf(engine: Engine, run: string): Promise<string> {
  return engine.value<string>(
    `select error_message from millrace.timeline($1) where state = 'failed' order by attempt_id desc limit 1`,
    [run],
  );
}
