// Gates: stages that the database passes.
import { expect } from 'vitest';
import { planRows } from '../../support/engine/plan-rows.ts';
import { type Engine, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { postgresMajor } from '../../support/postgres-major.ts';
import { openTransaction, wokenStages } from '../../support/sessions.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

/** first → gate → last. */
const gated = (limits?: Row, options: Row = {}): StageDefinition[] => [
  { name: 'first', max_workers: 10 },
  { name: 'gate', kind: 'gate', needs: ['first'], ...(limits && { limits }), ...options },
  { name: 'last', needs: ['gate'], max_workers: 10 },
];
const tenPerMinute = { rate: { count: 10, per_seconds: 60 } };
const sweep = (engine: Engine) => engine.value<Row>('select millrace.sweep()');
const queuedAt = (engine: Engine, stage: string) =>
  engine.value<number>(
    `select count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where s.name = $1 and a.state = 'queued'`,
    [stage],
  );

async function bring(engine: Engine, count: number): Promise<string[]> {
  const ids = await engine.queued('first', count);
  await runStage(engine, 'first');
  return ids;
}

test('a gate without limits is passed by the transaction that queues it', async ({ engine }) => {
  await engine.pipeline(gated());
  const [id] = await bring(engine, 1);
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'gate 1 completed', 'last 1 queued']);
  expect(await engine.item(id)).toMatchObject({ gate_status: 'completed', gate_result: null, last_status: 'queued' });
  await runStage(engine, 'last');
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('a gate may be the first stage, and the last', async ({ engine }) => {
  await engine.pipeline([
    { name: 'gate', kind: 'gate' },
    { name: 'work', needs: ['gate'] },
  ]);
  const [id] = await engine.queued('gate');
  expect(await engine.attempts(id)).toEqual(['gate 1 completed', 'work 1 queued']);
  await engine.pipeline([{ name: 'act' }, { name: 'exit', kind: 'gate', needs: ['act'] }], {}, 'other');
  const run = await engine.value('select millrace.start($1, $2)', ['other', id]);
  await runStage(engine, 'act', 'other');
  expect(await engine.value('select status from millrace.runs where id = $1', [run])).toBe('completed');
});

test('the result of a gate is null to the stage behind it', async ({ engine }) => {
  await engine.pipeline(gated());
  await bring(engine, 1);
  expect(await (await Worker.of(engine, 'last')).takeOne()).toMatchObject({ needs: { gate: null } });
});

test('a gate with a rate passes its burst at once, then what the sweep finds allowed, oldest first', async ({
  engine,
}) => {
  await engine.pipeline(gated(tenPerMinute));
  const ids = await bring(engine, 15);
  expect([await queuedAt(engine, 'gate'), await queuedAt(engine, 'last')]).toEqual([5, 10]);
  expect(await sweep(engine)).not.toHaveProperty('passed');
  await engine.advance('12 seconds');
  expect(await sweep(engine)).toMatchObject({ passed: 2 });
  expect(await queuedAt(engine, 'last')).toBe(12);
  expect((await engine.statuses(ids[11])).gate).toBe('completed');
  expect((await engine.statuses(ids[12])).gate).toBe('queued');
});

test('no row passes a gate at once before a row that is queued already', async ({ engine }) => {
  await engine.pipeline(gated(tenPerMinute));
  await bring(engine, 12);
  await engine.advance('1 minute');
  const [late] = await bring(engine, 1);
  expect((await engine.statuses(late)).gate).toBe('queued');
  expect(await sweep(engine)).toMatchObject({ passed: 3 });
});

test('a row that a person brings to a gate with limits keeps no other from passing, and counts when it passes', async ({
  engine,
}) => {
  const [first, ...others] = gated({ back_pressure: [{ stage: 'last', backlog: 3 }] });
  await engine.pipeline([{ ...first, when: '$.entity.label != "left out"' } as StageDefinition, ...others]);
  const [named] = await bring(engine, 1);
  const [skipped, completed, other] = await engine.queued('first', 3);
  const [leftOut] = await engine.insert(1);
  const run = async (id: string | undefined) => (await engine.run(id)).id;
  const person = await openTransaction(engine, 'repeatable read');
  await person.query(`update public.items set gate_status = 'queued' where id = $1`, [named]);
  await person.query(`update public.items set label = 'left out', first_status = 'queued' where id = $1`, [leftOut]);
  await person.query(`select millrace.skip($1, 'first')`, [await run(skipped)]);
  await person.query(`select millrace.complete_stage($1, 'first', '{}')`, [await run(completed)]);
  await runStage(engine, 'first');
  expect(await engine.statuses(other)).toMatchObject({ gate: 'completed' });
  await person.query('commit');
  expect(await queuedAt(engine, 'gate')).toBe(4);
  expect(await sweep(engine)).toMatchObject({ passed: 2 });
});

test('a completion that comes to a gate never waits for whoever passes it', async ({ engine }) => {
  await engine.pipeline(gated(tenPerMinute));
  await bring(engine, 11);
  await engine.queued('first', 2);
  const worker = await Worker.of(engine, 'first');
  const items = await worker.take();
  await engine.advance('1 minute');
  const sweeper = await openTransaction(engine);
  expect((await sweeper.query('select millrace.sweep_gates() as answer')).rows).toEqual([{ answer: 1 }]);
  expect(await worker.report(...items.map((item) => completed(item)))).toEqual(['accepted', 'accepted']);
  await sweeper.query('commit');
  expect(await queuedAt(engine, 'gate')).toBe(2);
  expect(await sweep(engine)).toMatchObject({ passed: 2 });
});

test('a user’s trigger that cancels a row as it comes to a gate is heard', async ({ engine }) => {
  await engine.pipeline(gated());
  const [id] = await engine.queued('first');
  await engine.sql.query(`
    create function public.stop_it() returns trigger language plpgsql security definer as $$
    begin perform millrace.cancel(r.id) from millrace.runs r where r.entity_id = new.id::text; return null; end $$;
    create trigger stop_it after update on public.items for each row
    when (new.gate_status = 'queued') execute function public.stop_it()`);
  await runStage(engine, 'first');
  expect(await engine.run(id)).toMatchObject({ status: 'cancelled' });
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'gate 1 cancelled']);
});

