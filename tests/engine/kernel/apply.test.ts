import { expect } from 'vitest';
import { chain, type Engine, test } from '../../support/engine.ts';
import { completed, resume, Worker, waiting } from '../../support/worker.ts';

/** Stage `one` with an apply function that notes each result and raises for the words `bad` (a plain error) and `null`. */
async function withApply(engine: Engine, options = {}) {
  await engine.sql.query(`
    create table public.notes (entity_id text not null, word text not null);
    create function public.note(p_items jsonb) returns void language plpgsql as $$
    begin
      insert into public.notes select i ->> 'entity_id', nullif(i ->> 'result', 'null') from jsonb_array_elements(p_items) i;
      if exists (select from jsonb_array_elements(p_items) i where i ->> 'result' = 'bad') then
        raise exception 'a bad word';
      end if;
    end $$`);
  await engine.pipeline(
    chain(['one', 'two'], { retry: { max_attempts: 2 }, ...options }).map((stage, place) =>
      place === 0 ? { ...stage, apply: 'public.note' } : stage,
    ),
  );
}

test('apply writes once a batch, in the transaction of its completion', async ({ engine }) => {
  await withApply(engine);
  const ids = await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  await worker.client.query('begin');
  await worker.complete(batch.map((item) => completed(item, `word ${item.entity_id}`)));
  await worker.client.query('rollback');
  expect(await engine.rows('select * from public.notes')).toEqual([]);
  expect(await engine.attempts(ids[0])).toEqual(['one 1 started']);
  worker.seq = 1;
  await worker.complete(batch.map((item) => completed(item, `word ${item.entity_id}`)));
  expect(await engine.rows('select * from public.notes order by word')).toEqual(
    ids.map((id) => ({ entity_id: id, word: `word ${id}` })),
  );
});

test('apply gets the attempt, the run, the entity and the result of each, in the order reported', async ({
  engine,
}) => {
  await engine.sql.query(`
    create table public.seen (items jsonb);
    create function public.see(p_items jsonb) returns void language sql as 'insert into public.seen values (p_items)'`);
  await engine.pipeline([{ name: 'one', apply: 'public.see' }]);
  await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  await worker.complete(batch.reverse().map((item) => completed(item, { of: item.entity_id })));
  expect(await engine.value('select items from public.seen')).toEqual(
    batch.map((item) => ({
      attempt: item.attempt,
      run: item.run,
      entity_id: item.entity_id,
      result: { of: item.entity_id },
    })),
  );
});

test('a result of 80,000 keys is recorded with its batch within the eight seconds of a call', async ({ engine }) => {
  await engine.sql.query(`
    create table public.lengths (entity_id text, length int);
    create function public.measure(p_items jsonb) returns void language sql as $$
      insert into public.lengths select i ->> 'entity_id', length(i ->> 'result') from jsonb_array_elements(p_items) i
    $$`);
  await engine.pipeline([
    { name: 'one', apply: 'public.measure' },
    { name: 'two', needs: ['one'], when: 'exists($.needs.one.k79999)' },
  ]);
  const ids = await engine.queued('one', 5);
  const worker = await Worker.of(engine, 'one');
  await worker.client.query(`set statement_timeout = '8s'`);
  const batch = await worker.take();
  const wide = Object.fromEntries(Array.from({ length: 80_000 }, (_, n) => [`k${n}`, 1]));
  // An item that is no object and one that jsonb cannot hold each have the call read item by item.
  const reports = [
    ...batch.map((item, at) => completed(item, at === 1 ? wide : at === 2 ? '\u0000' : {})),
    'no object',
  ];
  const { items } = await worker.complete(reports);
  expect(items.map(({ verdict }) => verdict)).toEqual([
    'accepted',
    'accepted',
    'rejected',
    'accepted',
    'accepted',
    'rejected',
  ]);
  expect(await engine.value('select max(length) from public.lengths')).toBe(
    JSON.stringify(wide).length + 2 * 80_000 - 1,
  );
  expect(await engine.statuses(ids[1])).toEqual({ one: 'completed', two: 'queued' });
  expect(await engine.statuses(ids[0])).toEqual({ one: 'completed', two: 'skipped' });
});

