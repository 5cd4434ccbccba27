// TypeScript and the database take the same shared limits.

import { expect } from 'vitest';
import { compileSharedLimits } from '../../../supabase/functions/_millrace/compile/compile-shared-limits.ts';
import { snakeKeys } from '../../../supabase/functions/_millrace/compile/snake-keys.ts';
import { defineSharedLimits } from '../../../supabase/functions/_millrace/define/define-shared-limits.ts';
import type { SharedLimitsInput } from '../../../supabase/functions/_millrace/define/definition-schema.ts';
import { checked } from '../../support/definitions.ts';
import { test } from '../../support/engine/shared-limits.ts';

const rate = { count: 60, perSeconds: 60 };
const taken: unknown[] = [
  { rate },
  { rate: { ...rate, burst: 5 } },
  { maxInFlight: 10_000 },
  { spending: { usd: 0.01, perSeconds: 1 } },
  { spending: { tokens: 1_000_000, perSeconds: 86_400 } },
  { rate, maxInFlight: 1, spending: { usd: 5, tokens: 1, perSeconds: 2_678_400 } },
];
const refused: unknown[] = [
  {},
  null,
  5,
  { rate: { count: 0, perSeconds: 60 } },
  { rate: { count: 60 } },
  { rate: { count: 1.5, perSeconds: 60 } },
  { maxInFlight: 0 },
  { maxInFlight: 10_001 },
  { maxInFlight: '5' },
  { spending: { perSeconds: 60 } },
  { spending: { usd: 5 } },
  { spending: { usd: 0, perSeconds: 60 } },
  { spending: { usd: 5, perSeconds: 0 } },
  { spending: { tokens: 0, perSeconds: 60 } },
  { concurrency: { column: 'url', limit: 2 } },
  { shared: ['model'] },
  { rate, burst: 5 },
];

test('the database takes and refuses the same shared limits as TypeScript', async ({ engine }) => {
  const here = (limit: unknown) => {
    try {
      compileSharedLimits(defineSharedLimits({ model: limit } as SharedLimitsInput));
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const there = (limit: unknown) =>
    engine.rows('select millrace.define_limit($1, $2)', ['model', JSON.stringify(snakeKeys(limit))]).then(
      () => null,
      (error: Error) => error.message,
    );
  for (const limit of taken) expect([limit, here(limit), await there(limit)]).toEqual([limit, null, null]);
  for (const limit of refused) {
    expect([limit, here(limit)]).toEqual([limit, expect.stringContaining('Shared limits are not defined correctly. ')]);
    expect([limit, await there(limit)]).toEqual([limit, expect.stringContaining('shared limit model: limits')]);
  }
});

test('errors name the field, what was found, and the remedy', () => {
  const message = (input: unknown) => {
    try {
      compileSharedLimits(defineSharedLimits(input as SharedLimitsInput));
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(message({ scrapes: { rate: { count: 0, perSeconds: 60 } } })).toMatch(
    /scrapes\.rate\.count is 0, but must be a whole number from 1 to/,
  );
  expect(message({ scrapes: { burst: 5 } })).toMatch(/scrapes has the unknown option burst: 5\. Correct the name/);
  expect(message({ 'The Model': { rate } })).toMatch(/The Model/);
  const limits = { shared: ['model', 'model'] };
  const worked = {
    kind: 'function' as const,
    function: 'p-a',
    batchSize: 1,
    maxWorkers: 1,
    leaseSeconds: 60,
    timeoutSeconds: 30,
  };
  const entity = { table: 'public.items', key: 'id', projection: 'none' as const };
  expect(() => checked({ name: 'p', entity, stages: { a: { ...worked, limits, retry: { maxAttempts: 1 } } } })).toThrow(
    'stages.a.limits.shared names model twice: name it once.',
  );
});

test('a limit of any name is written in the database’s spelling', () => {
  expect(
    compileSharedLimits(
      defineSharedLimits({ schema: { maxInFlight: 5 }, values: { spending: { usd: 1, perSeconds: 60 } } }),
    ),
  ).toEqual({
    schema: { max_in_flight: 5 },
    values: { spending: { usd: 1, per_seconds: 60 } },
  });
});
