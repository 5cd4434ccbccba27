import { expect } from 'vitest';
import { type Engine, test } from '../../support/engine.ts';
import { diamond, jobEnd, wokenStages } from '../../support/sessions.ts';
import { type Claimed, completed, failed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const permanent = { code: 'gone', message: 'the page is gone', permanent: true };

/** An item whose left and right branch both wait for an external job. */
async function waitingBranches(
  engine: Engine,
  stages = diamond({ kind: 'external', completion: { callback: true } }),
): Promise<{ id: string | undefined; left: Claimed; right: Claimed }> {
  await engine.pipeline(stages);
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const [left, right] = [await Worker.of(engine, 'left'), await Worker.of(engine, 'right')];
  const [leftItem, rightItem] = [await left.takeOne(), await right.takeOne()];
  await left.report(waiting(leftItem, 'job-left'));
  await right.report(waiting(rightItem, 'job-right'));
  return { id, left: leftItem, right: rightItem };
}

test('two branches that end in one call start the join once', async ({ engine }) => {
  const { id, left, right } = await waitingBranches(engine);
  const { items, wake } = await resume(engine, [jobEnd(left, 'job-left'), jobEnd(right, 'job-right')]);
  expect(items.map((item) => item.verdict)).toEqual(['accepted', 'accepted']);
  expect(wake.map((entry) => entry.stage)).toEqual(['last']);
  expect((await engine.attempts(id)).filter((attempt) => attempt.startsWith('last'))).toEqual(['last 1 queued']);
});

test('a branch that fails for good and its sibling that completes, in one call, leave nothing to run', async ({
  engine,
}) => {
  const external = { kind: 'external', completion: { callback: true } };
  const { id, left, right } = await waitingBranches(engine, [
    { name: 'first' },
    { name: 'left', needs: ['first'], ...external },
    { name: 'right', needs: ['first'], ...external },
    { name: 'last', needs: ['right'] },
  ]);
  const ends = [jobEnd(left, 'job-left', { outcome: 'failed', error: permanent }), jobEnd(right, 'job-right')];
  const { items } = await resume(engine, ends);
  expect(items).toMatchObject([{ verdict: 'accepted' }, { verdict: 'accepted' }]);
  expect((await engine.run(id)).status).toBe('failed');
  const attempts = ['first 1 completed', 'left 1 failed', 'right 1 completed', 'last 1 cancelled'];
  expect(await engine.attempts(id)).toEqual(attempts);
  expect(await runStage(engine, 'last')).toEqual([]);
});

test('a branch that fails for good and its sibling that fails for good, in one call, fail the run once', async ({
  engine,
}) => {
  const { id, left, right } = await waitingBranches(engine);
  const end = { outcome: 'failed', error: permanent };
  await resume(engine, [jobEnd(left, 'job-left', end), jobEnd(right, 'job-right', end)]);
  expect((await engine.run(id)).status).toBe('failed');
  await engine.sql.query('select millrace.retry($1)', [(await engine.run(id)).id]);
  await runStage(engine, 'left');
  await runStage(engine, 'right');
  await runStage(engine, 'last');
  expect((await engine.run(id)).status).toBe('completed');
});

test('two branches whose leases expire together, one of them exhausted, leave no live attempt', async ({ engine }) => {
  await engine.pipeline([
    { name: 'first' },
    { name: 'left', needs: ['first'], retry: { max_attempts: 1 } },
    { name: 'right', needs: ['first'], retry: { max_attempts: 3 } },
  ]);
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  await (await Worker.of(engine, 'left')).takeOne();
  await (await Worker.of(engine, 'right')).takeOne();
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  await engine.expectSound();
  expect((await engine.run(id)).status).toBe('failed');
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'left 1 failed', 'right 1 cancelled']);
});

