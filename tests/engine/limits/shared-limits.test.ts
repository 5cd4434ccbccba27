// Limits that stages of several pipelines share: in flight, rate, and how they are defined, changed and dropped.

import { expect } from 'vitest';
import { allFaults } from '../../support/bookkeeping.ts';
import { compiled } from '../../support/definitions.ts';
import { test } from '../../support/engine/shared-limits.ts';
import { chain, type Engine, type Row } from '../../support/engine.ts';
import { begin, jobEnd, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, resume, Worker, waiting } from '../../support/worker.ts';

const defineLimit = (engine: Engine, limits: Row, name = 'model') =>
  engine.sql.query('select millrace.define_limit($1, $2)', [name, JSON.stringify(limits)]);
const shared = { limits: { shared: ['model'] }, max_workers: 10 };
const inFlight = (engine: Engine) => engine.value<number>('select count(*)::int from millrace.in_flight');
const state = async (engine: Engine) => (await engine.rows('select * from millrace.shared_limit_state'))[0];

/** Stage `one` of `flow` and stage `uno` of `other`, both over public.items and both under the limit `model`. */
async function twoPipelines(engine: Engine, limits: Row): Promise<[Worker, Worker]> {
  await defineLimit(engine, limits);
  await engine.pipeline(chain(['one'], shared));
  await engine.pipeline(chain(['uno'], shared), {}, 'other');
  return [await Worker.of(engine, 'one'), await Worker.of(engine, 'uno', 'other')];
}

test('stages of two pipelines have no more in flight together than their limit says', async ({ engine }) => {
  const [one, uno] = await twoPipelines(engine, { max_in_flight: 5 });
  await engine.queued('one', 10);
  await engine.queued('uno', 10);
  const batch = await one.take(3);
  expect(batch).toHaveLength(3);
  expect(await uno.take(10)).toHaveLength(2);
  expect(await one.claim()).toMatchObject({ status: 'empty', wait_ms: 1000 });
  expect(await uno.claim()).toMatchObject({ status: 'empty', wait_ms: 1000 });
  await one.complete(batch.map((item, place) => [completed, failed][place % 2]?.(item)));
  expect((await uno.take(10)).length + (await one.take(10)).length).toBe(3);
  expect(await uno.take(10)).toHaveLength(0);
  expect(await inFlight(engine)).toBe(5);
});

test('a rate holds for all stages that share it, and one that is used up says when to ask again', async ({
  engine,
}) => {
  const [one, uno] = await twoPipelines(engine, { rate: { count: 6, per_seconds: 60 } });
  await engine.queued('one', 20);
  await engine.queued('uno', 10);
  expect(await one.take(4)).toHaveLength(4);
  expect(await uno.take(10)).toHaveLength(2);
  expect(await one.claim()).toMatchObject({ status: 'empty', wait_ms: 10_000 });
  await engine.advance('10 seconds');
  expect((await uno.take(10)).length + (await one.take(10)).length).toBe(1);
  expect(await uno.take(10)).toHaveLength(0);
  await engine.advance('10 minutes');
  expect(await one.take(10)).toHaveLength(6);
});

test('the least of a stage’s own limits and of all that it shares counts', async ({ engine }) => {
  await defineLimit(engine, { max_in_flight: 6 });
  await defineLimit(engine, { rate: { count: 4, per_seconds: 60 } }, 'scrapes');
  await engine.pipeline([
    { name: 'both', limits: { shared: ['model', 'scrapes'] } },
    { name: 'own', limits: { shared: ['model'], max_in_flight: 1, rate: { count: 9, per_seconds: 1 } } },
  ]);
  await engine.queued('both', 10);
  await engine.queued('own', 10);
  const [both, own] = [await Worker.of(engine, 'both'), await Worker.of(engine, 'own')];
  expect(await both.take()).toHaveLength(4);
  expect(await own.take()).toHaveLength(1);
  expect((await state(engine))?.in_flight).toBe('5');
});

test('an attempt that a claim gives back, as its batch has no room for it, is given back to the bucket', async ({
  engine,
}) => {
  const [one] = await twoPipelines(engine, { rate: { count: 10, per_seconds: 60 } });
  await engine.sql.query(`update millrace.settings set value = '10000' where name = 'batch_bytes'`);
  await engine.insert(10);
  await engine.sql.query(`update public.items set label = repeat('x', 3000), one_status = 'queued'`);
  const taken = (await one.claim(10)).batch.length;
  expect(taken).toBeLessThan(10);
  expect(await engine.value('select tokens from millrace.buckets')).toBe(10 - taken);
  expect(await inFlight(engine)).toBe(taken);
});

