import { expect } from 'vitest';
import { z } from 'zod';
import { definePipeline } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { PermanentError, RetriableError } from '../../supabase/functions/_millrace/errors.ts';
import { type BatchStageOptions, defineBatchStage } from '../../supabase/functions/_millrace/stage/batch-stage.ts';
import { rowsToPutBack } from '../../supabase/functions/_millrace/stage/rows-to-put-back.ts';
import { type HandlerContext, type Stage, waiting } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type Engine, test } from '../support/engine.ts';
import { gate, keepLog } from '../support/runtime/make-drain.ts';
import { invoke } from '../support/runtime/real-drain.ts';
import { until } from '../support/until.ts';

const service = { name: 'presser' } as never;
const input = z.object({ entity: z.object({ id: z.number(), label: z.string() }) });
const output = z.object({ done: z.number() });
type Handler = BatchStageOptions<typeof input, typeof output, 'press'>['handler'];

const flow = definePipeline({
  name: 'flow',
  entity: { table: 'public.items', key: 'id', projection: 'columns' },
  stages: { press: { kind: 'function', function: 'flow-press', batchSize: 50, maxWorkers: 1 } },
});

const stageOf = (maxRows: number, handler: Handler) =>
  defineBatchStage({ pipeline: flow, stage: 'press', maxRows, input, output, services: [service], handler });

async function define(engine: Engine): Promise<void> {
  const press = { name: 'press', function: 'flow-press', batch_size: 50, max_workers: 1 };
  await engine.pipeline([{ ...press, retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [60] } } }]);
}

const errors = (engine: Engine) =>
  engine.rows('select press_status as status, press_error as error from public.items order by id');

test('fifty rows are one call, and a smaller maxRows makes as many calls as it needs, one at a time', async ({
  engine,
}) => {
  await define(engine);
  await engine.queued('press', 50);
  const sizes: number[] = [];
  let inWork = 0;
  const handler: Handler = async (rows) => {
    inWork += 1;
    sizes.push(rows.length);
    await Promise.resolve();
    expect(inWork).toBe(1);
    inWork -= 1;
    return rows.map((row) => ({ done: row.input.entity.id }));
  };
  await invoke(engine, stageOf(50, handler));
  expect(sizes).toEqual([50]);
  await engine.queued('press', 50);
  await invoke(engine, stageOf(20, handler));
  expect(sizes).toEqual([50, 20, 20, 10]);
  expect(new Set((await errors(engine)).map(({ status }) => status))).toEqual(new Set(['completed']));
});

test('each row has an outcome of its own, and one that is missing is a retry', async ({ engine }) => {
  await define(engine);
  const ids = await engine.queued('press', 5);
  await invoke(
    engine,
    stageOf(10, (rows) => {
      const [good, bad, busy, waits] = rows;
      return new Map(
        [
          [good, { done: 1 }] as const,
          [bad, new PermanentError('bent', 'It is bent: straighten it.')] as const,
          [busy, new RetriableError('busy', 'It is busy.')] as const,
          [waits, waiting(service, 'job-4')] as const,
        ].flatMap(([row, outcome]) => (row ? [[row, outcome] as const] : [])),
      );
    }),
  );
  expect(await engine.rows('select press_status as s from public.items order by id')).toEqual(
    ['completed', 'failed', 'queued', 'started', 'queued'].map((s) => ({ s })),
  );
  expect(await engine.attempts(ids[4])).toEqual(['press 1 failed', 'press 2 queued']);
  expect(await engine.value(`select string_agg(error ->> 'code', ' ' order by id) from millrace.attempts`)).toBe(
    'bent busy no_outcome',
  );
});

test('more outcomes than rows are nobody’s: each row is a retry that says so', async ({ engine }) => {
  await define(engine);
  await engine.queued('press', 2);
  await invoke(
    engine,
    stageOf(10, () => [{ done: 1 }, { done: 2 }, { done: 3 }]),
  );
  expect(await errors(engine)).toEqual(
    [1, 2].map(() => ({
      status: 'queued',
      error: expect.stringContaining('The call for 2 rows returned 3 outcomes'),
    })),
  );
});

/** Gives rows to a stage without a worker. */
function giveRows(stage: Stage, count: number) {
  const log = keepLog();
  const rows = Array.from({ length: count }, (_, at) => {
    const controller = new AbortController();
    const context = { signal: controller.signal, log, reportUsage: () => {} } as Partial<HandlerContext>;
    const given = { entity: { id: at + 1, label: '' } };
    const outcome = Promise.resolve(stage.handler(given, context as HandlerContext)).catch((error) => error.code);
    return { controller, outcome };
  });
  return { log, rows };
}

