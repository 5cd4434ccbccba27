import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

test('table, key and values may have any name that Postgres allows', async ({ engine }) => {
  await engine.sql.query(
    `create schema "My App"; create table "My App"."Order ""Lines""" ("Key, o.id" text primary key, "select" int)`,
  );
  await engine.pipeline(chain(['user', 'order']), { table: `"My App"."Order ""Lines"""`, key: 'Key, o.id' });
  const keys = [`it's "malformed", {x}`, 'NULL', '', '\\', '1'];
  await engine.sql.query(`insert into "My App"."Order ""Lines""" select k, 7 from unnest($1::text[]) k`, [keys]);
  await engine.sql.query(`update "My App"."Order ""Lines""" set user_status = 'queued'`);
  const batch = await runStage(engine, 'user');
  expect(batch.map((item) => item.entity_id).sort()).toEqual([...keys].sort());
  for (const item of batch) expect(item.entity).toEqual({ 'Key, o.id': item.entity_id, select: 7 });
  expect(await runStage(engine, 'order')).toHaveLength(5);
  const { rows } = await engine.sql.query(`select distinct order_status from "My App"."Order ""Lines"""`);
  expect(rows).toEqual([{ order_status: 'completed' }]);
});

test('a claim hands over the row as it is at that moment, without the engine’s columns', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  await engine.sql.query(`update public.items set label = 'changed since'`);
  expect((await (await Worker.of(engine, 'one')).takeOne()).entity).toEqual({ id: Number(id), label: 'changed since' });
});

test('a key beyond 2^53, which JSON rounds in the row, is exact in entity_id, and its row is shown', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  const key = '9007199254740993';
  await engine.sql.query('insert into public.items (id) values ($1)', [key]);
  await engine.sql.query(`select millrace.start('flow', $1)`, [key]);
  const [item] = await runStage(engine, 'one');
  expect(item).toMatchObject({ entity_id: key, entity: { id: Number(key) } });
  expect(await engine.statuses(key)).toMatchObject({ one: 'completed' });
});

test('a column added to the table reaches the handlers once the pipeline is attached again', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  await engine.sql.query(`alter table public.items add column colour text default 'red'`);
  await engine.sql.query(`select millrace.attach('flow')`);
  await engine.queued('one');
  expect((await runStage(engine, 'one'))[0]?.entity).toMatchObject({ colour: 'red' });
});

test('millrace.start() shows the stage as queued and wakes; asked to restart, it starts a live run over', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  await engine.configureWakeUps();
  const [id] = await engine.insert();
  const start = (stage: string | null) =>
    engine.value<string>('select millrace.start($1, $2, $3, p_restart => true)', ['flow', id, stage]);
  const run = await start(null);
  expect(await engine.wakes()).toHaveLength(1);
  expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'pending' });
  await runStage(engine, 'one');
  const held = await (await Worker.of(engine, 'two')).takeOne();
  expect(await start('two')).toBe(run);
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
  expect(await start('one')).toBe(run);
  expect(await engine.item(id)).toMatchObject({
    one_status: 'queued',
    one_result: null,
    two_status: 'pending',
    two_started_at: null,
  });
  expect(await engine.attempts(id)).toEqual([
    'one 1 completed superseded',
    'two 1 cancelled superseded',
    'two 2 cancelled superseded',
    'one 2 queued',
  ]);
  const worker = await Worker.of(engine, 'two');
  await worker.claim(0);
  expect(await worker.report(completed(held))).toEqual(['stale']);
});

test.for(['columns', 'none'])(
  'millrace.start() on a live run returns that run and changes nothing (%s)',
  async (projection, { engine }) => {
    await engine.pipeline(chain(['one', 'two']), { projection });
    await engine.configureWakeUps();
    const [id] = await engine.insert();
    const start = (rest = '') => engine.value<string>(`select millrace.start('flow', $1${rest})`, [id]);
    const run = await start();
    await runStage(engine, 'one');
    const before = [await engine.attempts(id), await engine.item(id), await engine.wakes()];
    for (const rest of ['', `, 'one'`, `, 'two'`, ', p_restart => null']) {
      expect(await start(rest)).toBe(run);
      expect([await engine.attempts(id), await engine.item(id), await engine.wakes()]).toEqual(before);
    }
    await runStage(engine, 'two');
    expect(await start()).not.toBe(run);
  },
);

test('two who start the same row at once get one run, whoever is first', async ({ engine }) => {
  await engine.pipeline(chain(['one']), { projection: 'none' });
  const [id] = await engine.insert();
  const one = await openTransaction(engine);
  const two = await engine.database.connect();
  const call = `select millrace.start('flow', $1) as run`;
  const { rows: first } = await one.query(call, [id]);
  const second = begin(two.query(call, [id]));
  await untilBlocked(engine, two);
  await one.query('commit');
  expect((await second).rows).toEqual(first);
  expect(await engine.attempts(id)).toEqual(['one 1 queued']);
});

test('a run with two ends is over when both are reached, in either order', async ({ engine }) => {
  await engine.pipeline([{ name: 'start' }, { name: 'left', needs: ['start'] }, { name: 'right', needs: ['start'] }]);
  const [id] = await engine.queued('start', 2);
  await runStage(engine, 'start');
  const left = await Worker.of(engine, 'left');
  await left.report(completed(await left.takeOne()));
  expect((await engine.run(id)).status).toBe('running');
  await runStage(engine, 'right');
  expect((await engine.run(id)).status).toBe('completed');
  await left.report(completed(await left.takeOne()));
  expect(await engine.rows('select distinct status from millrace.runs')).toEqual([{ status: 'completed' }]);
});

test('a failed run of an older version may be retried and finishes on that version', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one', 'two', 'three']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const worker = await Worker.of(engine, 'two');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  await worker.leave();
  await engine.define({ ...definition, stages: chain(['one', 'three']) });
  await engine.sql.query('select millrace.retry($1)', [(await engine.run(id)).id]);
  await runStage(engine, 'two');
  await runStage(engine, 'three');
  expect((await engine.run(id)).status).toBe('completed');
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'completed', three: 'completed' });
});
