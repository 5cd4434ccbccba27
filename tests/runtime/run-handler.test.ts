import { expect, test } from 'vitest';
import { keepChildren } from '../../packages/test/kept-children.ts';
import { keepCheckpoints } from '../../packages/test/kept-turns.ts';
import type { Item } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { LeaseLost, PermanentError } from '../../supabase/functions/_millrace/errors.ts';
import { modelSettings } from '../../supabase/functions/_millrace/model/model-settings.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { Checkpoints } from '../../supabase/functions/_millrace/stage/agent-checkpoints.ts';
import { type HandlerContext, handBack, type Stage, waiting } from '../../supabase/functions/_millrace/stage/stage.ts';
import { runHandler } from '../../supabase/functions/_millrace/worker/run-handler.ts';
import { scraper } from '../../supabase/functions/_services/scraper.ts';
import { makeItem } from '../support/runtime/fake-engine.ts';
import { makeStage, type TestHandler } from '../support/runtime/make-drain.ts';

function run(
  handler: TestHandler,
  changes: { item?: Partial<Item>; env?: Env; timeoutMs?: number; stage?: object; checkpoints?: Checkpoints } = {},
) {
  const stage: Stage = { ...makeStage(handler), ...changes.stage };
  const limits = { batch_size: 1, timeout_ms: changes.timeoutMs ?? 5_000, result_limit_bytes: 1_000 };
  return runHandler({
    stage,
    item: makeItem(7, changes.item),
    limits,
    env: changes.env ?? {},
    callbackUrl: 'http://callback.test',
    controller: new AbortController(),
    checkpoints: changes.checkpoints ?? keepCheckpoints(),
    children: keepChildren(),
  });
}

test('a handler sees its input and its context', async () => {
  let seen: HandlerContext | undefined;
  const outcome = await run(
    (entity, context) => {
      seen = context;
      return { done: entity.id };
    },
    { item: { retry_count: 2, submission: 5, stage_run: 3 } },
  );
  expect(outcome).toEqual({ outcome: 'completed', result: { done: 7 } });
  expect(seen).toMatchObject({
    pipeline: 'test',
    stage: 'work',
    attempt: 7,
    run: 7,
    entityId: '7',
    submission: 5,
    idempotencyKey: 'trace-7-3',
    submissionKey: 'trace-7-5',
    retryCount: 2,
    traceId: 'trace-7',
    callbackUrl: 'http://callback.test',
  });
});

test('an input the stage cannot use is a permanent failure that names the field', async () => {
  const outcome = await run(() => ({ done: 1 }), { item: { entity: { id: null } } });
  expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'invalid_input', permanent: true } });
  expect(outcome).toHaveProperty('error.message', expect.stringMatching(/input\.entity\.id.*found: null/));
});

test('a column that no row has is a setting to mend, and kills no row', async () => {
  const outcome = await run(() => ({ done: 1 }), { item: { entity: { other: 1 } } });
  expect(outcome).toMatchObject({
    outcome: 'failed',
    error: {
      code: 'misconfigured',
      permanent: false,
      message:
        'The input of stage work wants the column id, which no row has: take it out of input, or add it to the table and call ' +
        "select millrace.attach('test').",
    },
  });
});

test('a handler that waits for a job of a service that its stage names says so', async () => {
  const outcome = await run(() => waiting(scraper, 'j1'), { stage: { services: [scraper] } });
  expect(outcome).toEqual({ outcome: 'waiting', service: 'scraper', job_id: 'j1' });
});

test('a handler that waits for a job that the stage cannot finish fails for good, with what to add', async () => {
  const outcome = await run(() => waiting({ name: 'printer' }, 'j1'), { stage: { services: [scraper] } });
  expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'unknown_service', permanent: true } });
  expect(outcome).toHaveProperty(
    'error.message',
    expect.stringMatching(/service printer.*add it to services.*finish/s),
  );
});

test('a handler that hands its attempt back is reported as released', async () => {
  expect(await run(() => handBack())).toEqual({ outcome: 'released' });
});

test('a handler that wants to be alone is reported with a limit, once, so the engine isolates its row', async () => {
  const handler: TestHandler = (_, { isAlone }) => (isAlone ? { done: 1 } : handBack({ alone: true }));
  expect(await run(handler)).toEqual({ outcome: 'released', limit: 'memory' });
  expect(await run(handler, { item: { isolated: true } })).toEqual({ outcome: 'completed', result: { done: 1 } });
  expect(await run(() => handBack({ alone: true }), { item: { isolated: true } })).toEqual({ outcome: 'released' });
});