test('a row that is cancelled during a call is in none of the calls that look for the row to blame', async () => {
  const calls: number[][] = [];
  const held = gate();
  const stage = stageOf(10, async (rows) => {
    calls.push(rows.map(({ input: { entity } }) => entity.id));
    await held.opened;
    throw new PermanentError('bent', 'It is bent.');
  });
  const { rows } = giveRows(stage, 4);
  await until(() => calls.length === 1);
  for (const { controller } of rows.slice(0, 2)) controller.abort();
  held.open();
  expect(await Promise.all(rows.slice(2).map(({ outcome }) => outcome))).toEqual(['bent', 'bent']);
  expect(calls).toEqual([[1, 2, 3, 4], [3, 4], [3], [4]]);
});

test('the log tells of the usage of a call whose rows have all reported their own', async () => {
  const usage = { model: 'm', input_tokens: 7, output_tokens: 0, cost_usd: 0.5 };
  const stage = stageOf(10, (rows, { reportUsage }) => {
    for (const { context } of rows) context.reportUsage(usage);
    reportUsage(usage);
    return rows.map(() => ({ done: 1 }));
  });
  const { log, rows } = giveRows(stage, 2);
  expect(await Promise.all(rows.map(({ outcome }) => outcome))).toEqual([{ done: 1 }, { done: 1 }]);
  expect(log.lines).toEqual([expect.stringContaining('the usage of a call is not recorded')]);
});

test('a row that the input refuses, or whose result is none, fails alone', async ({ engine }) => {
  await define(engine);
  const ids = await engine.queued('press', 3);
  await engine.sql.query('update public.items set label = null where id = $1', [ids[0]]);
  const sizes: number[] = [];
  await invoke(
    engine,
    stageOf(10, (rows) => {
      sizes.push(rows.length);
      return rows.map((_, at) => ({ done: at === 0 ? ('none' as never) : 2 }));
    }),
  );
  expect(sizes).toEqual([2]);
  expect((await errors(engine)).map(({ status }) => status)).toEqual(['failed', 'failed', 'completed']);
});

test('a permanent error of a call is tracked down to its row; a retriable one is every row’s', async ({ engine }) => {
  await define(engine);
  await engine.queued('press', 8);
  const sizes: number[] = [];
  await invoke(
    engine,
    stageOf(50, (rows) => {
      sizes.push(rows.length);
      if (rows.some(({ input: { entity } }) => entity.label === 'item 3'))
        throw new PermanentError('bent', 'It is bent.');
      return rows.map(() => ({ done: 1 }));
    }),
  );
  expect(sizes).toEqual([8, 4, 2, 2, 1, 1, 4]);
  expect((await errors(engine)).map(({ status }) => status === 'failed')).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8].map((n) => n === 3),
  );
  await engine.queued('press', 4);
  sizes.length = 0;
  await invoke(
    engine,
    stageOf(50, (rows) => {
      sizes.push(rows.length);
      throw new RetriableError('busy', 'The service is busy.');
    }),
  );
  expect(sizes).toEqual([4]);
});

test('the cost of a call is shared evenly, but for a row that tells its own', async ({ engine }) => {
  await define(engine);
  await engine.queued('press', 3);
  await invoke(
    engine,
    stageOf(50, (rows, { reportUsage }) => {
      rows[2]?.context.reportUsage({ model: 'm', input_tokens: 1, output_tokens: 0, cost_usd: 5 });
      reportUsage({ model: 'm', input_tokens: 7, output_tokens: 0, cost_usd: 0.5 });
      return rows.map(() => ({ done: 1 }));
    }),
  );
  expect(
    await engine.rows(`select (usage -> 'input_tokens')::int as tokens, (usage -> 'cost_usd')::float8 as usd
      from millrace.attempts order by id`),
  ).toEqual([
    { tokens: 4, usd: 0.25 },
    { tokens: 3, usd: 0.25 },
    { tokens: 1, usd: 5 },
  ]);
});

test('a process that is to end puts back the rows that wait for a call, and finishes the call in work', async ({
  engine,
}) => {
  await define(engine);
  await engine.queued('press', 5);
  const held = gate();
  const sizes: number[] = [];
  const stage = stageOf(2, async (rows) => {
    sizes.push(rows.length);
    await held.opened;
    return rows.map(() => ({ done: 1 }));
  });
  let released = 0;
  const working = invoke(engine, stage, (_, { p_items: items = [] }) => {
    released += (items as { outcome: string }[]).filter(({ outcome }) => outcome === 'released').length;
    return false;
  });
  await until(() => sizes.length === 1);
  for (const putBack of rowsToPutBack) putBack();
  await until(() => released >= 3);
  expect(sizes).toEqual([2]);
  held.open();
  await working;
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'completed'`)).toBe(5);
});

test('maxRows beyond what a worker holds is refused with the remedy', () => {
  expect(() => stageOf(51, () => [])).toThrow(
    'maxRows of stage press of pipeline flow is 51, but must be a whole number from 1 to 50, the rows that a worker holds: ' +
      'raise batchSize in the definition, or lower maxRows.',
  );
});
