// The moment from which the deadline of an external job counts, as far as the poller tells the engine what services say of their jobs.
import { expect } from 'vitest';
import { planRows } from '../../support/engine/plan-rows.ts';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { Worker, waiting } from '../../support/worker.ts';

/** Items of an external stage with a deadline of 60 seconds that wait for job-0, job-1, …; returns their attempts. */
async function waitingJobs(engine: Engine, count = 1, completion: Row = {}): Promise<number[]> {
  const stage = { kind: 'external', completion: { poll_seconds: 5, deadline_seconds: 60, ...completion } };
  const limits = { max_in_flight: 10_000 };
  await engine.pipeline([{ name: 'only', ...stage, limits, retry: { max_attempts: 1 } }]);
  await engine.queued('only', count);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(count);
  await worker.report(...batch.map((item, n) => waiting(item, `job-${n}`)));
  await worker.leave();
  return batch.map((item) => item.attempt);
}

/** Tells the engine what the service says of these attempts' jobs; resolves to how many rows that changed. */
async function note(engine: Engine, attempts: number[], state: string, changes: Row = {}): Promise<number> {
  const jobs = attempts.map((attempt, n) => ({ attempt, service: 'scraper', job_id: `job-${n}`, state, ...changes }));
  const client = await engine.database.connect('service_role');
  const { rows } = await client.query('select public.millrace_note_jobs($1) as answer', [JSON.stringify(jobs)]);
  engine.database.giveBack(client);
  return rows[0].answer.noted;
}

/** Seconds until the deadline of each waiting attempt. */
const secondsLeft = async (engine: Engine) =>
  (
    await engine.rows<{ left: number }>(
      `select extract(epoch from a.deadline_at - millrace.now())::int as left from millrace.attempts a where a.state = 'waiting' order by a.id`,
    )
  ).map(({ left }) => left);
const passed = async (engine: Engine) =>
  (await engine.value<{ deadlines: number }>('select millrace.sweep()')).deadlines;

test('the deadline does not run while a job waits at its service, and runs whole from when it is heard to run', async ({
  engine,
}) => {
  const attempts = await waitingJobs(engine);
  for (let time = 0; time < 60; time++) {
    await engine.advance('5 seconds');
    await note(engine, attempts, 'queued');
    expect(await passed(engine)).toBe(0);
  }
  await engine.advance('5 seconds');
  expect(await note(engine, attempts, 'running')).toBe(1);
  expect(await secondsLeft(engine)).toEqual([60]);
  await engine.advance('59 seconds');
  expect(await passed(engine)).toBe(0);
  await engine.advance('1 second');
  expect(await passed(engine)).toBe(1);
});

test('reports of many jobs that wait write only those whose deadline is half over', async ({ engine }) => {
  const attempts = await waitingJobs(engine, 40);
  let written = 0;
  for (let time = 0; time < 24; time++) {
    await engine.advance('5 seconds');
    written += await note(engine, attempts, 'queued');
  }
  expect(written).toBe(3 * attempts.length);
  expect(new Set(await secondsLeft(engine))).toEqual(new Set([45]));
});

test('a job that runs is noted once, and its deadline passes however often it is reported', async ({ engine }) => {
  const attempts = await waitingJobs(engine);
  await engine.advance('5 seconds');
  expect(await note(engine, attempts, 'running')).toBe(1);
  for (let time = 0; time < 11; time++) {
    await engine.advance('5 seconds');
    expect(await note(engine, attempts, 'running')).toBe(0);
    // A service that takes up a job once more does not begin its time anew.
    expect(await note(engine, attempts, 'queued')).toBe(0);
  }
  await engine.advance('5 seconds');
  expect(await passed(engine)).toBe(1);
});

test('the poller is told which jobs to report: those that have not been heard to run', async ({ engine }) => {
  const attempts = await waitingJobs(engine, 2);
  await engine.advance('5 seconds');
  await note(engine, attempts.slice(0, 1), 'running');
  const client = await engine.database.connect('service_role');
  const { rows } = await client.query('select public.millrace_poll(10) as answer');
  expect(rows[0].answer.jobs).toMatchObject([{ awaits_start: false }, { awaits_start: true }]);
});

test('a job that nobody asks after has its deadline from the submission', async ({ engine }) => {
  await waitingJobs(engine, 1, { callback: true, poll_seconds: null });
  await engine.advance('61 seconds');
  expect(await passed(engine)).toBe(1);
});

test('a report of another job, service or attempt changes nothing', async ({ engine }) => {
  const attempts = await waitingJobs(engine);
  for (const changes of [{ job_id: 'job-9' }, { service: 'model' }, { attempt: 987_654 }]) {
    expect(await note(engine, attempts, 'running', changes)).toBe(0);
  }
  await engine.sql.query('select millrace.cancel(r.id) from millrace.runs r');
  expect(await note(engine, attempts, 'running')).toBe(0);
});

test('a report waits for nobody: an attempt that somebody holds is left to the next one', async ({ engine }) => {
  const attempts = await waitingJobs(engine, 2);
  const holder = await openTransaction(engine);
  await holder.query('select from millrace.attempts where id = $1 for update', [attempts[0]]);
  expect(await note(engine, attempts, 'running')).toBe(1);
  await holder.query('commit');
  expect(await note(engine, attempts, 'running')).toBe(1);
});

test('a report looks only at the jobs that it names, however many wait', async ({ engine }) => {
  const rows = async () => {
    const jobs = await engine.value(
      `select jsonb_agg(to_jsonb(j)) from (
         select id as attempt, service, job_id, 'queued' as state from millrace.attempts where state = 'waiting' order by id desc limit 20) j`,
    );
    return planRows(engine.database.superUrl, 'select public.millrace_note_jobs($1)', [JSON.stringify(jobs)]);
  };
  await waitingJobs(engine, 20);
  const few = await rows();
  for (let time = 0; time < 4; time++) await waitingJobs(engine, 250);
  expect(few).toBeGreaterThan(20);
  expect(await rows()).toBeLessThan(few * 2);
});

test('a report in a state that there is not changes nothing', async ({ engine }) => {
  const attempts = await waitingJobs(engine);
  await engine.advance('50 seconds');
  expect(await note(engine, attempts, 'done')).toBe(0);
  expect(await secondsLeft(engine)).toEqual([10]);
});
