import { describe, expect } from 'vitest';
import { defineFamily, numbers, spawnAll, startFolders } from '../../support/engine/children.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { failed, runStage, Worker } from '../../support/worker.ts';

/** Fails all that is due at a stage for good, with one code. */
async function failAll(engine: Engine, stage: string, code = 'not_found', pipeline = 'flow') {
  const worker = await Worker.of(engine, stage, pipeline);
  await worker.complete(
    (await worker.take(1000)).map((item) => failed(item, { code, message: `it was ${code}`, permanent: true })),
  );
  await worker.leave();
}

const two = chain(['one', 'two']);
const letters = (engine: Engine) =>
  engine.rows('select stage, entity_id, error_code from millrace.dead_letters order by run_id');
const retry = (engine: Engine, run: unknown, stage: string | null = null) =>
  engine.sql.query('select millrace.retry($1, $2)', [run, stage]);

test('a run that failed for good is a dead letter, with stage, entity, error and time', async ({ engine }) => {
  await engine.pipeline(two);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await failAll(engine, 'two');
  expect(await engine.rows('select * from millrace.dead_letters')).toEqual([
    {
      attempt_id: expect.any(String),
      run_id: (await engine.run(id)).id,
      pipeline: 'flow',
      stage: 'two',
      entity_id: id,
      error_code: 'not_found',
      error_message: 'it was not_found',
      retry_count: 0,
      failed_at: await engine.now(),
      can_retry: true,
    },
  ]);
});

test('a failed run names the stage that failed it and the error until it goes on', async ({ engine }) => {
  await engine.pipeline([{ name: 'start' }, { name: 'left', needs: ['start'] }, { name: 'right', needs: ['start'] }]);
  const [id] = await engine.queued('start');
  await runStage(engine, 'start');
  await failAll(engine, 'right', 'x'.repeat(200));
  const causes = () =>
    engine.rows(`select s.name as stage, r.error_code from millrace.runs r left join millrace.stages s on s.id = r.failed_stage_id
      where r.entity_id = '${id}'`);
  const cause = [{ stage: 'right', error_code: 'x'.repeat(200) }];
  expect(await causes()).toEqual(cause);
  await retry(engine, (await engine.run(id)).id);
  expect(await causes()).toEqual([{ stage: null, error_code: null }]);
  await runStage(engine, 'left');
  await failAll(engine, 'right');
  await engine.sql.query('select millrace.reset($1, $2)', [(await engine.run(id)).id, 'right']);
  expect(await causes()).toEqual([{ stage: null, error_code: null }]);
});

test('dead letters are counted by stage and error, with the oldest and the newest', async ({ engine }) => {
  await engine.pipeline(two);
  await engine.queued('one', 3);
  await failAll(engine, 'one', 'early');
  const first = await engine.now();
  await engine.advance('1 hour');
  await engine.queued('one', 2);
  await failAll(engine, 'one', 'early');
  await engine.queued('one', 2);
  await runStage(engine, 'one');
  await failAll(engine, 'two', 'late');
  const last = await engine.now();
  expect(await engine.rows('select * from millrace.dead_letter_counts order by stage')).toEqual([
    { pipeline: 'flow', stage: 'one', error_code: 'early', runs: '5', oldest: first, newest: last },
    { pipeline: 'flow', stage: 'two', error_code: 'late', runs: '2', oldest: last, newest: last },
  ]);
  await engine.sql.query(`select millrace.retry(run_id) from millrace.dead_letters where stage = 'one' and can_retry`);
  expect(await engine.rows('select stage, runs from millrace.dead_letter_counts')).toEqual([
    { stage: 'two', runs: '2' },
  ]);
});

test('counts of dead letters end at ten thousand, and say so', async ({ engine }) => {
  await engine.pipeline(two);
  await engine.queued('one');
  await failAll(engine, 'one');
  await engine.sql.query(
    `insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at, failed_stage_id, error_code)
     select r.pipeline_id, r.version_id, 'copy ' || n, r.status, r.created_at, r.finished_at, r.failed_stage_id, r.error_code
     from millrace.runs r, generate_series(1, 10000) n`,
  );
  const counted = await engine.rows('select millrace.capped(runs, 10000) as runs from millrace.dead_letter_counts');
  expect(counted).toEqual([{ runs: '10,000+' }]);
  expect(await engine.value('select millrace.capped(9999, 10000)')).toBe('9,999');
  await engine.sql.query(`delete from millrace.runs where entity_id like 'copy%'`);
});

test('a retried dead letter goes on in its own run with a fresh allowance, and is none any more', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two'], { retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [0] } } }));
  await engine.configureWakeUps();
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  for (let count = 0; count < 2; count++) await worker.report(failed(await worker.takeOne()));
  await worker.leave();
  const run = await engine.run(id);
  const woken = (await engine.wakes()).length;
  await engine.advance('3 seconds');
  await retry(engine, run.id, 'one');
  expect(await engine.wakes()).toHaveLength(woken + 1);
  expect(await letters(engine)).toEqual([]);
  expect(await engine.item(id)).toMatchObject({ one_status: 'queued', one_error: null, one_retry_count: 0 });
  const next = await Worker.of(engine, 'one');
  await next.report(failed(await next.takeOne()));
  expect(await engine.attempts(id)).toEqual(['one 1 failed', 'one 2 failed', 'one 3 failed', 'one 4 queued']);
  await next.leave();
  for (const stage of ['one', 'two']) await runStage(engine, stage);
  expect(await engine.run(id)).toEqual({ ...run, status: 'completed' });
});