test('a locked row is skipped at a gate, and passes in a later sweep', async ({ engine }) => {
  await engine.pipeline(gated(tenPerMinute));
  const ids = await bring(engine, 13);
  await engine.advance('1 minute');
  const person = await openTransaction(engine);
  await person.query('update public.items set label = $1 where id = $2', ['held', ids[10]]);
  expect(await sweep(engine)).toMatchObject({ passed: 2 });
  await person.query('rollback');
  expect((await engine.statuses(ids[10])).gate).toBe('queued');
  expect(await sweep(engine)).toMatchObject({ passed: 1 });
});

test('the sweep passes more than one set, in the order of the queue', async ({ engine }) => {
  await engine.pipeline(gated(undefined, { enabled: false }));
  await engine.queued('first', 1201);
  while ((await runStage(engine, 'first')).length > 0);
  expect(await sweep(engine)).not.toHaveProperty('passed');
  await engine.sql.query(`select millrace.unpause('flow', 'gate')`);
  expect(await engine.value('select millrace.sweep_gates()')).toBe(1201);
  expect(
    await engine.value(
      `select bool_and(a.run_id > b.run_id) from (
         select run_id, row_number() over (order by id) as place from millrace.attempts
         where stage_id = (select id from millrace.stages where name = 'last')) a
       join (select run_id, row_number() over (order by id) as place from millrace.attempts
         where stage_id = (select id from millrace.stages where name = 'last')) b on b.place = a.place - 1`,
    ),
  ).toBe(true);
});

