// The answers that operators read: lists by any filter, in pages, flat in cost, whatever texts people and services wrote.
import { describe, expect } from 'vitest';
import { noneAmong } from '../../../operators/numbers.ts';
import { defineSplit, insertParts, spawnParts } from '../../support/engine/operations.ts';
import { type Operator, signIn } from '../../support/engine/operators.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, type Engine, type Row, findingsTest as test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

const viewer = (engine: Engine) => signIn(engine, 'ann', { role: 'viewer', payloads: true });
type Page = { runs: Row[]; next: string | null };
const runs = (operator: Operator, query: Row = {}) => operator.ask<Page>('runs', query);
const ids = async (operator: Operator, query: Row) => (await runs(operator, query)).runs.map(({ run }) => run);

test('without any pipeline every question has an answer', async ({ engine }) => {
  await engine.sql.query('delete from millrace.pipelines');
  const operator = await viewer(engine);
  expect(await operator.ask('overview')).toMatchObject({ pipelines: [], stages: [], bulks: [] });
  expect(await runs(operator)).toEqual({ runs: [], next: null });
  expect(await operator.ask('dead_letters')).toEqual({ groups: [] });
  expect(await operator.ask('alerts')).toEqual({
    alerts: [],
    next: null,
    playbooks_url: expect.stringMatching(/\/millrace@[\d.]+\/files\/docs\/playbooks$/),
  });
  expect(await operator.ask('search', { text: '7' })).toEqual({ runs: [] });
  expect(await operator.refusal('pipeline', { pipeline: 'flow' })).toMatchObject({ code: 'MR003' });
});

test('runs are found by each thing that is known of them, and by several at once', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  await engine.pipeline([{ name: 'also' }], {}, 'other');
  const [, second, , fourth] = await engine.queued('one', 4);
  await engine.queued('also');
  const worker = await Worker.of(engine, 'one');
  const items = await worker.take();
  const [a, b, c, d] = items.map((item) => item.run);
  await engine.advance('1 hour');
  await worker.report(
    completed(items[0] as never),
    failed(items[1] as never, { code: 'gone', permanent: true }),
    failed(items[2] as never, { code: 'late', permanent: true }),
  );
  await engine.advance('1 hour');
  const operator = await viewer(engine);
  const flow = { pipeline: 'flow' };
  const trace = await engine.value('select trace_id from millrace.runs where id = $1', [b]);
  const cases: [Row, unknown[]][] = [
    [flow, [d, c, b, a]],
    [{ ...flow, status: 'failed' }, [c, b]],
    [{ ...flow, status: 'running' }, [d, a]],
    [{ ...flow, status: 'completed' }, []],
    // Failed runs first.
    [{ ...flow, stage: 'one' }, [c, b, d]],
    [{ ...flow, stage: 'two' }, [a]],
    [{ ...flow, error_code: 'gone' }, [b]],
    [{ ...flow, error_code: 'gone', stage: 'two' }, []],
    [{ ...flow, entity: second }, [b]],
    [{ entity: fourth }, [d]],
    [{ runs: [a, c] }, [c, a]],
    [{ ...flow, since: '2026-11-02T09:30:00Z' }, [c, b]],
    [{ ...flow, before: '2026-11-02T09:30:00Z' }, [d, a]],
    [{ ...flow, since: '2026-11-02T09:30:00Z', before: '2026-11-02T09:45:00Z' }, []],
    [{ parent: a }, []],
  ];
  for (const [query, expected] of cases)
    expect({ query, found: await ids(operator, query) }).toEqual({ query, found: expected });
  expect(await runs(operator, { runs: [b] })).toMatchObject({
    runs: [
      { entity: second, status: 'failed', trace, at: [{ stage: 'one', state: 'failed', error: { code: 'gone' } }] },
    ],
  });
  for (const text of [String(b), String(items[1]?.attempt), trace]) {
    const found = await operator.ask<Page>('search', { text });
    expect(found.runs.map(({ run }) => run)).toContain(b);
  }
  expect((await operator.ask<Page>('search', { text: second, ...flow })).runs).toMatchObject([{ run: b }]);
});