test('stages keep one another from claiming at the same time under one limit, and exceed it never', async ({
  engine,
}) => {
  const [one, uno] = await twoPipelines(engine, { max_in_flight: 7, rate: { count: 20, per_seconds: 60 } });
  await engine.queued('one', 40);
  await engine.queued('uno', 40);
  const workers = [one, uno, await Worker.of(engine, 'one'), await Worker.of(engine, 'uno', 'other')];
  let taken = 0;
  for (let round = 0; round < 10; round++) {
    const batches = await Promise.all(workers.map((worker) => worker.take(3)));
    taken += batches.flat().length;
    expect(
      await engine.value(`select count(*)::int from millrace.attempts where state = 'started'`),
    ).toBeLessThanOrEqual(7);
    await Promise.all(workers.map((worker, at) => worker.complete((batches[at] ?? []).map((item) => completed(item)))));
  }
  expect(taken).toBe(20);
});

test('a stage that works fast leaves another that wants places its share of them', async ({ engine }) => {
  const [one, uno] = await twoPipelines(engine, { max_in_flight: 6 });
  await engine.queued('one', 100);
  let batch = await one.take(10);
  expect(batch).toHaveLength(6);
  await engine.queued('uno', 100);
  expect(await uno.take(10)).toEqual([]);
  const round = async () => {
    batch = (
      await one.complete(
        batch.map((item) => completed(item)),
        10,
      )
    ).batch;
    return [batch.length, (await uno.take(10)).length];
  };
  expect(await round()).toEqual([3, 3]);
  expect(await round()).toEqual([3, 0]);
  // When the other asks for nothing more, all places are its own again.
  await engine.advance('16 seconds');
  expect(await round()).toEqual([3, 0]);
  await engine.sql.query(
    `select millrace.cancel(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = 'other' and r.status = 'running'`,
  );
  await engine.sql.query('select millrace.sweep()');
  await engine.advance('16 seconds');
  expect(
    (
      await one.complete(
        batch.map((item) => completed(item)),
        10,
      )
    ).batch,
  ).toHaveLength(6);
});

test('of a rate that is used up, stages that want some take by turns', async ({ engine }) => {
  const [one, uno] = await twoPipelines(engine, { rate: { count: 60, per_seconds: 60, burst: 1 } });
  await engine.queued('one', 100);
  await engine.queued('uno', 100);
  const taken = [0, 0];
  for (let second = 0; second < 20; second += 1) {
    // The first one is always faster.
    taken[0] = (taken[0] ?? 0) + (await one.take(10)).length;
    taken[1] = (taken[1] ?? 0) + (await uno.take(10)).length;
    await engine.advance('1 second');
  }
  expect(taken).toEqual([10, 10]);
});

test('a stage that is short of another limit has no share kept under this one', async ({ engine }) => {
  await defineLimit(engine, { rate: { count: 60, per_seconds: 60, burst: 1 } }, 'scrapes');
  await defineLimit(engine, { max_in_flight: 1 });
  await engine.pipeline([
    { name: 'busy', ...shared },
    { name: 'both', limits: { shared: ['scrapes', 'model'] } },
    { name: 'free', limits: { shared: ['scrapes'] } },
  ]);
  for (const stage of ['busy', 'both', 'free']) await engine.queued(stage, 30);
  const [busy, both, free] = [
    await Worker.of(engine, 'busy'),
    await Worker.of(engine, 'both'),
    await Worker.of(engine, 'free'),
  ];
  expect(await busy.take(10)).toHaveLength(1);
  let taken = 0;
  for (let second = 0; second < 20; second += 1) {
    expect(await both.take(10)).toEqual([]);
    taken += (await free.take(10)).length;
    await engine.advance('1 second');
  }
  expect(taken).toBe(20);
});

test('a stage whose share nobody takes is waited for no longer than until the next sweep', async ({ engine }) => {
  const [one, uno] = await twoPipelines(engine, { rate: { count: 60, per_seconds: 60, burst: 1 } });
  await engine.queued('one', 100);
  await engine.queued('uno', 100);
  await one.take(10);
  expect(await uno.take(10)).toEqual([]);
  await engine.advance('1 second');
  expect(await one.claim(10)).toMatchObject({ status: 'empty', wait_ms: 1000 });
  await engine.advance('15 seconds');
  expect(await one.take(10)).toHaveLength(1);
});

