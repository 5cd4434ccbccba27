import { expect } from 'vitest';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { completed, failed, Worker } from '../../support/worker.ts';

/** Fails the attempt at hand with each error in turn; returns the seconds until each retry, null when there is none. */
async function delays(engine: Engine, retry: Row, errors: Row[]): Promise<(number | null)[]> {
  await engine.pipeline(chain(['one'], { retry }));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const seconds: (number | null)[] = [];
  for (const error of errors) {
    await worker.report(failed(await worker.takeOne(), error));
    const due = await engine.value<number | null>(
      `select extract(epoch from a.queue_at - millrace.now())::float8 from millrace.attempts a where a.state = 'queued'`,
    );
    seconds.push(due ?? null);
    if (due) {
      await engine.advance(`${due - 0.001} seconds`);
      expect(await worker.take()).toEqual([]);
      await engine.advance('2 milliseconds');
    }
  }
  const last = seconds.at(-1) === null ? 'failed' : 'running';
  expect((await engine.run(id)).status).toBe(last);
  return seconds;
}

const times = (count: number, error: Row = {}) => Array<Row>(count).fill(error);
const list = (...seconds: number[]) => ({ kind: 'list', seconds });
const exact = { jitter: 0 };

test('a list of delays is followed in order, its last one repeated, until the attempts are used', async ({
  engine,
}) => {
  expect(await delays(engine, { max_attempts: 5, backoff: list(5, 30) }, times(5))).toEqual([5, 30, 30, 30, null]);
});

test('an exponential backoff grows by its factor up to its cap', async ({ engine }) => {
  const backoff = { kind: 'exponential', base_seconds: 2, factor: 3, cap_seconds: 50, ...exact };
  expect(await delays(engine, { max_attempts: 6, backoff }, times(6))).toEqual([2, 6, 18, 50, 50, null]);
});

test('without a policy there are three attempts, five and ten seconds apart, give or take a fifth', async ({
  engine,
}) => {
  const [first, second, third] = await delays(engine, {}, times(3));
  expect(first).toBeGreaterThanOrEqual(4);
  expect(first).toBeLessThanOrEqual(6);
  expect(second).toBeGreaterThanOrEqual(8);
  expect(second).toBeLessThanOrEqual(12);
  expect(third).toBeNull();
});

test('a wrong setting and a busy service are tried for a day, unless the policy has their code', async ({ engine }) => {
  const delay = async (code: string, retries: number, retry: Row, kind = 'function') => {
    await engine.sql.query('update millrace.stages set retry = $1, kind = $2', [retry, kind]);
    return engine.value<number | null>(
      `select extract(epoch from millrace.retry_due(s.id, $1, $2) - millrace.now())::float8 from millrace.stages s`,
      [{ code }, retries],
    );
  };
  await engine.pipeline(chain(['one']));
  const once = { max_attempts: 1, by_code: { other: {} } };
  for (const code of ['misconfigured', 'rate_limited', 'overloaded']) {
    let total = 0;
    for (let retries = 0; retries < 99; retries += 1) total += (await delay(code, retries, once)) ?? 0;
    expect(total / 3600).toBeGreaterThan(18);
    expect(await delay(code, 99, once)).toBeNull();
    expect(await delay(code, 1, { by_code: { [code]: { max_attempts: 2 } } })).toBeNull();
    expect(await delay(code, 0, { by_code: { [code]: { backoff: list(7) } } })).toBe(7);
    expect(await delay(code, 0, {}, 'manual')).toBeNull();
  }
  expect(await delay('other', 0, once)).toBeNull();
});

