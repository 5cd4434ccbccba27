import { expect } from 'vitest';
import { tokens } from '../../local/services/batches/batch-jobs.ts';
import { test } from '../support/engine.ts';
import { BatchSite, price } from '../support/runtime/batches.ts';

/** The cost of an answer at the direct price. */
const direct = (tokens.input * price.input + tokens.output * price.output) / 1_000_000;

// Five hundred with one API, since it takes them ten times as long as fifty.
test.for([
  [500, 'responses'],
  [50, 'chat'],
  [50, 'messages'],
] as const)('%d rows are one batch of the API %s, at half the price to the cent', async ([rows, api], { engine }) => {
  const site = await new BatchSite(engine).start({ api });
  await engine.queued('judge', rows);
  await site.untilDone();
  expect(await site.outcomes()).toEqual([{ status: 'completed', error: null, rows }]);
  expect(await engine.value(`select count(distinct judge_result ->> 'label')::int from public.items`)).toBe(rows);
  expect(site.provider.jobs.batches).toHaveLength(1);
  expect(site.provider.jobs.bought.size).toBe(rows);
  expect(site.twice()).toEqual([]);
  expect(await site.cost()).toBeCloseTo((rows * direct) / 2, 9);
  expect(site.callsInAll()).toBeLessThan(8);
  const usage = await engine.value(`select usage from millrace.attempts where usage is not null limit 1`);
  expect(usage).toMatchObject({ batch: true, prompt: expect.stringMatching(/^judge-1@/) });
});
