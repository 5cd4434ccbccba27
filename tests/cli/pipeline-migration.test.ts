// The rights of users after the migrations that `pipelines:sync` writes.

import type pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { columnsOf } from '../../cli/project/stage-columns.ts';
import { definitionsIn, pipelineMigration } from '../../cli/sync/pipeline-migration.ts';
import { renamingSql, withRenamed } from '../../cli/sync/rename-stages.ts';
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { compiled } from '../support/definitions.ts';

let database: TestDatabase;
let client: pg.Client;
const defined = new Map<string, CompiledPipeline>();

beforeEach(async () => {
  defined.clear();
  database = await createTestDatabase();
  client = await database.connect();
  await client.query(`create table public.receipts (id bigint generated always as identity primary key);
    revoke all on public.receipts from anon, authenticated`);
});
afterEach(() => database.drop());

const users = { startable_by: ['authenticated'] };

/** A pipeline over public.receipts whose stages people do, one after another. */
function receipts(
  pipeline: string,
  stages: string[],
  entity: Partial<CompiledPipeline['entity']> = users,
): CompiledPipeline {
  const table = { table: 'public.receipts', key: 'id', projection: 'columns' };
  return JSON.parse(
    compiled({
      pipeline,
      entity: { ...table, ...entity },
      stages: stages.map((name, at) => ({
        name,
        kind: 'manual',
        needs: at > 0 ? stages.slice(at - 1, at) : [],
        decision: { schema: {} },
      })),
    }),
  );
}

/** Writes the migrations of one sync, those before it being known, and applies them. */
async function sync(...pipelines: CompiledPipeline[]) {
  const texts = pipelines.map((pipeline) => pipelineMigration(pipeline, defined));
  for (const text of texts) await client.query(text);
  for (const pipeline of pipelines) defined.set(pipeline.pipeline, pipeline);
}

