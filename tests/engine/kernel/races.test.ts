import { expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import { chain, test } from '../../support/engine.ts';
import { begin, diamond, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

test('two claimers never share an attempt: the second passes over what the first holds', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 5 }]);
  await engine.queued('only', 10);
  const [one, two] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  await two.claim(0);
  await one.client.query('begin');
  const first = await one.take(6);
  const second = await two.take(10);
  await one.client.query('commit');
  expect(first).toHaveLength(6);
  expect(second).toHaveLength(4);
  const taken = [...first, ...second].map((item) => item.attempt);
  expect(new Set(taken).size).toBe(10);
});

test('many claimers at once take every attempt exactly once', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 20 }]);
  await engine.queued('only', 200);
  const workers = await Promise.all(Array.from({ length: 12 }, () => Worker.of(engine, 'only')));
  const taken: number[] = [];
  await Promise.all(
    workers.map(async (worker) => {
      for (let batch = await worker.take(7); batch.length > 0; batch = await worker.take(7)) {
        taken.push(...batch.map((item) => item.attempt));
      }
    }),
  );
  expect(taken).toHaveLength(200);
  expect(new Set(taken).size).toBe(200);
});

test('a cancel under way makes the completion busy, and stale once it is committed', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  const [id] = await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  const item = await worker.takeOne();
  const person = await openTransaction(engine);
  await person.query('select millrace.cancel($1)', [item.run]);
  expect(await worker.report(completed(item))).toEqual(['busy']);
  await person.query('commit');
  const { items } = await worker.complete([completed(item)]);
  expect(items).toMatchObject([{ verdict: 'stale', reason: 'the attempt was cancelled' }]);
  expect(await engine.attempts(id)).toEqual(['first 1 cancelled']);
  expect((await engine.run(id)).status).toBe('cancelled');
});

test('a start that waits for the completion which ends the live run begins a new one', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }], { projection: 'none' });
  const [id] = await engine.insert(1);
  const start = `select millrace.start('flow', $1)`;
  const first = await engine.value(start, [id]);
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.client.query('begin');
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  const person = await engine.database.connect();
  const second = begin(person.query(start, [id]));
  await untilBlocked(engine, person);
  await worker.client.query('commit');
  expect((await second).rows).not.toEqual([{ start: first }]);
  expect(await engine.rows('select status::text from millrace.runs order by id')).toEqual([
    { status: 'completed' },
    { status: 'running' },
  ]);
  await engine.expectSound();
});

test('a cancel waits for the completion under way and then cancels the stage it readied', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  const [id] = await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  const item = await worker.takeOne();
  await worker.client.query('begin');
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  const person = await engine.database.connect();
  const cancel = begin(person.query('select millrace.cancel($1)', [item.run]));
  await untilBlocked(engine, person);
  await worker.client.query('commit');
  await cancel;
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'second 1 cancelled']);
  expect(await engine.statuses(id)).toEqual({ first: 'completed', second: 'failed' });
});

test('a cancel that waits for the completion of the last stage finds the run over', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }], { projection: 'none' });
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.client.query('begin');
  await worker.report(completed(item));
  const person = await engine.database.connect();
  const cancel = begin(engine.refusal('select millrace.cancel($1)', [item.run], person));
  await untilBlocked(engine, person);
  await worker.client.query('commit');
  expect(await cancel).toMatchObject({ code: 'MR004', message: expect.stringContaining('it is completed') });
  expect((await engine.run(id)).status).toBe('completed');
});

