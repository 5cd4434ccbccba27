// The graph that definePipeline() makes of conditions, thresholds, children, decisions, agents and limits, and what it refuses.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { PipelineInput, StageInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { defineStage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { checked, definitionOf } from '../support/definitions.ts';
import { test as engineTest, type Row } from '../support/engine.ts';

const worked = {
  function: 'p-a',
  batchSize: 5,
  maxWorkers: 1,
  leaseSeconds: 30,
  timeoutSeconds: 10,
  retry: { maxAttempts: 3, backoff: { kind: 'list' as const, seconds: [1, 2] } },
};
const plain = { kind: 'function' as const, ...worked };
const split = { kind: 'map' as const, ...worked, child: { pipeline: 'leaves', insert: 'public.insert_leaves' } };
const entity = { table: 'public.tomes', key: 'id', projection: 'none' as const };
const define = (stages: Record<string, unknown>) =>
  checked({ name: 'book', entity, stages: stages as PipelineInput['stages'] });
const jsonOf = (stages: Record<string, StageInput>) =>
  Object.fromEntries(
    (definitionOf(define(stages)).stages as { name: string }[]).map(({ name, ...options }) => [name, options]),
  );

const verdict = z.strictObject({
  keepAll: z.boolean(),
  reason: z.enum(['clear', 'unclear']).optional(),
  pageNumbers: z.array(z.int()).max(10),
});

/** Every option there is. */
const everything: Record<string, StageInput> = {
  split: {
    ...split,
    fanIn: { failedChildren: 'ignore', deadlineSeconds: 3600 },
    limits: {
      maxInFlight: 3,
      rate: { count: 10, perSeconds: 0.5, burst: 20 },
      concurrency: { column: 'source_url', part: 'host', limit: 2 },
      backPressure: { stage: 'assemble', backlog: 100 },
    },
    slaSeconds: 3600,
  },
  metadata: {
    ...plain,
    after: [{ map: 'split', stage: 'blend', count: 20 }],
    onFailure: 'continue',
    slaSeconds: 60,
  },
  outline: {
    kind: 'pipeline',
    child: { pipeline: 'outline' },
    after: [{ map: 'split', stage: 'blend', consecutive: 10 }],
    slaSeconds: 31_536_000,
  },
  find: {
    kind: 'agent',
    ...worked,
    agent: { maxTurns: 9, maxTokens: 5000, maxCostUsd: 0.5, maxSeconds: 60, debug: true },
    slaSeconds: 1,
  },
  analysis: { ...plain, after: [{ map: 'split', stage: 'blend', all: true }] },
  review: {
    kind: 'manual',
    needs: ['analysis', 'metadata'],
    when: '$.needs.analysis.confidence < 0.6',
    otherwise: 'skip',
    decision: { schema: verdict, deadlineSeconds: 86_400 },
    slaSeconds: 7200,
  },
  assemble: {
    ...plain,
    needs: ['split', 'review', 'outline', 'find'],
    when: '$.entity.kind != "note"',
    otherwise: 'skip_dependents',
  },
};

