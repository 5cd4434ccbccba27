// A due time that people write moves the retry that waits for it, and is refused where none does.
import { expect } from 'vitest';
import { makeLinks } from '../../support/engine/status.ts';
import { type Engine, test } from '../../support/engine.ts';
import { completed, failed, Worker } from '../../support/worker.ts';

const add = (engine: Engine) =>
  engine.value<string>(`insert into public.link (label, status) values ('a', 'new') returning id`);
const move = (engine: Engine, at: string, where = 'true') =>
  engine.sql.query(`update public.link set next_attempt_at = ${at} where ${where}`);
const row = async (engine: Engine, id: string) => {
  const [found] = await engine.rows(
    'select status, attempt_count, next_attempt_at, last_error from public.link where id = $1',
    [id],
  );
  return found;
};
const due = (engine: Engine) =>
  engine.value<Date>(`select queue_at from millrace.attempts where state = 'queued' order by id desc limit 1`);

/** A link whose first try has failed. */
async function failedOnce(engine: Engine): Promise<string> {
  await makeLinks(engine);
  const id = await add(engine);
  const worker = await Worker.of(engine, 'classify', 'page_links');
  await worker.report(failed(await worker.takeOne()));
  expect((await row(engine, id))?.status).toBe('error');
  return id;
}

test('now() makes a retry due at once, which its row shows and a worker takes', async ({ engine }) => {
  const id = await failedOnce(engine);
  await move(engine, 'millrace.now()');
  expect(await row(engine, id)).toMatchObject({ status: 'new', attempt_count: 1, last_error: 'it took too long' });
  expect(await due(engine)).toEqual(await engine.now());
  const worker = await Worker.of(engine, 'classify', 'page_links');
  await worker.report(completed(await worker.takeOne(), { ok: true }));
  expect(await row(engine, id)).toMatchObject({ status: 'classified', attempt_count: 0, next_attempt_at: null });
});

test('a time that is past is now, and a later one puts the retry off', async ({ engine }) => {
  const id = await failedOnce(engine);
  await move(engine, `millrace.now() + interval '3 hours'`);
  expect(await row(engine, id)).toMatchObject({ status: 'error', next_attempt_at: await due(engine) });
  await engine.advance('2 hours');
  const worker = await Worker.of(engine, 'classify', 'page_links');
  expect(await worker.take(1)).toEqual([]);
  await move(engine, `millrace.now() - interval '1 day'`);
  expect(await due(engine)).toEqual(await engine.now());
  expect((await worker.takeOne()).entity_id).toBe(id);
});

test('a next_attempt_at of a row in no backoff is refused with the remedy, and the whole statement with it', async ({
  engine,
}) => {
  const waiting = await failedOnce(engine);
  const before = await due(engine);
  const id = await add(engine);
  const statement = `update public.link set next_attempt_at = millrace.now() where id in (${waiting}, ${id})`;
  expect(await engine.refusal(statement)).toEqual({
    code: 'MR005',
    message: `next_attempt_at was written to 1 row (${id}), but no retry waits there`,
    hint: 'Only a retry in backoff can be moved. To begin a stage, write status.',
  });
  expect(await due(engine)).toBeDefined();
  expect(await row(engine, waiting)).toMatchObject({ status: 'error', next_attempt_at: before });
});

test('no time, and one that never comes, are refused', async ({ engine }) => {
  await failedOnce(engine);
  for (const at of ['null', `'infinity'`, `millrace.now() + interval '2 years'`]) {
    expect(await engine.refusal(`update public.link set next_attempt_at = ${at}`)).toMatchObject({
      code: 'MR005',
      message: expect.stringContaining('was set to no time within a year'),
    });
  }
});

test('a status written together with next_attempt_at begins its stage at once', async ({ engine }) => {
  const id = await failedOnce(engine);
  await engine.sql.query(`update public.link set status = 'new', next_attempt_at = null, last_error = null`);
  expect(await row(engine, id)).toMatchObject({ status: 'new', attempt_count: 0, next_attempt_at: null });
});

test('a retry that a worker takes meanwhile stays its own, and the row shows the truth', async ({ engine }) => {
  const id = await failedOnce(engine);
  await engine.advance('1 hour');
  const person = await engine.database.connect('postgres');
  await person.query('begin');
  await person.query('select from public.link where id = $1 for update', [id]);
  // The claim passes over the held row, which goes on to show the retry.
  const worker = await Worker.of(engine, 'classify', 'page_links');
  const item = await worker.takeOne();
  await person.query(`update public.link set next_attempt_at = millrace.now() + interval '1 day' where id = $1`, [id]);
  await person.query('commit');
  expect(await row(engine, id)).toMatchObject({ status: 'classifying', next_attempt_at: null });
  expect(await worker.report(completed(item, { ok: true }))).toEqual(['accepted']);
});

test('a pipeline without that column leaves it to its owner', async ({ engine }) => {
  await makeLinks(engine, ({ entity }) => {
    delete entity.status.retry_at;
  });
  await add(engine);
  await move(engine, 'now()');
  expect(await engine.value('select next_attempt_at is not null from public.link')).toBe(true);
});
