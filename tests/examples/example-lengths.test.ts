// A text that people may write into the examples' tables has a length, and a refusal names the column. Texts of the engine have none.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEngine, type Engine } from '../support/engine.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await createEngine('project');
});
afterAll(async () => {
  await engine.expectSound();
  await engine.database.drop();
});

const account = randomUUID();
const path = (folder: string) => (length: number) => `${folder}/${'x'.repeat(length - folder.length - 1)}`;
const rows: Record<string, Record<string, unknown>> = {
  leads: { email: 'a@b.test', company_url: 'https://b.test', account_id: account },
  books: { title: 'a book', source_path: `${account}/book.pdf`, account_id: account },
  document: { source_path: 'org_red/file.txt', metadata: { clerk_org_id: 'org_red' } },
};

const insert = (table: string, changes: Record<string, unknown>) => {
  const row = { ...rows[table], ...changes };
  const names = Object.keys(row);
  const places = names.map((_, index) => `$${index + 1}`);
  return [`insert into public.${table} (${names}) values (${places})`, Object.values(row)] as const;
};

test.each<[table: string, column: string, most: number, make: (length: number) => unknown]>([
  ['leads', 'email', 1_000, (length) => 'x'.repeat(length)],
  ['leads', 'company_url', 8_000, (length) => 'x'.repeat(length)],
  ['books', 'title', 4_000, (length) => 'x'.repeat(length)],
  ['books', 'source_path', 1_024, path(account)],
  ['document', 'source_path', 1_024, path('org_red')],
  ['document', 'metadata', 65_536, (length) => ({ clerk_org_id: 'org_red', source_name: 'x'.repeat(length - 46) })],
])('%s.%s may have %i bytes, and no more', async (table, column, most, make) => {
  await engine.rows(...insert(table, { [column]: make(most) }));
  expect(await engine.refusal(...insert(table, { [column]: make(most + 1) }))).toMatchObject({
    code: '23514',
    message: expect.stringContaining(`${table}_${column}_length`),
  });
});

test('no length is set to what the engine writes', async () => {
  const checked = await engine.rows(
    `select c.conname, a.attname
     from millrace.pipelines p
     join millrace.stages s on s.pipeline_id = p.id
     cross join unnest(millrace.stage_columns(s.name)) e(name)
     join pg_constraint c on c.conrelid = p.entity_table and c.contype = 'c'
     join pg_attribute a on a.attrelid = p.entity_table and a.attnum = any (c.conkey) and a.attname = e.name`,
  );
  expect(checked).toEqual([]);
});
