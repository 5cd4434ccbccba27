// Figures: what happened, counted once as it happens, and read without the attempts.
import { expect } from 'vitest';
import { bookkeepingFaults } from '../../support/bookkeeping.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { type Claimed, completed, failed, runStage, Worker } from '../../support/worker.ts';

const sweep = (engine: Engine) => engine.sql.query('select millrace.sweep()');

/** Works off everything that is ready at a stage, each item as `say` says of it. */
async function work(engine: Engine, stage: string, say: (item: Claimed, place: number) => Row): Promise<void> {
  const worker = await Worker.of(engine, stage);
  await worker.complete((await worker.take(50)).map(say));
  await worker.leave();
}

const figures = async (engine: Engine, stage: string | null, from = '-1 day', to = '1 day') =>
  (
    await engine.rows(
      `select * from millrace.figures('flow', $1, millrace.now() + $2::interval, millrace.now() + $3::interval)`,
      [stage, from, to],
    )
  )[0] as Row;

test('a batch of completions is one pulse, which the sweep adds to minute, hour and total', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first', 8);
  await engine.advance('2 seconds');
  const worker = await Worker.of(engine, 'first');
  const items = await worker.take(8);
  await engine.advance('20 seconds');
  await worker.complete(items.map((item) => ({ ...completed(item), usage: { cost_usd: 0.25, input_tokens: 100 } })));
  const none = { run_ms: null, wait_ms: null, cost_usd: null, input_tokens: null };
  expect(
    await engine.rows(
      'select outcome, n, run_ms, wait_ms, cost_usd, input_tokens from millrace.pulses order by n desc',
    ),
    'and one of what they used',
  ).toEqual([
    { ...none, outcome: 'completed', n: 8, run_ms: Array(8).fill(20_000), wait_ms: Array(8).fill(2_000) },
    { ...none, outcome: 'completed', n: 0, cost_usd: '2.00', input_tokens: '800' },
  ]);
  await sweep(engine);
  expect(await engine.value('select count(*)::int from millrace.pulses')).toBe(0);
  for (const unit of ['minute', 'hour', 'total']) {
    expect(
      await engine.rows(
        `select outcome, n::int, runs[8]::int as r7, waits[6]::int as w5, cost_usd::float8
         from millrace.sums where unit = $1 and outcome <> 'ready'`,
        [unit],
      ),
    ).toEqual([{ outcome: 'completed', n: 8, r7: 8, w5: 8, cost_usd: 2 }]);
  }
  expect(await figures(engine, 'first')).toMatchObject({ completed: '8', run_p50_ms: expect.closeTo(17_321, -1) });
});

test('a pipeline without a stage has its runs’ outcomes, and the codes, cost, retries and waits of all its stages', async ({
  engine,
}) => {
  const retry = { max_attempts: 2, backoff: { kind: 'list', seconds: [5] } };
  await engine.pipeline(chain(['first', 'second'], { retry }));
  await engine.queued('first', 3);
  await engine.advance('2 seconds');
  const dear = (row: Row) => ({ ...row, usage: { cost_usd: 0.25, input_tokens: 10, output_tokens: 1 } });
  await work(engine, 'first', (item, place) => dear(place === 0 ? failed(item, { code: 'busy' }) : completed(item)));
  await engine.advance('2 seconds');
  await work(engine, 'second', (item) => dear(failed(item, { code: 'gone', permanent: true })));
  await sweep(engine);
  const minute = "millrace.now() - interval '1 minute', millrace.now() + interval '1 minute', '2 minutes'";
  const of = { failed: '2', completed: '0', retried: '1', codes: { busy: 1, gone: 2 } };
  const spent = { cost_usd: expect.stringMatching(/^1\.250*$/), input_tokens: '50', output_tokens: '5' };
  const waited = { wait_p95_ms: expect.closeTo(2500, -3) };
  expect(await figures(engine, null)).toMatchObject({ ...of, ...spent, ...waited, run_p50_ms: null });
  const [point] = await engine.rows(`select * from millrace.series('flow', null, ${minute})`);
  expect(point).toMatchObject({ ...of, ...spent, ...waited });
  // A stage has its own alone.
  expect(await figures(engine, 'first')).toMatchObject({
    failed: '0',
    completed: '2',
    retried: '1',
    codes: { busy: 1 },
  });
});

