import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { completed, runStage, Worker } from '../../support/worker.ts';

const two = chain(['one', 'two']);

test('the engine’s own writes are no intake: statuses change without a new run', async ({ engine }) => {
  await engine.pipeline(two);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await runStage(engine, 'two');
  expect(await engine.attempts(id)).toEqual(['one 1 completed', 'two 1 completed']);
  expect(await engine.rows('select * from millrace.runs')).toHaveLength(1);
});

test('a user’s own trigger that queues another row while the engine projects counts as intake', async ({ engine }) => {
  await engine.pipeline(two);
  await engine.sql.query(`
    create function public.on_done() returns trigger language plpgsql as $$
    begin
      update public.items set one_status = 'queued' where label = 'echo of ' || new.id;
      return null;
    end $$;
    create trigger echo after update on public.items for each row
      when (new.one_status = 'completed' and old.one_status <> 'completed') execute function public.on_done()`);
  const [id] = await engine.queued('one');
  const echo = await engine.value<string>(`insert into public.items (label) values ('echo of ${id}') returning id`);
  await runStage(engine, 'one');
  expect(await engine.attempts(echo)).toEqual(['one 1 queued']);
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
});

test('a user’s own trigger may restart finished and live rows while the engine projects another', async ({
  engine,
}) => {
  await engine.pipeline(two);
  const [finished] = await engine.queued('one');
  await runStage(engine, 'one');
  await runStage(engine, 'two');
  const worker = await Worker.of(engine, 'one');
  const [live] = await engine.queued('one');
  await worker.take();
  const [last] = await engine.queued('one');
  await engine.sql.query(`
    create function public.on_done() returns trigger language plpgsql as $$
    begin
      update public.items set one_status = 'queued' where id in (${finished}, ${live});
      return null;
    end $$;
    create trigger restart after update on public.items for each row
      when (new.id = ${last} and new.one_status = 'completed') execute function public.on_done()`);
  expect(await worker.report(completed(await worker.takeOne()))).toEqual(['accepted']);
  expect(await engine.item(finished)).toMatchObject({ one_status: 'queued', one_result: null, two_status: 'pending' });
  expect(await engine.attempts(live)).toEqual(['one 1 cancelled superseded', 'one 2 queued']);
  expect(await engine.item(live)).toMatchObject({ one_status: 'queued', one_started_at: null, one_error: null });
  expect(await engine.statuses(last)).toEqual({ one: 'completed', two: 'queued' });
});

test('a status that a user’s trigger writes by hand is refused as if the user had', async ({ engine }) => {
  await engine.pipeline(two);
  await engine.sql.query(`
    create function public.cheat() returns trigger language plpgsql as $$
    begin
      update public.items set one_status = 'completed' where id = new.id;
      return null;
    end $$;
    create trigger cheat after update of label on public.items for each row execute function public.cheat()`);
  await engine.insert();
  expect(await engine.refusal(`update public.items set label = 'x'`)).toMatchObject({ code: 'MR005' });
});

test('a status that an apply function writes starts its stage', async ({ engine }) => {
  await engine.sql.query(`
    create function public.spawn(p_items jsonb) returns void language plpgsql as $$
    begin
      insert into public.items (label, one_status) select 'child of ' || (i ->> 'entity_id'), 'queued'
      from jsonb_array_elements(p_items) i where (i -> 'result' ->> 'spawn')::boolean;
    end $$`);
  await engine.pipeline([{ name: 'one', apply: 'public.spawn' }]);
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(completed(await worker.takeOne(), { spawn: true }));
  const child = await engine.value<string>(`select id from public.items where label = 'child of ${id}'`);
  expect(await engine.attempts(child)).toEqual(['one 1 queued']);
});

test('the key of a row with runs filed under it cannot change; other rows and columns can', async ({ engine }) => {
  await engine.pipeline(two);
  const [id] = await engine.queued('one');
  const refusal = await engine.refusal('update public.items set id = 77 where id = $1', [id]);
  expect(refusal).toMatchObject({ code: 'MR005', message: expect.stringMatching(/cannot change from 1 to 77/) });
  await engine.sql.query(`update public.items set id = id, label = 'same key'`);
  expect((await engine.item(id)).label).toBe('same key');
});

