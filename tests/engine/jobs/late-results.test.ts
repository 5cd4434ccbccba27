// The fate of a job's end that comes after its attempt was given up, and of one that comes at that very moment.
import { expect } from 'vitest';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { begin, jobEnd, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { type Claimed, completed, resume, Worker, waiting } from '../../support/worker.ts';

const stage = {
  name: 'only',
  kind: 'external',
  completion: { callback: true, poll_seconds: 5, deadline_seconds: 60 },
  retry: { max_attempts: 3, backoff: { kind: 'list', seconds: [10] } },
};

const verdicts = async (engine: Engine, ...items: Row[]) =>
  (await resume(engine, items)).items.map((item) => item.verdict);
const sweep = (engine: Engine) => engine.sql.query('select millrace.sweep()');

interface Overdue {
  id: string;
  worker: Worker;
  first: Claimed;
}

/** An item whose job-1 passed its deadline: its second attempt is queued, in backoff. */
async function overdue(engine: Engine, options: Row = {}): Promise<Overdue> {
  await engine.pipeline([
    { ...stage, ...options },
    { name: 'next', needs: ['only'] },
  ]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const first = await worker.takeOne();
  await worker.report(waiting(first, 'job-1'));
  await engine.advance('61 seconds');
  await sweep(engine);
  return { id: id as string, worker, first };
}

/** Takes the second attempt, which waits for a job of its own. */
async function boughtAgain(engine: Engine, worker: Worker, jobId = 'job-2'): Promise<Claimed> {
  await engine.advance('10 seconds');
  const again = await worker.takeOne();
  await worker.report(waiting(again, jobId));
  return again;
}

test('a late result completes the stage before anything is bought again', async ({ engine }) => {
  const { id, worker, first } = await overdue(engine);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
  expect(await verdicts(engine, jobEnd(first, 'job-1', { result: { pages: 3 } }))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 completed', 'next 1 queued']);
  expect(await engine.item(id)).toMatchObject({ only_status: 'completed', only_result: { pages: 3 } });
  await engine.advance('1 minute');
  expect(await worker.take()).toEqual([]);
  expect(await verdicts(engine, jobEnd(first, 'job-1', { result: 'again' }))).toEqual(['duplicate']);
});

test('a late result completes the stage while its successor is being submitted, whose worker hears duplicate', async ({
  engine,
}) => {
  const { id, worker, first } = await overdue(engine);
  await engine.advance('10 seconds');
  const again = await worker.takeOne();
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['accepted']);
  expect(await worker.report(waiting(again, 'job-2'))).toEqual(['duplicate']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 completed', 'next 1 queued']);
});

test('a late result completes the attempt that waits for another job, whose own result is a duplicate', async ({
  engine,
}) => {
  const { id, worker, first } = await overdue(engine);
  const again = await boughtAgain(engine, worker);
  expect(await verdicts(engine, jobEnd(first, 'job-1', { result: 'first' }))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 completed', 'next 1 queued']);
  expect(await verdicts(engine, jobEnd(again, 'job-2', { result: 'second' }))).toEqual(['duplicate']);
  expect(await engine.item(id)).toMatchObject({ only_job_id: 'job-1', only_result: 'first' });
});

test('a result that comes after the later submission has completed the stage is a duplicate', async ({ engine }) => {
  const { id, worker, first } = await overdue(engine);
  const again = await boughtAgain(engine, worker);
  expect(await verdicts(engine, jobEnd(again, 'job-2', { result: 'second' }))).toEqual(['accepted']);
  expect(await verdicts(engine, jobEnd(first, 'job-1', { result: 'first' }))).toEqual(['duplicate']);
  expect(await engine.item(id)).toMatchObject({ only_job_id: 'job-2', only_result: 'second' });
});

test('of two submissions whose results come in one call the first completes the stage, the second is asked for again', async ({
  engine,
}) => {
  const { worker, first } = await overdue(engine);
  const again = await boughtAgain(engine, worker);
  const ends = [jobEnd(first, 'job-1'), jobEnd(again, 'job-2')];
  expect(await verdicts(engine, ...ends)).toEqual(['accepted', 'busy']);
  expect(await verdicts(engine, ...ends.slice(1))).toEqual(['duplicate']);
});

test('the result of any earlier submission counts, however many deadlines have passed since', async ({ engine }) => {
  const { id, worker, first } = await overdue(engine);
  await boughtAgain(engine, worker);
  await engine.advance('61 seconds');
  await sweep(engine);
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 failed', 'only 3 completed', 'next 1 queued']);
});

test('a retry that was given the same job ends with it, whichever submission the end names', async ({ engine }) => {
  for (const [end, state] of [
    [{ outcome: 'failed', error: { code: 'http_500', message: 'the site is gone', permanent: true } }, 'failed'],
    [{ result: 'the same' }, 'completed'],
  ] as const) {
    const { id, worker, first } = await overdue(engine);
    await boughtAgain(engine, worker, 'job-1');
    expect(await verdicts(engine, jobEnd(first, 'job-1', end))).toEqual(['accepted']);
    expect((await engine.attempts(id))[1]).toBe(`only 2 ${state}`);
    await worker.leave();
  }
});

test('a late callback that names its job alone is handed to the stage that bought it', async ({ engine }) => {
  const { worker, first } = await overdue(engine);
  const owner = () => engine.value(`select public.millrace_job_owner('{"job_id": "job-1"}')`);
  const bought = { stage: 'only', service: 'scraper', entity_id: first.entity_id };
  expect(await owner()).toMatchObject({ ...bought, submission: first.submission });
  const again = await boughtAgain(engine, worker, 'job-1');
  expect(await owner()).toMatchObject({ ...bought, submission: again.submission });
});

test('a late failure changes nothing', async ({ engine }) => {
  const { id, worker, first } = await overdue(engine);
  const failure = { outcome: 'failed', error: { code: 'http_500', message: 'the site is gone', permanent: true } };
  expect(await verdicts(engine, jobEnd(first, 'job-1', failure))).toEqual(['duplicate']);
  await boughtAgain(engine, worker);
  expect(await verdicts(engine, jobEnd(first, 'job-1', failure))).toEqual(['duplicate']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 waiting']);
});

test('a late result that is too large for the stage changes nothing', async ({ engine }) => {
  const { id, first } = await overdue(engine, { result_limit_bytes: 1024 });
  const { items } = await resume(engine, [jobEnd(first, 'job-1', { result: 'x'.repeat(2000) })]);
  expect(items).toMatchObject([{ verdict: 'stale', reason: expect.stringContaining('2002 bytes') }]);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
});

test('a late result counts only for the job, stage and trace that the submission was for', async ({ engine }) => {
  const { first } = await overdue(engine);
  const late = (changes: Row) => jobEnd(first, 'job-1', changes);
  const malformed = [late({ job_id: 'job-9' }), late({ service: 'model' }), late({ stage: 'next' })];
  for (const end of malformed) expect(await verdicts(engine, end)).toEqual(['stale']);
  expect(await verdicts(engine, late({ trace_id: '00000000-0000-4000-8000-000000000000' }))).toEqual(['stale']);
  expect(await verdicts(engine, late({ stage: 'only', trace_id: first.trace_id }))).toEqual(['accepted']);
});

for (const [what, statement] of [
  ['started over', `select millrace.start('flow', $1::text, p_restart => true)`],
  ['reset', `select millrace.reset(r.id, 'only') from millrace.runs r where r.entity_id = $1 and r.status = 'running'`],
  [
    'cancelled and retried',
    `with c as materialized (select millrace.cancel(r.id) from millrace.runs r where r.entity_id = $1) select count(*) from c`,
  ],
] as const) {
  test(`a late result never counts for a stage that was ${what}`, async ({ engine }) => {
    const { id, first } = await overdue(engine);
    await engine.rows(statement, [id]);
    if (what.startsWith('cancelled')) await engine.rows('select millrace.retry($1)', [first.run]);
    const states = await engine.attempts(id);
    expect(states.at(-1)).toMatch(/queued$/);
    expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['stale']);
    expect(await engine.attempts(id)).toEqual(states);
  });
}

test('a late result never counts for a stage that was reset after its run had gone on without it', async ({
  engine,
}) => {
  const { id, first } = await overdue(engine, { retry: { max_attempts: 1 }, on_failure: 'continue' });
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 skipped', 'next 1 queued']);
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['stale']);
  await engine.rows(`select millrace.reset($1, 'only')`, [first.run]);
  const states = await engine.attempts(id);
  expect(states.at(-1)).toBe('only 3 queued');
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['stale']);
  expect(await engine.attempts(id)).toEqual(states);
});

for (const verb of ['complete', 'fail']) {
  test(`a late result never counts once somebody has said ${verb}_stage()`, async ({ engine }) => {
    const { id, worker, first } = await overdue(engine);
    await boughtAgain(engine, worker);
    const said = verb === 'complete' ? `'"by hand"'` : `'no'`;
    await engine.rows(`select millrace.${verb}_stage($1, 'only', ${said})`, [first.run]);
    const states = await engine.attempts(id);
    expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['stale']);
    expect(await engine.attempts(id)).toEqual(states);
  });
}

test('a run that a deadline has failed for good takes a late result once somebody retries it, and not before', async ({
  engine,
}) => {
  const { id, first } = await overdue(engine, { retry: { max_attempts: 1 } });
  expect((await engine.run(id)).status).toBe('failed');
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['stale']);
  await engine.rows('select millrace.retry($1)', [first.run]);
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 completed', 'next 1 queued']);
});

