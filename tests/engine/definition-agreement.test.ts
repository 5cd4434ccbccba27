// TypeScript and the database take the same definitions, and fill in the same defaults.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compactText, type DefinitionJson } from '../../cli/sync/pipeline-migration.ts';
import { definePipeline, definitionJson } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { PipelineInput, StageInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { createEngine, type Engine, type Row } from '../support/engine.ts';

let engine: Engine;

const list = { kind: 'list' as const, seconds: [1, 2] };
const exponential = { kind: 'exponential' as const, baseSeconds: 5, factor: 2, capSeconds: 300, jitter: 0.2 };
const worked = {
  function: 'p-a',
  batchSize: 5,
  maxWorkers: 1,
  leaseSeconds: 30,
  timeoutSeconds: 10,
  retry: { maxAttempts: 3, backoff: exponential, byCode: { HTTP_500: { maxAttempts: 9, backoff: list } } },
};
const ending = {
  ends: { rejected: '$.result.ok == false', duplicate: '$.entity.kind == "copy"' },
  onFailure: 'continue' as const,
  slaSeconds: 60,
  enabled: true,
  resultLimitBytes: 1000,
};
const stages: Record<string, StageInput> = {
  split: {
    ...worked,
    kind: 'map',
    child: { pipeline: 'leaves', insert: 'public.insert_leaves' },
    fanIn: { rule: 'share', share: 0.9, failedChildren: 'ignore', lateChildren: 'cancel', deadlineSeconds: 3600 },
    limits: {
      maxInFlight: 3,
      rate: { count: 10, perSeconds: 0.5, burst: 20 },
      concurrency: { column: 'source_url', part: 'host', limit: 2 },
      priority: true,
      backPressure: { stage: 'review', backlog: 100 },
    },
  },
  counted: {
    ...worked,
    ...ending,
    kind: 'map',
    child: { pipeline: 'leaves' },
    fanIn: { rule: 'at_least', count: 3, atDeadline: 'finish' },
  },
  index: {
    kind: 'pipeline',
    given: '$.entity.source_url != null',
    child: { pipeline: 'outline' },
    after: [{ map: 'split', stage: 'blend', count: 20 }],
  },
  find: {
    ...worked,
    kind: 'agent',
    agent: { maxTurns: 9, maxTokens: 5000, maxCostUsd: 0.5, maxSeconds: 60, debug: true },
  },
  scan: {
    ...worked,
    kind: 'external',
    onDemand: true,
    completion: { callback: false, pollSeconds: 5, deadlineSeconds: 600, deadlineFrom: 'submission' },
  },
  sum: { ...worked, kind: 'function', apply: 'public.apply_sum', after: [{ map: 'split', stage: 'blend', all: true }] },
  hold: {
    kind: 'gate',
    needs: ['find'],
    when: '$.needs.find.confidence > 0.1',
    limits: {
      rate: { count: 60, perSeconds: 60 },
      backPressure: [
        { stage: 'check', backlog: 300 },
        { stage: 'book.last', backlog: 10 },
      ],
    },
    slaSeconds: 3600,
    enabled: true,
  },
  check: { ...worked, kind: 'function', needs: ['hold'] },
  last: { ...worked, kind: 'function', needs: ['check'] },
  review: {
    kind: 'manual',
    needs: ['split', 'find'],
    when: '$.needs.find.confidence < 0.6',
    otherwise: 'skip',
    decision: { schema: { type: 'object' }, deadlineSeconds: 86_400 },
  },
};
const everything: PipelineInput = {
  name: 'book',
  entity: { table: 'public.tomes', key: 'id', projection: 'none', metadata: 'metadata' },
  quota: {
    column: 'kind',
    starts: { count: 5, perSeconds: 60 },
    spending: { usd: 1, perSeconds: 60 },
  },
  stages,
};

beforeAll(async () => {
  engine = await createEngine();
  await engine.sql.query(`
    update millrace.settings set value = '190' where name = 'worker_seconds';
    create table public.tomes (id bigint primary key, kind text, source_url text, metadata jsonb);
    create table public.leaves (id bigint primary key);
    create function public.apply_sum(p_results jsonb) returns void language sql as 'select';
    create function public.insert_leaves(p_parent text, p_items jsonb) returns table (item_key text, entity_id text)
    language sql as $$ select p_parent, p_items ->> 0 $$;
    create function pg_temp.refusal(p_definition jsonb) returns text language plpgsql as $$
    begin
      perform millrace.check_definition(p_definition);
      return null;
    exception when sqlstate 'MR001' then
      return sqlerrm;
    end $$`);
  for (const [name, table] of [
    ['leaves', 'public.leaves'],
    ['outline', 'public.tomes'],
  ] as const) {
    const entity = { table, projection: 'none' };
    await engine.define({ pipeline: name, entity, stages: [{ name: name === 'leaves' ? 'blend' : 'find' }] });
  }
});
afterAll(() => engine.database.drop());

/** Why TypeScript refuses a definition; null when it takes it. */
function refusedHere(input: unknown): string | null {
  try {
    definePipeline(input as PipelineInput);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Why the database refuses definitions, each null when it takes it. */
async function refusedThere(inputs: Row[]): Promise<(string | null)[]> {
  const rows = await engine.rows<{ fault: string | null }>(
    `select pg_temp.refusal(d.value) as fault from jsonb_array_elements($1) with ordinality d order by d.ordinality`,
    [JSON.stringify(inputs.map(definitionJson))],
  );
  return rows.map(({ fault }) => fault);
}

type Path = (string | number)[];

/** All places in a value, itself left out. */
function pathsIn(value: unknown): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  const keys = Array.isArray(value) ? value.keys() : Object.keys(value);
  return [...keys].flatMap((key) => [[key], ...pathsIn((value as Row)[key]).map((path) => [key, ...path])]);
}

/** A copy in which something else stands at a place; undefined takes out what is there. */
function changed(value: unknown, [key, ...rest]: Path, to: unknown): unknown {
  if (key === undefined) return to;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as Row) }) as Row;
  copy[key] = changed(copy[key], rest, to);
  if (copy[key] === undefined) delete copy[key];
  return Array.isArray(value) ? Object.values(copy) : copy;
}

