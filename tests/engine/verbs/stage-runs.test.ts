import { expect } from 'vitest';
import {
  defineSplit,
  flowStatus,
  insertParts,
  operation,
  partRuns,
  refused,
  spawnParts,
  verb,
} from '../../support/engine/operations.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { begin, jobEnd, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const external = { kind: 'external', completion: { callback: true, deadline_seconds: 60 } };
const retry = { retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [30] } } };

async function one(engine: Engine, options = {}): Promise<{ id: string; worker: Worker }> {
  await engine.pipeline(chain(['one', 'two'], { ...retry, ...options }));
  const [id] = await engine.queued('one');
  return { id: id as string, worker: await Worker.of(engine, 'one') };
}

test('a stage is shown as not started, in progress, complete: can_start holds only before', async ({ engine }) => {
  const { id, worker } = await one(engine);
  const pending = { progress: 'not started', can_start: false, is_started: false, is_done: false };
  const underway = { progress: 'in progress', can_start: false, is_started: true, is_done: false };
  const over = { progress: 'complete', can_start: false, is_started: true, is_done: true };
  expect(await operation(engine, id, 'one')).toMatchObject({ state: 'queued', ...underway });
  expect(await operation(engine, id, 'two')).toMatchObject({ state: 'pending', ...pending });
  const item = await worker.takeOne();
  expect(await operation(engine, id, 'one')).toMatchObject({ state: 'started', ...underway });
  await worker.report(completed(item));
  expect(await operation(engine, id, 'one')).toMatchObject({ state: 'completed', ...over });
  expect(await operation(engine, id, 'two')).toMatchObject({ state: 'queued', ...underway });
});

test('failures are counted up to fails_after; in backoff a stage is in progress, exhausted it has failed', async ({
  engine,
}) => {
  const { id, worker } = await one(engine);
  await worker.report(failed(await worker.takeOne()));
  expect(await operation(engine, id, 'one')).toMatchObject({
    state: 'queued',
    progress: 'in progress',
    failures: 1,
    fails_after: 2,
  });
  await engine.advance('1 minute');
  await worker.report(failed(await worker.takeOne()));
  expect(await operation(engine, id, 'one')).toMatchObject({
    state: 'failed',
    progress: 'failed',
    can_start: false,
    is_started: false,
    is_done: true,
    failures: 2,
    error: 'it took too long',
  });
  expect(await operation(engine, id, 'two')).toMatchObject({ progress: 'not started', can_start: false });
});

test('a retry has a fresh allowance, and a reset stage is as if it had never started', async ({ engine }) => {
  const { id, worker } = await one(engine);
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  await verb(engine, 'retry', id);
  expect(await operation(engine, id, 'one')).toMatchObject({ progress: 'in progress', failures: 0 });
  await worker.report(completed(await worker.takeOne()));
  await verb(engine, 'reset', id, 'one');
  expect(await operation(engine, id, 'one')).toMatchObject({ state: 'queued', failures: 0, error: null });
  expect(await operation(engine, id, 'two')).toMatchObject({ state: 'pending', is_started: false });
});

test('a skipped stage is complete', async ({ engine }) => {
  const { id } = await one(engine);
  await verb(engine, 'skip', id, 'one');
  expect(await operation(engine, id, 'one')).toMatchObject({ state: 'skipped', progress: 'complete', is_done: true });
});

test('a stage held back by a threshold starts by hand, once', async ({ engine }) => {
  const early = { name: 'early', after: [{ map: 'split', stage: 'read', count: 2 }] };
  await defineSplit(engine, [early]);
  const parts = await insertParts(engine, 3);
  const [id] = await engine.queued('split');
  expect(await operation(engine, id, 'early')).toMatchObject({ progress: 'not started', can_start: false });
  await verb(engine, 'start_stage', id, 'early');
  expect(await operation(engine, id, 'early')).toMatchObject({ state: 'queued' });
  expect(await refused(engine, 'start_stage', id, 'early')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/stage early of run \d+ cannot be told to start_stage: it is queued/),
    hint: expect.stringMatching(/pending/),
  });
  await spawnParts(engine, parts);
  await runStage(engine, 'scan', 'parts');
  await runStage(engine, 'read', 'parts');
  await engine.sql.query('select millrace.sweep()');
  expect((await engine.attempts(id)).filter((attempt) => attempt.startsWith('early'))).toEqual(['early 1 queued']);
});

