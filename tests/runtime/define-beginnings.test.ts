// The graph that definePipeline() makes of stages that rows bring along, that people begin and that end runs, and what it refuses.

import { expect, test } from 'vitest';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { checked, definitionOf } from '../support/definitions.ts';

const define = (stages: Record<string, object>) =>
  checked({
    name: 'papers',
    entity: { table: 'public.papers', key: 'id', projection: 'none' },
    stages: Object.fromEntries(
      Object.entries(stages).map(([name, options]) => [name, { kind: 'manual', ...options }]),
    ) as PipelineInput['stages'],
  });

test('endings are handed over as a list in the order in which they are written, their names as they are', () => {
  const { stages } = definitionOf<{ stages: { ends: unknown }[] }>(
    define({
      score: { ends: { zero_score: '$.result.score == 0', irrelevant: '$.result.score < 0.5' } },
    }),
  );
  expect(stages[0]?.ends).toEqual([
    { name: 'zero_score', when: '$.result.score == 0' },
    { name: 'irrelevant', when: '$.result.score < 0.5' },
  ]);
});

test('given and onDemand are handed over in the spelling of the database', () => {
  const { stages } = definitionOf<{ stages: object[] }>(
    define({
      fetch: { given: '$.entity.text != null' },
      revise: { needs: ['fetch'], onDemand: true },
    }),
  );
  expect(stages).toMatchObject([{ given: '$.entity.text != null' }, { needs: ['fetch'], on_demand: true }]);
});

test('whenSpent is handed over in the spelling of the database', () => {
  const asked = { whenSpent: 'bypass', limits: { shared: ['model'] } };
  const read = { kind: 'function', function: 'papers-read', ...asked };
  const { stages } = definitionOf<{ stages: object[] }>(define({ read }));
  expect(stages).toMatchObject([{ when_spent: 'bypass' }]);
});

test.for<[string, Record<string, object>, RegExp]>([
  [
    'another word for a budget that is spent',
    { a: { kind: 'function', function: 'papers-a', whenSpent: 'skip' } },
    /stages\.a\.whenSpent/,
  ],
  [
    'a stage without a budget that is to be left out once it is spent',
    { a: { kind: 'function', function: 'papers-a', whenSpent: 'bypass' } },
    /stages\.a\.whenSpent is bypass, but limits\.shared names no limit with a budget: name one, or leave it out\./,
  ],
  [
    'an ending that asks for the results of other stages',
    { a: { ends: { done: '$.needs.b == 1' } } },
    /stages\.a\.ends\.done asks for \$\.needs: begin each path with \$\.entity or \$\.result\./,
  ],
  [
    'a row that is to bring along what no row has',
    { a: { given: '$.result.x == 1' } },
    /stages\.a\.given asks for \$\.result: begin each path with \$\.entity\./,
  ],
  ['endings without a name', { a: { ends: {} } }, /stages\.a\.ends: needs at least one name/],
  ['an ending whose name is no name', { a: { ends: { 'Not so': '$.result == 1' } } }, /stages\.a\.ends/],
  [
    'a condition beside onDemand',
    { a: {}, b: { needs: ['a'], onDemand: true, when: '$.entity.x == 1' } },
    /stages\.b\.when stands beside onDemand, but a start by name overrules a stage's own conditions: remove one\./,
  ],
  [
    'a pipeline that nothing begins by itself',
    { a: { onDemand: true }, b: { needs: ['a'] } },
    /stages\.a\.onDemand leaves no stage with which a run begins by itself: let one do without it\./,
  ],
])('%s is refused', ([, stages, message]) => {
  expect(() => define(stages)).toThrow(message);
});
