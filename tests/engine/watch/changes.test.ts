// Messages to those who watch a row: to them alone, coalesced, in the transaction of the change, and free where nobody watches.
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { defineFamily, numbers, spawnAll, startFolders } from '../../support/engine/children.ts';
import { inCountingSession, planRows } from '../../support/engine/plan-rows.ts';
import { blue, ownItems, progressOf, red, sent, userOf, watch } from '../../support/engine/progress.ts';
import { chain, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

const stages = chain(['one', 'two']);

test('a watched row is told of, on a private topic of the user, and no other row', async ({ engine }) => {
  await engine.pipeline(stages);
  await ownItems(engine);
  const [own = '', foreign = ''] = await engine.insert(2);
  await engine.sql.query('update public.items set owner = case id when $1 then $2::uuid else $3::uuid end', [
    own,
    red,
    blue,
  ]);
  const client = randomUUID();
  const user = await userOf(engine, red);
  const { topic } = await progressOf(user, { [own]: null, [foreign]: null }, client);
  expect(topic).toBe(`millrace:${red}:${client}`);
  await engine.queue('one', [own, foreign]);
  expect(await sent(engine)).toEqual([{ topic, keys: [own], private: true }]);
});

test('each change of a watched row sends a message: a start, a claim, an end, a failure by hand, a deletion', async ({
  engine,
}) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.insert();
  const service = await engine.database.connect('service_role');
  await watch(service, [id]);
  const told = async (change: () => Promise<unknown>) => {
    const before = (await sent(engine)).length;
    await engine.advance('1 second');
    await change();
    return (await sent(engine)).length - before;
  };
  const worker = await Worker.of(engine, 'one');
  expect(await told(() => engine.queue('one', [id]))).toBe(1);
  const [item] = await worker.take();
  if (!item) throw new Error('nothing was claimed');
  expect(await told(() => worker.report(completed(item)))).toBe(1);
  expect(await told(() => engine.rows(`select millrace.cancel(r.id) from millrace.runs r`))).toBe(1);
  expect(await told(() => engine.rows('delete from public.items where id = $1', [id]))).toBe(1);
  await worker.leave();
});

test('a claim is told', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.queued('one');
  await watch(await engine.database.connect('service_role'), [id]);
  const worker = await Worker.of(engine, 'one');
  await worker.take();
  expect(await sent(engine)).toHaveLength(1);
});

test('a parent is told of each child that its sums gain', async ({ engine }) => {
  await defineFamily(engine, { files: chain(['scan']) });
  const [folder = ''] = await startFolders(engine);
  await spawnAll(engine, numbers(1, 2));
  const service = await engine.database.connect('service_role');
  await progressOf(service, { [folder]: null }, randomUUID(), 'folder');
  const worker = await Worker.of(engine, 'scan', 'files');
  await worker.report(completed(await worker.takeOne()));
  await engine.sweepAll();
  expect((await sent(engine)).map(({ keys }) => keys)).toEqual([[folder]]);
  const { rows } = await progressOf(service, { [folder]: null }, null, 'folder');
  expect(rows[0]?.progress?.stages.split?.children).toEqual({ total: 2, completed: 1, failed: 0, cancelled: 0 });
  await worker.leave();
});

test('within 200 ms a row is told of once', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.insert();
  await watch(await engine.database.connect('service_role'), [id]);
  await engine.queue('one', [id]);
  await engine.advance('199 milliseconds');
  const worker = await Worker.of(engine, 'one');
  const [item] = await worker.take();
  if (!item) throw new Error('nothing was claimed');
  expect(await sent(engine)).toHaveLength(1);
  await engine.advance('1 millisecond');
  await worker.report(completed(item));
  expect(await sent(engine)).toHaveLength(2);
  await worker.leave();
});

test('10,000 transitions a second at 200 watched rows make at most 100 messages', async ({ engine }) => {
  await engine.pipeline(stages);
  const ids = await engine.insert(1000);
  const service = await engine.database.connect('service_role');
  // Forty clients with five rows each.
  for (let at = 0; at < 200; at += 5) await watch(service, ids.slice(at, at + 5));
  const change = 'select millrace.project_entities(p.id, $1, $2, null, $3, null) from millrace.pipelines p';
  for (let round = 0; round < 20; round += 1) {
    // 500 transitions in 50 ms.
    const some = Array.from({ length: 500 }, (_, place) => ids[(round * 500 + place * 7) % 1000]);
    await engine.rows(change, ['started', 'one', some]);
    await engine.advance('50 milliseconds');
  }
  const messages = await sent(engine);
  expect(messages.length).toBeLessThanOrEqual(100);
  // Each row was told of all the same.
  expect(new Set(messages.flatMap(({ keys }) => keys)).size).toBe(200);
});

test('a change that is rolled back is told to nobody', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.insert();
  await watch(await engine.database.connect('service_role'), [id]);
  const session = await openTransaction(engine);
  await session.query(`update public.items set one_status = 'queued'`);
  await session.query('rollback');
  expect(await sent(engine)).toEqual([]);
});

