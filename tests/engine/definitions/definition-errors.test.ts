import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEngine, type Definition, type Engine, type Row } from '../../support/engine.ts';

let engine: Engine;

beforeAll(async () => {
  engine = await createEngine();
  await engine.pipeline([{ name: 'one' }, { name: 'two', needs: ['one'] }]);
  await engine.sql.query('create table public.keyless (id bigint, label text)');
});
afterAll(() => engine.database.drop());

function definition(changes: Row = {}, stage: Row = {}): unknown {
  const sound: Definition = {
    pipeline: 'fresh',
    entity: { table: 'public.items', key: 'id', projection: 'columns' },
    stages: [
      { name: 'one', ...stage },
      { name: 'two', needs: ['one'] },
    ],
  };
  return { ...sound, ...changes };
}

const stages = (...list: unknown[]) => definition({ stages: list });
const entity = (changes: Row) => definition({ entity: { table: 'public.items', key: 'id', ...changes } });

// The fault, the definition, and what the message must name: the field and the value found.
const faults: [string, unknown, RegExp][] = [
  [
    'a definition without stages',
    definition({ stages: undefined }),
    /stages is missing, but must be an object of at least one stage/,
  ],
  ['an empty list of stages', stages(), /stages is \{\}, but must be an object of at least one stage/],
  ['a pipeline name in capitals', definition({ pipeline: 'Fresh' }), /name is "Fresh"/],
  ['a pipeline without a name', definition({ pipeline: undefined }), /name is missing, but must be a lower-case name/],
  ['a table that is none', entity({ table: 'public.nothing' }), /entity\.table is "public\.nothing"/],
  ['a table name that is no name', entity({ table: 'a b; drop table x' }), /entity\.table/],
  ['a table name with too many dots', entity({ table: 'a.b.c.d' }), /entity\.table is "a\.b\.c\.d"/],
  ['a table of another database', entity({ table: 'other.public.items' }), /entity\.table is "other/],
  ['a table left out', definition({ entity: {} }), /entity\.table is missing, but must be schema\.table/],
  ['a projection nobody knows', entity({ projection: 'stars' }), /entity\.projection is "stars"/],
  ['a key that is no column', entity({ key: 'nothing' }), /entity\.key is nothing/],
  [
    'a key that is not unique',
    entity({ table: 'public.keyless', projection: 'none' }),
    /entity\.key is id.*not unique/,
  ],
  [
    'a function that is a path',
    stages({ name: 'one', function: '../rest/v1/x' }),
    /stage one: function is "\.\.\/rest/,
  ],
  ['a stage name with a blank', stages({ name: 'one two' }), /stages\.one two is /],
  ['a kind nobody knows', definition({}, { kind: 'robot' }), /one: kind is "robot"/],
  ['a need nobody knows', stages({ name: 'one', needs: ['zero'] }), /one: needs names zero/],
  ['a need listed twice', stages({ name: 'one' }, { name: 'two', needs: ['one', 'one'] }), /two: needs.*one.*twice/],
  ['needs that are no list', stages({ name: 'one' }, { name: 'two', needs: 'one' }), /two: needs/],
  ['a stage that needs itself', stages({ name: 'one', needs: ['one'] }), /cycle: one → one/],
  [
    'a cycle of two behind a sound stage',
    stages({ name: 'one' }, { name: 'two', needs: ['three', 'one'] }, { name: 'three', needs: ['two'] }),
    /cycle: two → three → two/,
  ],
  [
    'a pattern that Postgres cannot read',
    stages({ name: 'one', kind: 'manual', decision: { schema: { anyOf: [{ pattern: '(' }] } } }),
    /stages\.one\.decision\.schema\.anyOf\.0\.pattern is "\(", but must be a regular expression that Postgres can read/,
  ],
  ['a batch size of none', definition({}, { batch_size: 0 }), /one: batch_size is 0/],
  ['half an entity a batch', definition({}, { batch_size: 2.5 }), /one: batch_size is 2\.5/],
  ['a batch size in words', definition({}, { batch_size: 'ten' }), /one: batch_size is "ten"/],
  ['a negative limit of workers', definition({}, { max_workers: -1 }), /one: max_workers is -1/],
  ['a lease of a blink', definition({}, { lease_seconds: 1 }), /one: lease_seconds is 1/],
  ['a negative timeout', definition({}, { timeout_seconds: -5 }), /one: timeout_seconds is -5/],
  ['a timeout no worker can meet', definition({}, { timeout_seconds: 61 }), /timeout is "61 s".*60.*no worker could/],
  ['a size limit of none', definition({}, { result_limit_bytes: 0 }), /one: result_limit_bytes is 0/],
  ['a bound of no time', definition({}, { sla_seconds: 0 }), /one: sla_seconds is 0/],
  ['a bound of more than a year', definition({}, { sla_seconds: 31_536_001 }), /one: sla_seconds is 31536001/],
  ['a bound in words', definition({}, { sla_seconds: 'soon' }), /one: sla_seconds is "soon"/],
  ['a retry that is a number', definition({}, { retry: 3 }), /one: retry/],
  ['no attempt at all', definition({}, { retry: { max_attempts: 0 } }), /one: retry\.max_attempts is 0/],
  ['half an attempt', definition({}, { retry: { max_attempts: 1.5 } }), /one: retry\.max_attempts is 1\.5/],
  [
    'a backoff nobody knows',
    definition({}, { retry: { backoff: { kind: 'slow' } } }),
    /one: retry\.backoff\.kind is "slow", but must be exponential or list/,
  ],
  ['an empty backoff list', definition({}, { retry: { backoff: { kind: 'list', seconds: [] } } }), /retry\.backoff/],
  [
    'a backoff into the past',
    definition({}, { retry: { backoff: { kind: 'list', seconds: [5, -1] } } }),
    /retry\.backoff/,
  ],
  [
    'an exponential backoff that shrinks',
    definition({}, { retry: { backoff: { kind: 'exponential', factor: 0.5 } } }),
    /one: retry\.backoff\.factor is 0\.5/,
  ],
  ['codes that are no object', definition({}, { retry: { by_code: ['timeout'] } }), /one: retry\.by_code/],
  [
    'no attempt for one code',
    definition({}, { retry: { by_code: { rate_limited: { max_attempts: 0 } } } }),
    /one: retry\.by_code\.rate_limited\.max_attempts is 0/,
  ],
  [
    'no attempt for a code with a dot',
    definition({}, { retry: { by_code: { 'http.503': { max_attempts: 0 } } } }),
    /one: retry\.by_code\.http\.503\.max_attempts is 0/,
  ],
  [
    'an external stage that nothing completes',
    definition({}, { kind: 'external', completion: { deadline_seconds: 60 } }),
    /one: .*callback or by polling/,
  ],
  [
    'an external stage with all completion switched off',
    definition({}, { kind: 'external', completion: { callback: false, poll_seconds: null } }),
    /one: .*callback or by polling/,
  ],
  [
    'a callback that is neither true nor false',
    definition({}, { completion: { callback: 'often' } }),
    /completion\.callback/,
  ],
  ['a poll of no time', definition({}, { completion: { poll_seconds: 0 } }), /one: completion\.poll_seconds is 0/],
  [
    'a negative deadline',
    definition({}, { completion: { deadline_seconds: -1 } }),
    /completion\.deadline_seconds is -1/,
  ],
  ['enabled that is neither true nor false', definition({}, { enabled: 'perhaps' }), /one: enabled/],
  [
    'an apply function that does not exist',
    definition({}, { apply: 'public.nothing' }),
    /stages\.one\.apply.*public\.nothing/,
  ],
  ['an apply function with too many dots', definition({}, { apply: 'a.b.c.d' }), /one: apply is "a\.b\.c\.d"/],
  ['an apply function with arguments', definition({}, { apply: 'public.f(int)' }), /one: apply is "public\.f\(int\)"/],
  [
    'an insert function with too many dots',
    definition({}, { kind: 'map', child: { pipeline: 'flow', insert: 'a.b.c.d' } }),
    /one: child\.insert is "a\.b\.c\.d"/,
  ],
];

describe('define() refuses, naming the field, what it found and the remedy,', () => {
  it.each(faults)('%s', async (_what, faulty, message) => {
    const refusal = await engine.refusedDefinition(faulty);
    expect(refusal).toMatchObject({ code: 'MR001', message: expect.stringMatching(message) });
    expect(refusal.hint).toBeTruthy();
  });

  it('a missing column, with the statement that adds it', async () => {
    const lacking = definition({ pipeline: 'lacking', stages: [{ name: 'third' }] });
    const refusal = await engine.refusedDefinition(lacking);
    expect(refusal).toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(/no column third_\w+ for stage third/),
    });
    await engine.sql.query(refusal.hint ?? '');
    expect(await engine.define(lacking)).toBe(1);
  });
});

it('a refused definition leaves nothing behind, and the one before it stands', async () => {
  const before = await engine.rows('select * from millrace.stages order by id');
  const cyclic = {
    ...(definition() as Definition),
    pipeline: 'flow',
    stages: [{ name: 'one', needs: ['one'], batch_size: 99 }],
  };
  await engine.refusedDefinition(cyclic);
  const keyless = { ...(definition() as Definition), pipeline: 'flow', entity: { table: 'public.keyless', key: 'id' } };
  await engine.refusedDefinition(keyless);
  expect(await engine.rows('select * from millrace.stages order by id')).toEqual(before);
  expect(await engine.value(`select entity_table::text from millrace.pipelines where name = 'flow'`)).toMatch(/items$/);
});
