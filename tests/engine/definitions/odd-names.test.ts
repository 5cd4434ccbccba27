// Tables and columns whose names hold whatever Postgres lets a name hold: attach() writes functions around them.
import { expect } from 'vitest';
import { createBareDatabase } from '../../support/database.ts';
import { presentInstall, presentUninstall, snapshot } from '../../support/engine/releases.ts';
import { makeAdoption } from '../../support/engine/status.ts';
import { chain, Engine, test } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

const ends = [
  '$$',
  '$f$',
  '$fn$',
  '$b$',
  '$t$',
  '$write$',
  '$branch$',
  '$pipeline$',
  '$_$',
  '$1',
  "'",
  "''",
  '"',
  '""',
  '\\',
  "\\'",
  '%',
  '%s',
  '%I',
  '%1$I',
  '%%',
  ';',
  '--',
  '/*',
  '*/',
  '/* */',
  '\n',
  '\r\n',
  '\t',
  ' ',
  '.',
  ',',
  '()',
  '[]',
  '{}',
  ':=',
  '::text',
  "E'\\",
  '#',
  '#variable_conflict',
  '<<',
  '>>',
  '&',
  '?',
  '$',
  'é',
  '中文',
  '🐟',
  '\u202e',
  '\u00a0',
  '\u2028',
  '\u0301',
  '\x01',
  '\x7f',
  '@',
  '`',
  '|',
  '~',
  '!',
  '^',
];
const words = [
  'loop',
  'by',
  'if',
  'while',
  'execute',
  'foreach',
  'strict',
  'select',
  'end',
  'begin',
  'user',
  'table',
  'order',
  'null',
  'true',
  'new',
  'old',
  'record',
  'return',
  'declare',
  'case',
  'current_user',
  'ctid_',
  'found',
  'tg_op',
  'sqlstate',
  'e',
  'c',
  'i',
  'n',
  'o',
  'x',
  't',
  's',
  'k',
  'm',
  'w',
  'u',
  'd',
  'key',
  'place',
  'value',
  'was',
  'now',
  'phase',
  'via',
  'began',
  'deleted',
  'new_rows',
  'old_rows',
  'moved',
  'seen',
  'path',
  'written',
  'brought',
  'asked',
  'free',
  'stage_id',
  'entity_id',
  'fits',
  'places',
  'pairs',
  'attempts_',
  'run',
  'status_',
  'p_ids',
  'p_stage',
  'p_each',
  'p_wait',
  'p_now',
  'p_changes',
  'p_how',
  'p_dependents',
  'v_now',
  'v_ids',
  'v_ready',
  'v_queued',
  'v_value',
  'v_id',
  'v_written',
  'v_moved',
  'v_outer',
  'v_said',
  'v_group',
];
const injecting = (end: string) => `${end}; create table public.injected(); ${end}--`;

/** 228 names, each of them once. */
const names = [
  ...new Set([
    ...words,
    ...ends,
    ...ends.map((end) => `a${end}b`),
    ...ends.slice(0, 24).map(injecting),
    'x'.repeat(63),
    `${'é'.repeat(31)}y`,
    `$$${'z'.repeat(59)}$$`,
    'Upper Case',
    '0',
    '1a',
  ]),
].slice(0, 228);

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** The names at a place and after it, for the columns of one table. */
const from = (place: number, count: number) =>
  Array.from({ length: count }, (_, at) => names[(place + at) % names.length] as string);

