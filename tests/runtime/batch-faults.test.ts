import { spawn } from 'node:child_process';
import { describe, expect, onTestFinished } from 'vitest';
import type { Plan } from '../../local/services/batches/batch-jobs.ts';
import type { Action, Fault } from '../../local/services/batches/server.ts';
import { type Engine, test } from '../support/engine.ts';
import { onWorker } from '../support/runtime/batch-main.ts';
import { BatchSite, type SiteOptions } from '../support/runtime/batches.ts';
import { bundledProgram } from '../support/runtime/bundled-program.ts';
import { ended } from '../support/runtime/worker-process.ts';

const ROWS = 40;
const apis = ['responses', 'messages'] as const;
const allDone = [{ status: 'completed', error: null, rows: ROWS }];
/** The plan of the first batch; all later ones go well. */
const first = (plan: Plan) => (_: unknown, at: number) => (at === 0 ? plan : {});
/** The fault of the first so many calls of a kind. */
const failing =
  (wanted: Action, fault: Fault, times = 1) =>
  (action: Action, at: number) =>
    action === wanted && at < times ? fault : undefined;

async function play(engine: Engine, options: SiteOptions, rows = ROWS): Promise<BatchSite> {
  const site = await new BatchSite(engine).start(options);
  await engine.queued('judge', rows);
  await site.untilDone();
  return site;
}

const answered = (site: BatchSite) =>
  site.engine.value(`select count(*)::int from public.model_batch_lines where answer ->> 'body' is not null`);

/** No question was paid for twice, in a batch or directly. */
function expectThrift(site: BatchSite): void {
  expect(site.twice()).toEqual([]);
}