describe('patterns are written in the keys the database reads', () => {
  test('of a map: its children, its fan-in rule and its limits', () => {
    expect(jsonOf(everything).split).toMatchObject({
      kind: 'map',
      child: { pipeline: 'leaves', insert: 'public.insert_leaves' },
      fan_in: { failed_children: 'ignore', deadline_seconds: 3600 },
      limits: {
        max_in_flight: 3,
        rate: { count: 10, per_seconds: 0.5, burst: 20 },
        concurrency: { column: 'source_url', part: 'host', limit: 2 },
        back_pressure: { stage: 'assemble', backlog: 100 },
      },
    });
  });

  test('of graphs: conditions, thresholds, failure policy', () => {
    const { metadata, outline: toc, analysis, assemble } = jsonOf(everything);
    expect(metadata).toMatchObject({ after: [{ map: 'split', stage: 'blend', count: 20 }], on_failure: 'continue' });
    expect(toc).toMatchObject({ after: [{ map: 'split', stage: 'blend', consecutive: 10 }] });
    expect(analysis).toMatchObject({ after: [{ map: 'split', stage: 'blend', all: true }] });
    expect(assemble).toMatchObject({ when: '$.entity.kind != "note"', otherwise: 'skip_dependents' });
  });

  test('of an agent: its limits', () => {
    const agent = { max_turns: 9, max_tokens: 5000, max_cost_usd: 0.5, max_seconds: 60, debug: true };
    expect(jsonOf(everything).find).toMatchObject({ kind: 'agent', agent });
  });

  test('of every kind of stage: how long it should take', () => {
    const bounds = Object.entries(jsonOf(everything)).map(([name, stage]) => [name, (stage as Row).sla_seconds]);
    expect(Object.fromEntries(bounds)).toEqual({
      split: 3600,
      metadata: 60,
      outline: 31_536_000,
      find: 1,
      analysis: undefined,
      review: 7200,
      assemble: undefined,
    });
  });

  test('a stage that no function runs says nothing of functions', () => {
    expect(jsonOf({ outline: { kind: 'pipeline', child: { pipeline: 'outline' } } }).outline).toEqual({
      kind: 'pipeline',
      needs: [],
      child: { pipeline: 'outline' },
      result_limit_bytes: 1_048_576,
    });
  });

  test('a decision’s schema may be zod, and keeps the names of what people send', () => {
    const { review } = jsonOf(everything) as { review: { decision: { schema: object; deadline_seconds: number } } };
    expect(review.decision.deadline_seconds).toBe(86_400);
    expect(review.decision.schema).toMatchObject({
      type: 'object',
      properties: {
        keepAll: { type: 'boolean' },
        reason: { enum: ['clear', 'unclear'] },
        pageNumbers: { maxItems: 10 },
      },
      required: ['keepAll', 'pageNumbers'],
      additionalProperties: false,
    });
    const schema = { type: 'object', properties: { keepAll: { type: 'boolean' } } };
    const given = jsonOf({ review: { kind: 'manual', decision: { schema } } });
    expect(given.review).toHaveProperty('decision.schema', schema);
  });
});

engineTest(
  'the database takes a definition with every option there is, and reads it as it is meant',
  async ({ engine }) => {
    await engine.sql.query(`
    create table public.tomes (id bigint primary key, kind text, source_url text);
    create table public.leaves (id bigint primary key);
    create function public.insert_leaves(p_parent text, p_items jsonb) returns table (item_key text, entity_id text)
    language sql as $$ select p_parent, p_items ->> 0 $$`);
    const child = (name: string, table: string, stages: Record<string, StageInput>) =>
      engine.define(definitionOf(checked({ name, entity: { ...entity, table }, stages })));
    await child('leaves', 'public.leaves', { blend: plain });
    await child('outline', 'public.tomes', { find: plain });
    expect(await engine.define(definitionOf(define(everything)))).toBe(1);
    const stages = await engine.rows(
      `select s.name, s.kind, s.function_name, s.on_failure, v.otherwise, jsonb_array_length(v.after) as thresholds, v.child_pipeline_id is not null as children, extract(epoch from s.sla)::int as bound
     from millrace.stages s join millrace.version_stages v on v.stage_id = s.id join millrace.pipelines p on p.id = s.pipeline_id
     where p.name = 'book' order by s.id`,
    );
    const common = {
      function_name: 'p-a',
      on_failure: 'fail_run',
      otherwise: null,
      thresholds: 0,
      children: false,
      bound: null,
    };
    expect(stages).toEqual([
      { ...common, name: 'split', kind: 'map', children: true, bound: 3600 },
      { ...common, name: 'metadata', kind: 'function', on_failure: 'continue', thresholds: 1, bound: 60 },
      {
        ...common,
        name: 'outline',
        kind: 'pipeline',
        function_name: null,
        thresholds: 1,
        children: true,
        bound: 31_536_000,
      },
      { ...common, name: 'find', kind: 'agent', bound: 1 },
      { ...common, name: 'analysis', kind: 'function', thresholds: 1 },
      { ...common, name: 'review', kind: 'manual', function_name: null, otherwise: 'skip', bound: 7200 },
      { ...common, name: 'assemble', kind: 'function', otherwise: 'skip_dependents' },
    ]);
  },
);

