// The values that the tables of books and pages keep by themselves, whoever writes.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEngine, type Engine } from '../support/engine.ts';

const own = 'a11ce000-0000-4000-8000-000000000001';
const other = 'b0b00000-0000-4000-8000-000000000002';

let engine: Engine;
beforeAll(async () => {
  engine = await createEngine('project');
});
afterAll(async () => {
  await engine.expectSound();
  await engine.database.drop();
});

const insert = 'insert into public.books (account_id, title, source_path) values ($1, $2, $3) returning id';

test.each([
  `${other}/secret.txt`,
  `${own}`,
  `${own}/../${other}/secret.txt`,
  `${own}/./x.txt`,
  `${own}/..`,
  `${own}/%2e%2e/${other}/secret.txt`,
  `${own}/.%2E/${other}/secret.txt`,
  `${own}/..\\${other}/secret.txt`,
  `${own}/x/..\\..\\${other}/secret.txt`,
  `${own}/.\t./${other}/secret.txt`,
  `${own}/..\n/${other}/secret.txt`,
  `${own}/%2e%2e/%2e%2e/books/${other}/secret.txt`,
  `${own}/book.pdf?x`,
  `${own}/book.pdf#x`,
  `${own}/b\u00fcch.pdf`,
  `${own}/book.pdf\n`,
])('a book’s file cannot be %j', async (path) => {
  expect(await engine.refusal(insert, [own, 'a book', path])).toMatchObject({
    code: '23514',
    message: expect.stringContaining('books_source_in_own_folder'),
  });
});

test.each([`${own}/book.pdf`, `${own}/a/b c/..x/book & (1) = 'it'; v1.0+2@home,$5:!*.pdf`])(
  'a book’s file may be %j',
  async (path) => {
    expect(await engine.value(insert, [own, 'a book', path])).toEqual(expect.any(String));
  },
);

test('a book whose file was replaced by a shorter one keeps no page beyond it', async () => {
  const book = await engine.value(insert, [own, 'a book', `${own}/book.pdf`]);
  const pages = (count: number) => JSON.stringify(Array.from({ length: count }, (_, n) => ({ key: n + 1, of: count })));
  const numbers = async () =>
    (await engine.rows('select number from public.pages where book_id = $1 order by number', [book])).map(
      (row) => row.number,
    );
  await engine.sql.query('select * from public.insert_pages($1, $2)', [book, pages(3)]);
  const [first] = await engine.rows('select id from public.pages where book_id = $1 and number = 1', [book]);
  expect(await numbers()).toEqual([1, 2, 3]);
  expect(await engine.rows('select item_key, entity_id from public.insert_pages($1, $2)', [book, pages(1)])).toEqual([
    { item_key: '1', entity_id: first?.id },
  ]);
  expect(await numbers()).toEqual([1]);
});

test('the status of a book names the stage that failed, not one that was cancelled because of it', async () => {
  const book = await engine.value(insert, [own, 'a book', `${own}/book.pdf`]);
  // Without the triggers, which leave such statuses to the engine; and for this transaction alone.
  const admin = await engine.database.connect('supabase_admin');
  await admin.query('begin; set local session_replication_role = replica');
  await admin.query(
    `update public.books set page_numbers_status = 'failed', page_numbers_error = 'cancelled',
       headings_status = 'failed', headings_error = 'too_few_pages' where id = $1`,
    [book],
  );
  const { rows } = await admin.query('select status, current_error from public.book_pipeline_status where id = $1', [
    book,
  ]);
  await admin.query('rollback');
  expect(rows).toEqual([{ status: 'failed', current_error: 'headings: too_few_pages' }]);
});

test('a book whose last stage somebody skipped is over, without a document', async () => {
  const book = await engine.value(insert, [own, 'a book', `${own}/book.txt`]);
  const run = await engine.value(`select millrace.start('books', $1)`, [book]);
  const stages = ['split', 'metadata', 'toc', 'page_numbers', 'headings', 'structure', 'review', 'assemble'];
  const open = 'select status from millrace.runs where id = $1';
  for (const stage of stages) {
    if (
      (await engine.value(
        `select millrace.state_of($1, s.id) from millrace.stages s join millrace.runs r on r.pipeline_id = s.pipeline_id
         where r.id = $1 and s.name = $2`,
        [run, stage],
      )) !== 'skipped'
    )
      await engine.sql.query('select millrace.skip($1, $2)', [run, stage]);
  }
  expect(await engine.value(open, [run])).toBe('completed');
  expect(
    await engine.rows('select status, review_status, document_path from public.book_pipeline_status where id = $1', [
      book,
    ]),
  ).toEqual([{ status: 'completed', review_status: 'skipped', document_path: null }]);
});