test('a cancelled run may be retried where it was stopped', async ({ engine }) => {
  await engine.pipeline(two);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const run = await engine.run(id);
  await engine.sql.query('select millrace.cancel($1)', [run.id]);
  await retry(engine, run.id);
  expect(await engine.attempts(id)).toEqual(['one 1 completed', 'two 1 cancelled', 'two 2 queued']);
  await runStage(engine, 'two');
  expect((await engine.run(id)).status).toBe('completed');
});

test('a retry takes up the branches that were cancelled beside the failed one', async ({ engine }) => {
  await engine.pipeline([
    { name: 'start' },
    { name: 'left', needs: ['start'] },
    { name: 'right', needs: ['start'] },
    { name: 'end', needs: ['left', 'right'] },
  ]);
  const [id] = await engine.queued('start');
  await runStage(engine, 'start');
  await failAll(engine, 'left');
  await retry(engine, (await engine.run(id)).id, 'left');
  expect(await engine.statuses(id)).toEqual({ start: 'completed', left: 'queued', right: 'queued', end: 'pending' });
  for (const stage of ['left', 'right', 'end']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('a run that cannot be retried is refused by its number', async ({ engine }) => {
  await engine.pipeline(two);
  const [live, done, again] = await engine.queued('one', 3);
  const refusal = (run: unknown, stage: string | null = null) =>
    engine.refusal('select millrace.retry($1, $2)', [run, stage]);
  expect(await refusal((await engine.run(live)).id)).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/it is running/),
  });
  expect(await refusal(999)).toMatchObject({ code: 'MR003', message: 'there is no run 999' });
  expect(await refusal(null)).toMatchObject({ code: 'MR003' });
  await runStage(engine, 'one');
  await engine.sql.query(`update public.items set label = 'x'`);
  const worker = await Worker.of(engine, 'two');
  const batch = await worker.take();
  await worker.complete(
    batch.map((item) =>
      item.entity_id === done ? { ...item, outcome: 'completed', result: 1 } : failed(item, { permanent: true }),
    ),
  );
  expect(await refusal((await engine.run(done)).id)).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/it is completed/),
  });
  const failedRun = (await engine.run(again)).id;
  expect(await refusal(failedRun, 'one')).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/stage one of run \d+ cannot be told to retry/),
  });
  expect(await refusal(failedRun, 'ten')).toMatchObject({ code: 'MR003' });
  await engine.queue('two', [again ?? '']);
  expect(await refusal(failedRun)).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/not the latest/),
    hint: `Use the latest: select millrace.run_of('flow', '${again}').`,
  });
});

describe('can_retry says which dead letters retry() takes:', () => {
  /** The rows that can be retried, having asked retry() about each of them. */
  async function canRetry(engine: Engine, pipeline = 'flow') {
    const rows = await engine.rows<{ run_id: string; entity_id: string; can_retry: boolean }>(
      'select run_id, entity_id, can_retry from millrace.dead_letters where pipeline = $1 order by run_id',
      [pipeline],
    );
    for (const row of rows) {
      await engine.sql.query('begin');
      const error = await engine.sql.query('select millrace.retry($1)', [row.run_id]).catch((error) => error);
      await engine.sql.query('rollback');
      expect(error).toMatchObject(row.can_retry ? { rowCount: 1 } : { code: 'MR004' });
    }
    const open = rows.filter((row) => row.can_retry);
    return { listed: rows.length, open: open.map((row) => row.entity_id) };
  }

  test('not one whose entity has a later run, live or over', async ({ engine }) => {
    await engine.pipeline(two);
    const [first = '', second = '', third = ''] = await engine.queued('one', 3);
    await failAll(engine, 'one');
    expect(await canRetry(engine)).toEqual({ listed: 3, open: [first, second, third] });
    await engine.queue('one', [first]);
    expect(await canRetry(engine)).toEqual({ listed: 3, open: [second, third] });
    await failAll(engine, 'one');
    expect(await canRetry(engine)).toEqual({ listed: 4, open: [second, third, first] });
  });

  test('not a child that its parent has given up, until the parent is retried', async ({ engine }) => {
    await defineFamily(engine);
    await startFolders(engine);
    const fanOut = await spawnAll(engine, numbers(1, 2));
    await failAll(engine, 'scan', 'not_found', 'files');
    expect(await canRetry(engine, 'files')).toMatchObject({
      listed: 2,
      open: [expect.any(String), expect.any(String)],
    });
    await engine.sql.query('select public.millrace_collect_children($1)', [[fanOut]]);
    expect(await canRetry(engine, 'files')).toEqual({ listed: 2, open: [] });
    expect((await canRetry(engine, 'folder')).open).toHaveLength(1);
  });
});

test('a retry that waited while the entity was queued anew leaves it to the new run', async ({ engine }) => {
  await engine.pipeline(two);
  const [id] = await engine.queued('one');
  await failAll(engine, 'one');
  const run = (await engine.run(id)).id;
  const user = await openTransaction(engine);
  await user.query(`update public.items set one_status = 'queued' where id = $1`, [id]);
  const waiting = await engine.database.connect();
  const retried = begin(engine.refusal('select millrace.retry($1)', [run], waiting));
  await untilBlocked(engine, waiting);
  await user.query('commit');
  expect(await retried).toMatchObject({ code: 'MR004', message: expect.stringMatching(/not the latest/) });
  expect(await engine.attempts(id)).toEqual(['one 1 failed', 'one 1 queued']);
});