/** A table of an odd name with odd columns, and two pipelines over it: one in columns, one in a status column with history. */
async function pipelinesOver(engine: Engine, place: number) {
  const [name = '', ...columns] = from(place, 12);
  const [key = '', status = '', since = '', changes = '', attempts = '', retryAt = '', error = ''] = columns;
  const [metadata = '', trace = '', group = '', old = ''] = columns.slice(7);
  const table = `odd.${quoted(name)}`;
  const history = `history.${quoted(name)}`;
  await engine.sql.query(`
    create table ${table} (${quoted(key)} text primary key, ${quoted(status)} text, ${quoted(since)} timestamptz,
      ${quoted(changes)} jsonb, ${quoted(attempts)} int not null default 0, ${quoted(retryAt)} timestamptz,
      ${quoted(error)} text, ${quoted(metadata)} jsonb, ${quoted(trace)} uuid, ${quoted(group)} text,
      ${quoted(old)} text, label text);
    create table ${history} (id bigint generated always as identity primary key,
      ${quoted(key)} text references ${table} on delete cascade, from_status text, to_status text, changed_at timestamptz,
      changed_by text, changes jsonb, duration_ms bigint);
    grant select, insert, update, delete on ${table} to service_role`);
  const stages = chain(['loop', 'begin'], { limits: { concurrency: { column: group, limit: 5 } } });
  const entity = { table, key, metadata, trace };
  const quota = { column: group, starts: { count: 50, per_seconds: 60 } };
  for (const stage of ['loop', 'begin']) await engine.addColumns(stage, table);
  await engine.define({ pipeline: `columns_${place}`, entity: { ...entity, projection: 'columns' }, quota, stages });
  await engine.define({
    pipeline: `status_${place}`,
    entity: {
      ...entity,
      projection: 'status',
      status: {
        column: status,
        values: { all: Object.fromEntries(['a', 'b', 'c', 'd', 'f', 'g', 'h'].map((value) => [value, [value]])) },
        failed: 'f',
        attempts,
        retry_at: retryAt,
        error,
        history: { table: history, key, since, changes },
      },
    },
    quota,
    stages: stages.map((stage, at) => ({
      ...stage,
      ...(at === 1 && { given: '$.entity.label == "given"' }),
      shows: at === 0 ? { queued: 'a', started: 'b', completed: 'c' } : { queued: 'd', started: 'g', completed: 'h' },
    })),
  });
  const at = Object.fromEntries(
    Object.entries({ key, status, metadata, trace, group, old }).map(([use, column]) => [use, quoted(column)]),
  ) as Record<'key' | 'status' | 'metadata' | 'trace' | 'group' | 'old', string>;
  return { table, history, at, columns: `columns_${place}`, status: `status_${place}`, old };
}

/** Two rows through both pipelines, a third adopted by what its old column says, and one of them deleted. */
async function workOver(
  engine: Engine,
  { table, history, at, columns, status, old }: Awaited<ReturnType<typeof pipelinesOver>>,
) {
  const said = async (what: string) =>
    (await engine.rows(`select jsonb_build_array(${what}) as said from ${table} order by ${at.key}`)).map(
      (row) => row.said,
    );
  await engine.sql.query(
    `insert into ${table} (${at.key}, ${at.status}, ${at.old}, ${at.metadata}, ${at.trace}, ${at.group}, label) values
       ('1 $$', 'a', null, '{"from": "$$"}', '00000000-0000-4000-8000-000000000001', 'g', null),
       ('2 ''', 'a', null, null, null, null, 'given'), ('3', null, 'was', null, null, null, 'given')`,
  );
  await engine.sql.query(`update ${table} set loop_status = 'queued' where ${at.status} = 'a'`);
  for (const pipeline of [columns, status]) {
    const batch = await runStage(engine, 'loop', pipeline);
    const first = batch.find((item) => item.entity_id === '1 $$');
    expect([batch.length, first?.trace_id]).toEqual([2, '00000000-0000-4000-8000-000000000001']);
    expect(Object.values(first?.entity ?? {})).toEqual(expect.arrayContaining(['1 $$', { from: '$$' }, 'g']));
    expect(await runStage(engine, 'begin', pipeline)).toHaveLength(pipeline === columns ? 2 : 1);
  }
  await engine.sql.query(`update ${table} set loop_status = 'queued', ${at.status} = 'a' where ${at.key} = '1 $$'`);
  expect(await said(`${at.status}, loop_status, begin_status`)).toEqual([
    ['a', 'queued', 'pending'],
    ['c', 'completed', 'completed'],
    [null, 'pending', 'pending'],
  ]);
  await engine.sql.query(`create function odd.value_of(${table}) returns text language sql as $$ select 'h' $$`);
  await makeAdoption(engine);
  await engine.rows(`select * from millrace.adopt($1, $2, 'odd.value_of', p_dry_run => false)`, [status, old]);
  expect(await said(at.status)).toEqual([['a'], ['c'], ['h']]);
  expect(
    await engine.rows(
      `select string_agg(to_status, '' order by id) as values from ${history} group by ${at.key} order by 1`,
    ),
  ).toEqual([{ values: 'abc' }, { values: 'abcdgha' }, { values: 'h' }]);
  expect((await engine.refusal(`update ${table} set ${at.key} = '4' where ${at.key} = '3'`)).code).toBe('MR005');
  await engine.sql.query(`delete from ${table} where ${at.key} = '1 $$'`);
}