test('failures are counted by what follows and by code, runs by how they ended', async ({ engine }) => {
  await engine.pipeline(chain(['first'], { retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [30] } } }));
  await engine.queued('first', 3);
  await work(engine, 'first', (item, place) =>
    place === 0 ? failed(item, { code: 'gone', permanent: true }) : failed(item, { code: 'http_503' }),
  );
  await engine.advance('40 seconds');
  await runStage(engine, 'first');
  await sweep(engine);
  expect(await figures(engine, 'first')).toMatchObject({
    failed: '1',
    retried: '2',
    completed: '2',
    codes: { gone: 1, http_503: 2 },
    // The retries waited for their backoff, which tells nothing of the queue.
    wait_p95_ms: expect.closeTo(9.5, 1),
  });
  expect(await figures(engine, null)).toMatchObject({
    failed: '1',
    completed: '2',
    run_p50_ms: expect.closeTo(60_000, -4),
  });
});

test('a run that ends under a name, is cancelled or skipped over is counted as such', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['first', 'second']));
  const [first, second] = definition.stages;
  const ends = [{ name: 'not_ours', when: '$.result.ok == false' }];
  await engine.define({ ...definition, stages: [{ ...first, ends }, second] });
  const [, other] = await engine.queued('first', 2);
  await work(engine, 'first', (item, place) => completed(item, { ok: place === 1 }));
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(other)).id]);
  await sweep(engine);
  expect(await figures(engine, null)).toMatchObject({ completed: '0', ended: '1', cancelled: '1' });
  expect(await figures(engine, 'second')).toMatchObject({ completed: '0', skipped: '1', cancelled: '1' });
});

test('a late sweep delays figures: each counts in the minute and hour in which it happened', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  await engine.advance('59 minutes 59 seconds');
  for (let n = 0; n < 3; n++) {
    await engine.queued('only');
    await runStage(engine, 'only');
    await engine.advance('1 second');
  }
  await engine.advance('5 hours');
  await sweep(engine);
  const by = (unit: string) =>
    engine.rows(
      `select to_char(at at time zone 'UTC', 'HH24:MI') as at, n::int as completed from millrace.sums
       where unit = $1 and outcome = 'completed' and stage_id <> 0 order by 1`,
      [unit],
    );
  expect(await by('minute')).toEqual([
    { at: '09:59', completed: 1 },
    { at: '10:00', completed: 2 },
  ]);
  expect(await by('hour')).toEqual([
    { at: '09:00', completed: 1 },
    { at: '10:00', completed: 2 },
  ]);
  const [row] = await engine.rows(
    `select completed from millrace.figures('flow', 'only', '2026-11-02 10:00Z', '2026-11-02 10:01Z')`,
  );
  expect(row).toEqual({ completed: '2' });
});

test('of two that add pulses up at once each pulse is counted once, and neither waits', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  for (let n = 0; n < 5; n++) {
    await engine.queued('only');
    await runStage(engine, 'only');
  }
  const other = await openTransaction(engine);
  expect((await other.query('select millrace.add_pulses(3) as n')).rows).toEqual([{ n: 3 }]);
  expect(await engine.value('select millrace.add_pulses()')).toBe(0);
  // It dies before it commits.
  await other.end();
  expect(await engine.value('select millrace.add_pulses()')).toBe(10);
  expect(await engine.value(`select n::int from millrace.sums where unit = 'total' and stage_id <> 0`)).toBe(5);
});

