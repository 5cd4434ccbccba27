// A stage is given twenty times the work that its service can do within a deadline.
import type pg from 'pg';
import { expect } from 'vitest';
import { BusyService, type ServiceJob } from '../../support/engine/busy-service.ts';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { jobEnd } from '../../support/sessions.ts';
import { type Verdict, Worker, waiting } from '../../support/worker.ts';

const capacity = 5;
const jobSeconds = 30;
const deadlineSeconds = 60;
const items = (20 * capacity * deadlineSeconds) / jobSeconds;
const stepSeconds = 15;

interface Play {
  engine: Engine;
  client: pg.Client;
  worker: Worker;
  service: BusyService;
  verdicts: string[];
}

const call = async <T>(client: pg.Client, name: string, argument: unknown): Promise<T> =>
  (await client.query(`select public.${name}($1) as answer`, [argument])).rows[0].answer;

/** As a callback does: the end of each job is told once. */
async function callBack({ client, verdicts }: Play, ended: ServiceJob[]): Promise<void> {
  const ends = ended.map((job) => jobEnd(job, job.id));
  const answer = await call<{ items: Verdict[] }>(client, 'millrace_resume', JSON.stringify(ends));
  verdicts.push(...answer.items.map(({ verdict }) => verdict));
}

/** As a poll does: what has not ended is reported. */
async function poll({ client, service }: Play): Promise<void> {
  const { jobs } = await call<{ jobs: { attempt: number; service: string; job_id: string }[] }>(
    client,
    'millrace_poll',
    1000,
  );
  const reports = jobs.map((job) => ({ ...job, state: service.job(job.job_id).state }));
  await call(client, 'millrace_note_jobs', JSON.stringify(reports));
}

/** As the stage's function does: it submits what it may, and ends when there is nothing more to take. */
async function submit({ worker, service }: Play): Promise<void> {
  for (let batch = await worker.take(50); batch.length > 0; batch = await worker.take(50)) {
    await worker.report(...batch.map((item) => waiting(item, service.submit(item).id)));
  }
}

/** Lets the stage work until nothing is left; resolves to the seconds it took, and those of work that the service did without. */
async function playOut(play: Play, polls: boolean): Promise<{ took: number; idle: number }> {
  const { engine, service } = play;
  let idle = 0;
  for (let took = 0; took <= 2 * items * jobSeconds; took += stepSeconds) {
    await callBack(play, service.work(await engine.now()));
    await submit(play);
    service.work(await engine.now());
    const left = await engine.value<number>(
      `select count(*)::int from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
       where r.status = 'running' and p.name = 'flow'`,
    );
    if (left === 0) return { took, idle };
    idle += (Math.min(capacity, left) - service.running.length) * stepSeconds;
    await engine.advance(`${stepSeconds} seconds`);
    if (polls) await poll(play);
    await engine.sql.query('select millrace.sweep()');
  }
  throw new Error('it never ends');
}

async function overload(engine: Engine, stage: Row): Promise<Play> {
  await engine.pipeline([{ name: 'only', kind: 'external', ...stage }]);
  await engine.queued('only', items);
  const worker = await Worker.of(engine, 'only');
  const client = await engine.database.connect('service_role');
  return { engine, client, worker, service: new BusyService(capacity, jobSeconds), verdicts: [] };
}

async function expectNothingWasted(play: Play, { took, idle }: { took: number; idle: number }): Promise<void> {
  expect(play.service.jobs, 'nothing is bought twice').toHaveLength(items);
  expect(play.verdicts).toEqual(Array(items).fill('accepted'));
  expect(idle, 'the service always has what it can work on').toBe(0);
  expect(took).toBe((items * jobSeconds) / capacity);
  expect(await play.engine.rows('select state, count(*)::int from millrace.attempts group by state')).toEqual([
    { state: 'completed', count: items },
  ]);
}

test('a job that waits in its service’s queue passes no deadline, and nothing is bought twice', async ({ engine }) => {
  const play = await overload(engine, { completion: { poll_seconds: 5, deadline_seconds: deadlineSeconds } });
  await expectNothingWasted(play, await playOut(play, true));
});

test('a service that cannot be asked gets no more than the limit in flight lets pass, and nothing is bought twice', async ({
  engine,
}) => {
  const play = await overload(engine, {
    completion: { callback: true, deadline_seconds: deadlineSeconds },
    limits: { max_in_flight: capacity },
  });
  await expectNothingWasted(play, await playOut(play, false));
});