test('runs are found by what people know their rows by, as far as an index leads to it', async ({ engine }) => {
  await engine.pipeline(chain(['one']), { label: 'label' } as never);
  await engine.sql.query('create index on public.items (label text_pattern_ops)');
  await engine.pipeline([{ name: 'also' }], {}, 'plain');
  const [first] = await engine.queued('one', 3);
  const operator = await viewer(engine);
  const expected = { runs: [{ entity: first, label: 'item 1' }] };
  expect(await operator.ask('search', { text: 'item 1' })).toMatchObject(expected);
  expect((await operator.ask<Page>('search', { text: 'item', pipeline: 'flow' })).runs).toHaveLength(3);
  // Where a label shows nothing, the row's key names it.
  await engine.sql.query(`update public.items set label = E' \\n' where id = $1`, [first]);
  const [blank] = (await runs(operator, { pipeline: 'flow', entity: first })).runs;
  expect(blank).toMatchObject({ entity: first });
  expect(blank).not.toHaveProperty('label');
  expect(await operator.ask('search', { text: 'none' })).toEqual({ runs: [] });
});

test('children are found by their parent, and one run shows its attempts, children and what was done to it', async ({
  engine,
}) => {
  await defineSplit(engine);
  await engine.queued('split');
  await spawnParts(engine, await insertParts(engine, 3));
  const operator = await signIn(engine, 'ann', { payloads: true });
  const [parent] = (await runs(operator, { pipeline: 'flow' })).runs;
  const children = await runs(operator, { parent: parent?.run });
  expect(children.runs).toHaveLength(3);
  expect(children.runs[0]).toMatchObject({ pipeline: 'parts', parent: parent?.run, item: expect.any(String) });
  expect(await operator.ask('run', { run: parent?.run })).toMatchObject({
    status: 'running',
    stages: [
      { stage: 'split', kind: 'map', state: 'waiting', needs: [] },
      { stage: 'join', state: 'pending', needs: ['split'] },
    ],
    children: [{ stage: 'split', pipeline: 'parts', spawned: 3 }],
    attempts: [{ stage: 'split', state: 'waiting' }],
  });
  await operator.act('cancel', { run: parent?.run });
  expect(await operator.ask('run', { run: parent?.run })).toMatchObject({
    status: 'cancelled',
    journal: [{ verb: 'cancel', by: 'ann' }],
  });
});

test.for([
  {},
  { status: 'failed' },
  { status: 'failed', pipeline: 'flow', stage: 'one', error_code: 'gone' },
  { status: 'cancelled' },
  { status: 'cancelled', pipeline: 'flow', stage: 'one' },
  { pipeline: 'flow', stage: 'one' },
  { error_code: 'gone' },
  { pipeline: 'flow', error_code: 'gone' },
])('pages of a list by %j have each run once, though runs come in between', async (query, { engine }) => {
  await engine.pipeline(chain(['one']));
  for (let n = 0; n < 4; n += 1) {
    await engine.queued('one', 6);
    const worker = await Worker.of(engine, 'one');
    await worker.report(...(await worker.take(3)).map((item) => failed(item, { code: 'gone', permanent: true })));
    await engine.sql.query(`select millrace.cancel(id) from millrace.runs where status = 'running' order by id desc`);
    await worker.leave();
    if (n % 2 === 0) await engine.advance('1 second');
  }
  const operator = await viewer(engine);
  const expected = await ids(operator, query);
  expect(expected).toHaveLength('status' in query || 'error_code' in query ? 12 : 24);
  const found: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await runs(operator, { ...query, limit: 5, ...(cursor ? { cursor } : {}) });
    found.push(...page.runs.map(({ run }) => run));
    cursor = page.next ?? undefined;
    await engine.queued('one');
  } while (cursor);
  expect(new Set(found).size).toBe(found.length);
  // Failed runs are listed first, so that runs which came in meanwhile may stand behind them.
  expect(found.filter((run) => expected.includes(run))).toEqual(expected);
});