test('figures stay when runs are pruned or deleted, and are pruned by their own settings', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  const ids = await engine.queued('only', 4);
  await runStage(engine, 'only');
  await sweep(engine);
  await engine.sql.query('delete from public.items where id = $1', [ids[0]]);
  await engine.expectSound();
  await engine.advance('91 days');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.value('select count(*)::int from millrace.attempts')).toBe(0);
  await sweep(engine);
  const kept = async (unit: string) =>
    engine.value<number>(
      `select coalesce(sum(n), 0)::int from millrace.sums where unit = $1 and outcome = 'completed' and stage_id <> 0`,
      [unit],
    );
  expect([await kept('minute'), await kept('hour'), await kept('total')]).toEqual([0, 4, 4]);
  // Minutes are gone: what lies in them is told by the hour.
  expect(await figures(engine, 'only', '-91 days', '-90 days')).toMatchObject({ completed: '4' });
  await engine.advance('400 days');
  await sweep(engine);
  expect([await kept('hour'), await kept('total')]).toEqual([0, 4]);
  expect(await engine.refusal(`update millrace.settings set value = '0' where name = 'minutes_hours'`)).toMatchObject({
    code: 'MR002',
  });
});

test('the twenty most frequent codes keep their counts, the others are added up', async ({ engine }) => {
  const counts = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`code_${n}`, n + 1]));
  const sum = await engine.value<Record<string, number>>(
    'select millrace.add_codes(array[$1::jsonb, $2::jsonb, null])',
    [counts, { code_0: 100, other: 7 }],
  );
  expect(Object.keys(sum)).toHaveLength(21);
  expect(sum).toMatchObject({ code_0: 101, code_29: 30 });
  expect(Object.values(sum).reduce((all, n) => all + n)).toBe((30 * 31) / 2 + 107);
});

test('a percentile is exact at the bounds of buckets, and lies within its bucket elsewhere', async ({ engine }) => {
  const quantile = (counts: Record<number, number>, share: number) =>
    engine.value<number | null>('select millrace.bucket_quantile($1, $2)', [
      Array.from({ length: 16 }, (_, place) => counts[place] ?? 0),
      share,
    ]);
  expect(await quantile({ 4: 10, 5: 10 }, 0.5)).toBe(1000);
  expect(await quantile({ 4: 1 }, 0.5)).toBeCloseTo(Math.sqrt(300 * 1000));
  expect(await quantile({ 0: 4 }, 0.25)).toBe(2.5);
  expect(await quantile({ 15: 3 }, 0.95)).toBe(86_400_000);
  expect(await quantile({}, 0.5)).toBe(null);
});

test('usage that is no number, or beyond all bounds, fails no batch', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  await engine.queued('only', 4);
  const said: unknown[] = [{ cost_usd: 'free' }, { input_tokens: 1e30 }, { cost_usd: -5 }, { cost_usd: 2 }];
  await work(engine, 'only', (item, place) => ({ ...completed(item), usage: said[place] }));
  await sweep(engine);
  expect(await figures(engine, 'only')).toMatchObject({
    completed: '4',
    cost_usd: '2',
    input_tokens: `1${'0'.repeat(30)}`,
  });
});

test('an amount that would make a sum overflow is left out of it, and stops no figures', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  const items = (await worker.take()).map((item, place) => ({
    ...completed(item),
    usage: { cost_usd: place === 0 ? 2 : 'huge' },
  }));
  // No number of JavaScript is so high, but JSON has no bound.
  await worker.complete(JSON.stringify(items).replaceAll('"huge"', '9e131071'));
  await sweep(engine);
  expect(await figures(engine, 'only')).toMatchObject({ completed: '3', cost_usd: '2' });
});

test('a clock that is set back makes no time negative', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const items = await worker.take(2);
  await engine.advance('-30 seconds');
  await worker.complete(items.map((item) => completed(item)));
  await sweep(engine);
  expect(
    await engine.rows(
      `select outcome, n::int, run_ms, runs[1]::int as r0 from millrace.sums where unit = 'minute' and stage_id <> 0`,
    ),
  ).toEqual([{ outcome: 'completed', n: 2, run_ms: 0, r0: 2 }]);
});