test('one row of fifty for which apply raises fails alone with the SQL error; the others are recorded once', async ({
  engine,
}) => {
  await withApply(engine);
  const ids = await engine.queued('one', 50);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take(50);
  const { items } = await worker.complete(batch.map((item, place) => completed(item, place === 33 ? 'bad' : 'good')));
  expect(items.filter((item) => item.verdict === 'accepted')).toHaveLength(49);
  expect(items[33]).toMatchObject({ verdict: 'rejected', reason: 'a bad word' });
  expect(await engine.value('select count(*)::int from public.notes')).toBe(49);
  expect(await engine.value('select count(output)::int from millrace.attempts')).toBe(49);
  expect(await engine.attempts(ids[33])).toEqual(['one 1 failed', 'one 2 queued']);
  expect(await engine.item(ids[33])).toMatchObject({
    one_status: 'queued',
    one_error: 'the database refused to record this (sql_P0001) (attempt 34)',
    one_retry_count: 1,
  });
});

test('a constraint that apply violates fails for good; any other SQL error is tried again', async ({ engine }) => {
  await withApply(engine);
  const [violating, raising] = await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  await worker.complete(batch.map((item, place) => completed(item, place === 0 ? 'null' : 'bad')));
  expect(await engine.attempts(violating)).toEqual(['one 1 failed']);
  expect(await engine.rows('select entity_id, error_code from millrace.dead_letters')).toEqual([
    { entity_id: violating, error_code: 'sql_23502' },
  ]);
  expect(await engine.attempts(raising)).toEqual(['one 1 failed', 'one 2 queued']);
});

test('several guilty rows in one batch are all found', async ({ engine }) => {
  await withApply(engine);
  await engine.queued('one', 16);
  const worker = await Worker.of(engine, 'one');
  const guilty = [0, 1, 7, 8, 15];
  const batch = await worker.take(16);
  const { items } = await worker.complete(
    batch.map((item, place) => completed(item, guilty.includes(place) ? 'bad' : 'good')),
  );
  expect(items.flatMap((item, place) => (item.verdict === 'rejected' ? [place] : []))).toEqual(guilty);
  expect(items.map((item) => item.attempt)).toEqual(batch.map((item) => item.attempt));
  expect(await engine.value('select count(*)::int from public.notes')).toBe(11);
});

test('a batch recorded in parts answers what is malformed too, beside an item that another has made stale', async ({
  engine,
}) => {
  await withApply(engine);
  const ids = await engine.queued('one', 3);
  await engine.sql.query(`
    create or replace function public.note(p_items jsonb) returns void language plpgsql as $$
    begin
      if p_items @> '[{"result": "bad"}]' then raise exception 'a bad word'; end if;
      update public.items set one_status = 'queued' where id = ${ids[2]} and p_items @> '[{"result": "anew"}]';
    end $$`);
  const worker = await Worker.of(engine, 'one');
  const [first, second, third] = (await worker.take()).map((item, place) =>
    completed(item, ['anew', 'bad', 'good'][place]),
  );
  const { items } = await worker.complete([first, second, { attempt: 'fourth' }, third]);
  expect(items.map((item) => item.verdict)).toEqual(['accepted', 'rejected', 'rejected', 'stale']);
});

test('apply runs for external jobs as well', async ({ engine }) => {
  await withApply(engine, { kind: 'external', completion: { callback: true } });
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  await worker.report(waiting(held, 'job-1'));
  const end = {
    submission: held.submission,
    service: 'scraper',
    job_id: 'job-1',
    outcome: 'completed',
    result: 'found',
  };
  await resume(engine, [end, end]);
  await resume(engine, [end]);
  expect(await engine.rows('select * from public.notes')).toEqual([{ entity_id: id, word: 'found' }]);
});

test('a user’s constraint on the row that refuses one result fails that attempt alone', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  await engine.sql.query(`alter table public.items add constraint modest check (one_result ->> 'size' <> 'huge')`);
  const ids = await engine.queued('one', 10);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  const { items } = await worker.complete(
    batch.map((item, place) => completed(item, { size: place === 4 ? 'huge' : 'small' })),
  );
  expect(items.filter((item) => item.verdict === 'accepted')).toHaveLength(9);
  expect(await engine.item(ids[4])).toMatchObject({
    one_status: 'failed',
    one_error: 'the database refused to record this (sql_23514) (attempt 5)',
  });
  // Operators, whom the attempt's number leads there, read the whole of it.
  const told = await engine.rows('select attempt_id, error_message from millrace.dead_letters');
  expect(told).toEqual([{ attempt_id: '5', error_message: expect.stringMatching(/check constraint "modest"/) }]);
});

test('a user’s trigger that refuses every write to one row sinks neither the claim nor the reports of the others', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const ids = await engine.queued('one', 4);
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'hands off'; end $$;
    create trigger refuse before update on public.items for each row when (old.id = ${ids[1]}) execute function public.refuse()`);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  await worker.complete(batch.map((item) => completed(item)));
  for (const id of [ids[0], ids[2], ids[3]])
    expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
});