test('jitter spreads the retries of a batch', async ({ engine }) => {
  const backoff = { kind: 'exponential', base_seconds: 100, jitter: 0.5 };
  await engine.pipeline(chain(['one'], { retry: { backoff } }));
  await engine.queued('one', 40);
  const worker = await Worker.of(engine, 'one');
  await worker.complete((await worker.take(40)).map((item) => failed(item)));
  const [spread] = await engine.rows<{ least: number; most: number; different: number }>(`
    select min(d) as least, max(d) as most, count(distinct d)::int as different from (
      select extract(epoch from a.queue_at - millrace.now())::float8 as d from millrace.attempts a where a.state = 'queued') x`);
  expect(spread?.least).toBeGreaterThanOrEqual(50);
  expect(spread?.most).toBeLessThanOrEqual(150);
  expect(spread?.different).toBeGreaterThan(30);
});

test('a permanent failure is not tried again', async ({ engine }) => {
  expect(await delays(engine, { max_attempts: 5, backoff: list(1) }, [{}, { permanent: true }])).toEqual([1, null]);
});

test('one attempt means no retry', async ({ engine }) => {
  expect(await delays(engine, { max_attempts: 1 }, [{}])).toEqual([null]);
});

test('a code with a policy of its own follows it, any other code the stage’s', async ({ engine }) => {
  const retry = {
    max_attempts: 2,
    backoff: list(1),
    by_code: { rate_limited: { max_attempts: 4, backoff: list(60) } },
  };
  const errors = [
    { code: 'rate_limited' },
    { code: 'rate_limited' },
    { code: 'rate_limited' },
    { code: 'rate_limited' },
  ];
  expect(await delays(engine, retry, errors)).toEqual([60, 60, 60, null]);
});

test('a code’s policy takes over from the stage’s what it does not say itself', async ({ engine }) => {
  const retry = { max_attempts: 3, backoff: list(7), by_code: { 'http.503': { max_attempts: 2 } } };
  expect(await delays(engine, retry, [{ code: 'http.503' }, { code: 'http.503' }])).toEqual([7, null]);
});

test('the policy of the error at hand decides, whatever failed before', async ({ engine }) => {
  const retry = {
    max_attempts: 2,
    backoff: list(1),
    by_code: { rate_limited: { max_attempts: 4, backoff: list(60) } },
  };
  expect(await delays(engine, retry, [{ code: 'rate_limited' }, { code: 'timeout' }])).toEqual([60, null]);
});

test('Retry-After puts the retry off, never forward, and for a day at most', async ({ engine }) => {
  const retry = { max_attempts: 9, backoff: list(10) };
  const errors = [{ retry_after_ms: 90_500 }, { retry_after_ms: 1 }, { retry_after_ms: -5 }, { retry_after_ms: 1e15 }];
  expect(await delays(engine, retry, errors)).toEqual([90.5, 10, 10, 86_400]);
});

test('a retry is a new row that names its parent, and a success ends the chain', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { retry: { max_attempts: 3, backoff: list(0) } }));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const first = await worker.takeOne();
  const answer = await worker.complete([failed(first)], 1);
  const [second] = answer.batch;
  if (!second) throw new Error('a retry without delay is due at once');
  expect(second).toMatchObject({ retry_count: 1, run: first.run, submission: first.attempt });
  await worker.report(completed(second));
  expect(
    await engine.rows('select number, parent_id, state, retry_count from millrace.timeline($1)', [first.run]),
  ).toEqual([
    { number: 1, parent_id: null, state: 'failed', retry_count: 0 },
    { number: 2, parent_id: String(first.attempt), state: 'completed', retry_count: 1 },
  ]);
  expect(await engine.attempts(id)).toEqual(['one 1 failed', 'one 2 completed']);
});

test('the usage of a failed attempt is kept with it', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { retry: { max_attempts: 2, backoff: list(0) } }));
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const first = await worker.takeOne();
  await worker.report({ ...failed(first), usage: { input_tokens: 10 } });
  await worker.report({ ...completed(await worker.takeOne()), usage: { input_tokens: 12 } });
  expect(await engine.rows('select state, usage from millrace.timeline($1)', [first.run])).toEqual([
    { state: 'failed', usage: { input_tokens: 10 } },
    { state: 'completed', usage: { input_tokens: 12 } },
  ]);
});
