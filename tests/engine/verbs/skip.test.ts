import { expect } from 'vitest';
import {
  defineSplit,
  flowAttempts,
  flowStatus,
  insertParts,
  operation,
  partRuns,
  refused,
  spawnParts,
  verb,
} from '../../support/engine/operations.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { diamond } from '../../support/sessions.ts';
import { completed, failed, runStage, Worker, waiting } from '../../support/worker.ts';

const external = { kind: 'external', completion: { callback: true } };

async function claimed(engine: Engine, options = {}) {
  await engine.pipeline(chain(['one', 'two'], options));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  return { id, worker, item: await worker.takeOne() };
}

test('a stage that needs a skipped stage gets null as its result', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  await verb(engine, 'skip', id, 'one');
  expect(await engine.item(id)).toMatchObject({ one_status: 'skipped', one_result: null, two_status: 'queued' });
  const [next] = await (await Worker.of(engine, 'two')).take();
  expect(next?.needs).toEqual({ one: null });
});

test('skipping a stage in work or waiting voids the token and the job', async ({ engine }) => {
  const { id, worker, item } = await claimed(engine, external);
  await verb(engine, 'skip', id, 'one');
  expect(await worker.report(completed(item))).toEqual(['stale']);
  const other = await Worker.of(engine, 'two');
  await other.report(waiting(await other.takeOne(), 'job-2'));
  await verb(engine, 'skip', id, 'two');
  expect(await engine.attempts(id)).toEqual([
    'one 1 cancelled superseded',
    'one 2 skipped',
    'two 1 cancelled superseded',
    'two 2 skipped',
  ]);
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('skipping a failed stage lets the failed run go on', async ({ engine }) => {
  const { id, worker, item } = await claimed(engine);
  await worker.report(failed(item, { permanent: true }));
  expect(await engine.run(id)).toMatchObject({ status: 'failed' });
  await verb(engine, 'skip', id, 'one');
  expect(await engine.run(id)).toMatchObject({ status: 'running' });
  expect(await engine.item(id)).toMatchObject({ one_status: 'skipped', one_error: null, two_status: 'queued' });
  await runStage(engine, 'two');
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('skipping one branch of a cancelled run retries what was cancelled beside it', async ({ engine }) => {
  await engine.pipeline(diamond());
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  await verb(engine, 'cancel', id);
  await verb(engine, 'skip', id, 'left');
  expect(await engine.statuses(id)).toEqual({
    first: 'completed',
    left: 'skipped',
    right: 'queued',
    last: 'pending',
  });
  await runStage(engine, 'right');
  await runStage(engine, 'last');
  expect(await engine.run(id)).toMatchObject({ status: 'completed' });
});

test('a stage held back by a threshold can be skipped', async ({ engine }) => {
  await defineSplit(engine, [{ name: 'early', after: [{ map: 'split', stage: 'read', count: 2 }] }]);
  const parts = await insertParts(engine, 2);
  const [id] = await engine.queued('split');
  await verb(engine, 'skip', id, 'early');
  await spawnParts(engine, parts);
  await runStage(engine, 'scan', 'parts');
  await runStage(engine, 'read', 'parts');
  await engine.sql.query('select millrace.sweep()');
  await runStage(engine, 'join');
  expect(await flowAttempts(engine, id, 'early')).toEqual(['1 skipped']);
  expect(await flowStatus(engine, id)).toBe('completed');
});

test('skipping a map cancels its children, and thresholds on it hold', async ({ engine }) => {
  await defineSplit(engine, [{ name: 'early', after: [{ map: 'split', stage: 'read', count: 2 }] }]);
  const parts = await insertParts(engine, 2);
  const [id] = await engine.queued('split');
  await spawnParts(engine, parts);
  await verb(engine, 'skip', id, 'split');
  expect(await operation(engine, id, 'early')).toMatchObject({ state: 'queued' });
  await engine.sql.query('select millrace.sweep()');
  expect(await partRuns(engine, parts[0])).toEqual(['cancelled']);
  await runStage(engine, 'join');
  await runStage(engine, 'early');
  expect(await flowStatus(engine, id)).toBe('completed');
});

test('a stage that is done, or pending behind unfinished needs, cannot be skipped', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two', 'three']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  expect(await refused(engine, 'skip', id, 'one')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/stage one of run \d+ cannot be told to skip: it is completed/),
    hint: expect.stringMatching(/millrace\.reset/),
  });
  expect(await refused(engine, 'skip', id, 'three')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/it is pending, and the run is running/),
    hint: expect.stringMatching(/needs first/),
  });
});
