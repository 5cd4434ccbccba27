// The cost of a claim of 50 when 1,000 attempts are queued, and when 1,000,000 are.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import pg from 'pg';
import type { BenchDatabase } from '../database.ts';
import type { Urls } from '../engine.ts';
import { connectAsService, defineChain, stageWorker } from '../engines/millrace.ts';
import { median, type Result, round } from '../results.ts';

const sizes = [1_000, 1_000_000];
const claims = 60;
const batch = 50;

/** Medians in milliseconds; each claim is rolled back, so that the queue keeps its length and no fsync is measured. */
export async function claimCost(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const queues: { size: number; client: pg.Client; claim: () => Promise<number>; times: number[] }[] = [];
  for (const size of sizes) {
    progress(`intake: queueing ${size.toLocaleString('en-US')} attempts`);
    const { urls, superuser } = await database.copy(`queue_${size}`);
    await fillQueue(urls, superuser, size);
    const client = await connectAsService(urls.api);
    queues.push({ size, client, claim: await claimer(client), times: [] });
  }
  for (let number = 0; number < claims; number += 1) {
    for (const queue of queues) queue.times.push(await queue.claim());
  }
  await Promise.all(queues.map(({ client }) => client.end()));
  const results = queues.map(({ size, times }) => ({
    work: 'intake claim',
    engine: 'millrace',
    variant: `batch ${batch}, ${size.toLocaleString('en-US')} queued`,
    value: round(median(times.slice(10))),
    unit: 'ms',
  }));
  for (const { variant, value } of results) progress(`intake: claim, ${variant}: ${value} ms`);
  return results;
}

/** Writes runs and attempts as intake would, without the triggers: a million by way of them would take minutes. */
async function fillQueue(urls: Urls, superuser: pg.Client, size: number): Promise<void> {
  const owner = new pg.Client({ connectionString: urls.owner });
  await owner.connect();
  await defineChain(owner, 'columns');
  await owner.end();
  await superuser.query(`set session_replication_role = replica`);
  await superuser.query(
    `insert into public.bench_columns (id, label, one_status) select i, 'entity ' || i, 'queued' from generate_series(1, $1::int) i`,
    [Math.min(size, 20_000)],
  );
  await superuser.query(
    `insert into millrace.runs (pipeline_id, version_id, entity_id, created_at)
     select p.id, p.current_version_id, i::text, millrace.now() from millrace.pipelines p, generate_series(1, $1::int) i where p.name = 'bench_columns'`,
    [size],
  );
  await superuser.query(
    `insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at)
     select r.id, s.id, 1, r.created_at, r.created_at from millrace.runs r join millrace.stages s on s.pipeline_id = r.pipeline_id and s.name = 'one' order by r.id`,
  );
  for (const name of ['public.bench_columns', 'millrace.runs', 'millrace.attempts'])
    await superuser.query(`vacuum analyze ${name}`);
  await superuser.query('checkpoint');
}

async function claimer(client: pg.Client): Promise<() => Promise<number>> {
  return async () => {
    await client.query('begin');
    const worker = stageWorker(client, 'bench_columns', 'one', randomUUID(), batch);
    const started = performance.now();
    const items = await worker.claim();
    const took = performance.now() - started;
    await client.query('rollback');
    if (items.length !== batch) throw new Error(`A claim brought ${items.length} attempts, not ${batch}.`);
    return took;
  };
}
