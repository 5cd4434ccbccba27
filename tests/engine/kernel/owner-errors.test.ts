// The texts in a row's error column, for whoever may read the row, and what for operators alone.
import { expect } from 'vitest';
import { test } from '../../support/engine.ts';
import { completed, failed, Worker } from '../../support/worker.ts';

const once = { retry: { max_attempts: 1 } };
const secret = 'select * from vault.secrets at 10.0.0.7:5432';
const show = 'select attempt_id::int as attempt, error_message from millrace.dead_letters';

test("a failure's detail stays with its attempt, whose number its row names", async ({ engine }) => {
  await engine.pipeline([{ name: 'one', ...once }]);
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const item = await worker.takeOne();
  await worker.complete([
    failed(item, { code: 'unreachable', message: 'The site cannot be reached.', detail: secret }),
  ]);
  expect(await engine.item(id)).toMatchObject({
    one_error: `The site cannot be reached. (attempt ${item.attempt})`,
  });
  expect(await engine.rows(show)).toEqual([
    { attempt: item.attempt, error_message: `The site cannot be reached. ${secret}` },
  ]);
});

test('an error that a user’s trigger raises is for operators', async ({ engine }) => {
  await engine.pipeline([{ name: 'one', ...once }]);
  const [id] = await engine.queued('one');
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as $$ begin
      raise exception '${secret}' using hint = 'Mend the row.'; end $$;
    create trigger refuse before update on public.items
    for each row when (new.one_status = 'completed') execute function public.refuse()`);
  const worker = await Worker.of(engine, 'one');
  const item = await worker.takeOne();
  await worker.complete([completed(item)]);
  expect(await engine.item(id)).toMatchObject({
    one_error: `the database refused to record this (sql_P0001) (attempt ${item.attempt})`,
  });
  expect(await engine.rows(show)).toEqual([
    { attempt: item.attempt, error_message: `the database refused to record this (sql_P0001) ${secret}` },
  ]);
  const shown = await engine.value('select millrace.error_json(error, null) from millrace.attempts where id = $1', [
    item.attempt,
  ]);
  expect(shown).toMatchObject({ hint: 'Mend the row.' });
  expect(JSON.stringify(shown)).not.toContain(secret);
});

test('a parent tells no more of its child than the child tells itself', async ({ engine }) => {
  await engine.pipeline([{ name: 'leaf', ...once }], { table: 'public.items' }, 'inner');
  await engine.pipeline([{ name: 'one', kind: 'pipeline', child: { pipeline: 'inner' } }]);
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'leaf', 'inner');
  await worker.complete([failed(await worker.takeOne(), { code: 'gone', message: 'Gone.', detail: secret })]);
  await engine.sql.query('select millrace.sweep()');
  const { one_error: error } = await engine.item(id);
  expect(error).toContain('leaf: Gone.');
  expect(error).not.toContain('vault');
});