test('a step of months is refused however the caller has intervals written', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  for (const style of ['iso_8601', 'sql_standard']) {
    await engine.sql.query(`set intervalstyle = ${style}`);
    const series = `select millrace.series('flow', null, 'today', 'tomorrow', $1)`;
    expect(await engine.refusal(series, ['1 month'])).toMatchObject({ code: 'MR002' });
    expect(await engine.refusal(series, ['1 year'])).toMatchObject({ code: 'MR002' });
  }
  await engine.sql.query('reset intervalstyle');
});

test('a series has a row for each step, empty ones too', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  for (const minutes of [0, 3, 60]) {
    await engine.advance(`${minutes} minutes`);
    await engine.queued('only');
    await runStage(engine, 'only');
  }
  await sweep(engine);
  const series = (from: string, to: string, step: string) =>
    engine.rows(
      `select to_char(at at time zone 'UTC', 'DD HH24:MI') as at, completed::int as n from millrace.series('flow', 'only', $1, $2, $3)`,
      [from, to, step],
    );
  expect(await series('2026-11-02 09:00Z', '2026-11-02 09:04Z', '2 minutes')).toEqual([
    { at: '02 09:00', n: 1 },
    { at: '02 09:02', n: 1 },
  ]);
  expect(await series('2026-11-02 08:30Z', '2026-11-02 10:10Z', '1 hour')).toEqual([
    { at: '02 08:00', n: 0 },
    { at: '02 09:00', n: 2 },
    { at: '02 10:00', n: 1 },
  ]);
  expect(await series('2026-11-01 12:00Z', '2026-11-02 12:00Z', '1 day')).toEqual([
    { at: '01 00:00', n: 0 },
    { at: '02 00:00', n: 3 },
  ]);
  await engine.advance('4 days');
  expect(await series('2026-11-02 09:02Z', '2026-11-02 10:10Z', '30 minutes')).toEqual([
    { at: '02 09:02', n: 2 },
    { at: '02 09:32', n: 1 },
    { at: '02 10:02', n: 0 },
  ]);
});

test.for([
  [`millrace.figures('nope')`, 'MR003', `there is no pipeline nope`],
  [`millrace.figures(null)`, 'MR003', 'there is no pipeline null'],
  [`millrace.figures('flow', 'nope')`, 'MR003', 'there is no stage nope in a pipeline flow'],
  [`millrace.figures('flow', null, 'tomorrow', 'today')`, 'MR002', 'must be before p_to'],
  [`millrace.figures('flow', null, '-infinity')`, 'MR002', 'must be before p_to'],
  [`millrace.figures('flow', null, null, 'infinity')`, 'MR002', 'must be before p_to'],
  [`millrace.series('flow', null, null, now(), '1 hour')`, 'MR002', 'must be before p_to'],
  [`millrace.series('flow', null, 'today', 'tomorrow', '0')`, 'MR002', 'must be whole minutes, hours or days'],
  [`millrace.series('flow', null, 'today', 'tomorrow', '-1 hour')`, 'MR002', 'must be whole minutes, hours or days'],
  [`millrace.series('flow', null, 'today', 'tomorrow', '90 seconds')`, 'MR002', 'must be whole minutes, hours or days'],
  [`millrace.series('flow', null, 'today', 'tomorrow', '1 month')`, 'MR002', 'must be whole minutes, hours or days'],
  [`millrace.series('flow', null, 'today', 'tomorrow', null)`, 'MR002', 'must be whole minutes, hours or days'],
  [`millrace.series('flow', null, '2020-01-01', '2026-01-01', '1 hour')`, 'MR002', 'over 2000 rows'],
] as const)('%s is refused', async ([call, code, message], { engine }) => {
  await engine.pipeline(chain(['only']));
  expect(await engine.refusal(`select * from ${call}`)).toMatchObject({
    code,
    message: expect.stringContaining(message),
  });
});

