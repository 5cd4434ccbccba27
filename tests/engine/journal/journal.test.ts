// The journal gets an entry in the action's own transaction, whichever way the action came.
import { describe, expect } from 'vitest';
import { defineSplit, insertParts, spawnParts } from '../../support/engine/operations.ts';
import { journal, signIn, withSecretKey } from '../../support/engine/operators.ts';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { failed, runStage, Worker } from '../../support/worker.ts';

const stages = chain(['one', 'two'], { retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [600] } } });

/** The state that each verb needs before it: a run that is queued, has failed for good, or is in backoff. */
async function runIn(engine: Engine, state: 'queued' | 'failed' | 'backoff'): Promise<string> {
  const [id] = await engine.queued('one');
  if (state !== 'queued') {
    const worker = await Worker.of(engine, 'one');
    const item = await worker.takeOne();
    await worker.report(failed(item, { code: 'gone', permanent: state === 'failed' }));
    await worker.leave();
  }
  return (await engine.run(id)).id;
}

/** Each verb over a run: what it needs, the statement of SQL, and the request that does the same. */
const overRuns: Record<string, { state: 'queued' | 'failed' | 'backoff'; sql: string; request: Row }> = {
  retry: { state: 'failed', sql: 'millrace.retry($1)', request: {} },
  cancel: { state: 'queued', sql: 'millrace.cancel($1)', request: {} },
  reset: { state: 'failed', sql: `millrace.reset($1, 'one')`, request: { stage: 'one' } },
  skip: { state: 'queued', sql: `millrace.skip($1, 'one')`, request: { stage: 'one' } },
  fail: {
    state: 'queued',
    sql: `millrace.fail_stage($1, 'one', 'no')`,
    request: { stage: 'one', message: 'no' },
  },
  hurry: { state: 'backoff', sql: 'millrace.hurry($1)', request: {} },
};

describe.each(Object.entries(overRuns))('%s', (verb, { state, sql, request }) => {
  const states = (engine: Engine, run: string) =>
    engine.rows('select stage, state, retry_count from millrace.timeline($1) order by attempt_id', [run]);

  test('is written down with its run, by SQL, by a user’s token and by a secret key alike', async ({ engine }) => {
    await engine.pipeline(stages);
    const runs = [await runIn(engine, state), await runIn(engine, state), await runIn(engine, state)];
    await engine.sql.query(`select set_config('millrace.reason', 'by hand', false), ${sql}`, [runs[0]]);
    await (await signIn(engine, 'ann', {})).act(verb, { run: Number(runs[1]), reason: 'by ann', ...request });
    const key = await withSecretKey(engine);
    await key.act(verb, { run: Number(runs[2]), operator: 'bot', ...request });
    expect(await journal(engine)).toMatchObject([
      { verb, run_ids: [runs[0]], runs: 1, subject: null, key: 'sql', reason: 'by hand', pipeline: 'flow' },
      { verb, run_ids: [runs[1]], runs: 1, subject: 'ann', key: 'user', reason: 'by ann', pipeline: 'flow' },
      { verb, run_ids: [runs[2]], runs: 1, subject: 'bot', key: 'secret', reason: null, pipeline: 'flow' },
    ]);
    expect(
      await engine.value('select session from millrace.journal where run_ids = array[$1::bigint]', [runs[0]]),
    ).toMatchObject({ user: 'postgres', pid: expect.any(Number) });
    // The API does what the function of SQL does.
    expect(await states(engine, runs[1] as string)).toEqual(await states(engine, runs[0] as string));
  });

  test('leaves no line where it is refused or rolled back', async ({ engine }) => {
    await engine.pipeline(stages);
    const run = await runIn(engine, state);
    const operator = await signIn(engine, 'ann', {});
    await engine.sql.query('begin');
    await engine.sql.query(`select ${sql}`, [run]);
    expect(await journal(engine)).toHaveLength(1);
    await engine.sql.query('rollback');
    expect(await operator.refused(verb, { run: 987654, ...request })).toMatchObject({ code: 'MR003' });
    expect(await operator.refused(verb, { run: Number(run), ...request, stage: 'none' })).toMatchObject({
      code: 'MR003',
    });
    expect(await journal(engine)).toEqual([]);
  });

  test('of a row is the same as of its newest run', async ({ engine }) => {
    await engine.pipeline(stages);
    const run = await runIn(engine, state);
    const entity = await engine.value('select entity_id from millrace.runs where id = $1', [run]);
    const operator = await signIn(engine, 'ann', {});
    expect(await operator.act(verb, { pipeline: 'flow', entity, ...request })).toMatchObject({ run: Number(run) });
    expect(await journal(engine)).toMatchObject([{ verb, run_ids: [run] }]);
  });
});

