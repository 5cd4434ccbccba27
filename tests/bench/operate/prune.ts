// The time that claims take while a million runs are pruned, beside what they take in the pauses between.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchDatabase } from '../database.ts';
import { connectAsService, stageWorker } from '../engines/millrace.ts';
import { median, type Result, round } from '../results.ts';

const batch = 50;
const burstMs = 3_000;
const pauseMs = 3_000;

/** Fills the project with `runs` old runs, prunes them in bursts, and claims all the while. */
export async function measurePruning(
  database: BenchDatabase,
  runs: number,
  progress: (message: string) => void,
): Promise<Result[]> {
  const { owner, urls } = database;
  progress(`operate: adding ${runs.toLocaleString('en-US')} old runs`);
  await owner.query(oldRuns, [runs]);
  await owner.query('vacuum analyze millrace.runs, millrace.attempts');
  const client = await connectAsService(urls.api);
  // It stays signed on, so that pruning sees somebody at work.
  await stageWorker(client, 'bench_1', 'stage_4', randomUUID(), batch).claim();
  const state = { pruning: false, over: false };
  const times = { pruning: [] as number[], pause: [] as number[] };
  const claiming = (async () => {
    while (!state.over) {
      const before = state.pruning;
      const took = await claimOnce(client);
      if (before === state.pruning) times[before ? 'pruning' : 'pause'].push(took);
      await sleep(5);
    }
  })();
  let pruned = 0;
  let spent = 0;
  for (let more = true; more; ) {
    const ends = performance.now() + burstMs;
    state.pruning = true;
    while (more && performance.now() < ends) {
      const started = performance.now();
      const { rows } = await owner.query<{ answer: { runs: number; more: boolean } }>(
        'select millrace.prune() as answer',
      );
      const answer = rows[0]?.answer ?? { runs: 0, more: false };
      spent += performance.now() - started;
      pruned += answer.runs;
      more = answer.more;
      // The share of the runtime in each of its calls.
      await owner.query('update millrace.workers set heartbeat_at = now()');
    }
    state.pruning = false;
    progress(`operate: ${pruned.toLocaleString('en-US')} runs pruned`);
    await sleep(pauseMs);
  }
  state.over = true;
  await claiming;
  await client.end();
  const slower = median(times.pruning) / median(times.pause);
  const result = (name: string, value: number, unit: string): Result => ({
    work: `operate ${name}`,
    engine: 'millrace',
    variant: `${pruned.toLocaleString('en-US')} runs pruned`,
    value: round(value),
    unit,
  });
  return [
    result('pruning', pruned / (spent / 1000), 'runs/s'),
    result('claim of 50 while pruning', median(times.pruning), 'ms'),
    result('claim of 50 in a pause', median(times.pause), 'ms'),
    result('claims while pruning without a pause', slower, 'times'),
    // pg_cron calls every five seconds, and a call takes half a second while workers are at work.
    result('claims over a round as pg_cron calls it', 1 + 0.1 * (slower - 1), 'times'),
  ];
}

/** Each claim is rolled back, so that the queue keeps its length. */
async function claimOnce(client: import('pg').Client): Promise<number> {
  await client.query('begin');
  const worker = stageWorker(client, 'bench_1', 'stage_1', randomUUID(), batch);
  const started = performance.now();
  await worker.claim();
  const took = performance.now() - started;
  await client.query('rollback');
  return took;
}

const oldRuns = `
  with added as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
    select p.id, p.current_version_id, 'old ' || n, 'completed', o.at, o.at
    from generate_series(1, $1::int) n
    cross join lateral (select now() - interval '100 days' - n * interval '1 second' as at) o
    join millrace.pipelines p on p.name = 'bench_' || 1 + n % 10
    returning id, pipeline_id, created_at
  )
  insert into millrace.attempts (run_id, stage_id, number, state, created_at, started_at, finished_at, output)
  select a.id, s.id, 1, 'completed', a.created_at, a.created_at, a.created_at, '1'
  from added a
  join (select s.pipeline_id, min(s.id) as id from millrace.stages s group by s.pipeline_id) s
    on s.pipeline_id = a.pipeline_id`;
