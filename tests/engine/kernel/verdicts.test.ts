import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { chain, type Engine, each, type Row, test } from '../../support/engine.ts';
import { completed, failed, released, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const external = { kind: 'external', completion: { callback: true } };

/** Brings one attempt of stage `one` into a state; returns its worker and what the worker holds of it. */
async function attemptIn(engine: Engine, state: string) {
  await engine.pipeline(chain(['one', 'two'], { ...external, retry: { max_attempts: 1 } }));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  const reports: Record<string, Row> = {
    completed: completed(held),
    failed: failed(held),
    waiting: waiting(held, 'job-1'),
    queued: released(held),
  };
  if (reports[state]) await worker.report(reports[state]);
  if (state === 'cancelled') await engine.sql.query('select millrace.cancel($1)', [held.run]);
  if (state === 'deleted') await engine.sql.query('delete from public.items');
  return { id, worker, held };
}

// The verdict for a worker whose attempt was taken, by the state it finds and the outcome it reports.
const table: [string, Record<string, string>][] = [
  ['started', { completed: 'accepted', failed: 'accepted', waiting: 'accepted', released: 'accepted' }],
  ['waiting', { completed: 'stale', failed: 'stale', waiting: 'duplicate', released: 'stale' }],
  ['completed', { completed: 'duplicate', failed: 'stale', waiting: 'duplicate', released: 'stale' }],
  ['failed', { completed: 'stale', failed: 'duplicate', waiting: 'stale', released: 'stale' }],
  ['cancelled', { completed: 'stale', failed: 'stale', waiting: 'stale', released: 'stale' }],
  ['queued', { completed: 'stale', failed: 'stale', waiting: 'stale', released: 'stale' }],
  ['deleted', { completed: 'stale', failed: 'stale', waiting: 'stale', released: 'stale' }],
];

test.for(
  table.flatMap(([state, answers]) =>
    Object.entries(answers).map(([outcome, verdict]) => [outcome, state, verdict] as const),
  ),
)('%s reported on an attempt that is %s is %s', async ([outcome, state, verdict], { engine }) => {
  const { id, worker, held } = await attemptIn(engine, state);
  const before = [
    await engine.attempts(id),
    await engine.rows('select id, output, usage from millrace.attempts order by id'),
  ];
  const item = {
    completed: completed(held, { late: true }),
    failed: failed(held, { message: 'late' }),
    waiting: waiting(held, 'job-1'),
    released: released(held),
  }[outcome];
  const { items } = await worker.complete([item]);
  expect(items).toMatchObject([{ attempt: held.attempt, verdict }]);
  if (verdict === 'stale') expect(items[0]?.reason).toBeTruthy();
  if (verdict !== 'accepted') {
    expect([
      await engine.attempts(id),
      await engine.rows('select id, output, usage from millrace.attempts order by id'),
    ]).toEqual(before);
  }
});

test('a forged token changes nothing, whoever shows it', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const [first, second] = await worker.take(1).then(async (batch) => [...batch, ...(await worker.take(1))]);
  if (!first || !second) throw new Error('nothing claimed');
  const forged = [completed({ ...first, token: randomUUID() }), completed({ ...second, token: first.token })];
  const { items } = await worker.complete(forged);
  expect(items).toMatchObject([
    { verdict: 'stale', reason: expect.stringMatching(/token is not the current one/) },
    { verdict: 'stale' },
  ]);
  expect(await engine.attempts(id)).toEqual(['one 1 started']);
});

test('an attempt that does not exist is stale', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.take();
  const { items } = await worker.complete([completed({ attempt: 999_999, token: randomUUID() })]);
  expect(items).toMatchObject([
    { attempt: 999_999, verdict: 'stale', reason: expect.stringMatching(/no such attempt/) },
  ]);
});

test('each item of a batch is answered on its own, in the order sent', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two'], { ...external, retry: { max_attempts: 1 } }));
  const ids = await engine.queued('one', 8);
  const worker = await Worker.of(engine, 'one');
  const [done, lost, wait, back, gone, forged, broken, twice] = await worker.take(8);
  if (!(done && lost && wait && back && gone && forged && broken && twice)) throw new Error('nothing claimed');
  await engine.sql.query('delete from public.items where id = $1', [gone.entity_id]);
  const { items } = await worker.complete([
    completed(done),
    completed({ ...forged, token: randomUUID() }),
    failed(lost),
    { ...completed(broken), outcome: 'exploded' },
    waiting(wait, 'job-3'),
    released(back),
    completed(gone),
    completed(twice),
    completed(twice),
  ]);
  expect(items.map((item) => item.verdict)).toEqual([
    'accepted',
    'stale',
    'accepted',
    'rejected',
    'accepted',
    'accepted',
    'stale',
    'accepted',
    'rejected',
  ]);
  expect(items[8]?.reason).toMatch(/listed twice/);
  const states = (await each(ids, (id) => engine.attempts(id))).map((attempts) => attempts.join(', '));
  expect(states).toEqual([
    'one 1 completed, two 1 queued',
    'one 1 failed',
    'one 1 waiting',
    'one 1 queued',
    '',
    'one 1 started',
    'one 1 started',
    'one 1 completed, two 1 queued',
  ]);
});

test('an empty report changes nothing and may still claim', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  await worker.take(1);
  const answer = await worker.complete([], 1);
  expect(answer).toMatchObject({ status: 'working', items: [], batch: [{ entity_id: '2' }] });
});

test('two siblings of one run in one call: the one that fails it makes the other too late', async ({ engine }) => {
  const fork = [{ name: 'start' }, ...['left', 'right'].map((name) => ({ name, needs: ['start'], ...external }))];
  await engine.pipeline([...fork, { name: 'tail', needs: ['right'] }]);
  const [id] = await engine.queued('start');
  await runStage(engine, 'start');
  const ends: Row[] = [];
  for (const stage of ['left', 'right']) {
    const worker = await Worker.of(engine, stage);
    const held = await worker.takeOne();
    await worker.report(waiting(held, `job-${stage}`));
    ends.push({
      submission: held.submission,
      service: 'scraper',
      job_id: `job-${stage}`,
      outcome: 'failed',
      error: { permanent: true },
    });
  }
  const { items } = await resume(engine, ends);
  expect(items.map((item) => item.verdict)).toEqual(['accepted', 'stale']);
  expect(await engine.attempts(id)).toEqual(['start 1 completed', 'left 1 failed', 'right 1 cancelled']);
});

test('an attempt named by two submissions in one call is settled once', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { ...external, retry: { backoff: { kind: 'list', seconds: [0] } } }));
  const [id] = await engine.queued('one');
  const lost = await (await Worker.of(engine, 'one')).takeOne();
  await engine.advance('2 minutes');
  await engine.sql.query('select millrace.sweep()');
  const worker = await Worker.of(engine, 'one');
  const held = await worker.takeOne();
  expect(held.submission).toBe(lost.attempt);
  await worker.report(waiting(held, 'job-1'));
  const end = { service: 'scraper', job_id: 'job-1', outcome: 'completed', result: 1 };
  const { items } = await resume(engine, [
    { ...end, submission: lost.attempt },
    { ...end, submission: held.attempt },
  ]);
  expect(items[0]).toMatchObject({ verdict: 'accepted' });
  expect(items[1]?.verdict).not.toBe('accepted');
  expect(await engine.attempts(id)).toEqual(['one 1 failed', 'one 2 completed']);
});