test('a stage whose needs are not done cannot start; nor one of a run that is over', async ({ engine }) => {
  const { id } = await one(engine);
  expect(await refused(engine, 'start_stage', id, 'two')).toMatchObject({
    code: 'MR005',
    message: expect.stringMatching(/its need one has no result/),
    hint: expect.stringMatching(/Queue one instead/),
  });
  await verb(engine, 'cancel', id);
  expect(await refused(engine, 'start_stage', id, 'two')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/the run is cancelled/),
    hint: expect.stringMatching(/millrace\.retry/),
  });
});

test('completing a queued stage by hand: its result is the one given, and the run goes on', async ({ engine }) => {
  const { id, worker } = await one(engine);
  await verb(engine, 'complete_stage', id, 'one', '{"by": "me"}');
  expect(await worker.take()).toEqual([]);
  const [next] = await (await Worker.of(engine, 'two')).take();
  expect(next?.needs).toEqual({ one: { by: 'me' } });
  expect(await engine.item(id)).toMatchObject({ one_status: 'completed', one_result: { by: 'me' } });
});

test('a request to complete a stage that names no result, or null, is refused: a skipped one has none', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const request = { verb: 'complete', pipeline: 'flow', entity: id, stage: 'one' };
  for (const asked of [request, { ...request, result: null }])
    expect(await engine.refusal('select millrace.act($1)', [JSON.stringify(asked)])).toMatchObject({
      code: 'MR002',
      message: 'result is missing, but complete needs it',
    });
  expect(await engine.item(id)).toMatchObject({ one_status: 'queued', two_status: 'pending' });
});

test.for(['completed', 'failed', 'waiting', 'released'])(
  'after a stage in work was completed by hand, its worker\'s word "%s" is stale',
  async (outcome, { engine }) => {
    const { id, worker } = await one(engine);
    const item = await worker.takeOne();
    await verb(engine, 'complete_stage', id, 'one', '1');
    expect((await worker.renew([item])).lost).toEqual([item.attempt]);
    const word = { attempt: item.attempt, token: item.token, outcome, result: 2, service: 'scraper', job_id: 'j' };
    const { items } = await worker.complete([word]);
    expect(items).toMatchObject([{ verdict: 'stale', reason: 'the attempt is completed' }]);
    expect(await engine.item(id)).toMatchObject({ one_status: 'completed', one_result: 1 });
    expect(await engine.rows('select * from millrace.claims')).toEqual([]);
  },
);

test('after a waiting stage was completed by hand, the callback of its job is stale', async ({ engine }) => {
  const { id, worker } = await one(engine, external);
  const item = await worker.takeOne();
  await worker.report(waiting(item, 'job-1'));
  await verb(engine, 'complete_stage', id, 'one', '1');
  expect((await resume(engine, [jobEnd(item, 'job-1')])).items).toMatchObject([{ verdict: 'stale' }]);
  expect(await engine.item(id)).toMatchObject({ one_status: 'completed', one_result: 1 });
});

test('failing by hand follows the policy: first a retry, then the end', async ({ engine }) => {
  const { id, worker } = await one(engine);
  const item = await worker.takeOne();
  await verb(engine, 'fail_stage', id, 'one', 'it hangs');
  expect(await worker.report(failed(item))).toEqual(['stale']);
  expect(await engine.item(id)).toMatchObject({ one_status: 'queued', one_retry_count: 1, one_error: 'it hangs' });
  expect(await worker.take()).toEqual([]);
  await verb(engine, 'fail_stage', id, 'one', 'it still hangs');
  expect(await engine.run(id)).toMatchObject({ status: 'failed' });
  expect(await operation(engine, id, 'one')).toMatchObject({ failures: 2, error: 'it still hangs' });
  expect(await engine.rows('select error_code from millrace.dead_letters')).toEqual([{ error_code: 'failed_by_hand' }]);
});

test('failing by hand for good ends the run at the first failure', async ({ engine }) => {
  const { id } = await one(engine);
  await verb(engine, 'fail_stage', id, 'one', 'never mind', true);
  expect(await engine.run(id)).toMatchObject({ status: 'failed' });
});

