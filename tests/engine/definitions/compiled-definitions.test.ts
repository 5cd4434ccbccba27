// define() takes what the compiler of this release has written, and nothing that somebody has changed since.
import fc from 'fast-check';
import { expect } from 'vitest';
import { canonicalJson } from '../../../supabase/functions/_millrace/compile/canonical-json.ts';
import { compiler, withDigest } from '../../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { compiled } from '../../support/definitions.ts';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';

const remedy = /definePipeline\(\).*millrace sync. of this release/;
const refused = (engine: Engine, definition: unknown) =>
  engine.refusal('select millrace.define($1)', [JSON.stringify(definition)]);

test('a definition that is not compiled is refused with the remedy', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['only']));
  for (const raw of [definition, [definition], 5, null, {}]) {
    expect(await refused(engine, raw)).toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(/^the definition( of pipeline flow)? is not compiled$/),
      hint: expect.stringMatching(remedy),
    });
  }
});

test('a definition that was edited since it was compiled is refused, whatever was edited', async ({ engine }) => {
  const definition = JSON.parse(compiled(await engine.pipeline(chain(['only'])))) as Row & { stages: Row[] };
  const edits: Row[] = [
    { ...definition, stages: definition.stages.map((stage) => ({ ...stage, batch_size: 11 })) },
    { ...definition, more: null },
    { ...definition, digest: 'none' },
    Object.fromEntries(Object.entries(definition).filter(([field]) => field !== 'graph')),
  ];
  for (const edited of edits) {
    expect(await refused(engine, edited)).toMatchObject({
      code: 'MR001',
      message: 'the definition of pipeline flow was changed after it was compiled',
      hint: expect.stringMatching(remedy),
    });
  }
  const ofFlow = "pipeline_id = (select id from millrace.pipelines where name = 'flow')";
  expect(await engine.value(`select batch_size from millrace.stages where ${ofFlow}`)).toBe(10);
});

test('a definition that another compiler wrote is refused, and tells which', async ({ engine }) => {
  const definition = JSON.parse(compiled(await engine.pipeline(chain(['only']))));
  expect(await refused(engine, withDigest({ ...definition, compiler: compiler + 1 }))).toMatchObject({
    code: 'MR001',
    message: `the definition of pipeline flow was compiled by compiler ${compiler + 1}, but this engine takes what compiler ${compiler} writes`,
    hint: expect.stringMatching(remedy),
  });
});

test('the order of fields does not count, since jsonb keeps none', async ({ engine }) => {
  const definition = JSON.parse(compiled(await engine.pipeline(chain(['only']))));
  const reversed = Object.fromEntries(Object.entries(definition).reverse());
  expect(await engine.value('select millrace.define($1)', [JSON.stringify(reversed)])).toBe(1);
});

test('any value is written as Postgres writes it, so that both take the same digest', async ({ engine }) => {
  const text = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((one) => !one.includes('\0'));
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(1e21, 1e-7, 0.1, -0, 1.5e300),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.oneof(text, number, fc.boolean(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(text, tie('value'), { maxKeys: 5 }),
    ),
  }));
  const samples = fc.sample(value, { numRuns: 500, seed: 20261124 });
  const rows = await engine.rows<{ text: string }>(
    'select v.value::text as text from jsonb_array_elements($1) with ordinality v order by v.ordinality',
    [JSON.stringify(samples)],
  );
  expect(samples.map(canonicalJson)).toEqual(rows.map((row) => row.text));
});

/** Copies of a value, each with one of its parts replaced: those for which the replacement is not undefined. */
function* replaced(value: unknown, by: (part: unknown) => unknown, path = ''): Generator<[string, unknown]> {
  const other = by(value);
  if (other !== undefined) yield [path, other];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value)) {
    for (const [inner, changed] of replaced(part, by, path ? `${path}.${key}` : key)) {
      yield [
        inner,
        Array.isArray(value) ? Object.assign([...value], { [key]: changed }) : { ...value, [key]: changed },
      ];
    }
  }
}

/** A definition with a number of each kind. */
const numbers = {
  sla: { median_seconds: 60, p95_seconds: 120 },
  retention: { days: 30 },
  quota: { column: 'label', starts: { count: 5, per_seconds: 60 }, spending: { usd: 2, per_seconds: 60 } },
  alerts: { dead: { kind: 'dead', above: 5, least: 2, for_seconds: 60 } },
  stages: [
    {
      name: 'one',
      retry: { max_attempts: 4, by_code: { timeout: { max_attempts: 2, backoff: { kind: 'list', seconds: [1, 2] } } } },
      limits: {
        max_in_flight: 5,
        rate: { count: 5, per_seconds: 1, burst: 7 },
        concurrency: { column: 'label', limit: 3 },
        back_pressure: { stage: 'two', backlog: 100 },
      },
      sla_seconds: 60,
    },
    { name: 'two', needs: ['one'], retry: { backoff: { kind: 'exponential', factor: 3 } } },
    { name: 'three', needs: ['two'], kind: 'agent', agent: { max_turns: 3, max_cost_usd: 0.00001 } },
  ],
};

test('a signed definition with a word for a number is refused, and the field, the kind and the remedy are named', async ({
  engine,
}) => {
  const { entity } = await engine.pipeline(chain(['only']));
  const definition = JSON.parse(compiled({ pipeline: 'fresh', entity: { ...entity, projection: 'none' }, ...numbers }));
  const { compiler: by, digest: _, graph, ...content } = definition as Row;
  const words = [
    ...replaced(content, (part) => (typeof part === 'number' || /^\d+ s$/.test(String(part)) ? 'many' : undefined)),
  ];
  expect(words.length).toBeGreaterThan(40);
  for (const [path, changed] of words) {
    const field = path.split('.').findLast((key) => !/^\d+$/.test(key));
    expect(await refused(engine, withDigest({ compiler: by, graph, ...(changed as Row) })), path).toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(new RegExp(`: ${field} is .*"many".*, but must be a number$`)),
      hint: expect.stringMatching(remedy),
    });
  }
  expect(await engine.value(`select count(*)::int from millrace.pipelines where name = 'fresh'`)).toBe(0);
  expect(await engine.value('select millrace.define($1)', [JSON.stringify(definition)])).toBe(1);
});
