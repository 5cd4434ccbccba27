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
import { makeItem } from '../support/fake-engine.ts';
import { makeStage, type TestHandler } from '../support/make-drain.ts';

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
    { item: { retry_count: 2, submission: 5, execution: 3 } },
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

test('one that waits for a job that nobody could finish fails for good, and is told what to add', async () => {
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

test('one that wants to be alone is reported with a limit, once: the engine isolates its row', async () => {
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

test('a handler that does not heed its signal fails at the timeout all the same, to be retried', async () => {
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

test('what was used up is reported with success and with failure', async () => {
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
