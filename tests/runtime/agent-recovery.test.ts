// Agents over the real engine: the runtime's own drain and handler, a database, and a model that replies by what it is told.
import { expect, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { databaseRpc } from '../../packages/test/database-rpc.ts';
import { keepChildren } from '../../packages/test/kept-children.ts';
import type { defineTool } from '../../supabase/functions/_millrace/agents/agent-tools.ts';
import { createEngine, type Rpc } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import { createCheckpoints } from '../../supabase/functions/_millrace/stage/agent-checkpoints.ts';
import { handBack, type Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { stepsOf } from '../../supabase/functions/_millrace/stage/steps.ts';
import { ChildCollector } from '../../supabase/functions/_millrace/worker/collect-children.ts';
import { Drain } from '../../supabase/functions/_millrace/worker/drain.ts';
import { Isolate } from '../../supabase/functions/_millrace/worker/isolate.ts';
import { runHandler } from '../../supabase/functions/_millrace/worker/run-handler.ts';
import { type Engine, type Row, test } from '../support/engine.ts';
import { answering, calling, lookTool, makeAgent } from '../support/runtime/agent-model.ts';
import { budgetOf, keepLog } from '../support/runtime/make-drain.ts';
import { startModelServer } from '../support/runtime/model-server.ts';
import { until } from '../support/until.ts';

/** When a function dies: at its call `name` (of the turn `seq` if given), before or after that is carried out. */
interface Death {
  when: 'before' | 'after';
  name: string;
  seq?: number;
}

/** One invocation of the agent's function. Once dead it hears and says nothing any more. */
const invoke = (engine: Engine, env: Record<string, string>, tool: ReturnType<typeof defineTool>, death?: Death) =>
  invokeStage(engine, env, makeAgent([tool]), death);

async function invokeStage(engine: Engine, env: Record<string, string>, stage: Stage, death?: Death) {
  const carryOut = databaseRpc(await engine.database.connect('service_role'));
  const calls: string[] = [];
  let dead = false;
  const deathAt = (when: Death['when'], name: string, args: Record<string, unknown>) => {
    const seq = (args.p_turns as { seq: number }[] | undefined)?.[0]?.seq;
    dead ||= death?.when === when && death.name === name && death.seq === seq;
    return dead ? new Promise<never>(() => {}) : null;
  };
  const rpc: Rpc = async (name, args, signal) => {
    calls.push(name);
    await deathAt('before', name, args);
    const answer = await carryOut(name, args, signal);
    await deathAt('after', name, args);
    return answer;
  };
  const log = keepLog();
  const client = createEngine({ rpc, retryUntil: () => 0, log });
  const waker = { wake: () => {}, settled: async () => {} };
  const drain = new Drain({
    pipeline: 'flow',
    stage: 'think',
    engine: client,
    budget: budgetOf(10_000),
    waker,
    collector: new ChildCollector({ engine: client, waker, log }),
    log,
    isolate: new Isolate(),
    probe: async () => true,
    assumed: { batch_size: 1, timeout_ms: 5_000, result_limit_bytes: 10_000 },
    run: (item, { worker, ...context }) => {
      const checkpoints = createCheckpoints({ engine: client, worker, item, signal: context.controller.signal });
      const given = { stage, item, ...context, env, callbackUrl: 'http://callback.test', checkpoints };
      return runHandler({ ...given, children: keepChildren() });
    },
  });
  const ended = drain.run();
  if (death) await until(() => dead);
  return { end: death ? 'dead' : await ended, calls, log };
}

/** A pipeline with one agent stage and one queued item; the model looks once and then answers. */
async function prepare(engine: Engine, agent: Row = {}) {
  const retry = { max_attempts: 3, backoff: { kind: 'list', seconds: [0] } };
  await engine.pipeline([{ name: 'think', kind: 'agent', agent, retry, timeout_seconds: 5, batch_size: 1 }]);
  const [id] = await engine.queued('think');
  const server = await startModelServer(({ body }) =>
    JSON.parse(body).input.length === 1 ? calling(['look', { page: 3 }]) : answering({ done: 3 }),
  );
  const keys = () => server.received.map((request) => request.headers['idempotency-key']);
  return { id, env: server.env, keys, asked: server.asked };
}

async function loseLease(engine: Engine) {
  await engine.advance('61 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ leases: 1 });
}

test.for([
  // The model’s answer is bought twice, under one key; the tool has not run yet.
  { death: { when: 'before', name: 'millrace_checkpoint', seq: 1 }, asked: 3, keys: 2, looked: 1 },
  { death: { when: 'after', name: 'millrace_checkpoint', seq: 1 }, asked: 2, keys: 2, looked: 1 },
  // The only case in which a tool runs twice: its output was not recorded.
  { death: { when: 'before', name: 'millrace_checkpoint', seq: 2 }, asked: 2, keys: 2, looked: 2 },
  { death: { when: 'after', name: 'millrace_checkpoint', seq: 2 }, asked: 2, keys: 2, looked: 1 },
  { death: { when: 'after', name: 'millrace_checkpoint', seq: 3 }, asked: 2, keys: 2, looked: 1 },
  { death: { when: 'before', name: 'millrace_complete' }, asked: 2, keys: 2, looked: 1 },
] as { death: Death; asked: number; keys: number; looked: number }[])(
  'after a crash $death.when $death.name $death.seq it goes on behind the last recorded turn',
  async ({ death, ...expected }, { engine }) => {
    const { id, env, keys, asked } = await prepare(engine);
    const { tool, looked } = lookTool();
    await invoke(engine, env, tool, death);
    await loseLease(engine);
    expect((await invoke(engine, env, tool)).end).toBe('empty');
    expect(await engine.attempts(id)).toEqual(['think 1 failed', 'think 2 completed']);
    expect((await engine.item(id)).think_result).toEqual({ done: 3 });
    expect({ asked: asked().length, keys: new Set(keys()).size, looked: looked.length }).toEqual(expected);
    // The same conversation makes the same request, or a service that knows the key would refuse it.
    const requests = new Map(asked().map((request, place) => [keys()[place], JSON.stringify(request)]));
    for (const [place, request] of asked().entries()) expect(requests.get(keys()[place])).toBe(JSON.stringify(request));
    expect(await engine.value('select count(*)::int from millrace.turns')).toBe(0);
  },
);

test('a tool that runs twice gets the same idempotency key, a later call of it another', async ({ engine }) => {
  const { env } = await prepare(engine);
  const keys: string[] = [];
  const { tool } = lookTool();
  const seen = { ...tool, run: (_: unknown, context: { idempotencyKey: string }) => keys.push(context.idempotencyKey) };
  const death: Death = { when: 'before', name: 'millrace_checkpoint', seq: 2 };
  await invoke(engine, env, seen, death);
  await loseLease(engine);
  await invoke(engine, env, seen, death);
  // Started over in the same run: another execution.
  await engine.sql.query(`update public.items set think_status = 'queued'`);
  await invoke(engine, env, seen);
  expect(keys).toHaveLength(3);
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
});

test('an attempt reports what it used itself, and what its execution did', async ({ engine }) => {
  const { id, env } = await prepare(engine, { debug: true });
  const { tool } = lookTool();
  await invoke(engine, env, tool, { when: 'after', name: 'millrace_checkpoint', seq: 2 });
  await loseLease(engine);
  await invoke(engine, env, tool);
  const run = (await engine.run(id)).id;
  expect(await engine.rows('select state, usage from millrace.timeline($1)', [run])).toEqual([
    { state: 'failed', usage: null },
    {
      state: 'completed',
      usage: expect.objectContaining({ turns: 1, input_tokens: 1_000, stage_run_turns: 2, stage_run_tokens: 2_200 }),
    },
  ]);
  expect(
    await engine.rows('select seq, kind, what, tool, arguments, output, tokens::int, asked from millrace.agent_log'),
  ).toEqual([
    {
      seq: 1,
      kind: 'model',
      what: 'calls look',
      tool: 'look',
      arguments: '{"page":3}',
      output: null,
      tokens: 1_100,
      asked: `Find ${id}.`,
    },
    {
      seq: 2,
      kind: 'tool',
      what: 'answers',
      tool: 'look',
      arguments: '{"page":3}',
      output: 'page 3',
      tokens: null,
      asked: null,
    },
    {
      seq: 3,
      kind: 'model',
      what: 'answers',
      tool: null,
      arguments: null,
      output: '{"done":3}',
      tokens: 1_100,
      asked: null,
    },
  ]);
});

test('an attempt that is handed back between two turns is claimed again and goes on, as the same attempt', async ({
  engine,
}) => {
  const { id, env, asked } = await prepare(engine);
  const start = Date.now.bind(Date);
  // The tool takes three of the stage's five seconds, as far as anybody can tell.
  const { tool, looked } = lookTool(() => {
    vi.spyOn(Date, 'now').mockImplementation(() => start() + 3_000);
    return 'page 3';
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const { end, calls } = await invoke(engine, env, tool);
  expect(end).toBe('empty');
  expect(calls.filter((name) => name === 'millrace_turns')).toHaveLength(2);
  expect(await engine.attempts(id)).toEqual(['think 1 completed']);
  expect({ asked: asked().length, looked }).toEqual({ asked: 2, looked: [3] });
  const [{ usage } = {}] = await engine.rows('select usage from millrace.timeline($1)', [(await engine.run(id)).id]);
  expect(usage).toMatchObject({ turns: 2, input_tokens: 2_000 });
});

test('an attempt that is cancelled between two turns ends at once and quietly', async ({ engine }) => {
  const { id, env, asked } = await prepare(engine);
  const run = (await engine.run(id)).id;
  const { tool } = lookTool(() => engine.sql.query('select millrace.cancel($1)', [run]).then(() => 'cancelled'));
  const { end, calls, log } = await invoke(engine, env, tool);
  expect(end).toBe('empty');
  expect(calls).not.toContain('millrace_renew');
  expect(log.lines.filter((line) => !line.startsWith('drained'))).toEqual([]);
  expect(asked()).toHaveLength(1);
  expect(await engine.attempts(id)).toEqual(['think 1 cancelled']);
});

test('a limit lowered while the agent is at work holds for its next attempt, and the conversation stays', async ({
  engine,
}) => {
  const { id, env } = await prepare(engine);
  const { tool } = lookTool();
  await invoke(engine, env, tool, { when: 'after', name: 'millrace_checkpoint', seq: 2 });
  await engine.sql.query(`update millrace.stages set agent = '{"max_turns": 1}'`);
  await loseLease(engine);
  await invoke(engine, env, tool);
  expect(await engine.attempts(id)).toEqual(['think 1 failed', 'think 2 failed']);
  expect(await engine.item(id)).toMatchObject({
    think_status: 'failed',
    think_error: expect.stringContaining('limit of 1 turn (agent.max_turns)'),
  });
  expect(await engine.value('select count(*)::int from millrace.turns')).toBe(2);
});

test.for([
  undefined,
  { when: 'before', name: 'millrace_checkpoint', seq: 3 },
  { when: 'after', name: 'millrace_checkpoint', seq: 3 },
] as (Death | undefined)[])(
  'a stage of any kind goes on behind its last step, in more calls than a row may be handed back without one (%o)',
  async (death, { engine }) => {
    const retry = { max_attempts: 3, backoff: { kind: 'list', seconds: [0] } };
    await engine.pipeline([{ name: 'think', kind: 'function', retry, timeout_seconds: 5, batch_size: 1 }]);
    const [id] = await engine.queued('think');
    const begun: number[] = [];
    const stage: Stage = {
      ...makeAgent([lookTool().tool]),
      settings: [],
      handler: async (_, context) => {
        const { done, record } = await stepsOf('pages', z.object({ to: z.number() }), context);
        const to = (done.at(-1)?.to ?? 0) + 1;
        if (to > 5) return { done: done.length };
        begun.push(to);
        await record({ to });
        return handBack();
      },
    };
    // Each step is another worker's, whose request may come to another isolate.
    for (let call = 1; call <= (death ? 7 : 6); call++) {
      const { end } = await invokeStage(engine, {}, stage, call === 3 ? death : undefined);
      if (end === 'dead') await loseLease(engine);
    }
    expect((await engine.item(id)).think_result).toEqual({ done: 5 });
    expect(begun).toEqual(death?.when === 'before' ? [1, 2, 3, 3, 4, 5] : [1, 2, 3, 4, 5]);
    expect(await engine.attempts(id)).toEqual(death ? ['think 1 failed', 'think 2 completed'] : ['think 1 completed']);
  },
);