test('of an attempt that was taken away nothing is reported', async () => {
  const checkpoints: Checkpoints = {
    load: () => Promise.reject(new LeaseLost('taken')),
    append: () => Promise.reject(new LeaseLost('taken')),
  };
  expect(await run((_, context) => context.checkpoints.load(), { checkpoints })).toBeNull();
});

test('a handler that does not sweepIfDue its signal fails at the timeout all the same, to be retried', async () => {
  let aborted = false;
  const outcome = await run(
    (_, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return new Promise(() => {});
    },
    { timeoutMs: 20 },
  );
  expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'timeout', permanent: false } });
  expect(aborted).toBe(true);
});

test('a handler that fails because its signal was aborted at the timeout is reported as a timeout', async () => {
  const outcome = await run(
    (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    { timeoutMs: 20 },
  );
  expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'timeout' } });
});

test('the usage is reported with success and with failure', async () => {
  const usage = { model: 'm', prompt: 'p', input_tokens: 1, output_tokens: 2, cost_usd: null };
  expect(
    await run((_, context) => {
      context.reportUsage(usage);
      return { done: 1 };
    }),
  ).toMatchObject({ outcome: 'completed', usage });
  expect(
    await run((_, context) => {
      context.reportUsage(usage);
      throw new PermanentError('no_content', 'nothing');
    }),
  ).toMatchObject({ outcome: 'failed', usage });
});

test('an output that is not as declared is a failure, never a completion', async () => {
  const outcome = await run(() => ({ done: 'yes' }));
  expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'invalid_output', permanent: true } });
});

test('with a wrong setting the handler does not run and the attempt is kept for a retry', async () => {
  let ran = false;
  const handler = () => {
    ran = true;
    return { done: 1 };
  };
  const outcome = await run(handler, { stage: { settings: [modelSettings] }, env: { LLM_MODEL: 'm' } });
  expect(ran).toBe(false);
  expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'misconfigured', permanent: false } });
  expect(outcome).toHaveProperty('error.message', expect.stringContaining('LLM_URL is not set'));
});

const usageOf = async (answer: ReturnType<typeof run>) => ((await answer) as { usage?: { log?: string } }).usage;

test('the last 50 lines of a failed try go with its outcome, without secrets and control characters', async () => {
  const outcome = run(
    (_, { log }) => {
      for (let at = 1; at <= 60; at++) log.info(`line ${at}`);
      log.warn('refused\u001b[31m\nby\u0000', { key: 'sk-secret-0123456789', half: '\ud800' });
      throw new Error('gone');
    },
    { env: { CARRIER_API_KEY: 'sk-secret-0123456789' } },
  );
  const { log = '' } = (await usageOf(outcome)) ?? {};
  const lines = log.split('\n');
  expect(lines).toHaveLength(51);
  expect(lines[0]).toBe('… 11 lines before are not kept');
  expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d\.\d\d\d info line 12$/);
  expect(lines.at(-1)).toMatch(/^[\d:.]+ warn refused {2}by� \{"key":"•••","half":"\\ud800"\}$/);
});

test('the lines take 4 kB at most, however long each is, and keep the usage beside them', async () => {
  const usage = { model: 'm', input_tokens: 1, output_tokens: 2, cost_usd: 0.5 };
  const outcome = run((_, { log, reportUsage }) => {
    reportUsage(usage);
    for (let at = 1; at <= 20; at++) log.error(`line ${at}`, { text: 'ä'.repeat(5_000) });
    throw new Error('gone');
  });
  const { log = '', ...rest } = (await usageOf(outcome)) ?? {};
  expect(rest).toEqual(usage);
  expect(new TextEncoder().encode(log).length).toBeLessThanOrEqual(4_096);
  expect(log).toMatch(/^… 18 lines before are not kept\n.* error line 19 .*\n.* error line 20 /);
});

test('a try that completes keeps its lines only where the definition says so; one that timed out keeps them', async () => {
  const speaks: TestHandler = (_, { log }) => {
    log.info('done');
    return { done: 1 };
  };
  expect(await usageOf(run(speaks))).toBeUndefined();
  const { definition } = makeStage(speaks);
  const every = { stage: { definition: { ...definition, keepLog: 'every' } } };
  expect((await usageOf(run(speaks, every)))?.log).toMatch(/ info done$/);
  expect(await usageOf(run(() => ({ done: 1 }), every))).toBeUndefined();
  const hangs: TestHandler = (_, { log }) => {
    log.info('waits');
    return new Promise(() => {});
  };
  expect((await usageOf(run(hangs, { timeoutMs: 1 })))?.log).toMatch(/ info waits$/);
});