describe('a call looks at so many runs at most', () => {
  test('but finds what failed at a stage or of a code at once, whatever came in since', async ({ engine }) => {
    await engine.pipeline(chain(['one', 'two']), { projection: 'none' });
    await engine.sql.query(
      `insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at, failed_stage_id, error_code)
       select p.id, p.current_version_id, n, 'failed', millrace.now(), millrace.now() - n * interval '1 second', s.id,
         'code_' || n % 4
       from millrace.pipelines p join millrace.stages s on s.pipeline_id = p.id and s.name = 'one', generate_series(1, 40) n
       where p.name = 'flow';
       insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at, failed_stage_id, error_code)
       select p.id, p.current_version_id, 'other ' || n, 'failed', millrace.now(), millrace.now(), s.id, 'other'
       from millrace.pipelines p join millrace.stages s on s.pipeline_id = p.id and s.name = 'two', generate_series(1, 21000) n
       where p.name = 'flow';
       insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at)
       select p.id, p.current_version_id, 'queued ' || n, 'running', millrace.now()
       from millrace.pipelines p, generate_series(1, 3000) n where p.name = 'flow'`,
    );
    const operator = await viewer(engine);
    for (const status of [{}, { status: 'failed' }]) {
      const found = async (query: Row) =>
        (await runs(operator, { pipeline: 'flow', limit: 200, ...status, ...query })).runs;
      expect(await found({ stage: 'one' })).toHaveLength(40);
      expect(await found({ error_code: 'code_3' })).toHaveLength(10);
      expect(await found({ stage: 'one', error_code: 'code_3' })).toHaveLength(10);
      expect(await found({ stage: 'two', error_code: 'code_3' })).toHaveLength(0);
    }
    await engine.sql.query('delete from millrace.runs');
  });

  test('and goes on from where it ended, so that what is rare is found in the end', async ({ engine }) => {
    await engine.pipeline(chain(['one']), { projection: 'none' });
    await engine.sql.query(
      `insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
       select p.id, p.current_version_id, 'row ' || n, 'completed', millrace.now(), millrace.now()
       from millrace.pipelines p, generate_series(1, 45000) n where p.name = 'flow'`,
    );
    await engine.sql.query(
      `update millrace.runs set status = 'cancelled', finished_at = finished_at - interval '1 day' where entity_id = 'row 3'`,
    );
    const operator = await viewer(engine);
    const found: Row[] = [];
    let calls = 0;
    let cursor: string | undefined;
    do {
      const page = await runs(operator, { pipeline: 'flow', status: 'cancelled', ...(cursor ? { cursor } : {}) });
      found.push(...page.runs);
      cursor = page.next ?? undefined;
      calls += 1;
    } while (cursor);
    expect(found).toMatchObject([{ entity: 'row 3' }]);
    expect(calls).toBe(3);
    const none = await runs(operator, { text: 'nothing has this' });
    const newer = `select 'None among the newest ' || to_char(count(*), 'FM9,999') || ' runs' from millrace.runs
      where id >= $1::bigint`;
    expect(none.runs).toEqual([]);
    expect(noneAmong('nothing has this', 1), 'as page and command line say it').toBe(
      await engine.value(newer, [none.next]),
    );
    await engine.sql.query(`delete from millrace.runs where entity_id like 'row %'`);
  });
});

