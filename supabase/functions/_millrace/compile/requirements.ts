// Requirements of a definition that only Postgres can check: its columns, functions, jsonpaths and patterns.

import type { PipelineOptions, StageDefinition } from '../define/definition-schema.ts';
import { pathsOf } from './condition-paths.ts';

/** A column that must be there; `types` are those that it may be of, left out where any will do. */
interface Column {
  field: string;
  table: string;
  column: string;
  types?: string[];
  /** True for a column that a condition or an input reads: both see no column that the engine keeps. */
  read?: true;
  remedy: string;
}

/** A jsonpath that Postgres must be able to read; one that is a predicate is true or false of a row. */
interface JsonPath {
  field: string;
  path: string;
  predicate: boolean;
  example: string;
}

/** Requirements that millrace.define() checks before it writes anything. */
export interface Requirements {
  columns: Column[];
  functions: { field: string; name: string; arguments: string; remedy: string }[];
  paths: JsonPath[];
  patterns: { field: string; pattern: string }[];
}

/** The columns of the row that the input of each stage cannot do without, by the stage. */
export type InputColumns = Record<string, string[]>;

/** Lists what a definition and the inputs of its stages need from the database. */
export function requirementsOf(options: PipelineOptions, inputs: InputColumns): Partial<Requirements> {
  const stages = Object.entries(options.stages);
  const paths = stages.flatMap(([name, stage]) => pathsIn(`stages.${name}`, stage));
  const found: Requirements = {
    columns: [
      ...entityColumns(options),
      ...statusColumns(options),
      ...stages.flatMap(([name, stage]) => keyColumns(name, stage, options.entity.table)),
      ...paths.flatMap(({ field, path }) => readColumns(field, path, options.entity.table)),
      ...inputColumns(inputs, options.entity.table),
    ],
    functions: stages.flatMap(([name, stage]) => functionsIn(`stages.${name}`, stage)),
    paths,
    patterns: stages.flatMap(([name, stage]) => {
      const schema = stage.kind === 'manual' ? stage.decision?.schema : undefined;
      return schema ? patternsIn(schema, `stages.${name}.decision.schema`) : [];
    }),
  };
  return Object.fromEntries(Object.entries(found).filter(([, list]) => list.length > 0));
}

const plural = (types: string[]) => types.join(' or ');

function entityColumns({ entity, quota }: PipelineOptions): Column[] {
  const { table, metadata, due, label, trace } = entity;
  const asked: [string, string | undefined, string[] | undefined, string][] = [
    [
      'entity.metadata',
      metadata,
      ['jsonb'],
      `Name a column of type jsonb: alter table ${table} add column metadata jsonb not null default '{}'; or leave it out.`,
    ],
    [
      'entity.due',
      due,
      ['timestamp with time zone'],
      `Name a column of type timestamptz: alter table ${table} add column due_at timestamptz; or leave it out.`,
    ],
    [
      'entity.label',
      label,
      ['text', 'character varying'],
      'Name a column of type text, such as a URL; or leave it out.',
    ],
    [
      'entity.trace',
      trace,
      ['uuid'],
      `Name a column of type uuid: alter table ${table} add column trace_id uuid not null default gen_random_uuid(); or leave it out.`,
    ],
    ['quota.column', quota?.column, undefined, 'Name the column whose value is the tenant.'],
  ];
  return asked.flatMap(([field, column, types, remedy]) =>
    column === undefined ? [] : [{ field, table, column, ...(types && { types }), remedy }],
  );
}

const whole = ['smallint', 'integer', 'bigint'];
const texts = ['text', 'character varying'];
const tables = 'Create it in an earlier migration; docs/patterns/status.md shows both tables.';
const grows =
  'id says which of two values of one transaction came first: let a uuid begin with nextval() of a sequence. duration_ms is a ' +
  'bigint, since an int of milliseconds ends after 25 days.';