test('live attempts are counted to a bound, and a count that stopped there is named', async ({ engine }) => {
  await engine.pipeline(chain(['only'], { retry: { max_attempts: 1 } }));
  await engine.queued('only', 1010);
  const worker = await Worker.of(engine, 'only');
  const taken = await worker.take(10);
  const bound = async (most: number) =>
    (
      await engine.rows(
        `select c.ready, c.in_backoff, c.started, c.failed, c.at_least
         from millrace.live_counts($1) c
         join millrace.stages s on s.id = c.stage_id and s.name = 'only'`,
        [most],
      )
    )[0];
  const exact = { ready: '1000', in_backoff: '0', started: '10', failed: '0', at_least: null };
  expect(await bound(1000)).toEqual(exact);
  expect(await bound(999)).toEqual({ ...exact, ready: '999', at_least: ['ready'] });
  await engine.sql.query(
    `update millrace.attempts set queue_at = queue_at + interval '1 hour' where state = 'queued' and id % 2 = 0`,
  );
  expect(await bound(500)).toEqual({ ...exact, ready: '500', in_backoff: '500' });
  expect(await bound(499)).toMatchObject({ ready: '499', in_backoff: '499', at_least: ['ready', 'in_backoff'] });
  await worker.report(...taken.map((item) => failed(item, { permanent: true })));
  expect(await bound(500)).toMatchObject({ started: '0', failed: '10', at_least: null });
  expect(await bound(9)).toMatchObject({ ready: '9', failed: '9', at_least: ['ready', 'in_backoff', 'failed'] });
  // The view's own bound.
  await engine.queued('only', 9501);
  expect(
    await engine.rows("select ready, in_backoff, at_least from millrace.stage_health where pipeline = 'flow'"),
  ).toEqual([{ ready: '10000', in_backoff: '500', at_least: ['ready'] }]);
});

test('reading figures and health takes no more rows when there are twenty times as many attempts', async ({
  engine,
}) => {
  await engine.pipeline(chain(['only'], { batch_size: 500 }));
  const history = async (count: number) => {
    await engine.queued('only', count);
    await runStage(engine, 'only');
    await sweep(engine);
    await engine.sql.query('analyze millrace.attempts, millrace.runs, millrace.sums');
  };
  const rows = async () => [
    await planRows(engine.database.superUrl, 'select * from millrace.stage_health'),
    await planRows(engine.database.superUrl, `select * from millrace.figures('flow', 'only')`),
    await planRows(engine.database.superUrl, `select * from millrace.figures('flow')`),
  ];
  await history(50);
  const few = await rows();
  await history(950);
  const many = await rows();
  for (const [place, count] of many.entries()) expect(count).toBeLessThan((few[place] as number) * 1.5 + 10);
});

test.for([
  [
    'a pulse that is lost',
    `delete from millrace.pulses where stage_id <> 0`,
    'every attempt that is over is counted once',
  ],
  [
    'a pulse that is counted twice',
    `insert into millrace.pulses table millrace.pulses`,
    'every attempt that is over is counted once',
  ],
  ['a run that is not counted', `delete from millrace.pulses where stage_id = 0`, 'every run that is over is counted'],
  [
    'a total that falls',
    `select millrace.add_pulses(); update millrace.sums set n = 0 where unit = 'total'`,
    'every attempt that is over is counted once',
  ],
  [
    'a cost by model that no figure has',
    `insert into millrace.costs select 'day', date_trunc('day', millrace.now(), 'UTC'), id, '', '', 1 from millrace.stages`,
    'costs by model and tenant are those of the figures',
  ],
] as const)('the recount after every test finds %s', async ([, breaking, rule], { engine }) => {
  await engine.pipeline(chain(['only']));
  await engine.queued('only', 2);
  await runStage(engine, 'only');
  await engine.sql.query('begin');
  await engine.sql.query(breaking);
  const rules = await engine.rows(`select distinct rule from (${bookkeepingFaults}) f`);
  await engine.sql.query('rollback');
  expect(rules).toContainEqual({ rule });
});
