// Batch prices where the provider or the project misbehaves: nothing is paid for twice, lost, or given to another row.
import { describe, expect } from 'vitest';
import type { Batch, Plan } from '../../local/services/batches/batch-jobs.ts';
import type { Action, Fault } from '../../local/services/batches/server.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type Engine, test } from '../support/engine.ts';
import { BatchSite, type SiteOptions } from '../support/runtime/batches.ts';

const ROWS = 4;
const apis = ['responses', 'messages'] as const;
const allDone = [{ status: 'completed', error: null, rows: ROWS }];

async function play(engine: Engine, options: SiteOptions, rows = ROWS): Promise<BatchSite> {
  const site = await new BatchSite(engine).start(options);
  await engine.queued('judge', rows);
  await site.untilDone();
  return site;
}

/** Lets the rows be gathered, and their batch begin. */
async function begun(engine: Engine, options: SiteOptions): Promise<BatchSite> {
  const site = await new BatchSite(engine).start(options);
  await engine.queued('judge', ROWS);
  await site.round();
  await engine.advance('301 seconds');
  await site.round();
  expect(site.provider.jobs.batches).toHaveLength(1);
  return site;
}

/** Ends the waits of all rows, whose next attempts then ask again. */
async function endWaits(engine: Engine): Promise<void> {
  await engine.sql.query(
    `update millrace.attempts set deadline_at = millrace.now() where state = 'waiting' and service = 'llm-batch'`,
  );
  await engine.sweepAll();
  await engine.advance('2 seconds');
}

/** Expects that the site began one batch, and asked nothing directly. */
function expectOne(site: BatchSite): void {
  expect(site.provider.jobs.batches).toHaveLength(1);
  expect(site.provider.calls.direct ?? 0).toBe(0);
}

const failing =
  (wanted: Action, fault: Fault, times: number) =>
  (action: Action, at: number): Fault | undefined =>
    action === wanted && at < times ? fault : undefined;

describe.each(apis)('a batch of the API %s is bought once', (api) => {
  test('though the provider answers with an error in the place of results for a quarter of an hour', async ({
    engine,
  }) => {
    const site = await play(engine, {
      api,
      fault: failing('results', { status: 200 }, 5),
      price: { fallback: 'direct' },
    });
    expect(await site.outcomes()).toEqual(allDone);
    expectOne(site);
  });

  test('though its results are an empty file for a quarter of an hour', async ({ engine }) => {
    let reads = 0;
    const results = (lines: string[]) => {
      reads += 1;
      return reads <= 4 ? [] : lines;
    };
    const site = await play(engine, { api, plan: () => ({ results }), price: { fallback: 'direct' } });
    expect(await site.outcomes()).toEqual(allDone);
    expectOne(site);
  });
});

