import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { chain, type Engine, test } from '../../support/engine.ts';
import { begin, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, released, Worker, waiting } from '../../support/worker.ts';

test('a claim repeated after a lost answer gets the same batch and claims nothing more', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 6);
  const worker = await Worker.of(engine, 'only');
  const first = await worker.claim(2);
  const again = await worker.claim(2, 1);
  expect(again.status).toBe('working');
  expect(again.batch).toEqual(first.batch);
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'started'`)).toBe(2);
});

test('a completion repeated after a lost answer gets the same batch and records nothing twice', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first', 4);
  const worker = await Worker.of(engine, 'first');
  const reports = (await worker.take(2)).map((item) => completed(item, { n: item.attempt }));
  const answer = await worker.complete(reports, 2);
  const repeat = await worker.complete(reports, 2, worker.seq);
  expect(repeat.batch).toEqual(answer.batch);
  expect(answer.items.map((item) => item.verdict)).toEqual(['accepted', 'accepted']);
  expect(repeat.items.map((item) => item.verdict)).toEqual(['duplicate', 'duplicate']);
  expect(await engine.value('select count(output)::int from millrace.attempts')).toBe(2);
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'queued'`)).toBe(2);
});

test('the repeat of a completion names the follower to wake once more, since the first wake may be lost', async ({
  engine,
}) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  const report = completed(await worker.takeOne());
  const answer = await worker.complete([report]);
  const repeat = await worker.complete([report], 0, worker.seq);
  const second = { pipeline: 'flow', stage: 'second', function: 'flow-second' };
  expect(answer.wake).toEqual([second]);
  expect(repeat.wake).toEqual([second]);
});

test('neither a completion nor its repeat names a follower that runs on a worker of its own', async ({ engine }) => {
  const [first, second] = chain(['first', 'second']);
  await engine.pipeline([first as object, { ...second, host: 'worker' }] as Parameters<Engine['pipeline']>[0]);
  await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  const report = completed(await worker.takeOne());
  expect((await worker.complete([report])).wake).toEqual([]);
  expect((await worker.complete([report], 0, worker.seq)).wake).toEqual([]);
});

test('every outcome repeated is recorded once', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', kind: 'external', completion: { callback: true } }]);
  await engine.queued('only', 4);
  const worker = await Worker.of(engine, 'only');
  const [a, b, c, d] = await worker.take(4);
  if (!a || !b || !c || !d) throw new Error('four items were queued');
  const reports = [completed(a), failed(b), waiting(c, 'job-1'), released(d)];
  const answer = await worker.complete(reports);
  const repeat = await worker.complete(reports, 0, worker.seq);
  expect(answer.items.map((item) => item.verdict)).toEqual(['accepted', 'accepted', 'accepted', 'accepted']);
  expect(repeat.items.map((item) => item.verdict)).toEqual(['duplicate', 'duplicate', 'duplicate', 'stale']);
  const states = await engine.rows(
    'select state, count(*)::int as n from millrace.attempts group by state order by state',
  );
  expect(states).toEqual([
    { state: 'queued', n: 2 },
    { state: 'waiting', n: 1 },
    { state: 'completed', n: 1 },
    { state: 'failed', n: 1 },
  ]);
});

test('a batch that was finished since is not handed out again by a repeat', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const { batch } = await worker.claim(2);
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(ids[0])).id]);
  const again = await worker.claim(2, 1);
  expect(again.batch).toEqual(batch.filter((item) => item.entity_id !== ids[0]));
});

test('a call out of sequence is refused and records nothing', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  for (const seq of [0, 3, 17]) {
    await expect(worker.complete([completed(item)], 0, seq)).rejects.toMatchObject({
      code: 'MR006',
      message: `p_seq is ${seq}, but the last call of this worker was 1`,
    });
  }
  await expect(worker.claim(1, 5)).rejects.toMatchObject({ code: 'MR006' });
  expect(await engine.attempts(id)).toEqual(['only 1 started']);
});

test('a worker that never signed on, or signed on for another stage, is refused', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  const worker = await Worker.of(engine, 'first');
  await expect(worker.complete([])).rejects.toMatchObject({
    code: 'MR006',
    message: `there is no worker ${worker.id}`,
  });
  await worker.claim(1, 1);
  const values = [worker.id, randomUUID()];
  const elsewhere = `select public.millrace_claim('flow', 'second', $1, $2, 2, 1)`;
  expect(await engine.refusal(elsewhere, values, worker.client)).toMatchObject({ code: 'MR006' });
});

test('a repeat that overtakes its own first call waits for it and gets its batch', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 4);
  const worker = await Worker.of(engine, 'only');
  const report = completed(await worker.takeOne());
  await worker.client.query('begin');
  const answer = await worker.complete([report], 2);
  const other = await engine.database.connect('service_role');
  const values = [worker.id, worker.seq, JSON.stringify([report])];
  const repeat = begin(other.query('select public.millrace_complete($1, $2, $3, 2) as answer', values));
  await untilBlocked(engine, other);
  await worker.client.query('commit');
  const { rows } = await repeat;
  expect(rows[0].answer.batch).toEqual(answer.batch);
  expect(rows[0].answer.items).toMatchObject([{ verdict: 'duplicate' }]);
});

test('a first claim repeated while the first still runs signs the worker on once and gets the same batch', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', max_workers: 1 }]);
  await engine.queued('only', 3);
  const call = `select public.millrace_claim('flow', 'only', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002', 1, 10) as answer`;
  const [first, second] = [await engine.database.connect(), await engine.database.connect()];
  await first.query('begin');
  const one = await first.query(call);
  const two = begin(second.query(call));
  await untilBlocked(engine, second);
  await first.query('commit');
  const attempts = (answer: { batch: { attempt: number }[] }) => answer.batch.map((item) => item.attempt);
  expect(attempts((await two).rows[0].answer)).toEqual(attempts(one.rows[0].answer));
});