test('deleting rows takes their runs with it; a late report learns why nothing was recorded', async ({ engine }) => {
  await engine.pipeline(two);
  const [gone, kept] = await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  await engine.sql.query('delete from public.items where id = $1', [gone]);
  const answer = await worker.complete(batch.map((item) => completed(item)));
  expect(answer.items).toEqual([
    {
      attempt: batch[0]?.attempt,
      verdict: 'stale',
      reason: 'there is no such attempt: its entity or its run was deleted',
    },
    { attempt: batch[1]?.attempt, verdict: 'accepted', reason: null },
  ]);
  expect(await engine.rows('select entity_id from millrace.runs')).toEqual([{ entity_id: kept }]);
  expect(await engine.rows('select * from millrace.claims')).toEqual([]);
});

test('a row that a user’s trigger deletes in the statement which queues it has no run', async ({ engine }) => {
  await engine.pipeline(two);
  await engine.sql.query(`
    create function public.drop_double() returns trigger language plpgsql as $$
    begin
      delete from public.items i where i.id = new.id and i.label = 'double';
      return null;
    end $$;
    create trigger drop_double after insert or update on public.items for each row execute function public.drop_double();
    insert into public.items (id, label, one_status) values (1, 'a', 'queued'), (2, 'double', 'queued'), (3, 'b', 'pending');
    update public.items set label = case id when 1 then 'double' else label end, two_status = 'pending', one_status = 'queued'`);
  expect(await engine.rows('select entity_id from millrace.runs')).toEqual([{ entity_id: '3' }]);
  expect((await runStage(engine, 'one')).map((item) => item.entity_id)).toEqual(['3']);
  await engine.expectSound();
});

test('truncating the table takes all of its runs with it, and no other pipeline’s', async ({ engine }) => {
  await engine.pipeline(two);
  await engine.pipeline(two, { table: 'public.others' }, 'other');
  await engine.sql.query(`insert into public.others (one_status) values ('queued')`);
  await engine.queued('one', 3);
  await (await Worker.of(engine, 'one')).take(2);
  await engine.sql.query('truncate public.items');
  expect(
    await engine.rows(`select p.name from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id`),
  ).toEqual([{ name: 'other' }]);
  expect(await engine.value('select count(*)::int from millrace.attempts')).toBe(1);
});

test('two pipelines over one table run side by side on the same row', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.pipeline(chain(['red']), {}, 'paint');
  const id = await engine.value<string>(
    `insert into public.items (one_status, red_status) values ('queued', 'queued') returning id`,
  );
  await runStage(engine, 'one');
  expect(await engine.statuses(id)).toEqual({ one: 'completed', red: 'queued' });
  await runStage(engine, 'red', 'paint');
  expect(await engine.statuses(id)).toEqual({ one: 'completed', red: 'completed' });
  await engine.sql.query('delete from public.items');
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
});

test('a pipeline without projection is started by call and keeps its state to itself', async ({ engine }) => {
  await engine.pipeline(two, { projection: 'none' });
  const [id] = await engine.insert();
  const run = await engine.value('select millrace.start($1, $2)', ['flow', id]);
  expect(await runStage(engine, 'one')).toEqual([
    expect.objectContaining({ entity: { id: Number(id), label: 'item 1' } }),
  ]);
  await runStage(engine, 'two');
  expect(await engine.run(id)).toMatchObject({ id: run, status: 'completed' });
  expect(await engine.item(id)).toEqual({ id, label: 'item 1' });
});

test('millrace.start() files its run under the row’s own key, however the caller wrote it', async ({ engine }) => {
  await engine.pipeline(two);
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', '00' || $1)`, [id]);
  expect(await runStage(engine, 'one')).toEqual([expect.objectContaining({ entity_id: id })]);
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
});

test('millrace.start() names what does not exist', async ({ engine }) => {
  await engine.pipeline(two);
  const [id] = await engine.insert();
  const start = (...values: unknown[]) => engine.refusal('select millrace.start($1, $2, $3)', values);
  expect(await start('flaw', id, null)).toMatchObject({ code: 'MR003', message: 'there is no pipeline flaw' });
  expect(await start('flow', '999', null)).toMatchObject({
    code: 'MR003',
    message: expect.stringMatching(/no row with id 999/),
  });
  expect(await start('flow', null, null)).toMatchObject({ code: 'MR002' });
  expect(await start('flow', id, 'ten')).toMatchObject({
    code: 'MR003',
    hint: 'Its stages: one, two.',
  });
  expect(await start('flow', id, 'two')).toMatchObject({ code: 'MR005' });
});
