import { expect } from 'vitest';
import { chain, each, test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

const three = chain(['one', 'two', 'three']);

test('queued on an entity without a run starts one, on insert as on update and upsert', async ({ engine }) => {
  await engine.pipeline(three);
  const [updated] = await engine.queued('one');
  const inserted = await engine.value<string>(`insert into public.items (one_status) values ('queued') returning id`);
  const upserted = await engine.value<string>(
    `insert into public.items (id) values ($1), (1000) on conflict (id) do update set one_status = 'queued' returning id`,
    [await engine.value('insert into public.items default values returning id')],
  );
  for (const id of [updated, inserted, upserted]) expect(await engine.attempts(id)).toEqual(['one 1 queued']);
  expect(await engine.rows(`select * from millrace.runs where entity_id = '1000'`)).toEqual([]);
});

test('a row that begins as pending, or whose other columns are written, starts nothing', async ({ engine }) => {
  await engine.pipeline(three);
  await engine.insert(3);
  await engine.sql.query(`update public.items set label = 'new'`);
  await engine.sql.query(`update public.items set one_status = 'pending', two_error = 'noted'`);
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
});

test('queued once more while it is queued starts nothing twice', async ({ engine }) => {
  await engine.pipeline(three);
  const [id] = await engine.queued('one');
  await engine.queue('one', [id ?? '']);
  expect(await engine.attempts(id)).toEqual(['one 1 queued']);
});

test('a stage in the middle cannot start without the results of its needs: the error names them', async ({
  engine,
}) => {
  await engine.pipeline(three);
  const [fresh] = await engine.insert();
  const refusal = await engine.refusal(`update public.items set three_status = 'queued' where id = $1`, [fresh]);
  expect(refusal).toMatchObject({
    code: 'MR005',
    message: expect.stringMatching(/three cannot start.*need two has no result/),
  });
  expect(refusal.hint).toMatch(/Queue one instead/);
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
  const [live] = await engine.queued('one');
  await runStage(engine, 'one');
  await engine.refusal(`update public.items set three_status = 'queued' where id = $1`, [live]);
  expect(await engine.attempts(live)).toEqual(['one 1 completed', 'two 1 queued']);
});

test('queued at the start of a finished run is a new run, and the old one stays as history', async ({ engine }) => {
  await engine.pipeline(three);
  const [id] = await engine.queued('one');
  for (const stage of ['one', 'two', 'three']) await runStage(engine, stage);
  const first = await engine.run(id);
  await engine.queue('one', [id ?? '']);
  const second = await engine.run(id);
  expect(second.id).not.toBe(first.id);
  expect(await engine.value('select status from millrace.runs where id = $1', [first.id])).toBe('completed');
  expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'pending', three: 'pending' });
  for (const stage of ['one', 'two', 'three']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('queued in the middle of a finished run takes over the results of earlier stages', async ({ engine }) => {
  await engine.pipeline(three);
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(completed(await worker.takeOne(), { found: 'pages' }));
  await runStage(engine, 'two');
  await runStage(engine, 'three');
  await engine.queue('two', [id ?? '']);
  expect(await engine.item(id)).toMatchObject({
    one_status: 'completed',
    one_result: { found: 'pages' },
    two_status: 'queued',
    two_result: null,
    three_status: 'pending',
    three_result: null,
  });
  const [again] = await runStage(engine, 'two');
  expect(again?.needs).toEqual({ one: { found: 'pages' } });
  await runStage(engine, 'three');
  expect((await engine.run(id)).status).toBe('completed');
});

test('queued after a failed stage is a new run that goes on from there', async ({ engine }) => {
  await engine.pipeline(three);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const worker = await Worker.of(engine, 'two');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  expect((await engine.run(id)).status).toBe('failed');
  await engine.queue('two', [id ?? '']);
  expect(await engine.item(id)).toMatchObject({ two_status: 'queued', two_error: null, two_retry_count: 0 });
  await runStage(engine, 'two');
  await runStage(engine, 'three');
  expect((await engine.run(id)).status).toBe('completed');
});

test('queued on a stage of a live run starts that stage and its dependents over, and voids their tokens', async ({
  engine,
}) => {
  await engine.pipeline(three);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const worker = await Worker.of(engine, 'two');
  const [old] = await worker.take();
  if (!old) throw new Error('nothing claimed');
  await engine.queue('one', [id ?? '']);
  expect(await engine.attempts(id)).toEqual([
    'one 1 completed superseded',
    'two 1 cancelled superseded',
    'one 2 queued',
  ]);
  expect(await engine.item(id)).toMatchObject({
    one_status: 'queued',
    one_result: null,
    one_started_at: null,
    one_completed_at: null,
    two_status: 'pending',
    two_error: null,
    two_started_at: null,
  });
  expect(await worker.complete([completed(old)])).toMatchObject({
    items: [{ verdict: 'stale', reason: 'the attempt was cancelled' }],
  });
  expect(await engine.rows('select * from millrace.runs')).toHaveLength(1);
  expect(await engine.value('select count(output)::int from millrace.attempts')).toBe(1);
  for (const stage of ['one', 'two', 'three']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('several statuses written in one statement start the earliest of each row, and the others follow', async ({
  engine,
}) => {
  await engine.pipeline(three);
  const [fresh, finished] = await engine.insert(2);
  await engine.queue('one', [finished ?? '']);
  for (const stage of ['one', 'two', 'three']) await runStage(engine, stage);
  await engine.sql.query(`update public.items set one_status = 'queued', two_status = 'queued' where id = $1`, [fresh]);
  await engine.sql.query(`update public.items set two_status = 'queued', three_status = 'queued' where id = $1`, [
    finished,
  ]);
  expect(await engine.statuses(fresh)).toEqual({ one: 'queued', two: 'pending', three: 'pending' });
  expect(await engine.statuses(finished)).toEqual({ one: 'completed', two: 'queued', three: 'pending' });
  for (const stage of ['one', 'two', 'two', 'three']) await runStage(engine, stage);
  for (const id of [fresh, finished]) expect((await engine.run(id)).status).toBe('completed');
});

test('one statement may queue different stages of different rows', async ({ engine }) => {
  await engine.pipeline(three);
  const ids = await engine.queued('one', 3);
  for (const stage of ['one', 'two', 'three']) await runStage(engine, stage);
  await engine.sql.query(`
    update public.items set
      one_status = case id when 1 then 'queued' else one_status end,
      two_status = case id when 2 then 'queued' else two_status end,
      three_status = case id when 3 then 'queued' else three_status end`);
  const states = await each(ids, (id) => engine.statuses(id));
  expect(states).toEqual([
    { one: 'queued', two: 'pending', three: 'pending' },
    { one: 'completed', two: 'queued', three: 'pending' },
    { one: 'completed', two: 'completed', three: 'queued' },
  ]);
});

test('states that only the engine writes are refused by name, and the whole statement with them', async ({
  engine,
}) => {
  await engine.pipeline(three);
  const [id] = await engine.insert();
  for (const status of ['started', 'completed', 'failed', 'skipped', 'cancelled', 'waiting', 'Queued', '']) {
    const refusal = await engine.refusal(`update public.items set label = 'x', two_status = $2 where id = $1`, [
      id,
      status,
    ]);
    expect(refusal).toMatchObject({ code: 'MR005', message: `two_status was set to '${status}' by hand` });
    expect(refusal.hint).toMatch(/queued/);
    expect(refusal.hint).toContain(status === 'skipped' ? `millrace.skip(run, 'two')` : 'millrace.cancel(run)');
    await engine.refusal(`insert into public.items (two_status) values ($1)`, [status]);
  }
  expect(await engine.item(id)).toMatchObject({ label: 'item 1', two_status: 'pending' });
});

test('pending may be written over a finished run, but not while one is live', async ({ engine }) => {
  await engine.pipeline(three);
  const [id] = await engine.queued('one');
  const refusal = await engine.refusal(`update public.items set one_status = 'pending' where id = $1`, [id]);
  expect(refusal).toMatchObject({ code: 'MR005', message: expect.stringMatching(/one_status.*pending.*under way/) });
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
  await engine.sql.query(`update public.items set one_status = 'pending' where id = $1`, [id]);
  expect((await engine.item(id)).one_status).toBe('pending');
});

test('the rows that one statement queues are worked off in the order of their keys', async ({ engine }) => {
  await engine.pipeline([{ name: 'first' }]);
  const ids = await engine.queued('first', 12);
  const batch = await (await Worker.of(engine, 'first')).take(12);
  expect(batch.map((item) => item.entity_id)).toEqual(ids);
});
