// 50,000 rows at batch prices through a provider that fails in every way at once.
import { expect } from 'vitest';
import { type Batch, type Plan, tokens } from '../../local/services/batches/batch-jobs.ts';
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

/** The first line with an error of its row in the place of the answer. */
function refused(line: string): string {
  const error = { type: 'invalid_request_error', message: 'refused' };
  const response = { status_code: 400, body: { error } };
  return JSON.stringify({ ...JSON.parse(line), response, result: { type: 'errored', error } });
}

/**
 * Results come in another order, some of them twice, one is a stranger's, one line has five million characters, and an error stands
 * before one row's answer. One answer names 1e15 tokens. The first three readings lack fifty lines.
 */
function oddResults(): (lines: string[]) => string[] {
  let readings = 0;
  return (lines) => {
    readings += 1;
    const [first = ''] = lines;
    const stranger = first.replace(/"custom_id":"[^"]+"/, '"custom_id":"someone-else"');
    const dear = first.replace(/"input_tokens":\d+/, '"input_tokens":1e15');
    const others = lines.slice(readings > 3 ? 1 : 51).toReversed();
    return ['x'.repeat(5_000_000), stranger, refused(first), dear, ...lines.slice(100, 200), ...others];
  };
}

test.for(['responses', 'messages'] as const)(
  'the API %s sells each answer once, at half the price, whatever it does',
  { timeout: 1_800_000 },
  async (api, { engine }) => {
    // One batch expires when nine tenths of it are done.
    const plan = (_: unknown, at: number): Plan => {
      const results = oddResults();
      return at === 0 ? { results, end: 'expired', answered: Math.floor(ROWS * 0.9) } : { results };
    };
    const hidden: Batch[] = [];
    // The list lacks the batch whose answer is lost for 25 minutes. The provider drops all keys.
    const worked = (action: Action, at: number) => {
      const { batches } = site.provider.jobs;
      for (const batch of batches) batch.metadata = {};
      if (action === 'begin' && at === 2) hidden.push(...batches.splice(0));
    };
    const now = async () => {
      const time = Date.parse(await engine.value('select to_jsonb(millrace.now())'));
      const [batch] = hidden;
      if (batch && time - batch.createdAt > 25 * 60_000) site.provider.jobs.batches.push(...hidden.splice(0));
      return time;
    };
    // The second batch is first answered with the id of the first, and says in the end that it failed.
    const answered = (action: Action, at: number, body: unknown) => {
      const [, first] = site.provider.jobs.batches;
      if (action === 'begin' && at === 3 && first) return { ...(body as object), id: first.id };
      const { status } = body as { status?: string };
      return action === 'poll' && status === 'completed' ? { ...(body as object), status: 'failed' } : body;
    };
    const site: BatchSite = await new BatchSite(engine).start({ api, plan, fault, worked, answered, now });
    const began = Date.now();
    await engine.queued('judge', ROWS);
    await site.untilDone(200);
    const seconds = (Date.now() - began) / 1000;
    expect(await site.outcomes()).toEqual([{ status: 'completed', error: null, rows: ROWS }]);
    expect(site.twice()).toEqual([]);
    expect(site.provider.jobs.bought.size).toBe(ROWS);
    const unreported = `select count(*)::int from millrace.attempts where usage ? 'unreported'`;
    const unknown = await engine.value<number>(unreported);
    // Each of the two batches has one.
    expect(unknown).toBe(2);
    expect((await site.cost()).toFixed(6)).toBe((((ROWS - unknown) * direct) / 2).toFixed(6));
    expect(site.callsInAll()).toBeLessThanOrEqual(60);
    process.stdout.write(
      `\n${JSON.stringify({ api, rows: ROWS, seconds, calls: site.provider.calls, cost: await site.cost() })}\n`,
    );
  },
);