test('forged cursors and filters are refused by name, or lead to nothing more than rights allow', async ({
  engine,
}) => {
  await engine.pipeline(chain(['mine']), {}, 'mine');
  await engine.pipeline(chain(['theirs']), {}, 'theirs');
  await engine.queued('theirs', 3);
  const operator = await signIn(engine, 'ann', { pipelines: ['mine'] });
  for (const cursor of ['9000000000000', '1', '0'])
    expect(await runs(operator, { cursor })).toMatchObject({ runs: [] });
  const cases: [string, unknown, string][] = [
    [
      'runs',
      { cursor: `1' or true --` },
      'p_query.cursor is "1\' or true --", but must be what the last answer to this question had as next',
    ],
    ['runs', { cursor: '-1' }, 'cursor is "-1", but must be what'],
    ['runs', { cursor: 7 }, 'p_query.cursor is 7, but must be what'],
    ['runs', { cursor: '5.7 or true', status: 'failed' }, 'but must be what'],
    ['runs', { cursor: '99999999999999999999' }, 'but must be what the last answer to this question had as next'],
    ['runs', { limit: 0 }, 'p_query.limit is 0, but must be a whole number from 1 to 200'],
    ['runs', { limit: 100000 }, 'p_query.limit is 100000, but must be'],
    ['runs', { pipeline_ids: [1, 2] }, 'p_query.pipeline_ids is not known; known here: '],
    ['runs', { last_run_id: 5 }, 'p_query.last_run_id is not known'],
    ['runs', { status: `failed' or true --` }, 'but must be one of "running", "completed", "failed", "cancelled"'],
    ['runs', { trace: 'x' }, 'p_query.trace is not known'],
    ['runs', { parent: '1' }, 'p_query.parent is "1", but must be'],
    ['runs', { parent: 1e300 }, 'but must be a whole number from 1 to 9007199254740991'],
    ['runs', { parent: 1.5 }, 'p_query.parent is 1.5, but must be'],
    ['runs', { entity: '' }, 'p_query.entity is "", but must be the key of a row as text'],
    ['runs', { entity: 'x'.repeat(3000) }, 'but must be the key of a row as text, of 1 to 2000 characters'],
    ['runs', { runs: Array.from({ length: 1001 }, () => 1) }, 'p_query.runs has 1001 items, but must have'],
    ['runs', { since: 'now' }, 'p_query.since is "now", but must be a time'],
    ['runs', { since: '2026-02-31' }, 'since is "2026-02-31", but must be a time such as'],
    ['runs', { stage: 'one' }, 'pipeline is missing, but a stage needs it'],
    ['runs', [], 'p_query is [], but must be of type object'],
    ['runs', 'x', 'p_query is "x", but must be of type object'],
    ['runs', { error_code: 'x'.repeat(600) }, 'p_query.error_code is'],
    ['runs', { padding: 'x'.repeat(1_000_000) }, 'p_query.padding is not known'],
    ['journal', { by: 5 }, 'p_query.by is 5, but must be'],
    ['series', { pipeline: 'mine', step_seconds: 0 }, 'p_query.step_seconds is 0, but must be'],
    ['series', { pipeline: 'mine', from: '2026-01-01', to: '2026-11-01' }, 'is too short for'],
    ['search', { text: '' }, 'p_query.text is "", but must be'],
    ['overview', { pipeline: 'theirs' }, 'p_query.pipeline is not known; known here: quiet'],
  ];
  for (const [name, query, message] of cases) {
    const refusal = await operator.refusal(name, query);
    expect(refusal).toMatchObject({ code: 'MR002', message: expect.stringContaining(message) });
    expect(refusal.message.length).toBeLessThan(600);
    expect(JSON.stringify(refusal)).not.toContain('"theirs"');
  }
});

