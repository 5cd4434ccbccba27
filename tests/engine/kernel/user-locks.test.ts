import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

test("an item whose row a user's transaction holds is busy, and accepted once the user is done", async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  const [id] = await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  const item = await worker.takeOne();
  const user = await openTransaction(engine);
  await user.query(`update public.items set label = 'mine' where id = $1`, [id]);
  const { items } = await worker.complete([completed(item, { n: 1 })]);
  expect(items).toEqual([
    { attempt: item.attempt, verdict: 'busy', reason: 'the entity is locked by another transaction' },
  ]);
  expect(await engine.attempts(id)).toEqual(['first 1 started']);
  await user.query('commit');
  expect(await worker.report(completed(item, { n: 1 }))).toEqual(['accepted']);
  expect(await engine.item(id)).toMatchObject({ label: 'mine', first_result: { n: 1 }, second_status: 'queued' });
});

test('a busy item does not hold back the others of its batch', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [held] = await engine.queued('only', 5);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  const user = await openTransaction(engine);
  await user.query('select from public.items where id = $1 for update', [held]);
  const { items } = await worker.complete(batch.map((item) => completed(item)));
  const verdicts = batch.map((item, n) => [item.entity_id, items[n]?.verdict]);
  expect(Object.fromEntries(verdicts)).toEqual({
    1: 'busy',
    2: 'accepted',
    3: 'accepted',
    4: 'accepted',
    5: 'accepted',
  });
  await user.query('rollback');
  const late = batch.find((item) => item.entity_id === held);
  if (!late) throw new Error('the held item was in the batch');
  expect(await worker.report(completed(late))).toEqual(['accepted']);
});

test("a claim does not wait for a user's transaction, and its item is shown as started later", async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const user = await openTransaction(engine);
  await user.query('select from public.items where id = $1 for update', [id]);
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await user.query('commit');
  expect((await engine.item(id)).only_status).toBe('queued');
  await worker.report(completed(item));
  expect(await engine.item(id)).toMatchObject({ only_status: 'completed', only_started_at: expect.any(Date) });
});

test("a reference to the row, such as a foreign key's, makes nothing busy", async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  await engine.sql.query('create table public.notes (item bigint references public.items)');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  const user = await openTransaction(engine);
  await user.query('insert into public.notes values ($1)', [id]);
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  await user.query('commit');
});

test("a user's write waits no longer than a worker's own transaction and then finds the result in place", async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.client.query('begin');
  await worker.report(completed(item, { n: 1 }));
  const user = await engine.database.connect();
  const write = begin(user.query(`update public.items set label = 'mine' where id = $1`, [id]));
  await untilBlocked(engine, user);
  await worker.client.query('commit');
  await write;
  expect(await engine.item(id)).toMatchObject({ label: 'mine', only_status: 'completed', only_result: { n: 1 } });
});

test('a requeue under way makes the completion busy, and stale once it is committed', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const worker = await Worker.of(engine, 'second');
  const item = await worker.takeOne();
  const user = await openTransaction(engine);
  await user.query(`update public.items set first_status = 'queued' where id = $1`, [id]);
  expect(await worker.report(completed(item))).toEqual(['busy']);
  await user.query('commit');
  expect(await worker.report(completed(item))).toEqual(['stale']);
  expect(await engine.statuses(id)).toEqual({ first: 'queued', second: 'pending' });
});

test('a requeue that waits for the completion of the last stage starts a new run', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.client.query('begin');
  await worker.report(completed(item));
  const user = await engine.database.connect();
  const write = begin(user.query(`update public.items set only_status = 'queued' where id = $1`, [id]));
  await untilBlocked(engine, user);
  await worker.client.query('commit');
  await write;
  expect(await engine.attempts(id)).toEqual(['only 1 completed', 'only 1 queued']);
  expect(await engine.item(id)).toMatchObject({ only_status: 'queued', only_result: null });
});

test('a requeue that is rolled back leaves the attempt to its worker', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const worker = await Worker.of(engine, 'second');
  const item = await worker.takeOne();
  const user = await openTransaction(engine);
  await user.query(`update public.items set first_status = 'queued' where id = $1`, [id]);
  await user.query('rollback');
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  expect((await engine.run(id)).status).toBe('completed');
});

test('a row deleted while its stage runs makes the completion stale and leaves nothing behind', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  const [gone, kept] = await engine.queued('first', 2);
  const worker = await Worker.of(engine, 'first');
  const batch = await worker.take();
  const user = await openTransaction(engine);
  await user.query('delete from public.items where id = $1', [gone]);
  const during = await worker.report(...batch.map((item) => completed(item)));
  expect(during).toEqual(batch.map((item) => (item.entity_id === gone ? 'busy' : 'accepted')));
  await user.query('commit');
  const after = await worker.complete(batch.map((item) => completed(item)));
  expect(after.items.map((item) => item.verdict)).toEqual(
    batch.map((item) => (item.entity_id === gone ? 'stale' : 'duplicate')),
  );
  expect(await engine.rows('select entity_id from millrace.runs')).toEqual([{ entity_id: kept }]);
  expect(await engine.value('select count(*)::int from millrace.claims')).toBe(0);
});

test('two users who queue the same row one after the other end up with one live run', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.insert();
  const [one, two] = [await openTransaction(engine), await engine.database.connect()];
  const queue = `update public.items set only_status = 'queued' where id = $1`;
  await one.query(queue, [id]);
  const second = begin(two.query(queue, [id]));
  await untilBlocked(engine, two);
  await one.query('commit');
  await second;
  expect(await engine.attempts(id)).toEqual(['only 1 queued']);
});

const heldBy: [string, string][] = [
  ['deletes', 'delete from public.items where id = $1'],
  ['cancels the run of', `select millrace.cancel(id) from millrace.runs where entity_id = $1::text`],
  ['starts over', `select millrace.start('flow', $1::text, p_restart => true)`],
];

for (const projection of ['columns', 'none']) {
  for (const [what, statement] of heldBy) {
    test(`a user who ${what} one row of a batch and stays in the transaction holds up nothing else (${projection})`, async ({
      engine,
    }) => {
      await engine.pipeline([{ name: 'only' }], { projection });
      const ids = await engine.insert(3);
      await engine.sql.query(`select millrace.start('flow', id::text) from public.items order by id`);
      const worker = await Worker.of(engine, 'only');
      const batch = await worker.take();
      const user = await openTransaction(engine);
      await user.query(statement, [ids[0]]);
      await worker.client.query(`set statement_timeout = '2s'`);
      const verdicts = await worker.report(...batch.slice(0, 2).map((item) => completed(item)));
      expect(verdicts).toEqual(['busy', 'accepted']);
      expect(await worker.renew(batch)).toMatchObject({ renewed: 2 });
      await engine.advance('61 seconds');
      const sweeper = await engine.database.connect();
      await sweeper.query(`set statement_timeout = '2s'`);
      const { rows } = await sweeper.query('select millrace.sweep() as swept');
      expect(rows[0].swept).toMatchObject({ leases: 1 });
      await user.query('commit');
    });
  }
}