test('a client whose transaction stays open holds up no transition, and is told', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.queued('one');
  const service = await engine.database.connect('service_role');
  const client = randomUUID();
  await watch(service, [id], client);
  await engine.advance('30 seconds');
  await service.query('begin');
  await watch(service, [id], client);
  expect(await runStage(engine, 'one')).toHaveLength(1);
  expect((await sent(engine)).length).toBeGreaterThan(0);
  await service.query('rollback');
});

test('a Realtime that refuses a message, or is gone, fails no change of a watched row', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.queued('one');
  await watch(await engine.database.connect('service_role'), [id]);
  const superuser = await engine.database.connect('supabase_admin');
  await superuser.query('alter function realtime.send(jsonb, text, text, boolean) rename to send_of_old');
  expect(await runStage(engine, 'one')).toHaveLength(1);
  await engine.advance('1 second');
  await engine.rows('delete from public.items where id = $1', [id]);
  expect(await engine.rows('select from public.items')).toEqual([]);
  // A line a minute, which doctor() names.
  expect(await engine.value(`select detail from millrace.doctor() where what = 'no errors in the last hour'`)).toMatch(
    /progress_not_sent at .*: Pages that watch rows learn of changes late: function realtime\.send/,
  );
});

test('over 5,000 leases a client gets no more, and is answered all the same', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.insert();
  const service = await engine.database.connect('service_role');
  await watch(service, [id]);
  await engine.sql.query(`
    insert into millrace.watches (pipeline_id, entity_id, topic, until)
    select w.pipeline_id, n::text, 'crowd', w.until
    from millrace.watches w, generate_series(1, 4999) n`);
  const { rows } = await progressOf(service, { [id]: null }, randomUUID());
  expect(rows[0]?.progress).not.toBeNull();
  expect(await engine.rows('select from millrace.watches')).toHaveLength(5000);
});

test('doctor() names a policy that was dropped, and connect writes it anew', async ({ engine }) => {
  const named = () => engine.rows(`select from millrace.doctor() where detail like '%policy millrace_progress%'`);
  const policies = () => engine.rows(`select from pg_policy where polname = 'millrace_progress'`);
  await engine.sql.query('drop policy millrace_progress on realtime.messages');
  expect(await named()).toHaveLength(1);
  await engine.sql.query('select millrace.set_up()');
  expect(await named()).toEqual([]);
  expect(await policies()).toHaveLength(1);
});

test('a lease ends after a minute unless its client renews it, and the sweep deletes it', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.insert();
  const service = await engine.database.connect('service_role');
  const client = randomUUID();
  await watch(service, [id], client);
  await engine.advance('25 seconds');
  await watch(service, [id], client);
  await engine.advance('50 seconds');
  await engine.queue('one', [id]);
  expect(await sent(engine)).toHaveLength(1);
  await engine.advance('20 seconds');
  await runStage(engine, 'one');
  expect(await sent(engine)).toHaveLength(1);
  await engine.sweepAll();
  expect(await engine.rows('select from millrace.watches')).toEqual([]);
});

test('a client watches the last 500 rows that it named', async ({ engine }) => {
  await engine.pipeline(stages);
  const ids = await engine.insert(510);
  const service = await engine.database.connect('service_role');
  const client = randomUUID();
  await watch(service, ids.slice(0, 10), client);
  await engine.advance('1 second');
  await watch(service, ids.slice(10), client);
  const rows = await engine.rows<{ id: string }>(
    'select entity_id as id from millrace.watches order by entity_id::bigint',
  );
  expect(rows.map(({ id }) => id)).toEqual(ids.slice(10));
});

test('a pipeline that nobody watches pays one look-up a batch, however many rows of another are watched', async ({
  engine,
}) => {
  await engine.pipeline(stages, { table: 'public.folders', projection: 'none' }, 'other');
  await engine.pipeline(stages);
  const worked = async () => {
    const ids = await engine.insert(20);
    return inCountingSession(engine.database.superUrl, (session, rows) =>
      rows(async () => {
        await session.query(`update public.items set one_status = 'queued' where id = any ($1)`, [ids]);
        const worker = Worker.over(session, 'one', 'flow', randomUUID());
        await worker.complete((await worker.take(20)).map((item) => completed(item)));
        await worker.leave();
      }),
    );
  };
  await worked();
  const before = await worked();
  await engine.sql.query(`
    insert into millrace.watches (pipeline_id, entity_id, topic, until)
    select p.id, n::text, 'crowd', millrace.now() + interval '1 minute'
    from millrace.pipelines p, generate_series(1, 5000) n
    where p.name = 'other'`);
  await engine.sql.query('analyze millrace.watches');
  // Beside the test's own rows. A count of the leases reads 5,000 at each of the three changes.
  expect((await worked()) - before).toBeLessThan(100);
});

test('where nobody watches, a batch costs one look into an empty table, whatever its size', async ({ engine }) => {
  await engine.pipeline(stages);
  const call = (count: number) =>
    planRows(
      engine.database.superUrl,
      `select millrace.hook_entities_changed(1, array(select n::text from generate_series(1, ${count}) n))`,
    );
  const [small, large] = [await call(10), await call(1000)];
  // The rows that the test itself makes.
  expect(large - small).toBe(990);
});
