import { expect } from 'vitest';
import { chain, each, test } from '../../support/engine.ts';
import { completed, failed, released, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const start = new Date('2026-11-02T09:00:00Z');
const after = (seconds: number) => new Date(start.getTime() + seconds * 1000);
const backoff = { kind: 'list', seconds: [60] };
const external = { kind: 'external', completion: { callback: true, deadline_seconds: 300 } };

const columns = (stage: string, row: Record<string, unknown>) =>
  Object.fromEntries(
    ['status', 'job_id', 'result', 'error', 'retry_count', 'started_at', 'completed_at'].map((column) => [
      column,
      row[`${stage}_${column}`],
    ]),
  );

const clear = {
  status: 'pending',
  job_id: null,
  result: null,
  error: null,
  retry_count: 0,
  started_at: null,
  completed_at: null,
};

test('queued, started and completed show status, result and times', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  expect(columns('one', await engine.item(id))).toEqual({ ...clear, status: 'queued' });
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  expect(columns('one', await engine.item(id))).toEqual({ ...clear, status: 'started', started_at: start });
  await engine.advance('5 seconds');
  await worker.report(completed(held, { pages: 3 }));
  expect(columns('one', await engine.item(id))).toEqual({
    ...clear,
    status: 'completed',
    result: { pages: 3 },
    started_at: start,
    completed_at: after(5),
  });
  expect(columns('two', await engine.item(id))).toEqual({ ...clear, status: 'queued' });
});

test('a null result is a result', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  expect(await worker.report(completed(await worker.takeOne(), null))).toEqual(['accepted']);
  expect(columns('one', await engine.item(id))).toMatchObject({ status: 'completed', error: null });
  expect((await engine.run(id)).status).toBe('completed');
});

test('waiting shows as started with the job’s id, which stays when the job completes it', async ({ engine }) => {
  await engine.pipeline(chain(['one'], external));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  await worker.report(waiting(held, 'job-7'));
  expect(await engine.attempts(id)).toEqual(['one 1 waiting']);
  expect(columns('one', await engine.item(id))).toEqual({
    ...clear,
    status: 'started',
    job_id: 'job-7',
    started_at: start,
  });
  await engine.advance('9 seconds');
  const end = {
    submission: held.submission,
    service: 'scraper',
    job_id: 'job-7',
    outcome: 'completed',
    result: { ok: 1 },
  };
  expect((await resume(engine, [end])).items).toMatchObject([{ verdict: 'accepted' }]);
  expect(columns('one', await engine.item(id))).toEqual({
    ...clear,
    status: 'completed',
    job_id: 'job-7',
    result: { ok: 1 },
    started_at: start,
    completed_at: after(9),
  });
});

test('a retry in backoff shows as queued with its count and the error', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { retry: { max_attempts: 3, backoff } }));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(failed(await worker.takeOne()));
  expect(columns('one', await engine.item(id))).toEqual({
    ...clear,
    status: 'queued',
    error: 'it took too long',
    retry_count: 1,
  });
  await engine.advance('61 seconds');
  await worker.report(completed(await worker.takeOne(), 1));
  expect(columns('one', await engine.item(id))).toMatchObject({ status: 'completed', error: null, retry_count: 1 });
});

test('failed shows the error, the count of retries and when the last attempt started', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two'], { retry: { max_attempts: 2, backoff } }));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(failed(await worker.takeOne()));
  await engine.advance('60 seconds');
  await worker.report(failed(await worker.takeOne(), { message: 'once more' }));
  expect(columns('one', await engine.item(id))).toEqual({
    ...clear,
    status: 'failed',
    error: 'once more',
    retry_count: 1,
    started_at: after(60),
  });
  expect(columns('two', await engine.item(id))).toEqual(clear);
});

test('cancelled shows as failed with the error cancelled, whether queued, started or waiting', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two'], external));
  const ids = await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  const [first] = await worker.take(2);
  if (!first) throw new Error('nothing claimed');
  await worker.report(waiting(first, 'job-1'));
  expect(await each(ids, (id) => engine.attempts(id))).toEqual([
    ['one 1 waiting'],
    ['one 1 started'],
    ['one 1 queued'],
  ]);
  for (const id of ids) await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
  for (const id of ids) {
    expect(columns('one', await engine.item(id))).toMatchObject({ status: 'failed', error: 'cancelled', result: null });
    expect(columns('two', await engine.item(id))).toEqual(clear);
  }
});

test('released shows as queued again, at no cost', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(released(await worker.takeOne()));
  expect(columns('one', await engine.item(id))).toEqual({ ...clear, status: 'queued' });
});

test('starting over clears the columns of the stage and of all that depends on it, and no others', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two', 'three'], { retry: { backoff: { kind: 'list', seconds: [0] } } }));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const worker = await Worker.of(engine, 'two');
  await worker.report(failed(await worker.takeOne()));
  await worker.report(completed(await worker.takeOne()));
  await runStage(engine, 'three');
  const before = columns('one', await engine.item(id));
  await engine.queue('two', [id ?? '']);
  const row = await engine.item(id);
  expect(columns('one', row)).toEqual(before);
  expect(columns('two', row)).toEqual({ ...clear, status: 'queued' });
  expect(columns('three', row)).toEqual(clear);
});

test('a retry, and a start in the middle, write each row once: what comes after is clear already', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two', 'three']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const worker = await Worker.of(engine, 'two');
  await worker.report(failed(await worker.takeOne(), { code: 'gone', message: 'gone', permanent: true }));
  await engine.sql.query(`
    create table public.writes (statuses text);
    create function public.note_write() returns trigger language plpgsql security definer as $$ begin
      insert into public.writes values (concat_ws(' ', new.one_status, new.two_status, new.three_status));
      return null; end $$;
    create trigger note_write after update on public.items for each row execute function public.note_write()`);
  const writes = async (statement: string, value: unknown) => {
    await engine.sql.query('truncate public.writes');
    await engine.sql.query(statement, [value]);
    return (await engine.rows('select statuses from public.writes')).map((row) => row.statuses);
  };
  const run = (await engine.run(id)).id;
  expect(await writes('select millrace.retry($1)', run)).toEqual(['completed queued pending']);
  await engine.sql.query('select millrace.cancel($1)', [run]);
  const start = `select millrace.start('flow', $1, 'two')`;
  expect(await writes(start, id)).toEqual(['completed queued pending']);
});

test('an earlier skip that shows as completed keeps its word', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one']));
  await engine.sql.query(`
    alter table public.items disable trigger user;
    insert into public.items (one_status, one_completed_at) values ('completed', now());
    alter table public.items enable trigger user`);
  await engine.define(definition);
  expect(await engine.rows('select one_status from public.items')).toEqual([{ one_status: 'completed' }]);
});