function statusColumns({ entity: { table, status } }: PipelineOptions): Column[] {
  if (!status) return [];
  const { column, history, attempts, retryAt, error, lookup } = status;
  const kept: [string, string | undefined, string[]][] = [
    ['column', column, ['smallint', ...texts]],
    ['history.since', history?.since, ['timestamp with time zone']],
    ['history.changes', history?.changes, ['jsonb']],
    ['attempts', attempts, whole],
    ['retryAt', retryAt, ['timestamp with time zone']],
    ['error', error, texts],
  ];
  const known = (field: string, of: string | undefined, names: string[]) =>
    of === undefined
      ? []
      : names.map((name) => ({ field: `entity.status.${field}`, table: of, column: name, remedy: tables }));
  return [
    ...kept.flatMap(([field, name, types]) =>
      name === undefined
        ? []
        : [
            {
              field: `entity.status.${field}`,
              table,
              column: name,
              types,
              remedy: `It must be of type ${plural(types)}: alter table ${table} add column ${name} ${types[0]};`,
            },
          ],
    ),
    ...known('lookup', lookup, ['name', 'description', 'category', 'is_terminal', 'sort_order', 'code']),
    ...known('history.table', history?.table, [
      history?.key ?? '',
      'from_status',
      'to_status',
      'changed_at',
      'changed_by',
      'changes',
    ]),
    ...(history
      ? [
          {
            field: 'entity.status.history.table',
            table: history.table,
            column: 'id',
            types: ['integer', 'bigint', 'uuid'],
            remedy: grows,
          },
          {
            field: 'entity.status.history.table',
            table: history.table,
            column: 'duration_ms',
            types: ['bigint'],
            remedy: grows,
          },
        ]
      : []),
  ];
}

function keyColumns(name: string, stage: StageDefinition, table: string): Column[] {
  const limits = 'limits' in stage ? stage.limits : undefined;
  const column = limits?.concurrency?.column;
  const field = `stages.${name}.limits.concurrency.column`;
  return column === undefined ? [] : [{ field, table, column, remedy: 'Name the column whose value is the key.' }];
}

/** Returns the columns of the row that a path asks for. */
function readColumns(field: string, path: string, table: string): Column[] {
  const names = pathsOf(path).paths.flatMap(([root, column]) =>
    root === 'entity' && column !== undefined ? [column] : [],
  );
  return [...new Set(names)].map((column) => ({
    field,
    table,
    column,
    read: true,
    remedy: 'Correct the name, or add the column in an earlier migration.',
  }));
}

/** Lists the columns that inputs of stages require, each once. Inputs get no column that the engine keeps. */
function inputColumns(inputs: InputColumns, table: string): Column[] {
  const remedy = 'Correct the handler and sync again, or add the column in an earlier migration.';
  return [...new Set(Object.values(inputs).flat())].sort().map((column) => {
    const stages = Object.keys(inputs).filter((stage) => inputs[stage]?.includes(column));
    const field = `the input of stage ${stages.sort().join(', ')}`;
    return { field, table, column, read: true, remedy };
  });
}

/** Returns the conditions of a stage. */
function pathsIn(field: string, stage: StageDefinition): JsonPath[] {
  const { when, given } = stage;
  const ends = Object.entries(('ends' in stage && stage.ends) || {});
  const all: [string, string | undefined, string][] = [
    ['when', when, '"$.entity.kind == \\"scan\\"" or "$.needs.count.pages > 20"'],
    ['given', given, '"$.entity.summary != null"'],
    ...ends.map(([name, path]): [string, string, string] => [`ends.${name}`, path, '"$.result.score < 0.5"']),
  ];
  return all.flatMap(([option, path, example]) =>
    path === undefined ? [] : [{ field: `${field}.${option}`, path, predicate: true, example }],
  );
}

function functionsIn(field: string, stage: StageDefinition): Requirements['functions'] {
  const apply = 'apply' in stage ? stage.apply : undefined;
  const insert = stage.kind === 'map' ? stage.child.insert : undefined;
  const remedy = 'Create the function in an earlier migration and name it with its schema.';
  return [
    ...(apply === undefined ? [] : [{ field: `${field}.apply`, name: apply, arguments: 'jsonb', remedy }]),
    ...(insert === undefined
      ? []
      : [
          {
            field: `${field}.child.insert`,
            name: insert,
            arguments: 'text,jsonb',
            remedy: `${remedy} Without it an item's key is the id of a row that exists.`,
          },
        ]),
  ];
}

/** Returns the regular expressions in a decision's schema. */
function patternsIn(schema: unknown, field: string): Requirements['patterns'] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { pattern, properties, items, anyOf } = schema as Record<string, unknown>;
  return [
    ...(typeof pattern === 'string' ? [{ field: `${field}.pattern`, pattern }] : []),
    ...Object.entries((properties ?? {}) as object).flatMap(([key, inner]) =>
      patternsIn(inner, `${field}.properties.${key}`),
    ),
    ...patternsIn(items, `${field}.items`),
    ...((anyOf ?? []) as unknown[]).flatMap((inner, position) => patternsIn(inner, `${field}.anyOf.${position}`)),
  ];
}
