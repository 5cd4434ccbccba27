// Figures: what happened, counted once as it happens, and read without the attempts.
import { expect } from 'vitest';
import { chain, type Engine, test } from '../support/engine.ts';
import { type Claimed, completed, failed, Worker } from '../support/worker.ts';

const sweep = (engine: Engine) => engine.sql.query('select millrace.sweep()');

/** Works off everything that is ready at a stage, each item as `say` says of it. */
async function work(engine: Engine, stage: string, say: (item: Claimed, place: number) => object): Promise<void> {
  const worker = await Worker.of(engine, stage);
  await worker.complete((await worker.take(50)).map((item, place) => say(item, place) as never));
  await worker.leave();
}

const hour = `date_trunc('hour', millrace.now(), 'UTC')`;

async function figures(engine: Engine, stage: string | null = null): Promise<Record<string, unknown>> {
  const [row] = await engine.rows(
    `select * from millrace.figures('flow', $1, ${hour} - interval '1 day', ${hour} + interval '1 day')`,
    [stage],
  );
  return row ?? {};
}

test('a batch of completions is one pulse, which the sweep adds to minute, hour and total', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first', 8);
  await engine.advance('2 seconds');
  const worker = await Worker.of(engine, 'first');
  const items = await worker.take(8);
  await engine.advance('20 seconds');
  await worker.complete(items.map((item) => ({ ...completed(item), usage: { cost_usd: 0.25, input_tokens: 100 } })));
  expect(await engine.rows('select outcome, n, run_ms, wait_ms, cost_usd, input_tokens from millrace.pulses')).toEqual([
    {
      outcome: 'completed',
      n: 8,
      run_ms: Array(8).fill(20_000),
      wait_ms: Array(8).fill(2_000),
      cost_usd: '2.00',
      input_tokens: '800',
    },
  ]);
  await sweep(engine);
  expect(await engine.value('select count(*)::int from millrace.pulses')).toBe(0);
  for (const table of ['minutes', 'hours', 'totals']) {
    expect(
      await engine.rows(`select completed::int, r7::int, w5::int, cost_usd::float8 from millrace.${table}`),
    ).toEqual([{ completed: 8, r7: 8, w5: 8, cost_usd: 2 }]);
  }
  expect(await figures(engine, 'first')).toMatchObject({ completed: '8', run_p50_ms: expect.closeTo(17320, -2) });
});

test('failures are counted by what follows and by code', async ({ engine }) => {
  await engine.pipeline(chain(['first'], { retry: { max_attempts: 2 } }));
  await engine.queued('first', 3);
  await work(engine, 'first', (item, place) =>
    place === 0 ? failed(item, { code: 'gone', permanent: true }) : failed(item, { code: 'http_503' }),
  );
  await sweep(engine);
  expect(await figures(engine, 'first')).toMatchObject({
    failed: '1',
    retried: '2',
    completed: '0',
    codes: { gone: 1, http_503: 2 },
  });
  expect(await figures(engine)).toMatchObject({ failed: '1', completed: '0' });
});