test('siblings that complete at once start the join exactly once, where the entity is locked', async ({ engine }) => {
  await engine.pipeline(diamond());
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const [left, right] = [await Worker.of(engine, 'left'), await Worker.of(engine, 'right')];
  const [leftItem, rightItem] = [await left.takeOne(), await right.takeOne()];
  await left.client.query('begin');
  expect(await left.report(completed(leftItem))).toEqual(['accepted']);
  expect(await right.report(completed(rightItem))).toEqual(['busy']);
  await left.client.query('commit');
  expect(await right.report(completed(rightItem))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toContain('last 1 queued');
  expect(await runStage(engine, 'last')).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('siblings that complete at once start the join exactly once, where no entity is locked', async ({ engine }) => {
  await engine.pipeline(diamond(), { projection: 'none' });
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  await runStage(engine, 'first');
  const [left, right] = [await Worker.of(engine, 'left'), await Worker.of(engine, 'right')];
  const [leftItem, rightItem] = [await left.takeOne(), await right.takeOne()];
  await left.client.query('begin');
  expect(await left.report(completed(leftItem))).toEqual(['accepted']);
  expect(await right.report(completed(rightItem))).toEqual(['busy']);
  await left.client.query('commit');
  expect(await right.report(completed(rightItem))).toEqual(['accepted']);
  expect((await engine.attempts(id)).filter((attempt) => attempt.startsWith('last'))).toEqual(['last 1 queued']);
});

test('a completion after the lease went to another worker changes nothing and says so', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', retry: { backoff: { kind: 'list', seconds: [0] } } }]);
  const [id] = await engine.queued('only');
  const [late, next] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  const item = await late.takeOne();
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  const again = await next.takeOne();
  const { items } = await late.complete([completed(item, { from: 'late' })]);
  expect(items).toMatchObject([{ verdict: 'stale', reason: 'the lease had expired and the attempt was given up' }]);
  expect(await next.report(completed(again, { from: 'next' }))).toEqual(['accepted']);
  expect((await engine.item(id)).only_result).toEqual({ from: 'next' });
});

test('a released attempt that another worker took answers its first worker with stale', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  const [first, second] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  const item = await first.takeOne();
  await first.report({ attempt: item.attempt, token: item.token, outcome: 'released' });
  const again = await second.takeOne();
  expect(again.attempt).toBe(item.attempt);
  const { items } = await first.complete([completed(item)]);
  expect(items).toMatchObject([{ verdict: 'stale', reason: expect.stringContaining('another worker') }]);
  expect(await second.report(completed(again))).toEqual(['accepted']);
});

test('an attempt that is cancelled between the look-up of a batch and its locks is answered stale', async ({
  engine,
}) => {
  await engine.pipeline(chain(['first', 'second']));
  const [gone, kept] = await engine.queued('first', 2);
  const worker = await Worker.of(engine, 'first');
  const batch = await worker.take();
  // The worker's call comes by here once it has looked its batch up, before it locks anything.
  await engine.sql.query(`select pg_advisory_lock(7);
    alter function millrace.lock_entities(int, text[], boolean) rename to lock_at_once;
    create function millrace.lock_entities(p_pipeline_id int, p_ids text[], p_wait boolean) returns text[]
    language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(7) where not p_wait;
      return millrace.lock_at_once(p_pipeline_id, p_ids, p_wait);
    end $$`);
  const completion = begin(worker.complete(batch.map((item) => completed(item))));
  await untilBlocked(engine, worker.client);
  const cancelled = batch.find((item) => item.entity_id === gone);
  await engine.sql.query('select millrace.cancel($1)', [cancelled?.run]);
  await engine.sql.query('select pg_advisory_unlock(7)');
  const { items } = await completion;
  expect(items.map(({ attempt, verdict }) => [attempt, verdict])).toEqual(
    batch.map((item) => [item.attempt, item === cancelled ? 'stale' : 'accepted']),
  );
  expect(await engine.attempts(gone)).toEqual(['first 1 cancelled']);
  expect(await engine.attempts(kept)).toEqual(['first 1 completed', 'second 1 queued']);
  expect(
    await engine.rows('select id from millrace.attempts where output is not null and id = $1', [cancelled?.attempt]),
  ).toEqual([]);
});

test('an attempt that is cancelled before a batch fails as a whole is answered stale all the same', async ({
  engine,
}) => {
  const stages = [{ name: 'first' }, { name: 'second', needs: ['first'] }];
  await engine.pipeline(stages);
  const [gone, kept] = await engine.queued('first', 2);
  const worker = await Worker.of(engine, 'first');
  const batch = await worker.take();
  // The call pauses between its look-up and its locks, and what then readies the batch finds somebody in its way, once.
  await engine.sql.query(`select pg_advisory_lock(7);
    alter function millrace.lock_entities(int, text[], boolean) rename to lock_at_once;
    create function millrace.lock_entities(p_pipeline_id int, p_ids text[], p_wait boolean) returns text[]
    language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(7) where not p_wait;
      return millrace.lock_at_once(p_pipeline_id, p_ids, p_wait);
    end $$;
    create sequence public.refusals;
    create function public.refuse_once() returns trigger language plpgsql as $$
    begin
      if nextval('public.refusals') = 1 then
        raise exception 'somebody is in the way' using errcode = 'lock_not_available';
      end if;
      return null;
    end $$;
    create trigger refuse_once before insert on millrace.attempts execute function public.refuse_once()`);
  const completion = begin(worker.complete(batch.map((item) => completed(item))));
  await untilBlocked(engine, worker.client);
  const cancelled = batch.find((item) => item.entity_id === gone);
  await engine.sql.query('select millrace.cancel($1)', [cancelled?.run]);
  await engine.sql.query('select pg_advisory_unlock(7)');
  const { items } = await completion;
  expect(items.map(({ attempt, verdict }) => [attempt, verdict])).toEqual(
    batch.map((item) => [item.attempt, item === cancelled ? 'stale' : 'accepted']),
  );
  expect(await engine.attempts(gone)).toEqual(['first 1 cancelled']);
  expect(await engine.attempts(kept)).toEqual(['first 1 completed', 'second 1 queued']);
});

test('a definition counts for the completion that waited for its commit', async ({ engine }) => {
  await engine.sql.query(`create table public.applied (entity_id text);
    create function public.keep(p jsonb) returns void language sql as $$
      insert into public.applied select i ->> 'entity_id' from jsonb_array_elements(p) i $$`);
  const [first, second] = [{ name: 'first' }, { name: 'second', needs: ['first'], apply: 'public.keep' }];
  // Without a projection a definition holds the table so that not even a row of it can be locked.
  const definition = await engine.pipeline([first, second], { projection: 'none' });
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  const worker = await Worker.of(engine, 'first');
  const item = await worker.takeOne();
  const person = await openTransaction(engine);
  const stages = [{ ...first, apply: 'public.keep' }, second];
  await person.query('select millrace.define($1)', [compiled({ ...definition, stages })]);
  const report = begin(worker.report(completed(item)));
  await untilBlocked(engine, worker.client);
  await person.query('commit');
  expect(await report).toEqual(['accepted']);
  expect(await engine.rows('select entity_id from public.applied')).toEqual([{ entity_id: id }]);
});