/** An item whose left branch has failed for good while the right one was queued, so that the right one was cancelled. */
async function failedBranch(engine: Engine): Promise<{ id: string | undefined; run: string }> {
  await engine.pipeline(diamond());
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const worker = await Worker.of(engine, 'left');
  await worker.report(failed(await worker.takeOne(), permanent));
  return { id, run: (await engine.run(id)).id };
}

test('a branch that fails for good cancels its sibling, and a retry of the run takes up both', async ({ engine }) => {
  const { id, run } = await failedBranch(engine);
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'left 1 failed', 'right 1 cancelled']);
  await engine.sql.query('select millrace.retry($1)', [run]);
  for (const stage of ['left', 'right', 'last']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('a retry that names the failed branch takes up its cancelled sibling too', async ({ engine }) => {
  const { id, run } = await failedBranch(engine);
  await engine.sql.query(`select millrace.retry($1, 'left')`, [run]);
  for (const stage of ['left', 'right', 'last']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('a retry that names the cancelled sibling never leaves the failed branch behind', async ({ engine }) => {
  const { run } = await failedBranch(engine);
  await engine.sql.query(`select millrace.retry($1, 'right')`, [run]).catch(() => {});
  await runStage(engine, 'right');
  await engine.expectSound();
});

test('a retry that names a stage with nothing to retry is refused, whatever its siblings are', async ({ engine }) => {
  const { run } = await failedBranch(engine);
  const refusal = await engine.refusal(`select millrace.retry($1, 'last')`, [run]);
  expect(refusal).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/^stage last of run \d+ cannot be told to retry: it is /),
  });
});

test('queueing one branch of a finished run anew keeps the result of the other', async ({ engine }) => {
  await engine.pipeline(diamond());
  const [id] = await engine.queued('first');
  for (const stage of ['first', 'left', 'right', 'last']) await runStage(engine, stage);
  await engine.queue('left', [id as string]);
  expect(await engine.statuses(id)).toEqual({
    first: 'completed',
    left: 'queued',
    right: 'completed',
    last: 'pending',
  });
  await runStage(engine, 'left');
  const [last] = await runStage(engine, 'last');
  expect(Object.keys(last?.needs ?? {}).sort()).toEqual(['left', 'right']);
  expect((await engine.run(id)).status).toBe('completed');
});

test('queueing one branch anew takes up the branch beside it that never ended, and wakes for both', async ({
  engine,
}) => {
  await engine.configureWakeUps();
  const { id } = await failedBranch(engine);
  await engine.advance('15 seconds');
  await engine.sql.query('truncate net.http_request_queue');
  await engine.queue('left', [id as string]);
  expect(await engine.statuses(id)).toEqual({ first: 'completed', left: 'queued', right: 'queued', last: 'pending' });
  expect(await wokenStages(engine)).toEqual(['flow.left', 'flow.right']);
});

test('queueing one of two first stages starts both on a new row, and keeps the other result on a finished one', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'left' }, { name: 'right' }, { name: 'last', needs: ['left', 'right'] }]);
  const [id] = await engine.queued('left');
  expect(await engine.statuses(id)).toEqual({ left: 'queued', right: 'queued', last: 'pending' });
  for (const stage of ['left', 'right', 'last']) await runStage(engine, stage);
  await engine.queue('right', [id as string]);
  expect(await engine.statuses(id)).toEqual({ left: 'completed', right: 'queued', last: 'pending' });
  for (const stage of ['right', 'last']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('starting over one branch of a live run leaves the other in work', async ({ engine }) => {
  await engine.pipeline(diamond());
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const [left, right] = [await Worker.of(engine, 'left'), await Worker.of(engine, 'right')];
  const [old, kept] = [await left.takeOne(), await right.takeOne()];
  await engine.queue('left', [id as string]);
  expect(await left.report(completed(old))).toEqual(['stale']);
  expect(await right.report(completed(kept))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toEqual([
    'first 1 completed',
    'left 1 cancelled superseded',
    'right 1 completed',
    'left 2 queued',
  ]);
});