/** Each name is a table's in a hunt, every sixth otherwise, from one that is drawn; and a column's of several kinds in either. */
const step = process.env.SOAK ? 1 : 6;
const begin = Math.floor(Math.random() * step);
const size = 36;

test.for(Array.from({ length: Math.ceil(names.length / size) }, (_, chunk) => chunk))(
  `tables and columns of any name are defined, taken in and shown, and run nothing (36 of 228 names, %i, from ${begin})`,
  async (chunk, { engine }) => {
    expect(names).toHaveLength(228);
    await engine.sql.query(`
      create schema odd; create schema history; grant usage on schema odd to service_role;
      -- Bodies that nobody checks run what ends them; bodies that are checked are refused.
      set check_function_bodies = off`);
    for (let place = chunk * size + begin; place < Math.min(names.length, (chunk + 1) * size); place += step) {
      await workOver(engine, await pipelinesOver(engine, place));
    }
    expect(await engine.value(`select to_regclass('public.injected')`)).toBeNull();
    expect(await engine.rows(`select code, message from millrace.log where code <> 'wake_up_not_configured'`)).toEqual(
      [],
    );
  },
);

/** Settings of a session, a role or a database that change how Postgres writes and reads names, times and texts. */
const settings = [
  'quote_all_identifiers = on',
  'standard_conforming_strings = off',
  'intervalstyle = sql_standard',
  'datestyle = "SQL, DMY"',
  'timezone = "Asia/Kathmandu"',
  'bytea_output = escape',
  'extra_float_digits = -15',
  'transform_null_equals = on',
  'array_nulls = off',
  'row_security = off',
  'search_path = odd',
  'xmloption = document',
  'client_encoding = LATIN1',
  'default_transaction_deferrable = on',
];

test('whatever a session has set, pipelines are defined, worked at and swept, and doctor finds nothing', async ({
  engine,
}) => {
  await engine.sql.query('create schema odd; create schema history; grant usage on schema odd to service_role');
  for (const setting of settings) await engine.sql.query(`set ${setting}`);
  await workOver(engine, await pipelinesOver(engine, 0));
  await engine.sweepAll();
  await engine.sql.query('reset quote_all_identifiers');
  const amiss = `select detail from millrace.doctor() where not ok and what ~ 'pipeline|invariant|^rows'`;
  expect(await engine.rows(amiss)).toEqual([]);
  await engine.sql.query('set quote_all_identifiers = on');
  expect(await engine.rows(amiss)).toEqual([]);
  expect(await engine.rows(`select code, message from millrace.log where code <> 'wake_up_not_configured'`)).toEqual(
    [],
  );
});

test('uninstalling leaves nothing on tables of any name', async () => {
  const database = await createBareDatabase();
  const engine = new Engine(database, await database.connect());
  await engine.sql.query(`create schema odd; create schema history; set check_function_bodies = off`);
  const before = await snapshot(engine.sql);
  await engine.sql.query(await presentInstall());
  for (let place = 0; place < names.length; place += 12) await pipelinesOver(engine, place);
  await engine.sql.query(await presentUninstall());
  await engine.sql.query(
    'drop schema odd cascade; drop schema history cascade; create schema odd; create schema history',
  );
  expect(await snapshot(engine.sql)).toEqual(before);
  await database.drop();
});