/** The columns that a role may write. */
async function writable(role = 'authenticated'): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select a.attname as name from pg_attribute a where a.attrelid = 'public.receipts'::regclass and a.attnum > 0
       and has_column_privilege($1, a.attrelid, a.attnum, 'update') order by a.attnum`,
    [role],
  );
  return rows.map(({ name }) => name);
}

it('lets nobody write a status unless the definition says who starts stages', async () => {
  await sync(receipts('whole', ['everything'], {}));
  expect(await writable()).toEqual([]);
  await sync(receipts('whole', ['everything', 'after']));
  expect(await writable()).toEqual(['everything_status', 'after_status']);
  expect(await writable('anon')).toEqual([]);
});

it('grants the statuses of stages that come later, and takes them from a role that is named no more', async () => {
  await sync(receipts('whole', ['everything']));
  await sync(receipts('whole', ['everything', 'late'], { startable_by: ['authenticated', 'anon'] }));
  for (const role of ['authenticated', 'anon'])
    expect(await writable(role)).toEqual(['everything_status', 'late_status']);
  await sync(receipts('whole', ['everything', 'late', 'last'], { startable_by: ['anon'] }));
  expect(await writable()).toEqual([]);
  expect(await writable('anon')).toEqual(['everything_status', 'late_status', 'last_status']);
  await sync(receipts('whole', ['late', 'last'], {}));
  expect(await writable('anon')).toEqual(['everything_status']);
});

it('drops the columns of a stage that is gone where that is asked, and leaves a pipeline that works', async () => {
  await sync(receipts('whole', ['everything', 'late']));
  const now = receipts('whole', ['everything']);
  await client.query(pipelineMigration(now, defined, { gone: ['late'] }));
  const columns = async () => {
    const { rows } = await client.query<{ name: string }>(
      `select a.attname as name from pg_attribute a
       where a.attrelid = 'public.receipts'::regclass and a.attnum > 0 and not a.attisdropped`,
    );
    return rows.map(({ name }) => name);
  };
  expect(await columns()).toEqual(['id', ...columnsOf('everything')]);
  await client.query('insert into public.receipts (everything_status) values (default)');
  await client.query(`update public.receipts set everything_status = 'queued'`);
  const { rows } = await client.query('select everything_status from public.receipts');
  expect(rows).toEqual([{ everything_status: 'started' }]);
  await client.query(`select public.millrace_decide(attempt_id, '1') from public.millrace_decisions`);
  const { rows: decided } = await client.query('select everything_status from public.receipts');
  expect(decided).toEqual([{ everything_status: 'completed' }]);
  const { rows: findings } = await client.query(
    `select what, detail from millrace.doctor() where not ok and (what || detail) ~ 'receipts|column'`,
  );
  expect(findings).toEqual([]);
  defined.set('whole', now);
  await sync(receipts('whole', ['everything', 'late']));
  expect(await columns()).toEqual(['id', ...columnsOf('everything'), ...columnsOf('late')]);
});

it('a migration has nothing about rights that stay as they are', async () => {
  await sync(receipts('whole', ['everything']));
  const text = pipelineMigration(receipts('whole', ['everything']), defined);
  expect(text).not.toMatch(/grant|revoke/);
});

it('defines a table, and grants a column, whose names hold what ends a text', async () => {
  const table = 'public."a $pipeline$pipeline$); create table public.injected(); --"';
  await client.query(`create table ${table} (id int primary key, "user ""x"", $pipeline$" text)`);
  const column = 'user "x", $pipeline$';
  const values = { all: { a: ['a'], b: ['b'], c: ['c'] } };
  const odd: CompiledPipeline = JSON.parse(
    compiled({
      pipeline: 'odd',
      entity: { table, key: 'id', projection: 'status', status: { column, values, failed: 'c' }, ...users },
      stages: [{ name: 'one', kind: 'function', needs: [], shows: { queued: 'a', started: 'a', completed: 'b' } }],
    }),
  );
  await sync(odd);
  expect(definitionsIn([pipelineMigration(odd, defined)]).get('odd')?.entity.table).toBe(table);
  const { rows } = await client.query(
    `select has_column_privilege('authenticated', $1, $2, 'update') as granted, to_regclass('public.injected') as injected`,
    [table, column],
  );
  expect(rows).toEqual([{ granted: true, injected: null }]);
});

it('renames the columns of a stage with what they show once no run is live, and leaves a pipeline that works', async () => {
  await sync(receipts('whole', ['first', 'late']));
  const decide = async () => {
    for (const _ of ['first', 'late'])
      await client.query(`select public.millrace_decide(attempt_id, '1') from public.millrace_decisions`);
  };
  const shown = async () => {
    const select =
      "select id::int, entry_status, late_status, entry_result -> 'decision' as entry from public.receipts";
    return (await client.query(`${select} order by id`)).rows;
  };
  await client.query(`insert into public.receipts (first_status) values ('queued')`);
  const before = receipts('whole', ['first', 'late']);
  const renamed = [{ pipeline: 'whole', stage: 'first', name: 'entry' }];
  const now = receipts('whole', ['entry', 'late']);
  const under = new Map([['whole', withRenamed(before, renamed)]]);
  const text = pipelineMigration(now, under, { renaming: renamingSql(now, renamed) });
  await expect(client.query(text)).rejects.toThrow('runs of pipeline whole are live, so that first cannot be renamed');
  expect(await writable()).toEqual(['first_status', 'late_status']);

  await decide();
  await client.query(text);
  expect(await writable()).toEqual(['entry_status', 'late_status']);
  expect(await shown()).toEqual([{ id: 1, entry_status: 'completed', late_status: 'completed', entry: 1 }]);
  // The history keeps the former name, so that a row of before begins again with the stage.
  const late = client.query(`update public.receipts set late_status = 'queued' where id = 1`);
  await expect(late).rejects.toThrow('stage late cannot start for 1 entity (1): its need entry has no result');
  await client.query(`update public.receipts set entry_status = 'queued' where id = 1`);
  await client.query(`insert into public.receipts (entry_status) values ('queued')`);
  await decide();
  const done = { entry_status: 'completed', late_status: 'completed', entry: 1 };
  expect(await shown()).toEqual([
    { id: 1, ...done },
    { id: 2, ...done },
  ]);
  const { rows: findings } = await client.query(
    `select what, detail from millrace.doctor() where not ok and (what || detail) ~ 'receipts|column'`,
  );
  expect(findings).toEqual([]);
});