test('a paused gate passes nothing, neither by itself nor with its pipeline', async ({ engine }) => {
  await engine.pipeline(gated());
  await engine.sql.query(`select millrace.pause('flow', 'gate')`);
  const [id] = await bring(engine, 1);
  expect((await engine.statuses(id)).gate).toBe('queued');
  expect(await sweep(engine)).not.toHaveProperty('passed');
  expect(await engine.value(`select millrace.unpause('flow', 'gate')`)).toBeNull();
  await engine.sql.query(`select millrace.pause('flow')`);
  expect(await sweep(engine)).not.toHaveProperty('passed');
  await engine.sql.query(`select millrace.unpause('flow')`);
  expect(await sweep(engine)).toMatchObject({ passed: 1 });
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'gate 1 completed', 'last 1 queued']);
});

test('a gate whose condition does not hold is skipped', async ({ engine }) => {
  await engine.pipeline(gated(undefined, { when: '$.entity.label == "item 1"' }));
  const [met, unmet] = await bring(engine, 2);
  expect(await engine.attempts(met)).toContain('gate 1 completed');
  expect(await engine.attempts(unmet)).toEqual(['first 1 completed', 'gate 1 skipped', 'last 1 queued']);
});

test('a row at a gate is cancelled, retried, failed and skipped as at any stage', async ({ engine }) => {
  await engine.pipeline(gated(undefined, { enabled: false }));
  const [cancelled, failing, skipped] = await bring(engine, 3);
  const run = async (id: string | undefined) => (await engine.run(id)).id;
  await engine.sql.query('select millrace.cancel($1)', [await run(cancelled)]);
  await engine.sql.query(`select millrace.fail_stage($1, 'gate', 'not now')`, [await run(failing)]);
  await engine.sql.query(`select millrace.skip($1, 'gate')`, [await run(skipped)]);
  expect(await engine.run(cancelled)).toMatchObject({ status: 'cancelled' });
  expect(await engine.run(failing)).toMatchObject({ status: 'failed' });
  expect(await engine.statuses(skipped)).toMatchObject({ gate: 'skipped', last: 'queued' });
  expect(await engine.value(`select count(*)::int from millrace.dead_letters where stage = 'gate'`)).toBe(1);
  for (const id of [cancelled, failing]) await engine.sql.query('select millrace.retry($1)', [await run(id)]);
  expect(await queuedAt(engine, 'gate')).toBe(2);
  await engine.sql.query(`select millrace.unpause('flow', 'gate')`);
  await sweep(engine);
  expect(await engine.attempts(failing)).toEqual([
    'first 1 completed',
    'gate 1 failed',
    'gate 2 completed',
    'last 1 queued',
  ]);
  await engine.sql.query(`select millrace.reset($1, 'gate')`, [await run(skipped)]);
  expect(await engine.statuses(skipped)).toMatchObject({ gate: 'completed', last: 'queued' });
});

test('a gate that is started by name is passed as its limits allow, whatever its condition says', async ({
  engine,
}) => {
  await engine.pipeline(gated(tenPerMinute, { when: 'false' }));
  const [id] = await bring(engine, 1);
  expect(await engine.statuses(id)).toMatchObject({ gate: 'skipped' });
  await runStage(engine, 'last');
  await engine.sql.query(`select millrace.start('flow', $1, 'gate')`, [id]);
  expect(await engine.statuses(id)).toMatchObject({ gate: 'queued' });
  await sweep(engine);
  expect(await engine.statuses(id)).toMatchObject({ gate: 'completed', last: 'queued' });
});

