import type pg from 'pg';
import { expect } from 'vitest';
import { type Engine, projectTest, test } from '../../support/engine.ts';
import { jobEnd, openTransaction } from '../../support/sessions.ts';
import { resume, Worker, waiting } from '../../support/worker.ts';

interface Poll {
  jobs: {
    attempt: number;
    submission: number;
    job_id: string;
    stage: string;
    function: string;
    service: string;
    entity_id: string;
    awaits_start: boolean;
  }[];
  more: boolean;
}

/** `count` items of an external stage that wait for job-0, job-1, …, to be polled every 5 seconds. */
async function waitingJobs(engine: Engine, count: number): Promise<number[]> {
  const completion = { poll_seconds: 5, deadline_seconds: 60 };
  await engine.pipeline([{ name: 'only', kind: 'external', completion }]);
  await engine.queued('only', count);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(count);
  await worker.report(...batch.map((item, n) => waiting(item, `job-${n}`)));
  return batch.map((item) => item.attempt);
}

async function poll(client: pg.Client, limit = 10, everyMs: number | null = null): Promise<Poll> {
  return (await client.query('select public.millrace_poll($1, $2) as answer', [limit, everyMs])).rows[0].answer;
}

test('a job is polled after its interval, and then once every interval', async ({ engine }) => {
  const [attempt] = await waitingJobs(engine, 1);
  const client = await engine.database.connect('service_role');
  expect((await poll(client)).jobs).toEqual([]);
  for (let time = 0; time < 3; time++) {
    await engine.advance('5 seconds');
    expect((await poll(client)).jobs).toMatchObject([
      { attempt, submission: attempt, job_id: 'job-0', stage: 'only', function: 'flow-only', awaits_start: true },
    ]);
    expect((await poll(client)).jobs).toEqual([]);
    await engine.advance('4.9 seconds');
    expect((await poll(client)).jobs).toEqual([]);
    await engine.advance('0.1 seconds');
    await poll(client);
  }
});

test('two pollers at once never ask for the same job', async ({ engine }) => {
  const attempts = await waitingJobs(engine, 6);
  await engine.advance('5 seconds');
  const [one, two] = [await engine.database.connect('service_role'), await engine.database.connect('service_role')];
  await one.query('begin');
  const first = await poll(one, 4);
  const second = await poll(two, 10);
  await one.query('commit');
  expect(first).toMatchObject({ more: true });
  expect(first.jobs).toHaveLength(4);
  expect(second).toMatchObject({ more: false });
  expect([...first.jobs, ...second.jobs].map((job) => job.attempt).sort((a, b) => a - b)).toEqual(attempts);
  expect((await poll(two)).jobs).toEqual([]);
});

test('a job that ended while it was being asked for is not polled again', async ({ engine }) => {
  const [attempt] = await waitingJobs(engine, 1);
  const client = await engine.database.connect('service_role');
  await engine.advance('5 seconds');
  await poll(client);
  await resume(engine, [jobEnd({ submission: attempt as number }, 'job-0')]);
  await engine.advance('5 seconds');
  expect((await poll(client)).jobs).toEqual([]);
});

test('a completion does not wait for a poller that holds its job, nor does the poller wait for it', async ({
  engine,
}) => {
  const [attempt, other] = await waitingJobs(engine, 2);
  await engine.advance('5 seconds');
  const [poller, callback] = [
    await engine.database.connect('service_role'),
    await engine.database.connect('service_role'),
  ];
  await callback.query('begin');
  await callback.query('select public.millrace_resume($1)', [
    JSON.stringify([jobEnd({ submission: attempt as number }, 'job-0')]),
  ]);
  expect((await poll(poller)).jobs.map((job) => job.attempt)).toEqual([other]);
  await callback.query('commit');
});

test('a job that is never finished ends at its deadline however often it is polled', async ({ engine }) => {
  await waitingJobs(engine, 1);
  const client = await engine.database.connect('service_role');
  for (let time = 0; time < 12; time++) {
    await engine.advance('5 seconds');
    expect((await poll(client)).jobs).toHaveLength(1);
  }
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ deadlines: 1 });
  expect((await poll(client)).jobs).toEqual([]);
});