test('a job of a stage that was failed by hand does not complete its retry', async ({ engine }) => {
  const { id, worker } = await one(engine, external);
  const item = await worker.takeOne();
  await verb(engine, 'fail_stage', id, 'one', 'it hangs');
  expect((await resume(engine, [jobEnd(item, 'job-1')])).items).toMatchObject([{ verdict: 'stale' }]);
  await engine.advance('1 minute');
  const again = await worker.takeOne();
  expect(again.submission).toBe(again.attempt);
});

test('completing a map by hand gives its children up, which the sweep cancels', async ({ engine }) => {
  await defineSplit(engine);
  const parts = await insertParts(engine, 2);
  const [id] = await engine.queued('split');
  await spawnParts(engine, parts);
  await verb(engine, 'complete_stage', id, 'split', '{}');
  await engine.sql.query('select millrace.sweep()');
  expect(await partRuns(engine, parts[0])).toEqual(['cancelled']);
  await runStage(engine, 'join');
  expect(await flowStatus(engine, id)).toBe('completed');
});

test('only a live stage can be ended by hand, and only with a result', async ({ engine }) => {
  const { id } = await one(engine);
  const refusal = { code: 'MR004', hint: expect.stringMatching(/queued, started or waiting/) };
  expect(await refused(engine, 'complete_stage', id, 'two', '1')).toMatchObject({
    ...refusal,
    message: expect.stringMatching(/stage two of run \d+ cannot be told to complete: it is pending/),
  });
  await runStage(engine, 'one');
  expect(await refused(engine, 'fail_stage', id, 'one', 'no')).toMatchObject({
    ...refusal,
    message: expect.stringMatching(/cannot be told to fail: it is completed/),
  });
  expect(await refused(engine, 'complete_stage', id, 'two', null)).toMatchObject({ code: 'MR002' });
});

test('a completion by hand that the apply function refuses changes nothing and says why', async ({ engine }) => {
  await engine.sql.query(`create function public.take(p jsonb) returns void language plpgsql as
    $$ begin raise exception 'not this one'; end $$`);
  const { id } = await one(engine, { apply: 'public.take' });
  expect(await refused(engine, 'complete_stage', id, 'one', '1')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/cannot be ended: not this one/),
  });
  expect(await engine.attempts(id)).toEqual(['one 1 queued']);
});

test('verbs name what they do not know: the run, the stage, a run that has a successor', async ({ engine }) => {
  const { id } = await one(engine);
  const first = (await engine.run(id)).id;
  const on = (name: string, run: unknown, stage: string | null, more = '') =>
    engine.refusal(`select millrace.${name}($1, $2${more})`, [run, stage]);
  for (const [name, more] of [['start_stage'], ['skip'], ['reset'], ['reset_children'], ['fail_stage', `, 'x'`]]) {
    expect(await on(name as string, 999, 'one', more)).toMatchObject({ code: 'MR003', message: 'there is no run 999' });
    expect(await on(name as string, first, 'nine', more)).toMatchObject({
      code: 'MR003',
      message: expect.stringMatching(/there is no stage nine/),
      hint: expect.stringMatching(/^Its stages: one, .*\.$/),
    });
  }
  await verb(engine, 'cancel', id);
  await engine.queue('one', [id]);
  expect(await on('reset', first, 'one')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/not the latest of its entity/),
    hint: `Use the latest: select millrace.run_of('flow', '${id}').`,
  });
});

test('a verb waits for the user who holds the row, and then sees what they did', async ({ engine }) => {
  const { id, worker } = await one(engine);
  await worker.takeOne();
  const user = await openTransaction(engine);
  await user.query(`update public.items set label = 'mine' where id = $1`, [id]);
  const person = await engine.database.connect();
  const run = (await engine.run(id)).id;
  const call = begin(person.query(`select millrace.complete_stage($1, 'one', '1')`, [run]));
  await untilBlocked(engine, person);
  await user.query(`select millrace.cancel($1)`, [run]);
  await user.query('commit');
  await expect(call).rejects.toMatchObject({ code: 'MR004', message: expect.stringMatching(/it is cancelled/) });
});