test('a throttle holds a gate to a rate, and to nothing else', async ({ engine }) => {
  await engine.pipeline(gated());
  const throttle = 'select millrace.throttle($1, $2, $3, $4::timestamptz, $5)';
  const until = '2026-11-02 10:00:00+00';
  const refusal = await engine.refusal(throttle, ['flow', 'gate', { max_in_flight: 5 }, until, 'busy']);
  expect(refusal).toMatchObject({ code: 'MR002', message: 'stage gate is a gate, which has nothing in flight' });
  await engine.sql.query(throttle, ['flow', 'gate', { rate: { count: 1, per_seconds: 60 } }, until, 'busy']);
  await bring(engine, 3);
  expect(await queuedAt(engine, 'gate')).toBe(2);
  await engine.advance('1 minute');
  expect(await sweep(engine)).toMatchObject({ passed: 1 });
  await engine.sql.query(`select millrace.unthrottle('flow', 'gate')`);
  expect(await sweep(engine)).toMatchObject({ passed: 1 });
});

test('no function is woken for a gate, and the stages behind it are', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(gated(undefined, { enabled: false }));
  await bring(engine, 1);
  await engine.advance('20 seconds');
  await sweep(engine);
  expect(await wokenStages(engine)).not.toContain('flow.gate');
  await engine.sql.query(`select millrace.unpause('flow', 'gate')`);
  await sweep(engine);
  const woken = await wokenStages(engine);
  expect(woken).toContain('flow.last');
  expect(woken).not.toContain('flow.gate');
});

test('a completion that passes a gate names what is behind it to its worker', async ({ engine }) => {
  await engine.pipeline(gated());
  await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  const answer = await worker.complete([completed(await worker.takeOne())]);
  expect(answer.wake).toMatchObject([{ stage: 'last' }]);
});

test('a worker is refused at a gate', async ({ engine }) => {
  await engine.pipeline(gated(undefined, { enabled: false }));
  await bring(engine, 1);
  await engine.sql.query(`update millrace.stages set enabled = true where name = 'gate'`);
  expect(await (await Worker.of(engine, 'gate')).claim()).toMatchObject({ status: 'refused', batch: [] });
});

