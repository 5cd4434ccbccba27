// What the migrations that `pipelines:sync` writes let users do.
import type pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DefinitionJson, pipelineMigration } from '../../local/pipeline-migration.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let client: pg.Client;
const defined = new Map<string, DefinitionJson>();

beforeEach(async () => {
  defined.clear();
  database = await createTestDatabase();
  client = await database.connect();
  await client.query(`create table public.receipts (id bigint generated always as identity primary key);
    revoke all on public.receipts from anon, authenticated`);
});
afterEach(() => database.drop());

/** A pipeline over public.receipts whose stages people do. */
function receipts(pipeline: string, stages: string[], replaces?: string): DefinitionJson {
  const entity = { table: 'public.receipts', key: 'id', projection: 'columns' };
  const replacing = replaces === undefined ? {} : { replaces: { pipeline: replaces } };
  return { pipeline, entity, ...replacing, stages: stages.map((name) => ({ name, kind: 'manual', needs: [] })) };
}

/** Writes the migrations of one sync, those before it being known, and applies them. */
async function sync(...pipelines: DefinitionJson[]) {
  const texts = pipelines.map((pipeline) => pipelineMigration(pipeline, { defined, pipelines }));
  for (const text of texts) await client.query(text);
  for (const pipeline of pipelines) defined.set(pipeline.pipeline, pipeline);
}

/** The statuses that signed-in users may write. */
async function writable(): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select a.attname as name from pg_attribute a where a.attrelid = 'public.receipts'::regclass and a.attnum > 0
       and has_column_privilege('authenticated', a.attrelid, a.attnum, 'update') order by a.attnum`,
  );
  return rows.map(({ name }) => name);
}

it('lets users write the statuses of a pipeline, but not of one that another replaces', async () => {
  await sync(receipts('whole', ['everything']), receipts('phases', ['read', 'book'], 'whole'));
  expect(await writable()).toEqual(['read_status', 'book_status']);
});

it('takes the old statuses from users when a pipeline comes to be replaced, and grants them no later one', async () => {
  await sync(receipts('whole', ['everything', 'after']));
  expect(await writable()).toEqual(['everything_status', 'after_status']);
  await sync(receipts('whole', ['everything', 'after', 'late']), receipts('phases', ['read'], 'whole'));
  expect(await writable()).toEqual(['read_status']);
  await sync(receipts('whole', ['everything', 'after', 'late', 'last']), receipts('phases', ['read', 'book'], 'whole'));
  expect(await writable()).toEqual(['read_status', 'book_status']);
});