test('the batch whose answer was lost is found, though its results cannot be read at first', async ({ engine }) => {
  const fault = (action: Action, at: number): Fault | undefined => {
    if (action === 'begin' && at === 0) return 'lost';
    return action === 'results' && at < 3 ? { status: 200 } : undefined;
  };
  const site = await play(engine, { api: 'messages', fault, plan: () => ({ polls: 0 }) });
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test('a batch that has ended without naming its files is asked again', async ({ engine }) => {
  const site = await play(engine, { plan: () => ({ filesAfter: 4 }), price: { fallback: 'direct' } });
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test('a batch that has named no files when its time is over is asked for them, not bought again', async ({
  engine,
}) => {
  const price = { within: '1h', fallback: 'direct' } as const;
  const site = await play(engine, { plan: () => ({ filesAfter: 15 }), price });
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test('an answer without a model’s name holds up no other, and no odd or second line takes a row’s answer', async ({
  engine,
}) => {
  const results = (lines: string[]) =>
    lines.flatMap((text) => {
      const line = JSON.parse(text);
      const { model: _, ...body } = line.response.body;
      const refused = { status_code: 400, body: { error: { code: 'forged', message: 'It is of no row.' } } };
      const odd = { ...line, custom_id: line.custom_id.replace(/(\d+)$/, '00$1'), response: refused };
      const second = { ...line, response: refused };
      const empty = { ...line, response: { status_code: null, body: {} } };
      const known = { ...line, response: { status_code: '200', body } };
      return [odd, empty, known, second].map((one) => JSON.stringify(one));
    });
  const site = await play(engine, { api: 'responses', plan: () => ({ results }) });
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test('a repeated refusal of a file fails no line behind the refused one', async ({ engine }) => {
  const site = await begun(engine, { plan: () => ({ end: 'running' }) });
  const [batch] = await engine.rows<{ id: string; job_id: string }>('select id, job_id from public.model_batches');
  const refusal = { line: 1, answer: { fault: { status: 400, code: null, type: null, message: 'refused' } } };
  const args = { p_job: batch, p_items: [refusal] };
  for (let n = 0; n < 2; n++) await site.rpc('model_batch_reject', args, AbortSignal.timeout(5_000));
  const failed = await engine.rows(
    `select row_number() over (order by id)::int as line, answer is not null as failed from public.model_batch_lines`,
  );
  expect(failed.filter((one) => one.failed)).toEqual([{ line: 1, failed: true }]);
});

test('a refusal of the whole file fails no row for good', async ({ engine }) => {
  const plan = (_: unknown, at: number): Plan => (at === 0 ? { invalid: [Number.NaN] } : {});
  const site = await play(engine, { plan });
  expect(await site.outcomes()).toEqual(allDone);
});

test('calls that gather at the same time fill one batch', async ({ engine }) => {
  const site = await new BatchSite(engine).start();
  const [pipeline, stage, service, settings, api, url, model] = ['flow', 'judge', 'llm-batch', 'LLM', 'chat', 'u', 'm'];
  const terms = { within_seconds: 86_400, gather_seconds: 60, max_rows: 100, max_bytes: 1_000_000 };
  const p_job = { pipeline, stage, service, settings, api, url, model, prices: {}, ...terms };
  const line = { attempt: 1, submission: 1, trace_id: 't', entity_id: '1', request: '{}', origin: {} };
  const args = (effect: string) => ({ p_job, p_items: [{ ...line, effect }] });
  await engine.sql.query('begin');
  const { p_items } = args('one');
  await engine.sql.query('select public.model_batch_gather($1, $2)', [p_job, JSON.stringify(p_items)]);
  let answered = false;
  const other = site.rpc('model_batch_gather', args('other'), AbortSignal.timeout(9_000)).then(({ error }) => {
    answered = true;
    expect(error).toBeNull();
  });
  const waits = () => engine.value('select exists (select from pg_locks where not granted)');
  while (!answered && !(await waits())) {}
  await engine.sql.query('commit');
  await other;
  expect(await engine.value('select count(*)::int from public.model_batches')).toBe(1);
});

test('a row that was edited before its batch began gets the answer to its new question', async ({ engine }) => {
  const site = await new BatchSite(engine).start();
  await engine.queued('judge', ROWS);
  await site.round(site.stages.slice(0, 1));
  await endWaits(engine);
  await engine.sql.query(`update public.items set label = 'edited ' || id`);
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expect(
    await engine.value(`select count(*)::int from public.items where judge_result ->> 'label' like 'EDITED%'`),
  ).toBe(ROWS);
  expectOne(site);
});

test('a row that was edited under way is asked again, and never gets the former answer', async ({ engine }) => {
  const site = await begun(engine, { plan: (_, at) => (at === 0 ? { polls: 3 } : {}) });
  await engine.sql.query(`update public.items set label = 'edited ' || id where id = 2`);
  await endWaits(engine);
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expect(await engine.value(`select judge_result ->> 'label' from public.items where id = 2`)).toBe('EDITED 2');
  expect(site.provider.jobs.batches.map(({ lines }) => lines.length)).toEqual([1, ROWS]);
});

test('a line that makes the file invalid is found by its number, though a row was edited meanwhile', async ({
  engine,
}) => {
  const site = await begun(engine, { plan: (_, at) => (at === 0 ? { invalid: [3] } : {}) });
  await engine.sql.query(`update public.items set label = 'edited ' || id where id = 1`);
  await endWaits(engine);
  await site.untilDone();
  const failed = await engine.rows(`select id::int from public.items where judge_status = 'failed'`);
  expect(failed).toEqual([{ id: 3 }]);
});

test('rows of a batch whose own run was cancelled are asked again once its time is over', async ({ engine }) => {
  const site = await begun(engine, { plan: (_, at) => (at === 0 ? { end: 'running' } : {}) });
  const cancelled = await engine.rows(
    `select millrace.cancel(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = 'model_batches' and r.status = 'running'`,
  );
  expect(cancelled).toHaveLength(1);
  // A person has taken the batch away for good.
  await engine.sql.query('update public.model_batches set closes_at = null');
  await engine.advance('55 hours');
  await endWaits(engine);
  for (let at = 0; at < 5; at++) {
    await site.round();
    await engine.advance('301 seconds');
  }
  expect(await site.outcomes()).toEqual(allDone);
});

test('a second batch is not begun while the first may still be on its way', async ({ engine }) => {
  const hidden: Batch[] = [];
  const worked = (action: Action, at: number) => {
    const { batches } = site.provider.jobs;
    if (action === 'begin' && at === 0) hidden.push(...batches.splice(0));
    // The list lags behind.
    if (action === 'list' && at === 0) batches.unshift(...hidden.splice(0));
  };
  const site: BatchSite = await new BatchSite(engine).start({ fault: failing('begin', 'lost', 1), worked });
  await engine.queued('judge', ROWS);
  await site.round();
  await engine.advance('61 seconds');
  await site.round();
  await engine.advance('45 seconds');
  await site.round();
  expect(site.provider.calls.list).toBe(1);
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test.for(apis)('a list of the API %s that lags for 25 minutes makes no second batch begin', async (api, { engine }) => {
  const hidden: Batch[] = [];
  const worked = (action: Action, at: number) => {
    if (action === 'begin' && at === 0) hidden.push(...site.provider.jobs.batches.splice(0));
  };
  const site: BatchSite = await new BatchSite(engine).start({ api, fault: failing('begin', 'lost', 1), worked });
  await engine.queued('judge', ROWS);
  for (let at = 0; at < 6; at++) {
    await site.round();
    await engine.advance('301 seconds');
  }
  expect(site.provider.calls).toMatchObject({ begin: 1, list: expect.toSatisfy((calls) => calls > 2) });
  site.provider.jobs.batches.push(...hidden);
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test('a batch whose call never arrived begins once the list has lacked it for half an hour', async ({ engine }) => {
  const site = await play(engine, { fault: failing('begin', { status: 502 }, 1) });
  expect(await site.outcomes()).toEqual(allDone);
  expect(site.provider.calls.list).toBeGreaterThan(4);
  expectOne(site);
});

test('a batch that the provider refused for now begins without half an hour’s wait', async ({ engine }) => {
  const site = await play(engine, { fault: failing('begin', { status: 429 }, 1) });
  expect(await site.outcomes()).toEqual(allDone);
  expect(site.provider.calls.list).toBeLessThan(3);
  expectOne(site);
});

test('a batch whose answer was lost is found by its file where the provider drops its key', async ({ engine }) => {
  const worked = () => {
    for (const batch of site.provider.jobs.batches) batch.metadata = {};
  };
  const site: BatchSite = await new BatchSite(engine).start({ fault: failing('begin', 'lost', 1), worked });
  await engine.queued('judge', ROWS);
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test.for(apis)('a call of the API %s that is answered with a former batch is not believed', async (api, { engine }) => {
  const answered = (action: Action, at: number, body: unknown): unknown =>
    action === 'begin' && at === 1 ? { ...(body as object), id: site.provider.jobs.batches[1]?.id } : body;
  const site: BatchSite = await begun(engine, { api, answered, price: { maxRows: ROWS } });
  await engine.queued('judge', ROWS);
  await site.untilDone();
  expect(await site.outcomes()).toEqual([{ status: 'completed', error: null, rows: 2 * ROWS }]);
  expect(site.provider.jobs.batches).toHaveLength(2);
  expect(site.provider.calls.direct ?? 0).toBe(0);
});

test('a batch that says it failed keeps the answers that it has', async ({ engine }) => {
  const answered = (action: Action, _: number, body: unknown) => {
    const { status } = body as { status?: string };
    return action === 'poll' && status === 'completed' ? { ...(body as object), status: 'failed' } : body;
  };
  const site = await play(engine, { answered });
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test.for(apis)(
  'results of the API %s that come three hours late are awaited, and hold up no other row',
  async (api, { engine }) => {
    let isLate = true;
    const results = (lines: string[]) => (isLate ? lines.slice(1) : lines);
    const site = await begun(engine, { api, plan: () => ({ results }), price: { fallback: 'direct' } });
    for (let at = 0; at < 36; at++) {
      await engine.advance('301 seconds');
      await site.round();
    }
    expect(await site.outcomes()).toEqual([
      { status: 'completed', error: null, rows: ROWS - 1 },
      { status: 'started', error: null, rows: 1 },
    ]);
    isLate = false;
    await site.untilDone();
    expect(await site.outcomes()).toEqual(allDone);
    expectOne(site);
  },
);

test.for(apis)(
  'an answer of the API %s counts, though an error of its row stands before it',
  async (api, { engine }) => {
    const results = (lines: string[]) =>
      lines.flatMap((text) => {
        const { custom_id } = JSON.parse(text);
        const error = { type: 'invalid_request_error', message: 'refused' };
        const fault = { response: { status_code: 400, body: { error } }, result: { type: 'errored', error } };
        return [JSON.stringify({ custom_id, ...fault }), text];
      });
    const site = await play(engine, { api, plan: () => ({ results }) });
    expect(await site.outcomes()).toEqual(allDone);
    expectOne(site);
  },
);

test('the second of two batches that one call began is cancelled', async ({ engine }) => {
  const worked = (action: Action, at: number) => {
    const { batches } = site.provider.jobs;
    if (action === 'begin' && at === 0) batches.push({ ...(batches[0] as Batch), id: 'batch_twin' });
  };
  const site: BatchSite = await new BatchSite(engine).start({ worked });
  await engine.queued('judge', ROWS);
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expect(site.provider.jobs.batches.map(({ id, isCancelled }) => [id === 'batch_twin', isCancelled])).toEqual([
    [false, false],
    [true, true],
  ]);
  expect(site.provider.calls.list).toBe(1);
});

test('a function that its rows’ answers overwhelm gets fewer of them', async ({ engine }) => {
  const site = await new BatchSite(engine).start();
  const sizes: number[] = [];
  site.endsFor = (rows) => sizes.push(rows) > 0 && rows > 5;
  await engine.queued('judge', 20);
  await site.untilDone();
  expect(await site.outcomes()).toEqual([{ status: 'completed', error: null, rows: 20 }]);
  expect(sizes.slice(0, 4)).toEqual([20, 20, 16, 4]);
});

test('each call to begin a batch is awaited for two minutes, not the first alone', async ({ engine }) => {
  const site = await new BatchSite(engine).start();
  await engine.queued('judge', ROWS);
  await site.round(site.stages.slice(0, 1));
  const id = await engine.value('select id from public.model_batches');
  const close = () => site.rpc('model_batch_close', { p_job: { id } }, AbortSignal.timeout(5_000));
  expect(await close()).toMatchObject({ data: { was_begun: false } });
  await engine.advance('121 seconds');
  expect(await close()).toMatchObject({ data: { was_begun: true, is_fresh: false } });
  await engine.advance('61 seconds');
  expect(await close()).toMatchObject({ data: { was_begun: true, is_fresh: true } });
  await engine.advance('60 seconds');
  expect(await close()).toMatchObject({ data: { was_begun: true, is_fresh: false } });
});

test('a row that is tried again while answers are handed over waits, and fails for no lack of them', async ({
  engine,
}) => {
  const site = await begun(engine, {});
  const [judge] = site.stages.splice(0, 1) as [Stage];
  for (let at = 0; at < 3; at++) {
    await engine.advance('301 seconds');
    await site.round();
  }
  expect(await engine.value('select count(*)::int from public.model_batches where ended_at is not null')).toBe(1);
  await endWaits(engine);
  for (let at = 0; at < 3; at++) {
    await site.round([judge]);
    await engine.advance('61 seconds');
  }
  expect(
    await engine.value(`select count(*)::int from millrace.attempts where error ->> 'code' = 'batch_ending'`),
  ).toBe(0);
  site.stages.unshift(judge);
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expectOne(site);
});

test('an answer goes to the batch that its job names, though a number is used again', async ({ engine }) => {
  const site = await begun(engine, { plan: () => ({ end: 'running' }) });
  const jobs = await engine.rows<{ job_id: string }>(
    `select job_id from millrace.attempts where state = 'waiting' and service = 'llm-batch' order by id limit 1`,
  );
  const [, line] = jobs[0]?.job_id.split('-') ?? [];
  const answers = await site.rpc(
    'model_batch_answers',
    { p_items: [`0123456789abcdef-${line}`] },
    AbortSignal.timeout(5_000),
  );
  expect(answers).toMatchObject({ error: null, data: [] });
});

test('a stage says so where no pipeline carries its batches', async ({ engine }) => {
  const site = await new BatchSite(engine).start({ lacksPipeline: true });
  await engine.queued('judge', 1);
  await site.round(site.stages.slice(0, 1));
  expect(
    await engine.value(`select error ->> 'message' from millrace.attempts where error is not null limit 1`),
  ).toContain('model_batches');
});

test('a batch that never ended is deleted a month after its time, but not while a run of one of its rows goes on', async ({
  engine,
}) => {
  const site = await begun(engine, { plan: () => ({ end: 'running' }) });
  const expire = async () => {
    await engine.sql.query(
      await engine.value<string>(`select command from cron.job where jobname = 'model-batches-expire'`),
    );
    return engine.value('select count(*)::int from public.model_batches');
  };
  const cancel = (pipeline: string, but: number) =>
    engine.sql.query(
      `select millrace.cancel(o.id) from (
         select r.id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
         where p.name = $1 and r.status = 'running' order by r.id offset $2) o`,
      [pipeline, but],
    );
  await cancel('flow', 1);
  await engine.advance('40 days');
  expect(await expire()).toBe(1);
  await cancel('model_batches', 0);
  expect(await expire()).toBe(1);
  await cancel('flow', 0);
  expect(await expire()).toBe(0);
  expect(await engine.value('select count(*)::int from public.model_batch_lines')).toBe(0);
  expect(site.provider.jobs.batches).toHaveLength(1);
});

test('a batch whose own run goes on stays, though no row waits for it', async ({ engine }) => {
  await begun(engine, { plan: () => ({ end: 'running' }) });
  await engine.sql.query(
    `select millrace.cancel(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = 'flow'`,
  );
  await engine.advance('40 days');
  await engine.sql.query('select public.model_batch_expire()');
  expect(await engine.value('select count(*)::int from public.model_batches')).toBe(1);
});

test('nobody but the project reads questions, or calls the functions of batches', async ({ engine }) => {
  await new BatchSite(engine).start();
  const open = await engine.rows(
    `select r.role, o.name
     from unnest(array['anon', 'authenticated']) r(role)
     cross join lateral (
       select c.relname::text as name from pg_class c
       where c.relname like 'model\\_batch%' and c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
         and has_table_privilege(r.role, c.oid, 'select, insert, update, delete, truncate')
       union all
       select p.oid::regprocedure::text from pg_proc p
       where p.proname like 'model\\_batch\\_%' and has_function_privilege(r.role, p.oid, 'execute')) o`,
  );
  expect(open).toEqual([]);
});

test('a gathering reads no more beside many questions than beside few, by plans made when there were none', async ({
  engine,
}) => {
  await new BatchSite(engine).start({});
  const batch = {
    pipeline: 'flow',
    stage: 'judge',
    service: 's',
    settings: 'LLM',
    api: 'responses',
    url: 'u',
    model: 'm',
  };
  const terms = { within_seconds: 86_400, gather_seconds: 600, max_rows: 50_000, max_bytes: 32_000_000 };
  const gather = (name: string, count: number) => {
    const lines = Array.from({ length: count }, (_, n) => ({
      effect: `${name}-${n}`,
      attempt: n,
      submission: n,
      trace_id: 't',
      entity_id: '1',
      request: '{}',
      origin: {},
    }));
    const args = [JSON.stringify({ ...batch, ...terms }), JSON.stringify(lines)];
    return engine.sql.query('select public.model_batch_gather($1, $2)', args);
  };
  // A session keeps a statement's plan after its fifth call.
  for (let n = 0; n < 7; n++) await gather(`first-${n}`, 2);
  for (let n = 0; n < 10; n++) await gather(`many-${n}`, 200);
  await engine.sql.query('begin');
  await gather('last', 50);
  const read = await engine.value<number>(
    `select (pg_stat_get_xact_tuples_returned(t) + pg_stat_get_xact_tuples_fetched(t))::int
       + (select sum(pg_stat_get_xact_tuples_returned(i.indexrelid))::int from pg_index i where i.indrelid = t)
     from (select 'public.model_batch_lines'::regclass::oid as t) x`,
  );
  await engine.sql.query('commit');
  expect(read).toBeLessThan(200);
  expect(await engine.value('select lines from public.model_batches')).toBe(2064);
});