describe('a bad pattern is refused with the field, what was found and the remedy', () => {
  const manual = { kind: 'manual' };
  const awaiting = (threshold: object) => ({ split, a: { ...plain, after: [threshold] } });
  test.each<[string, Record<string, unknown>, RegExp]>([
    ['unknown kind', { a: { ...plain, kind: 'magic' } }, /stages\.a\.kind is "magic"/],
    ['no kind', { a: { ...plain, kind: undefined } }, /stages\.a\.kind is missing/],
    [
      'a function for a person',
      { a: { ...manual, function: 'p-a' } },
      /stages\.a .*option function: "p-a"\. A stage of kind manual takes .*decision/,
    ],
    [
      'a lease for a child run',
      { a: { kind: 'pipeline', child: { pipeline: 'p' }, leaseSeconds: 30 } },
      /leaseSeconds: 30\. A stage of kind pipeline takes/,
    ],
    ['fan-in for a function', { a: { ...plain, fanIn: {} } }, /fanIn: \{\}\. A stage of kind function takes/],
    ['a map without children', { a: { ...split, child: undefined } }, /stages\.a\.child is missing/],
    [
      'an insert function for a child run',
      { a: { kind: 'pipeline', child: { pipeline: 'p', insert: 'a.b' } } },
      /stages\.a\.child has the unknown option insert/,
    ],
    [
      'insert function without schema',
      { a: { ...split, child: { pipeline: 'p', insert: 'f' } } },
      /child\.insert is "f", but must be schema\.function, which takes/,
    ],
    [
      'two rules in a threshold',
      awaiting({ map: 'split', stage: 's', count: 1, all: true }),
      /stages\.a\.after\.0 is .*, but must be a threshold with .* one of count, consecutive and all/,
    ],
    [
      'no rule in a threshold',
      awaiting({ map: 'split', stage: 's' }),
      /stages\.a\.after\.0 is .*, but must be a threshold with .* one of/,
    ],
    ['a threshold of none', awaiting({ map: 'split', stage: 's', count: 0 }), /stages\.a\.after\.0\.count is 0/],
    [
      'a threshold on what is no map',
      { b: plain, a: { ...plain, after: [{ map: 'b', stage: 's', count: 1 }] } },
      /stages\.a\.after\.0\.map names b, which is of kind function: name a stage of kind map/,
    ],
    [
      'a threshold on nothing',
      awaiting({ map: 'splitt', stage: 's', count: 1 }),
      /after\.0\.map names splitt, which pipeline book does not have/,
    ],
    [
      'a cycle of needs and thresholds',
      { split: { ...split, needs: ['a'] }, a: { ...plain, after: [{ map: 'split', stage: 's', all: true }] } },
      /cycle: split → a → split.*needs or thresholds/,
    ],
    [
      'a condition on what it does not need',
      { b: plain, a: { ...plain, when: '$.needs.b.pages > 2' } },
      /stages\.a\.when asks for the result of b.*add it/,
    ],
    [
      'a condition on what it does not need, in another spelling',
      { b: plain, a: { ...plain, when: 'exists($ . "needs" /* of */ . "\\u0062".pages)' } },
      /stages\.a\.when asks for the result of b.*add it/,
    ],
    [
      'a condition with a name in brackets',
      { b: plain, a: { ...plain, needs: ['b'], when: '$.needs[ "b"].pages > 2' } },
      /stages\.a\.when has the name "b" in brackets.*put a dot before it/,
    ],
    [
      'a condition on neither entity nor needs',
      { a: { ...plain, when: '$.row.pages > 2' } },
      /stages\.a\.when asks for \$\.row: begin each path with \$\.entity or \$\.needs/,
    ],
    [
      'two runs of one pipeline side by side',
      {
        a: { kind: 'pipeline', child: { pipeline: 'p' } },
        b: { kind: 'pipeline', child: { pipeline: 'p' }, when: '$.entity.id > 1' },
      },
      /stages\.a\.child\.pipeline is p, which b beside it starts too.*let one of them need the other/,
    ],
    [
      'otherwise without a condition',
      { a: { ...plain, otherwise: 'skip' } },
      /stages\.a\.otherwise is skip, but there is no when/,
    ],
    ['a need twice', { b: plain, a: { ...plain, needs: ['b', 'b'] } }, /stages\.a\.needs names b twice/],
    ['a failure policy there is not', { a: { ...plain, onFailure: 'ignore' } }, /stages\.a\.onFailure is "ignore"/],
    [
      'a fan-in rule there is not',
      { a: { ...split, fanIn: { rule: 'share' } } },
      /stages\.a\.fanIn has the unknown option rule/,
    ],
    ['a bound of no time', { a: { ...plain, slaSeconds: 0 } }, /stages\.a\.slaSeconds is 0/],
    ['a bound of years', { a: { ...manual, slaSeconds: 31_536_001 } }, /stages\.a\.slaSeconds is 31536001/],
    ['a bound in words', { a: { ...split, slaSeconds: '10m' } }, /stages\.a\.slaSeconds is "10m"/],
    [
      'no limit',
      { a: { ...plain, limits: {} } },
      /stages\.a\.limits is \{\}, but must be an object with at least one limit/,
    ],
    [
      'back-pressure by an earlier stage',
      { b: plain, a: { ...plain, needs: ['b'], limits: { backPressure: { stage: 'b', backlog: 1 } } } },
      /backPressure\.stage is "b", but must be a stage that comes after this one/,
    ],
    [
      'a list of back-pressure with an earlier stage',
      {
        b: plain,
        a: { ...plain, needs: ['b'], limits: { backPressure: [{ stage: 'b', backlog: 1 }] } },
        c: { ...plain, needs: ['a'] },
      },
      /backPressure\.0\.stage is "b", but must be a stage that comes after this one/,
    ],
    [
      'back-pressure by one stage twice',
      {
        a: {
          ...plain,
          limits: {
            backPressure: [
              { stage: 'b', backlog: 1 },
              { stage: 'b', backlog: 2 },
            ],
          },
        },
        b: { ...plain, needs: ['a'] },
      },
      /backPressure\.1\.stage is "b", but must be a stage that is named once\. Leave the one with the larger backlog out/,
    ],
    [
      'a list of back-pressure without a backlog',
      { a: { ...plain, limits: { backPressure: [{ stage: 'b' }] } }, b: { ...plain, needs: ['a'] } },
      /stages\.a\.limits\.backPressure\.0\.backlog is missing/,
    ],
    [
      'back-pressure by a backlog of 0',
      { a: { ...plain, limits: { backPressure: { stage: 'b', backlog: 0 } } }, b: { ...plain, needs: ['a'] } },
      /stages\.a\.limits\.backPressure\.backlog is 0/,
    ],
    [
      'a gate with places in flight',
      { a: { kind: 'gate', limits: { maxInFlight: 3 } } },
      /stages\.a\.limits has the unknown option maxInFlight: 3/,
    ],
    [
      'a gate with a function',
      { a: { kind: 'gate', function: 'book-a' } },
      /stages\.a has the unknown option function: "book-a"\. A stage of kind gate takes kind, needs, .*limits/,
    ],
    [
      'a schema that is none',
      { a: { ...manual, decision: { schema: 'yes' } } },
      /decision\.schema is "yes", but must be a zod schema or a JSON schema/,
    ],
    [
      'a keyword nobody checks',
      { a: { ...manual, decision: { schema: { properties: { b: { items: { oneOf: [] } } } } } } },
      /decision\.schema\.properties\.b\.items\.oneOf: is not checked/,
    ],
    [
      'a zod type JSON has not',
      { a: { ...manual, decision: { schema: z.object({ at: z.date() }) } } },
      /decision\.schema: .*[Dd]ate/,
    ],
    [
      'a zod type the database cannot check',
      { a: { ...manual, decision: { schema: z.record(z.string(), z.int()) } } },
      /decision\.schema\.(propertyNames|additionalProperties): is not checked/,
    ],
  ])('%s', (_, stages, expected) => {
    expect(() => define(stages)).toThrow(expected);
  });

  test('runs of one pipeline that follow one another, or are alternatives, are none', () => {
    const inner = { kind: 'pipeline', child: { pipeline: 'p' } };
    const stages = {
      a: { ...inner, when: '$.entity.id > 1' },
      b: { ...inner, when: '$.entity.id <= 1' },
      c: { ...plain, needs: ['a', 'b'] },
      d: { ...inner, needs: ['c'] },
    };
    expect(() => define(stages)).not.toThrow();
  });

  test.each([
    '$.needs.b.pages > 2 && $.entity."malformed name".size() > 0.5',
    '$.entity.label == "$.needs.c [" || exists($.needs.*.pages)',
    '$.needs.keyvalue().value.pages > 1 && $.needs.b[0].pages == 1',
  ])('a condition on its needs and its row is none: %s', (when) => {
    expect(() => define({ b: plain, a: { ...plain, needs: ['b'], when } })).not.toThrow();
  });

  test('a stage of another pipeline holds none back', () => {
    expect(() => define({ a: { ...plain, limits: { backPressure: { stage: 'leaves.blend', backlog: 1 } } } })).toThrow(
      /"leaves\.blend", but must be the name of a later stage/,
    );
  });

  test('code for a stage that has none', () => {
    const pipeline = define({ review: { kind: 'manual' } });
    const options = { pipeline, stage: 'review', input: z.unknown(), output: z.unknown(), handler: () => null };
    expect(() => defineStage(options)).toThrow(/review of pipeline book is of kind manual, which has no code/);
  });
});
