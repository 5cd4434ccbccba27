import { expect } from 'vitest';
import { RandomSession } from '../support/engine/random-session.ts';
import { type Engine, test } from '../support/engine.ts';
import { diamond, jobEnd } from '../support/sessions.ts';
import { completed, resume, Worker } from '../support/worker.ts';

const options = {
  max_workers: 50,
  kind: 'external',
  completion: { callback: true, poll_seconds: 5, deadline_seconds: 60 },
  retry: { max_attempts: 3, backoff: { kind: 'list', seconds: [0, 10] } },
};
const pipelines = { flow: ['first', 'left', 'right', 'last'], bare: ['left', 'right'] };
const entities = 25;
// More of both under `npm run soak`.
const sessionCount = Number(process.env.SOAK_SESSIONS ?? 8);
const steps = Number(process.env.SOAK_STEPS ?? 60);
const timeLimit = Math.max(60_000, sessionCount * steps * 60);

/** Brings every live run to its end. */
async function finishAll(engine: Engine): Promise<void> {
  for (let round = 0; round < 40; round++) {
    await engine.advance('61 seconds');
    await engine.sql.query('select millrace.sweep()');
    for (const [pipeline, stages] of Object.entries(pipelines)) {
      for (const stage of stages) {
        const worker = await Worker.of(engine, stage, pipeline);
        for (let batch = await worker.take(50); batch.length > 0; ) {
          ({ batch } = await worker.complete(
            batch.map((item) => completed(item, { by: item.attempt })),
            50,
          ));
        }
        await worker.leave();
      }
    }
    const jobs = await engine.rows<{ submission: number; job_id: string }>(
      `select coalesce(submission_id, id)::int as submission, job_id from millrace.attempts where state = 'waiting'`,
    );
    await resume(
      engine,
      jobs.map((job) => jobEnd(job, job.job_id)),
    );
    if ((await engine.value(`select count(*)::int from millrace.runs where status = 'running'`)) === 0) return;
  }
  throw new Error('some runs never end');
}

/** Entities whose columns differ from what their newest run of `flow` came to. */
const mismatches = (stage: string) => `
  select i.id, i.${stage}_status as shown, a.state, a.number from public.items i
  join lateral (select r.id, r.status from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
    where p.name = 'flow' and r.entity_id = i.id::text order by r.id desc limit 1) r on true
  left join lateral (select a.state, a.number, a.output from millrace.attempts a join millrace.stages s on s.id = a.stage_id
    where a.run_id = r.id and s.name = '${stage}' and not a.superseded order by a.number desc limit 1) a on true
  where i.${stage}_status <> case when a.state is null then 'pending' when a.state = 'cancelled' then 'failed' else a.state::text end
     or i.${stage}_result is distinct from case when a.state = 'completed' then a.output end`;

test(
  'sessions that claim, complete, cancel, requeue, delete and sweep at random never deadlock and stay sound',
  async ({ engine }) => {
    const seed = Date.now() % 1_000_000;
    console.info(`seed ${seed}`);
    await engine.pipeline(diamond(options));
    const parallel = [
      { name: 'left', ...options },
      { name: 'right', ...options },
    ];
    await engine.pipeline(parallel, { projection: 'none' }, 'bare');
    const ids = await engine.insert(entities);
    await engine.queue('first', ids);

    const sessions = Array.from(
      { length: sessionCount },
      (_, n) => new RandomSession(engine, seed + n, pipelines, entities),
    );
    let over = false;
    const checks = async () => {
      while (!over) await engine.expectSound();
    };
    const running = Promise.all(sessions.map((session) => session.run(steps))).finally(() => {
      over = true;
    });
    await Promise.all([running, checks()]);
    expect(sessions.flatMap((session) => session.troubles)).toEqual([]);

    await finishAll(engine);
    await engine.expectSound();
    for (const stage of pipelines.flow) expect(await engine.rows(mismatches(stage))).toEqual([]);
  },
  timeLimit,
);