test('a worker that records results waits for no claim of another stage', async ({ engine }) => {
  const [one, uno] = await twoPipelines(engine, { max_in_flight: 5 });
  await engine.queued('one', 2);
  await engine.queued('uno', 2);
  const item = await one.takeOne();
  await uno.client.query('begin');
  await uno.takeOne();
  expect(await one.complete([completed(item)], 10)).toMatchObject({
    status: 'empty',
    wait_ms: 50,
    items: [{ verdict: 'accepted' }],
  });
  await uno.client.query('rollback');
});

test('a limit that changes waits for the claims under way, and holds for the next', async ({ engine }) => {
  const [one, uno] = await twoPipelines(engine, { max_in_flight: 5 });
  await engine.queued('one', 10);
  await engine.queued('uno', 10);
  await one.client.query('begin');
  expect(await one.take(4)).toHaveLength(4);
  const other = await engine.database.connect();
  const change = begin(other.query(`select millrace.define_limit('model', '{"max_in_flight": 4}')`));
  await untilBlocked(engine, other);
  await one.client.query('commit');
  await change;
  expect(await uno.take(10)).toHaveLength(0);
  await defineLimit(engine, { max_in_flight: 6 });
  expect(await uno.take(10)).toHaveLength(2);
});

test('a limit that gets places in flight counts what was in work before', async ({ engine }) => {
  const [one, uno] = await twoPipelines(engine, { rate: { count: 100, per_seconds: 1 } });
  await engine.queued('one', 10);
  await engine.queued('uno', 10);
  expect(await one.take(4)).toHaveLength(4);
  await defineLimit(engine, { max_in_flight: 5 });
  expect(await uno.take(10)).toHaveLength(1);
});

test('a stage that comes under a limit while it works is counted', async ({ engine }) => {
  await defineLimit(engine, { max_in_flight: 3 });
  const definition = await engine.pipeline(chain(['one']));
  await engine.queued('one', 10);
  const worker = await Worker.of(engine, 'one');
  expect(await worker.take(2)).toHaveLength(2);
  await engine.define({ ...definition, stages: chain(['one'], shared) });
  expect(await worker.take()).toHaveLength(1);
  await engine.define(definition);
  expect(await worker.take()).toHaveLength(7);
});