test('the verbs of SQL that the API has not are written down too', async ({ engine }) => {
  await defineSplit(engine);
  const [id] = await engine.queued('split');
  const parts = await insertParts(engine, 2);
  await spawnParts(engine, parts);
  const run = await engine.value(
    `select r.id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = 'flow' and r.entity_id = $1`,
    [id],
  );
  await runStage(engine, 'scan', 'parts');
  const worker = await Worker.of(engine, 'read', 'parts');
  await worker.report(...(await worker.take()).map((item) => failed(item, { code: 'gone', permanent: true })));
  await worker.leave();
  await engine.sql.query(`select millrace.reset_children($1, 'split')`, [run]);
  await engine.sql.query(`select millrace.complete_stage($1, 'split', '{}')`, [run]);
  const [other] = await engine.insert();
  await engine.sql.query(`select millrace.start('flow', $1)`, [other]);
  await engine.sql.query(`select millrace.start('flow', $1, p_restart => true)`, [other]);
  expect(await journal(engine)).toMatchObject([
    { verb: 'reset_children', run_ids: [run], outcome: { children: 2 } },
    { verb: 'complete', run_ids: [run], stage: 'split' },
    { verb: 'restart', runs: 1, pipeline: 'flow' },
  ]);
});

test('pausing is written down by a function and by the API', async ({ engine }) => {
  await engine.pipeline(stages);
  const operator = await signIn(engine, 'ann', {});
  await engine.sql.query(`select millrace.pause('flow')`);
  await operator.act('unpause', { pipeline: 'flow', reason: 'all is well' });
  await operator.act('pause', { pipeline: 'flow', stage: 'two', reason: 'captchas' });
  await operator.act('unpause', { pipeline: 'flow', stage: 'two' });
  await engine.sql.query(`select millrace.pause('flow')`);
  expect(await journal(engine)).toMatchObject([
    { verb: 'pause', pipeline: 'flow', stage: null, key: 'sql' },
    { verb: 'unpause', pipeline: 'flow', stage: null, key: 'user', reason: 'all is well' },
    { verb: 'pause', pipeline: 'flow', stage: 'two', key: 'user', reason: 'captchas' },
    { verb: 'unpause', pipeline: 'flow', stage: 'two', key: 'user' },
    { verb: 'pause', pipeline: 'flow', stage: null, key: 'sql' },
  ]);
  const { pipelines } = await operator.ask<{ pipelines: Row[] }>('overview');
  expect(pipelines.find(({ pipeline }) => pipeline === 'flow')).toMatchObject({
    enabled: false,
    paused: { by: 'postgres' },
  });
});

test('the journal has no entry of what workers do, nor of users’ own writes', async ({ engine }) => {
  await engine.pipeline(stages);
  await runIn(engine, 'backoff');
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  await engine.sql.query('select millrace.sweep()');
  await engine.queue('one', [id as string]);
  await engine.sql.query('delete from public.items');
  expect(await journal(engine)).toEqual([]);
});

test('a line stays as it was written, for its owner too, until it is old', async ({ engine }) => {
  await engine.pipeline(stages);
  const operator = await signIn(engine, 'ann', {});
  await operator.act('preview', { do: { verb: 'retry' }, filter: { pipeline: 'flow' } });
  await engine.sql.query(`select millrace.pause('flow')`);
  for (const statement of [
    `update millrace.journal set subject = 'somebody else'`,
    'delete from millrace.journal',
    'truncate millrace.journal',
  ]) {
    expect(await engine.refusal(statement)).toMatchObject({
      code: 'MR004',
      message: 'what is written in the journal stays as it is',
    });
  }
  await engine.advance('401 days');
  await engine.sql.query(`select millrace.unpause('flow')`);
  await engine.sql.query('select millrace.sweep()');
  expect(await journal(engine)).toMatchObject([{ verb: 'unpause' }]);
  expect(await engine.rows('select from millrace.bulks')).toEqual([]);
});

test('of two operators who do the same at once, the second hears what has become of the run', async ({ engine }) => {
  await engine.pipeline(stages);
  const run = Number(await runIn(engine, 'failed'));
  const [ann, ben] = [await signIn(engine, 'ann', {}), await signIn(engine, 'ben', {})];
  await ann.client.query('begin');
  await ann.act('retry', { run });
  const late = begin(ben.refused('retry', { run }));
  await untilBlocked(engine, ben.client);
  await ann.client.query('commit');
  expect(await late).toMatchObject({ code: 'MR004', message: `run ${run} has nothing to retry: it is running` });
  expect(await journal(engine)).toHaveLength(1);
});

test('a verb waits for who holds the row, and a line is written when it is done', async ({ engine }) => {
  await engine.pipeline(stages);
  const run = await runIn(engine, 'queued');
  const holder = await openTransaction(engine);
  await holder.query('select from public.items for update');
  const ann = await signIn(engine, 'ann', {});
  const cancelled = begin(ann.act('cancel', { run: Number(run) }));
  await untilBlocked(engine, ann.client);
  expect(await journal(engine)).toEqual([]);
  await holder.query('commit');
  expect(await cancelled).toMatchObject({ status: 'cancelled' });
  expect(await journal(engine)).toHaveLength(1);
});
