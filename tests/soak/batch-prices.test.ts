// 50,000 rows at batch prices through a provider that fails in every way at once.
import { expect } from 'vitest';
import { type Plan, tokens } from '../../local/services/batches/batch-jobs.ts';
import type { Action, Fault } from '../../local/services/batches/server.ts';
import { test } from '../support/engine.ts';
import { BatchSite, price } from '../support/runtime/batches.ts';

const ROWS = Number(process.env.BATCH_ROWS ?? 50_000);
/** The cost of an answer at the direct price. */
const direct = (tokens.input * price.input + tokens.output * price.output) / 1_000_000;

/** The first call of each kind answers 429, the second 500; the first batch's answer is lost, and its first results are cut. */
function fault(action: Action, at: number): Fault | undefined {
  if (action === 'direct') return undefined;
  if (at < 2) return { status: at === 0 ? 429 : 500 };
  if (action === 'begin' && at === 2) return 'lost';
  return action === 'results' && at === 2 ? 'cut' : undefined;
}

/** Results come in another order, some of them twice, and one is a stranger's. */
const results = (lines: string[]) => {
  const stranger = (lines[0] ?? '').replace(/"custom_id":"[^"]+"/, '"custom_id":"someone-else"');
  return [...lines.slice(0, 100), stranger, ...lines.toReversed()];
};

test.for(['responses', 'messages'] as const)(
  'the API %s sells each answer once, at half the price, whatever it does',
  { timeout: 1_800_000 },
  async (api, { engine }) => {
    // One batch expires when nine tenths of it are done.
    const plan = (_: unknown, at: number): Plan =>
      at === 0 ? { results, end: 'expired', answered: Math.floor(ROWS * 0.9) } : { results };
    const site = await new BatchSite(engine).start({ api, plan, fault });
    const began = Date.now();
    await engine.queued('judge', ROWS);
    await site.untilDone(200);
    const seconds = (Date.now() - began) / 1000;
    expect(await site.outcomes()).toEqual([{ status: 'completed', error: null, rows: ROWS }]);
    expect(site.twice()).toEqual([]);
    expect(site.provider.jobs.bought.size).toBe(ROWS);
    expect((await site.cost()).toFixed(2)).toBe(((ROWS * direct) / 2).toFixed(2));
    expect(site.callsInAll()).toBeLessThanOrEqual(60);
    process.stdout.write(
      `\n${JSON.stringify({ api, rows: ROWS, seconds, calls: site.provider.calls, cost: await site.cost() })}\n`,
    );
  },
);
