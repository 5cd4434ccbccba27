// Runs are filed under the text of their rows' keys, and begun by triggers that see every write to their table.
import { expect } from 'vitest';
import { type Engine, type Refusal, test } from '../../support/engine.ts';

/** The message of define() for a pipeline over `table`; null when it takes it. */
async function refusal(engine: Engine, table: string): Promise<Refusal | null> {
  const definition = { pipeline: 'flow', entity: { table, key: 'id', projection: 'none' }, stages: [{ name: 'only' }] };
  try {
    await engine.define(definition);
    return null;
  } catch (error) {
    const { code, message, hint } = error as Refusal;
    return { code, message, hint };
  }
}

const malformed = [
  'timestamptz',
  'timestamp',
  'date',
  'time',
  'timetz',
  'interval',
  'bytea',
  'real',
  'double precision',
  'numeric',
  'money',
  'jsonb',
  'bigint[]',
  'public.day',
  'public.pair',
  'citext',
];

test('a key whose values read differently from session to session is refused by its type', async ({ engine }) => {
  await engine.sql.query(`
    create extension if not exists citext with schema extensions;
    create domain public.day as date;
    create type public.pair as (a date, b int)`);
  for (const type of malformed) {
    await engine.sql.query(
      `set search_path = public, extensions; drop table if exists public.things; create table public.things (id ${type} primary key)`,
    );
    expect(await refusal(engine, 'public.things'), type).toEqual({
      code: 'MR001',
      message: expect.stringMatching(/^entity\.key is id, of type \S/),
      hint: expect.stringContaining('bigint'),
    });
  }
  expect(await engine.rows(`select from millrace.pipelines where name = 'flow'`)).toEqual([]);
});

test('a key whose collation takes different texts for equal is refused', async ({ engine }) => {
  await engine.sql.query(`
    create collation public.careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    create table public.things (id text collate public.careless primary key)`);
  expect(await refusal(engine, 'public.things')).toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(/collation/),
  });
});

test('keys that have one text each are taken', async ({ engine }) => {
  await engine.sql.query(
    `create type public.colour as enum ('red'); create domain public.slug as text check (value <> '')`,
  );
  const types = [
    'uuid',
    'text',
    'varchar(20)',
    'char(26)',
    'smallint',
    'int',
    'bigint',
    'numeric(20,0)',
    'numeric(9,2)',
  ];
  for (const type of [...types, 'public.colour', 'public.slug']) {
    await engine.sql.query(`drop table if exists public.things; create table public.things (id ${type} primary key)`);
    expect(await refusal(engine, 'public.things'), type).toBeNull();
  }
});

const tables: [string, string][] = [
  ['is partitioned', 'create table public.things (id bigint primary key) partition by range (id)'],
  [
    'is a partition',
    `create table public.whole (id bigint primary key) partition by range (id);
     create table public.things partition of public.whole for values from (1) to (9)`,
  ],
  ['is a view', 'create view public.things as select 1::bigint as id'],
  ['is a view', 'create materialized view public.things as select 1::bigint as id'],
  ['is unlogged', 'create unlogged table public.things (id bigint primary key)'],
  ['is temporary', 'create temporary table things (id bigint primary key)'],
  [
    'inherits from another table or is inherited from',
    'create table public.things (id bigint primary key); create table public.heir () inherits (public.things)',
  ],
  [
    'inherits from another table or is inherited from',
    'create table public.elder (id bigint); create table public.things (primary key (id)) inherits (public.elder)',
  ],
];

test.for(tables)('a table that %s is refused: %s', async ([what, statement], { engine }) => {
  await engine.sql.query(statement);
  const table = what === 'is temporary' ? 'pg_temp.things' : 'public.things';
  expect(await refusal(engine, table)).toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(/^entity\.table is \S+, which is no ordinary table$/),
    hint: expect.stringMatching(/^Name a table that is logged, without partitions or inheritance/),
  });
});

test('a key that is unique among some rows only is refused', async ({ engine }) => {
  await engine.sql.query(
    'create table public.things (id bigint, live boolean); create unique index on public.things (id) where live',
  );
  expect(await refusal(engine, 'public.things')).toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(/not unique/),
  });
});

const unfit: [string, string, RegExp, string][] = [
  [
    'that may be null',
    'id bigint unique',
    /^entity\.key is id, which may be null in table/,
    'alter table public.things alter id set not null;',
  ],
  [
    'that is generated',
    'code text not null, id text generated always as (lower(code)) stored primary key',
    /^entity\.key is id, which is generated/,
    'alter table public.things alter id drop expression;',
  ],
];

test.for(unfit)('a key %s is refused, and the statement of the remedy makes it fit', async (one, { engine }) => {
  const [, columns, message, remedy] = one;
  await engine.sql.query(`create table public.things (${columns})`);
  const refused = await refusal(engine, 'public.things');
  expect(refused).toMatchObject({ code: 'MR001', message: expect.stringMatching(message) });
  expect(refused?.hint).toContain(remedy);
  await engine.sql.query(remedy);
  expect(await refusal(engine, 'public.things')).toBeNull();
});

test('a key of a domain that is of another domain is taken', async ({ engine }) => {
  await engine.sql.query(
    'create domain public.word as text; create domain public.code as public.word; create table public.things (id public.code primary key)',
  );
  expect(await refusal(engine, 'public.things')).toBeNull();
});

test('a key whose domain forbids null is taken', async ({ engine }) => {
  await engine.sql.query(
    'create domain public.code as text not null; create table public.things (id public.code unique)',
  );
  expect(await refusal(engine, 'public.things')).toBeNull();
});

test.for([
  ['is generated', 'first_error', "drop column first_error, add first_error text generated always as ('x') stored"],
  ['is not null', 'first_job_id', 'alter first_job_id set not null'],
])(
  'a column of the engine that %s is refused, and the statement of the remedy makes it fit',
  async (one, { engine }) => {
    const [what, column, change] = one;
    const definition = await engine.pipeline([{ name: 'first' }]);
    await engine.sql.query(`alter table public.items ${change}`);
    const refused = await engine.refusedDefinition(definition);
    expect(refused).toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(`^column ${column} of table public\\.items ${what}, but the engine writes `),
    });
    await engine.sql.query(refused.hint ?? '');
    await engine.define(definition);
  },
);