test("a poller's own interval goes before the stage's", async ({ engine }) => {
  await waitingJobs(engine, 1);
  const client = await engine.database.connect('service_role');
  await engine.advance('5 seconds');
  expect((await poll(client, 10, 30_000)).jobs).toHaveLength(1);
  await engine.advance('29 seconds');
  expect((await poll(client)).jobs).toEqual([]);
  await engine.advance('1 second');
  expect((await poll(client)).jobs).toHaveLength(1);
});

test('the poller is woken only while a job is due', async ({ engine }) => {
  await engine.configureWakeUps();
  await waitingJobs(engine, 1);
  expect(await engine.value('select millrace.wake_job_poll()')).toBe(false);
  await engine.advance('5 seconds');
  expect(await engine.value('select millrace.wake_job_poll()')).toBe(true);
  const urls = (await engine.wakes()).map((wake) => wake.url);
  expect(urls.at(-1)).toBe('http://project.test/functions/v1/millrace/poll');
});

const schedule = (engine: Engine) => engine.value(`select schedule from cron.job where jobname = 'millrace-poll'`);

test('the poller is scheduled while a job waits, at the shortest interval of any stage, and by nobody else', async ({
  engine,
}) => {
  await engine.sql.query('update millrace.stages set poll_every = null');
  const stage = (seconds?: number) => [
    { name: 'only', kind: 'external', completion: { callback: true, poll_seconds: seconds } },
  ];
  await engine.pipeline(stage(7));
  expect(await schedule(engine)).toBeUndefined();
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.report(waiting(item, 'job-0'));
  await engine.sql.query('select millrace.sweep()');
  expect(await schedule(engine)).toBe('7 seconds');
  await engine.pipeline(stage(1));
  await engine.sql.query('select millrace.sweep()');
  expect(await schedule(engine)).toBe('1 seconds');
  await resume(engine, [jobEnd(item, 'job-0')]);
  await engine.sql.query('select millrace.sweep()');
  expect(await schedule(engine)).toBeUndefined();
});

test('two sweeps at once schedule and unschedule the poller without a fault', async ({ engine }) => {
  const [attempt] = await waitingJobs(engine, 1);
  for (const wanted of ['5 seconds', undefined]) {
    const first = await openTransaction(engine);
    await first.query('select millrace.sweep()');
    await engine.sql.query('select millrace.sweep()');
    await first.query('commit');
    expect(await schedule(engine)).toBe(wanted);
    if (wanted) await resume(engine, [jobEnd({ submission: attempt as number }, 'job-0')]);
  }
  expect(await engine.rows(`select message from millrace.log where code = 'sweep_failed'`)).toEqual([]);
});

projectTest(
  'a poller that cannot be scheduled fails no job: it is reported, and the sweep tries again',
  async ({ engine }) => {
    await engine.configureWakeUps();
    const owner = await engine.database.connect('supabase_admin');
    await owner.query('alter table cron.job add constraint broken check (jobname <> $$millrace-poll$$)');
    const [attempt] = await waitingJobs(engine, 1);
    await engine.sql.query('select millrace.sweep()');
    expect(await engine.rows('select code from millrace.log')).toEqual([{ code: 'sweep_failed' }]);
    await owner.query('alter table cron.job drop constraint broken');
    await engine.sql.query('select millrace.sweep()');
    expect(await schedule(engine)).toBe('2 seconds');
    expect(await resume(engine, [jobEnd({ submission: attempt as number }, 'job-0')])).toMatchObject({
      items: [{ verdict: 'accepted' }],
    });
  },
);

test('jobs that are long due although nobody polls are woken for by the sweep', async ({ engine }) => {
  await engine.configureWakeUps();
  await waitingJobs(engine, 1);
  const polls = async () => (await engine.wakes()).filter((wake) => wake.url.endsWith('/millrace/poll')).length;
  await engine.advance('59 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await polls()).toBe(0);
  await engine.sql.query(`update millrace.attempts set deadline_at = deadline_at + interval '1 hour'`);
  await engine.advance('6 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await polls()).toBe(1);
});

test('a limit or an interval out of bounds is refused', async ({ engine }) => {
  for (const limit of [0, -1, 1001, null]) {
    const refusal = await engine.refusal('select public.millrace_poll($1)', [limit]);
    expect(refusal).toMatchObject({ code: 'MR002', message: expect.stringContaining('p_limit is') });
  }
  const refusal = await engine.refusal('select public.millrace_poll(1, 0)');
  expect(refusal).toMatchObject({ code: 'MR002', message: expect.stringContaining('p_poll_ms is 0') });
});