test('hostile texts come back as they were written, cut where they are long', async ({ engine }) => {
  await engine.sql.query('create table public.texts (id text primary key, label text)');
  await engine.pipeline(chain(['one']), { table: 'public.texts', projection: 'none' });
  const texts = [
    '<script>alert(1)</script>',
    `'; drop table millrace.runs; --`,
    'left \u202Eright\u202C, bell \u0007, escape \u001B[31m, tab\t, newline\n',
    '%s %I %L {{}} $1 \\',
  ];
  for (const text of texts) {
    await engine.sql.query('insert into public.texts (id) values ($1)', [text]);
    await engine.sql.query(`select millrace.start('flow', $1)`, [text]);
  }
  const operator = await signIn(engine, `o'brien <b>\u202E`, { payloads: true });
  expect((await runs(operator)).runs.map(({ entity }) => entity)).toEqual([...texts].reverse());
  for (const text of texts) {
    expect((await runs(operator, { entity: text })).runs).toMatchObject([{ entity: text }]);
    expect((await operator.ask<Page>('search', { text })).runs).toMatchObject([{ entity: text }]);
    const reason = `because ${text}`;
    await operator.act('pause', { pipeline: 'flow' });
    await operator.act('unpause', { pipeline: 'flow', reason });
    expect(await operator.ask('journal', { limit: 1 })).toMatchObject({ entries: [{ reason }] });
  }
  const nested: unknown = JSON.parse(`${'['.repeat(2000)}${']'.repeat(2000)}`);
  const worker = await Worker.of(engine, 'one');
  const [long, deep, wrong] = await worker.take(3);
  await worker.report(
    completed(long as never, { text: 'é'.repeat(500_000) }),
    completed(deep as never, nested),
    failed(wrong as never, { code: '<b>', message: '\u202E<img>'.repeat(30_000), permanent: true }),
  );
  expect(await operator.ask('attempt', { attempt: long?.attempt })).toMatchObject({
    output: { bytes: expect.any(Number), cut: expect.stringMatching(/^\{"text": "é{100}/) },
  });
  expect(await operator.ask('attempt', { attempt: deep?.attempt })).toMatchObject({ output: { value: nested } });
  expect(await runs(operator, { status: 'failed' })).toMatchObject({
    runs: [{ at: [{ error: { message: expect.stringMatching(/^.{2000}…$/) } }] }],
  });
  expect(await operator.ask('dead_letters', { pipeline: 'flow' })).toMatchObject({ groups: [{ error_code: '<b>' }] });
});

test('a graph of 60 stages, and 1,000 stages in all, are shown at once', async ({ engine }) => {
  const wide = (prefix: string) => [
    { name: `${prefix}_0` },
    ...Array.from({ length: 59 }, (_, n) => ({
      name: `${prefix}_${n + 1}`,
      needs: [`${prefix}_${Math.floor(n / 2)}`],
    })),
  ];
  for (let n = 0; n < 17; n += 1) await engine.pipeline(wide(`s${n}`), { projection: 'none' }, `wide_${n}`);
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('wide_0', $1)`, [id]);
  await runStage(engine, 's0_0', 'wide_0');
  const operator = await viewer(engine);
  const all = await operator.ask<{ stages: Row[] }>('overview', { quiet: true });
  expect(all.stages.length).toBeGreaterThan(1000);
  const overview = await operator.ask<{ pipelines: Row[]; stages: Row[] }>('overview');
  // Only the two that follow the first one, done, have something.
  expect(overview.stages.map(({ stage }) => stage)).toEqual(['s0_1', 's0_2']);
  expect(overview.pipelines[0]).toMatchObject({ pipeline: 'wide_0', stages: 60 });
  expect(JSON.stringify(overview).length).toBeLessThan(5000);
  const pipeline = await operator.ask<{ stages: Row[] }>('pipeline', { pipeline: 'wide_0' });
  expect(pipeline.stages).toHaveLength(60);
  const [run] = (await runs(operator, { pipeline: 'wide_0' })).runs;
  const one = await operator.ask<{ stages: Row[] }>('run', { run: run?.run });
  expect(one.stages).toHaveLength(60);
  // Some fifty to a hundred rows of plans a stage: read again for each other stage, they would be a thousand times as many.
  const asked = { overview: { quiet: true }, pipeline: { pipeline: 'wide_0' }, run: { run: run?.run } };
  for (const [read, query] of Object.entries(asked)) {
    const rows = await planRows(engine.database.superUrl, `select public.millrace_${read}($1)`, [
      JSON.stringify(query),
    ]);
    expect(rows, read).toBeLessThan(500 * all.stages.length);
  }
});

test('an open alert has its value now beside the one when raised, null once that is not above the bound', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'one' }]);
  await engine.sql.query('delete from millrace.alert_rules');
  await engine.sql.query(
    `insert into millrace.alert_rules (name, kind, stage, above, hold, recover)
     values ('any', 'backlog', '*', 2, '0', '1 minute')`,
  );
  const operator = await viewer(engine);
  const minute = async () => {
    await engine.advance('1 minute');
    await engine.sql.query('select millrace.sweep()');
    return (await operator.ask<{ alerts: Row[] }>('alerts')).alerts;
  };
  await engine.queued('one', 3);
  expect(await minute()).toMatchObject([{ value: 3, value_now: 3 }]);
  await engine.queued('one', 4);
  expect(await minute()).toMatchObject([{ value: 3, value_now: 7, detail_now: null }]);
  const worker = await Worker.of(engine, 'one');
  await worker.report(...(await worker.take(7)).map((item) => completed(item as never)));
  const [under] = await minute();
  expect(under).toMatchObject({ value: 3, value_now: null, resolved_at: null });
  expect(Date.parse(String(under?.ends_at)) - Date.parse(String(under?.below_since))).toBe(60_000);
  const [over] = await minute();
  expect(over).toMatchObject({ value: 3, resolved_at: expect.any(String), below_since: null });
});

test('a stage says why its attempts are in backoff: the newest error of those due first, and when that is', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const operator = await viewer(engine);
  const stages = async () => (await operator.ask<{ stages: Row[] }>('overview')).stages;
  await engine.queued('one', 3);
  expect((await stages())[0]).not.toHaveProperty('backoff');
  const failing = async (code: string) => {
    const worker = await Worker.of(engine, 'one');
    await worker.report(failed(await worker.takeOne(), { code, message: `It says ${code}.`, detail: 'secret' }));
    await worker.leave();
  };
  await failing('boom');
  await engine.advance('1 second');
  await failing('rate_limited');
  const at = await engine.now();
  const due = await engine.value<Date>(
    `select min(queue_at) from millrace.attempts where state = 'queued' and queue_at > millrace.now()`,
  );
  const [one, two] = await stages();
  expect(one).toMatchObject({ in_backoff: 2, backoff: { code: 'rate_limited', message: 'It says rate_limited.' } });
  expect(one?.backoff).not.toHaveProperty('detail');
  const told = (one as Row).backoff as { at: string; next_at: string };
  expect([new Date(told.at), new Date(told.next_at)]).toEqual([at, due]);
  expect(two).not.toHaveProperty('backoff');
  const { health } = await operator.ask<{ health: Row[] }>('pipeline', { pipeline: 'flow' });
  expect(health[0]).toMatchObject({ backoff: { code: 'rate_limited' } });
});

test('the overview leaves out stages with nothing to do, but for those of small pipelines that have something', async ({
  engine,
}) => {
  const many = Array.from({ length: 13 }, (_, n) => ({ name: `m${n}` }));
  await engine.pipeline(chain(['one', 'two']));
  await engine.pipeline(many, { projection: 'none' }, 'many');
  const operator = await signIn(engine, 'ann', {});
  const shown = async () => {
    const { stages } = await operator.ask<{ stages: Row[] }>('overview');
    return stages.map(({ stage }) => stage);
  };
  expect(await shown()).toEqual([]);
  await engine.queued('one');
  expect(await shown()).toEqual(['one', 'two']);
  const place = { pipeline: 'many', reason: 'tests' };
  await operator.act('pause', { ...place, stage: 'm3' });
  await operator.act('throttle', { ...place, stage: 'm5', minutes: 5, limits: { max_in_flight: 1 } });
  await operator.act('bypass', { ...place, stage: 'm7' });
  expect(await shown()).toEqual(['one', 'two', 'm3', 'm5', 'm7']);
  expect((await operator.ask<{ stages: Row[] }>('overview', { quiet: true })).stages).toHaveLength(15);
  expect((await operator.ask<{ health: Row[] }>('pipeline', { pipeline: 'many' })).health).toHaveLength(13);
});

test('alerts and the journal are read in pages, by pipeline, run, verb, person and time', async ({ engine }) => {
  await engine.pipeline([{ name: 'one', sla_seconds: 60 }]);
  const [first] = await engine.queued('one', 3);
  const operator = await signIn(engine, 'ann', {});
  await engine.sql.query(
    `insert into millrace.alert_rules (name, kind, stage, above) values ('any', 'backlog', '*', 0)`,
  );
  await engine.advance('2 minutes');
  await engine.sql.query('select millrace.sweep()');
  const page = await operator.ask<{ alerts: Row[]; next: string }>('alerts', { open: true, limit: 1 });
  expect(page.alerts.map(({ kind }) => kind)).toEqual(['backlog']);
  const rest = await operator.ask<{ alerts: Row[] }>('alerts', { open: true, limit: 3, cursor: page.next });
  expect(rest).toMatchObject({ alerts: [{ stage: 'one', kind: 'late', resolved_at: null }], next: null });
  const alert = rest.alerts[0]?.id;
  await operator.act('silence', { alert, minutes: 30, reason: 'planned' });
  expect(await engine.rows('select pipeline, stage, kind from millrace.silences')).toEqual([
    { pipeline: 'flow', stage: 'one', kind: 'late' },
  ]);
  const lines = async (query: Row) =>
    (await operator.ask<{ entries: Row[] }>('journal', query)).entries.map((l) => l.verb);
  expect(await lines({ pipeline: 'flow' })).toEqual(['silence']);
  const run = Number((await engine.run(first)).id);
  expect(await lines({ run })).toEqual([]);
  expect(await lines({ verb: 'silence', by: 'ann' })).toEqual(['silence']);
  expect(await lines({ by: 'ben' })).toEqual([]);
  expect(await lines({ since: '2026-11-02T09:30:00Z' })).toEqual([]);
});

test('an attempt shows its usage, and the ten newest of a run their last log lines, to those who see payloads', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'one', retry: { max_attempts: 20, backoff: { kind: 'list', seconds: [0] } } }]);
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const attempts: number[] = [];
  for (let at = 1; at <= 12; at++) {
    const [item] = await worker.take();
    attempts.push(item?.attempt as number);
    await worker.report({ ...failed(item as never, { code: 'gone' }), usage: { model: 'small', log: `line ${at}` } });
  }
  const operator = await viewer(engine);
  const [{ run }] = (await runs(operator)).runs as [Row];
  const found = await operator.ask<{ attempts: Row[] }>('run', { run });
  expect(found.attempts.map(({ log }) => log).slice(0, 13)).toEqual([
    ...Array(3).fill(undefined),
    ...Array.from({ length: 9 }, (_, at) => `line ${at + 4}`),
    undefined,
  ]);
  expect(await operator.ask('attempt', { attempt: attempts[0] })).toMatchObject({
    log: 'line 1',
    usage: { model: 'small' },
  });
  const without = await signIn(engine, 'eve', { role: 'viewer', payloads: false });
  const seen = await without.ask<Row>('attempt', { attempt: attempts[0] });
  expect(Object.keys(seen).filter((field) => ['log', 'usage', 'row'].includes(field))).toEqual([]);
});

test('a stage tells since when each release of its function works, and what a row takes', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const operator = await viewer(engine);
  const client = await engine.database.connect('service_role');
  const claimAs = async (release: string) => {
    await client.query(`select set_config('request.headers', $1, false)`, [
      JSON.stringify({ 'x-millrace-release': release }),
    ]);
    const worker = Worker.over(client, 'one', 'flow');
    await worker.claim();
    await worker.leave();
  };
  const releases = async () => {
    const { health } = await operator.ask<{ health: { function: string; releases: Row[] | null }[] }>('pipeline', {
      pipeline: 'flow',
    });
    return health[0]?.releases ?? [];
  };
  expect(await releases()).toEqual([]);
  await claimAs('');
  expect(await releases()).toEqual([]);
  for (const release of ['11', '12', '12', '11']) await claimAs(release);
  expect(await releases()).toMatchObject([{ release: '12' }, { release: '11' }]);
  for (let release = 20; release < 42; release += 1) await claimAs(String(release));
  expect((await releases()).map(({ release }) => release).slice(0, 2)).toEqual(['41', '40']);
  expect(await releases()).toHaveLength(20);
});