test('a stage that its worker completed itself takes no result of a job', async ({ engine }) => {
  const { worker, first } = await overdue(engine);
  await engine.advance('10 seconds');
  const again = await worker.takeOne();
  expect(await worker.report(completed(again, 'in the call'))).toEqual(['accepted']);
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['duplicate']);
});

/** Makes every session that sets test.pause wait before it locks a batch, until the returned session ends its transaction. */
async function pauseBeforeLocks(engine: Engine) {
  await engine.sql.query(`
    alter function millrace.lock_attempts(bigint[]) rename to lock_at_once;
    create function millrace.lock_attempts(p_attempt_ids bigint[]) returns bigint[] language plpgsql as $$
    begin
      if current_setting('test.pause', true) = 'on' then
        perform pg_advisory_xact_lock(4711);
      end if;
      return millrace.lock_at_once(p_attempt_ids);
    end $$`);
  const holder = await openTransaction(engine);
  await holder.query('select pg_advisory_xact_lock(4711)');
  return holder;
}

for (const [what, state, after] of [
  ['lease', 'started', '61 seconds'],
  ['deadline', 'waiting', '61 seconds'],
] as const) {
  test(`a callback that meets the sweep of its ${what} is taken for the attempt that the sweep has queued`, async ({
    engine,
  }) => {
    await engine.pipeline([stage]);
    const [id] = await engine.queued('only');
    const worker = await Worker.of(engine, 'only');
    const item = await worker.takeOne();
    if (state === 'waiting') await worker.report(waiting(item, 'job-1'));
    await engine.advance(after);
    const holder = await pauseBeforeLocks(engine);
    const callback = await engine.database.connect('service_role');
    await callback.query(`set test.pause = 'on'`);
    const answer = begin(
      callback.query('select public.millrace_resume($1) as answer', [JSON.stringify([jobEnd(item, 'job-1')])]),
    );
    await untilBlocked(engine, callback);
    await sweep(engine);
    expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
    await holder.query('commit');
    expect((await answer).rows[0].answer.items).toMatchObject([{ verdict: 'accepted' }]);
    expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 completed']);
  });
}

test('a late result frees the slot of the attempt that it completes', async ({ engine }) => {
  const { worker, first } = await overdue(engine, { limits: { max_in_flight: 1 } });
  await boughtAgain(engine, worker);
  await engine.queued('only');
  expect(await worker.take()).toEqual([]);
  expect(await verdicts(engine, jobEnd(first, 'job-1'))).toEqual(['accepted']);
  expect(await worker.take()).toHaveLength(1);
});