describe.each(apis)('a batch of the API %s', (api) => {
  test('whose worker is killed after it began is found, not bought again', async ({ engine }) => {
    const killed: { kill(): void }[] = [];
    const worked = async (action: Action, at: number) => {
      if (action === 'begin' && at === 0) for (const worker of killed) worker.kill();
    };
    const site = await new BatchSite(engine).start({ api, worked, definition: onWorker });
    await engine.queued('judge', ROWS);
    const [judge] = site.stages;
    await site.round(judge ? [judge] : []);
    await engine.advance('301 seconds');
    await engine.sweepAll();
    const program = await bundledProgram('tests/support/runtime/batch-main.ts');
    const { PATH } = process.env;
    const worker = spawn(process.execPath, [program], {
      env: { PATH, ...site.env } as NodeJS.ProcessEnv,
      stdio: 'ignore',
    });
    onTestFinished(() => void worker.kill('SIGKILL'));
    killed.push({ kill: () => worker.kill('SIGKILL') });
    expect(await ended(worker)).toBe('SIGKILL');
    expect(site.provider.jobs.batches).toHaveLength(1);
    await engine.advance('61 seconds');
    await engine.sweepAll();
    await site.untilDone();
    expect(await site.outcomes()).toEqual(allDone);
    expect(site.provider.jobs.batches).toHaveLength(1);
    expectThrift(site);
  });

  test('whose answer is lost is found by listing', async ({ engine }) => {
    const site = await play(engine, { api, fault: failing('begin', 'lost') });
    expect(await site.outcomes()).toEqual(allDone);
    expect(site.provider.jobs.batches).toHaveLength(1);
    expect(site.provider.calls.list).toBeGreaterThan(0);
    expectThrift(site);
  });

  test.for(['upload', 'begin', 'list', 'poll', 'results'] as const)(
    'goes on after 429 and 500 at the call %s',
    async (action, { engine }) => {
      const fault = (called: Action, at: number) => {
        // The list is asked for after a lost answer alone.
        if (action === 'list' && called === 'begin' && at === 0) return 'lost' as const;
        if (called === action && at < 4) return { status: at % 2 === 0 ? 429 : 500 };
        return undefined;
      };
      const site = await play(engine, { api, fault });
      expect(await site.outcomes()).toEqual(allDone);
      expect(site.provider.jobs.batches).toHaveLength(1);
      expectThrift(site);
    },
  );

  test('that expires in part keeps its answers, and the rest joins another', async ({ engine }) => {
    const site = await play(engine, { api, plan: first({ end: 'expired', answered: 25 }) });
    expect(await site.outcomes()).toEqual(allDone);
    expect(site.provider.jobs.batches.map(({ lines }) => lines.length)).toEqual([15, 25 + 15]);
    expect(site.provider.jobs.bought.size).toBe(ROWS);
    expectThrift(site);
  });

  test('that somebody cancels at the provider leaves the rest to another', async ({ engine }) => {
    const site = await play(engine, { api, plan: first({ end: 'cancelled', answered: 10 }) });
    expect(await site.outcomes()).toEqual(allDone);
    expect(site.provider.jobs.batches).toHaveLength(2);
    expectThrift(site);
  });

  test('is cancelled at the deadline, and what is left is asked directly', async ({ engine }) => {
    const terms = { within: '1h', fallback: 'direct' } as const;
    const site = await play(engine, { api, price: terms, plan: first({ end: 'running', answered: 30 }) });
    expect(await site.outcomes()).toEqual(allDone);
    expect(site.provider.calls).toMatchObject({ cancel: 1, direct: 10, begin: 1 });
    expectThrift(site);
  });

  test('gives a row the error of its line, and its neighbours their answers', async ({ engine }) => {
    const code = api === 'messages' ? 'invalid_request_error' : 'context_length_exceeded';
    const message = 'prompt is too long';
    const errorOf = (body: object) =>
      JSON.stringify(body).includes('item 7"') ? { status: 400, code, message } : undefined;
    const site = await play(engine, { api, plan: () => ({ errorOf }) });
    expect(await site.outcomes()).toMatchObject([
      { status: 'completed', rows: ROWS - 1 },
      { status: 'failed', error: expect.stringContaining('The question is longer'), rows: 1 },
    ]);
    expectThrift(site);
  });

  test('takes results in any order, twice, truncated and of strangers, each row once', async ({ engine }) => {
    const results = (lines: string[]) => {
      const stranger = (lines[0] ?? '').replace(/"custom_id":"[^"]+"/, '"custom_id":"someone-else"');
      return [...lines.slice(0, 5), stranger, ...lines.toReversed()];
    };
    const site = await play(engine, { api, plan: () => ({ results }), fault: failing('results', 'cut') });
    expect(await site.outcomes()).toEqual(allDone);
    expect(await answered(site)).toBe(ROWS);
    expect(site.provider.calls.results).toBe(2);
    expectThrift(site);
  });

  test('asks nothing for a run that was cancelled before, and drops the answer of a later one', async ({ engine }) => {
    const site = await new BatchSite(engine).start({ api });
    const [early, late] = await engine.queued('judge', ROWS);
    const cancel = async (id: string | undefined) =>
      engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
    await site.round(site.stages.slice(0, 1));
    await cancel(early);
    await engine.advance('301 seconds');
    await site.round();
    await site.round(site.stages.slice(1, 2));
    await cancel(late);
    await site.untilDone();
    expect(await site.outcomes()).toMatchObject([
      { status: 'completed', rows: ROWS - 2 },
      { status: 'failed', rows: 2 },
    ]);
    expect(site.provider.jobs.bought.size).toBe(ROWS - 1);
    const paid = await engine.value(
      `select count(*)::int from public.model_batch_lines where usage ->> 'cost_usd' is not null`,
    );
    expect(paid).toBe(ROWS - 1);
    expectThrift(site);
  });
});

test('a file that two lines make invalid begins again without them', async ({ engine }) => {
  const site = await play(engine, { plan: first({ invalid: [3, 8] }) });
  expect(await site.outcomes()).toMatchObject([
    { status: 'completed', rows: ROWS - 2 },
    { status: 'failed', error: expect.stringContaining('rejected the request'), rows: 1 },
    { status: 'failed', error: expect.stringContaining('rejected the request'), rows: 1 },
  ]);
  expect(site.provider.jobs.batches.map(({ lines }) => lines.length)).toEqual([ROWS - 2, ROWS]);
  expectThrift(site);
});

test('a row whose wait ends early goes on waiting for its live batch', async ({ engine }) => {
  const site = await new BatchSite(engine).start({ plan: () => ({ polls: 3 }) });
  await engine.queued('judge', ROWS);
  await site.round();
  await engine.advance('301 seconds');
  await site.round();
  await engine.sql.query(
    `update millrace.attempts set deadline_at = millrace.now() where state = 'waiting' and service = 'llm-batch'`,
  );
  await engine.sweepAll();
  await site.untilDone();
  expect(await site.outcomes()).toEqual(allDone);
  expect(site.provider.jobs.batches).toHaveLength(1);
  expectThrift(site);
});