test('a row that refuses to be shown fails at its gate alone', async ({ engine }) => {
  await engine.pipeline(gated(undefined, { enabled: false }));
  const [good, bad] = await bring(engine, 2);
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$
    begin raise exception 'not this one'; end $$;
    create trigger refuse before update on public.items for each row
    when (old.id = ${bad} and new.last_status = 'queued') execute function public.refuse()`);
  await engine.sql.query(`select millrace.unpause('flow', 'gate')`);
  expect(await sweep(engine)).toMatchObject({ passed: 1 });
  expect(await engine.statuses(good)).toMatchObject({ gate: 'completed' });
  expect(await engine.run(bad)).toMatchObject({ status: 'failed' });
  expect(await engine.value(`select stage from millrace.dead_letters`)).toBe('gate');
});

test('health and figures tell of a gate, which waits for the sweep alone', async ({ engine }) => {
  await engine.pipeline(gated(tenPerMinute));
  await bring(engine, 12);
  const health = `select ready, started, completed from millrace.stage_health where stage = 'gate'`;
  expect(await engine.rows(health)).toEqual([{ ready: '2', started: '0', completed: '10' }]);
  await engine.advance('2 minutes');
  const late = await engine.value<string>(
    `select detail from millrace.doctor() where what = 'ready work is taken within 30 seconds'`,
  );
  expect(late).not.toContain('gate');
  await sweep(engine);
  expect(await engine.rows(health)).toEqual([{ ready: '0', started: '0', completed: '12' }]);
  await sweep(engine);
  expect(
    await engine.value(
      `select n from millrace.sums t join millrace.stages s on s.id = t.stage_id
       where t.unit = 'total' and t.outcome = 'completed' and s.name = 'gate'`,
    ),
  ).toBe('12');
});

test('a stage that waits behind a gate keeps its tenant’s starts counted', async ({ engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, tenant text)');
  const definition = {
    pipeline: 'flow',
    entity: { table: 'public.items', key: 'id', projection: 'none' },
    quota: { column: 'tenant', starts: { count: 2, per_seconds: 3600 } },
    stages: [
      { name: 'gate', kind: 'gate', limits: tenPerMinute },
      { name: 'work', needs: ['gate'] },
    ],
  };
  await engine.define(definition);
  const rows = await engine.rows<{ id: string }>(
    `insert into public.items (tenant) select 'a' from generate_series(1, 4) returning id::text`,
  );
  for (const { id } of rows) await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  expect(await sweep(engine)).toMatchObject({ passed: 4 });
  expect(await (await Worker.of(engine, 'work')).take()).toHaveLength(2);
});

test('a failed stage behind a gate is retried without passing the gate again', async ({ engine }) => {
  const [first, gate, last] = gated(tenPerMinute) as [StageDefinition, StageDefinition, StageDefinition];
  await engine.pipeline([
    first,
    gate,
    { ...last, retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [5] } } },
  ]);
  const [id] = await bring(engine, 1);
  const worker = await Worker.of(engine, 'last');
  await worker.report(failed(await worker.takeOne()));
  expect(await engine.attempts(id)).toEqual([
    'first 1 completed',
    'gate 1 completed',
    'last 1 failed',
    'last 2 queued',
  ]);
});

test('a stage becomes a gate, and a gate a stage, once nothing of it is under way', async ({ engine }) => {
  const definition = await engine.pipeline(gated(tenPerMinute));
  await bring(engine, 11);
  const [first, gate, last] = definition.stages as [StageDefinition, StageDefinition, StageDefinition];
  const worked = { ...definition, stages: [first, { name: 'gate', needs: ['first'] }, last] };
  const refusal = await engine.refusedDefinition(worked);
  expect(refusal.message).toMatch(
    /stage gate cannot change from kind gate to function while attempts of it are under way: 1/,
  );
  await engine.advance('1 minute');
  await sweep(engine);
  expect(await engine.define(worked)).toBe(2);
  await bring(engine, 1);
  expect(await queuedAt(engine, 'gate')).toBe(1);
  await runStage(engine, 'gate');
  expect(await engine.define({ ...definition, stages: [first, gate, last] })).toBe(3);
});

/** gate → last, where the column `key` is the key of both, unless the later stage has another. */
async function keyed(engine: Engine, limits: Row, last: Row = { concurrency: { column: 'key', limit: 9 } }) {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await engine.pipeline([
    { name: 'gate', kind: 'gate', limits: { concurrency: { column: 'key' }, ...limits } },
    { name: 'last', needs: ['gate'], limits: last },
  ]);
}
const queueKeys = (engine: Engine, keys: string[], count: number) =>
  engine.sql.query(
    `insert into public.items (key, gate_status) select k, 'queued' from unnest($1::text[]) k, generate_series(1, $2::int)`,
    [keys, count],
  );
/** How many of each key have passed the gate and are not done. */
const passed = async (engine: Engine) => {
  const rows = await engine.rows<{ key: string; n: number }>(
    `select key, count(*)::int as n from public.items where last_status in ('queued', 'started') group by 1 order by 1`,
  );
  return rows.map(({ key, n }) => `${key}${n}`).join(' ');
};

test('the keys of a gate take turns, however much waits of one and however many there are', async ({ engine }) => {
  await keyed(engine, { rate: { count: 4, per_seconds: 60 } });
  await queueKeys(engine, ['a'], 50);
  await queueKeys(engine, ['b', 'c', 'd', 'e', 'f'], 3);
  const seen: string[] = [];
  for (let minute = 0; minute < 4; minute++) {
    expect(await sweep(engine)).toMatchObject({ passed: 4 });
    seen.push(await passed(engine));
    await engine.advance('1 minute');
  }
  expect(seen).toEqual(['a1 b1 c1 d1', 'a2 b2 c1 d1 e1 f1', 'a2 b2 c2 d2 e2 f2', 'a3 b3 c3 d3 e2 f2']);
});

test('the part of a gate’s rate that some keys leave goes to keys with more rows', async ({ engine }) => {
  await keyed(engine, { rate: { count: 10, per_seconds: 60 } });
  await queueKeys(engine, ['a'], 50);
  await queueKeys(engine, ['b', 'c'], 1);
  expect(await sweep(engine)).toMatchObject({ passed: 10 });
  expect(await passed(engine)).toBe('a8 b1 c1');
});

test('a gate is held back key by key where the later stage has its key', async ({ engine }) => {
  await keyed(engine, { back_pressure: { stage: 'last', backlog: 3 } });
  await queueKeys(engine, ['a'], 9);
  await sweep(engine);
  await queueKeys(engine, ['b'], 9);
  await sweep(engine);
  expect(await passed(engine)).toBe('a3 b3');
  const worker = await Worker.of(engine, 'last');
  const batch = await worker.take(6);
  const ofA = batch.filter(({ entity }) => entity.key === 'a');
  expect(ofA).toHaveLength(3);
  expect(await sweep(engine), 'what is in work counts').not.toHaveProperty('passed');
  await worker.report(completed(ofA[0] as never));
  await sweep(engine);
  expect(await passed(engine)).toBe('a3 b3');
  expect(await engine.value('select count(*)::int from millrace.check_invariants()')).toBe(0);
});

test('a gate with a key counts everything at a later stage that has another', async ({ engine }) => {
  await keyed(engine, { back_pressure: { stage: 'last', backlog: 3 } }, { concurrency: { column: 'label', limit: 9 } });
  await queueKeys(engine, ['a', 'b'], 9);
  await sweep(engine);
  expect(await passed(engine)).toBe('a2 b1');
});

test('a gate counts everything where a stage on the way to the later one has no key', async ({ engine }) => {
  await keyed(engine, { rate: { count: 9, per_seconds: 60 } });
  await engine.pipeline([
    {
      name: 'gate',
      kind: 'gate',
      limits: { concurrency: { column: 'key' }, back_pressure: { stage: 'last', backlog: 3 } },
    },
    { name: 'between', needs: ['gate'] },
    { name: 'last', needs: ['between'], limits: { concurrency: { column: 'key', limit: 9 } } },
  ]);
  await queueKeys(engine, ['a', 'b'], 9);
  await sweep(engine);
  await sweep(engine);
  expect(await queuedAt(engine, 'between')).toBe(3);
});

test('a gate counts everything where the later stage holds back one in work without its key', async ({ engine }) => {
  const back_pressure = { stage: 'last', backlog: 3 };
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await engine.pipeline([
    { name: 'beside', max_workers: 9, limits: { back_pressure } },
    { name: 'gate', kind: 'gate', limits: { concurrency: { column: 'key' }, back_pressure } },
    { name: 'last', needs: ['gate', 'beside'], limits: { concurrency: { column: 'key', limit: 9 } } },
  ]);
  await engine.queued('beside', 2);
  expect(await (await Worker.of(engine, 'beside')).take()).toHaveLength(2);
  await queueKeys(engine, ['a', 'b'], 9);
  await sweep(engine);
  expect(await queuedAt(engine, 'gate'), 'of twenty').toBe(19);
});

test('a key that names its part is that which leaves it out', async ({ engine }) => {
  const last = { concurrency: { column: 'key', part: 'value', limit: 9 } };
  await keyed(engine, { back_pressure: { stage: 'last', backlog: 3 } }, last);
  await queueKeys(engine, ['a', 'b'], 9);
  await sweep(engine);
  expect(await passed(engine)).toBe('a3 b3');
});

test('a gate with hundreds of full keys looks at each about once, and leaves time for others', async ({ engine }) => {
  await keyed(engine, { back_pressure: { stage: 'last', backlog: 1 } });
  await queueKeys(
    engine,
    Array.from({ length: 600 }, (_, number) => `key ${number}`),
    2,
  );
  await engine.sweepAll();
  await engine.pipeline(
    [
      { name: 'other', kind: 'gate', limits: tenPerMinute },
      { name: 'after', needs: ['other'] },
    ],
    {},
    'second',
  );
  await engine.queued('other');
  // Each look at the clock takes time, and each key is a look.
  await engine.sql.query(`
    create sequence public.looks;
    create or replace function millrace.now() returns timestamptz language sql volatile set search_path = '' as
    $$ select c.at + nextval('public.looks') * interval '1 millisecond' from public.test_clock c $$`);
  await engine.sql.query('select millrace.sweep_gates()');
  expect(await queuedAt(engine, 'after')).toBe(1);
  await engine.sql.query(`
    select setval('public.looks', 1);
    create or replace function millrace.now() returns timestamptz language sql volatile set search_path = '' as
    $$ select c.at + nextval('public.looks') * interval '0' from public.test_clock c $$`);
  await engine.sql.query('select millrace.sweep_gates()');
  expect(await engine.value<number>('select last_value::int from public.looks')).toBeLessThan(2000);
});

// The planner of 15 and 16 walks the index of waiting attempts anew for some keys: 2.6 times the rows.
test.skipIf(postgresMajor < 17)('a gate goes round its full keys once, however many there are', async ({ engine }) => {
  await keyed(engine, { back_pressure: { stage: 'last', backlog: 1 } });
  const rows: number[] = [];
  for (const keys of [250, 2_500]) {
    const names = Array.from({ length: keys }, (_, number) => `key ${number}`);
    await queueKeys(engine, names, 2);
    await engine.sweepAll();
    await engine.sql.query('analyze millrace.attempts');
    rows.push(await planRows(engine.database.superUrl, 'select millrace.sweep_gates()'));
  }
  expect(rows[1]).toBeLessThan((rows[0] as number) * 15);
});

test('a row that somebody holds keeps neither its key nor another at the gate', async ({ engine }) => {
  await keyed(engine, { rate: { count: 4, per_seconds: 60 } });
  await queueKeys(engine, ['a', 'b'], 3);
  const person = await openTransaction(engine);
  await person.query(`update public.items set label = 'held' where id = (select min(id) from public.items)`);
  expect(await sweep(engine)).toMatchObject({ passed: 4 });
  expect(await passed(engine)).toBe('a2 b2');
});

test('a gate that is given a key sorts what waits there, and one that loses it goes on in order', async ({
  engine,
}) => {
  await keyed(engine, { rate: { count: 2, per_seconds: 60 } });
  await queueKeys(engine, ['a', 'b'], 3);
  const define = (limits: Row) =>
    engine.pipeline([
      { name: 'gate', kind: 'gate', limits: { rate: { count: 2, per_seconds: 60 }, ...limits } },
      { name: 'last', needs: ['gate'], limits: { concurrency: { column: 'key', limit: 9 } } },
    ]);
  await define({});
  await sweep(engine);
  expect(await passed(engine)).toBe('a2');
  await engine.advance('1 minute');
  await define({ concurrency: { column: 'key' } });
  await sweep(engine);
  expect(await passed(engine)).toBe('a3 b1');
});

test('to find what a gate passes next costs the same, however much of one key waits there and behind it', async ({
  engine,
}) => {
  await keyed(engine, { rate: { count: 4, per_seconds: 60 }, back_pressure: { stage: 'last', backlog: 50 } });
  const rows = async () => {
    await engine.advance('1 minute');
    await engine.sql.query('analyze millrace.attempts, millrace.runs');
    return planRows(
      engine.database.superUrl,
      `select millrace.pass_gate(s.id, 4) from millrace.stages s where name = 'gate'`,
    );
  };
  const queueA = async (count: number) => {
    await queueKeys(engine, ['a'], 2 * count);
    await engine.sql.query(
      `select millrace.skip(a.run_id, 'gate') from (
         select run_id from millrace.attempts where state = 'queued' and concurrency_group = '0a'
           and stage_id = (select id from millrace.stages where name = 'gate') limit $1) a`,
      [count],
    );
  };
  await queueA(60);
  await queueKeys(engine, ['b', 'c', 'd'], 20);
  const few = await rows();
  await queueA(400);
  expect(await rows()).toBeLessThanOrEqual(few);
});