// Only the database knows what there is; and it takes a stage for a function, by the usual name, that says nothing of it.
const names = ['key', 'metadata', 'column', 'when'];
const own = ['kind', 'function'];
const places = pathsIn(everything).filter(
  (path) => !(path[0] === 'stages' && path.length < 3) && !path.includes('schema'),
);
const numbers = [-1, 0, 0.001, 0.5, 1, 1.5, 100, 101, 190, 191, 200, 500, 501, 1000, 1001, 3600, 3601, 7200];
const large = [10_000, 10_001, 86_400, 86_401, 100_000, 100_001, 604_800, 604_801, 1_000_000, 1_000_001, 2_678_401];
const odd = [undefined, null, true, false, '', 'A b!', [], {}, ['x'], { x: 1 }, 31_536_000, 31_536_001, 1e9, 1e-9];
const mutation = fc.record({
  path: fc.constantFrom(...places),
  deeper: fc.constantFrom<Path>([], [], [], ['more']),
  to: fc.constantFrom<unknown>(...numbers, ...large, ...odd),
});

it('a definition with something else in a place is taken by both or refused by both', async () => {
  const mutations = fc.sample(mutation, { numRuns: 300, seed: 20261123 }).filter(({ path, to }) => {
    const last = String(path.at(-1));
    return !(names.includes(last) && to === 'A b!') && !(own.includes(last) && to === undefined);
  });
  const inputs = mutations.flatMap(({ path, deeper, to }) => {
    const isObject = typeof valueAt(everything, path) === 'object';
    return isObject || deeper.length === 0 ? [changed(everything, [...path, ...deeper], to) as Row] : [];
  });
  const there = await refusedThere(inputs);
  const differ = inputs.flatMap((input, place) => {
    const here = refusedHere(input);
    return (here === null) === (there[place] === null) ? [] : [{ here, there: there[place], input }];
  });
  expect(differ.slice(0, 3)).toEqual([]);
  const taken = there.filter((fault) => fault === null).length;
  expect(taken).toBeGreaterThan(inputs.length / 20);
  expect(taken).toBeLessThan(inputs.length / 2);
});

const valueAt = (value: unknown, path: Path): unknown => path.reduce((at, key) => (at as Row)[key], value as unknown);

it.each<[string, Row, RegExp]>([
  [
    '101 attempts',
    { retry: { maxAttempts: 101 } },
    /retry\.max_attempts is 101, but must be a whole number from 1 to 100/,
  ],
  ['a factor of 200', { retry: { backoff: { ...exponential, factor: 200 } } }, /factor is 200, .* from 1 to 100/],
  ['a poll every two hours', { completion: { pollSeconds: 7200 } }, /poll_seconds is 7200, .* from 1 to 3600/],
  ['batches of 1000', { batchSize: 1000 }, /batch_size is 1000, but must be a whole number from 1 to 500/],
])('%s are refused by both', async (_, options, message) => {
  const input = { ...everything, stages: { a: { kind: 'function', function: 'p-a', ...options } } };
  expect(refusedHere(input)).toContain('stages.a.');
  expect(await refusedThere([input])).toEqual([expect.stringMatching(message)]);
});

it('concurrency beside a batch or workers is refused by both, with the remedy', async () => {
  for (const beside of [{ batchSize: 10 }, { maxWorkers: 2 }]) {
    const input = { ...everything, stages: { a: { kind: 'function', function: 'p-a', concurrency: 20, ...beside } } };
    expect(refusedHere(input)).toMatch(/stages\.a\.concurrency is 20, but .* keep concurrency/);
    expect(await refusedThere([input])).toEqual([expect.stringMatching(/concurrency is 20, but .* given as well/)]);
  }
});

it('both fill in the same defaults, and what a migration leaves out is what they fill in', async () => {
  const least = { name: 'least', entity: { table: 'public.tomes', projection: 'none' as const } };
  const small = definePipeline({
    ...least,
    stages: { a: { kind: 'function', function: 'p-a' }, b: { kind: 'manual' } },
  });
  for (const pipeline of [small, definePipeline(everything)]) {
    const whole = pipeline.toJson();
    const text = compactText(whole as unknown as DefinitionJson);
    expect(text.split('\n').length).toBeLessThan(8 + (whole.stages as unknown[]).length);
    expect(await engine.value('select millrace.check_definition($1)', [text])).toEqual(whole);
    expect(await engine.value('select millrace.check_definition($1)', [JSON.stringify(whole)])).toEqual(whole);
  }
  const { entity, stages: filled } = small.toJson() as { entity: Row; stages: Row[] };
  expect(entity).toEqual({ table: 'public.tomes', key: 'id', projection: 'none' });
  expect(filled[0]).toMatchObject({ concurrency: 50, lease_seconds: 60, timeout_seconds: 30 });
  expect(filled[0]?.retry).toMatchObject({
    max_attempts: 3,
    backoff: { base_seconds: 5, factor: 2, cap_seconds: 300 },
  });
});