test('room that another stage made wakes a stage in the sweep', async ({ engine }) => {
  await engine.configureWakeUps();
  const [one, uno] = await twoPipelines(engine, { max_in_flight: 2 });
  await engine.queued('one', 2);
  const batch = await one.take();
  await engine.queued('uno', 2);
  expect(await uno.take()).toEqual([]);
  await uno.leave();
  await engine.advance('30 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  await one.complete(batch.map((item) => completed(item)));
  await engine.advance('20 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 1 });
});

test('the end of a job wakes the stage that is short of the place it frees', async ({ engine }) => {
  await engine.configureWakeUps();
  await defineLimit(engine, { max_in_flight: 1 });
  await engine.pipeline(chain(['one'], { ...shared, kind: 'external', completion: { callback: true } }));
  await engine.pipeline(chain(['uno'], shared), {}, 'other');
  await engine.queued('one', 1);
  await engine.queued('uno', 1);
  const [one, uno] = [await Worker.of(engine, 'one'), await Worker.of(engine, 'uno', 'other')];
  const item = await one.takeOne();
  await one.complete([waiting(item, 'job')]);
  expect(await uno.take()).toEqual([]);
  await uno.leave();
  await engine.advance('30 seconds');
  const { wake } = await resume(engine, [jobEnd(item, 'job')]);
  expect(wake).toMatchObject([{ pipeline: 'other', stage: 'uno' }]);
});

test('a clock that is set back fills a bucket, once', async ({ engine }) => {
  const [one] = await twoPipelines(engine, { rate: { count: 6, per_seconds: 60 } });
  await engine.queued('one', 6);
  expect(await one.take(10)).toHaveLength(6);
  await engine.advance('-1 hour');
  await engine.queued('one', 10);
  expect(await one.take(10)).toHaveLength(6);
  await engine.advance('20 seconds');
  expect(await one.take(10)).toHaveLength(2);
});

test('a limit that no definition should have is refused, by its field', async ({ engine }) => {
  const refused = async (limits: unknown, name = 'model') =>
    (await engine.refusal('select millrace.define_limit($1, $2)', [name, JSON.stringify(limits)])).message;
  expect(await refused({ max_in_flight: 0 })).toBe(
    'shared limit model: limits.max_in_flight is 0, but must be a whole number from 1 to 10000',
  );
  expect(await refused({ rate: { count: 0, per_seconds: 60 } })).toMatch(
    /^shared limit model: limits\.rate\.count is 0, /,
  );
  expect(await refused({ spending: { usd: 0, per_seconds: 60 } })).toMatch(
    /^shared limit model: limits\.spending\.usd is 0, /,
  );
  expect(await refused({ spending: { per_seconds: 60 } })).toMatch(/^shared limit model: limits\.spending is /);
  expect(await refused({})).toMatch(/^shared limit model: limits is {}, but must be an object with at least one limit/);
  expect(await refused({ burst: 5 })).toMatch(/burst/);
  expect(await refused(null)).toMatch(/^shared limit model: limits is null/);
  expect(await refused({ max_in_flight: 1 }, 'The Model')).toMatch(/^shared limit The Model: its name must be /);
  expect(await engine.rows('select from millrace.limits where name is not null')).toEqual([]);
});

test('a stage names limits that there are, each once', async ({ engine }) => {
  const refusal = (names: unknown) =>
    engine.pipeline(chain(['one'], { limits: { shared: names } })).then(
      () => null,
      (error: Row) => error.message,
    );
  expect(await refusal(['model'])).toBe('stage one: limits.shared names model, which is no shared limit');
  await defineLimit(engine, { max_in_flight: 1 });
  expect(await refusal(['model', 'model'])).toBe('stages.one.limits.shared names model twice: name it once.');
  expect(await refusal([])).toMatch(/ stages\.one\.limits\.shared is \[\], but must be /);
  expect(await refusal(['model'])).toBeNull();
});

test('a limit that a stage names is not dropped, and one that none names is', async ({ engine }) => {
  await defineLimit(engine, { max_in_flight: 1 });
  const definition = await engine.pipeline(chain(['one'], shared));
  expect(await engine.refusal(`select millrace.drop_limit('model')`)).toMatchObject({
    code: 'MR004',
    message: 'shared limit model cannot be dropped: flow.one names it',
  });
  await engine.define({ ...definition, stages: chain(['one']) });
  await engine.sql.query(`select millrace.drop_limit('model')`);
  expect(await engine.refusal(`select millrace.drop_limit('model')`)).toMatchObject({ code: 'MR003' });
});

test('a definition that names a limit and its drop at once: the drop waits, and is refused', async ({ engine }) => {
  await defineLimit(engine, { max_in_flight: 1 });
  const definition = await engine.pipeline(chain(['one']));
  const definer = await openTransaction(engine);
  await definer.query('select millrace.define($1)', [compiled({ ...definition, stages: chain(['one'], shared) })]);
  const dropper = await engine.database.connect();
  const drop = begin(dropper.query(`select millrace.drop_limit('model')`));
  await untilBlocked(engine, dropper);
  await definer.query('commit');
  await expect(drop).rejects.toThrow('flow.one names it');
});

test('nobody reaches shared limits through the Data API but by the operators’ API', async ({ engine }) => {
  await twoPipelines(engine, { max_in_flight: 5 });
  for (const role of ['anon', 'authenticated', 'service_role'] as const) {
    const client = await engine.database.connect(role);
    for (const statement of [
      `select millrace.define_limit('model', '{"max_in_flight": 9}')`,
      `select millrace.drop_limit('model')`,
      `select millrace.throttle_limit('model', '{"max_in_flight": 9}', now() + interval '1 hour', 'why')`,
      `select millrace.unthrottle_limit('model')`,
      'select * from millrace.shared_limit_state',
      'select * from millrace.limits',
      'update millrace.limited_stages set short_at = null',
      `insert into millrace.limit_uses (limit_id, kind, during, used) values (1, 'usd', '[now,infinity)', -100)`,
      'delete from millrace.limit_uses',
    ]) {
      expect(await engine.refusal(statement, [], client)).toMatchObject({ code: '42501' });
    }
  }
});

test('each rule of the invariants about shared limits is told when it is broken', async ({ engine }) => {
  const [one] = await twoPipelines(engine, { rate: { count: 5, per_seconds: 60 } });
  await engine.queued('one', 3);
  await engine.advance('2 minutes');
  await one.take(2);
  await engine.expectSound();
  const damages: [string, string][] = [
    [
      'the limits of a stage are its own and those that it names',
      'delete from millrace.limited_stages m using millrace.limits l where l.id = m.limit_id and l.name is not null',
    ],
    [
      'the limits of a stage are its own and those that it names',
      `delete from millrace.limits where stage_id = (select id from millrace.stages where name = 'one')`,
    ],
  ];
  for (const [rule, damage] of damages) {
    await engine.sql.query('begin');
    await engine.sql.query(damage);
    const rules = await engine.rows(`select distinct rule from (${allFaults}) f`);
    await engine.sql.query('rollback');
    expect(rules).toEqual([{ rule }]);
  }
});
