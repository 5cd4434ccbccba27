// The time that a claim of 50 costs a stage with limits, beside one without, when 1,000 attempts are queued and when 1,000,000 are.

import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import pg from 'pg';
import { compiled } from '../../support/definitions.ts';
import type { BenchDatabase } from '../database.ts';
import type { Urls } from '../engine.ts';
import { connectAsService, stageWorker } from '../engines/millrace.ts';
import { median, type Result, round } from '../results.ts';

const sizes = [1_000, 1_000_000];
const claims = 60;
const batch = 50;
const keys = 100;

// Limits that are never reached, so that every claim brings a whole batch.
const variants = {
  plain: undefined,
  'in flight and rate': { max_in_flight: 10_000, rate: { count: 1_000_000, per_seconds: 1 } },
  'keys by turns': { concurrency: { column: 'label', limit: 1_000 } },
  'a shared rate': { shared: ['rate'] },
  'all that is shared': { shared: ['all'] },
};
const rate = { count: 1_000_000, per_seconds: 1 };
const sharedLimits = {
  rate: { rate },
  all: { rate, max_in_flight: 10_000, spending: { usd: 1_000_000, per_seconds: 2_678_400 } },
};

interface Queue {
  variant: string;
  size: number;
  claim: () => Promise<number>;
  times: number[];
}

/** Medians in milliseconds; each claim is rolled back, so that the queue keeps its length and no fsync is measured. */
export async function limitedClaim(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const queues: Queue[] = [];
  const clients: pg.Client[] = [];
  for (const size of sizes) {
    progress(
      `intake: queueing ${size.toLocaleString('en-US')} attempts at each of ${Object.keys(variants).length} stages`,
    );
    const { urls, superuser } = await database.copy(`limited_${size}`);
    await fillQueues(urls, superuser, size);
    const client = await connectAsService(urls.api);
    clients.push(client);
    for (const [index, variant] of Object.keys(variants).entries()) {
      queues.push({ variant, size, claim: () => claim(client, `stage_${index}`), times: [] });
    }
  }
  for (let number = 0; number < claims; number += 1) {
    for (const queue of queues) queue.times.push(await queue.claim());
  }
  await Promise.all(clients.map((client) => client.end()));
  const results = queues.map(({ variant, size, times }) => ({
    work: 'intake limited claim',
    engine: 'millrace',
    variant: `${variant}, batch ${batch}, ${size.toLocaleString('en-US')} queued`,
    value: round(median(times.slice(10))),
    unit: 'ms',
  }));
  for (const { variant, value } of results) progress(`intake: limited claim, ${variant}: ${value} ms`);
  return results;
}

/** Writes runs and attempts as intake would, without the triggers: a million by way of them would take minutes. */
async function fillQueues(urls: Urls, superuser: pg.Client, size: number): Promise<void> {
  const owner = new pg.Client({ connectionString: urls.owner });
  await owner.connect();
  await owner.query('create table public.bench_limited (id bigint primary key, label text not null)');
  const stages = Object.values(variants).map((limits, index) => ({
    name: `stage_${index}`,
    batch_size: batch,
    limits,
  }));
  for (const [name, limits] of Object.entries(sharedLimits)) {
    await owner.query('select millrace.define_limit($1, $2)', [name, JSON.stringify(limits)]);
  }
  const entity = { table: 'public.bench_limited', key: 'id', projection: 'none' };
  await owner.query('select millrace.define($1)', [compiled({ pipeline: 'bench_limited', entity, stages })]);
  await owner.end();
  await superuser.query('set session_replication_role = replica');
  await superuser.query(
    `insert into public.bench_limited (id, label) select i, 'key ' || i % $2 from generate_series(1, $1::int) i`,
    [Math.min(size, 20_000), keys],
  );
  await superuser.query(
    `insert into millrace.runs (pipeline_id, version_id, entity_id, created_at)
     select p.id, p.current_version_id, i::text, millrace.now() from millrace.pipelines p, generate_series(1, $1::int) i where p.name = 'bench_limited'`,
    [size],
  );
  await superuser.query(
    `insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, concurrency_group)
     select r.id, s.id, 1, r.created_at, r.created_at, case when s.has_groups then '0key ' || r.entity_id::int % $1 end
     from millrace.runs r join millrace.stages s on s.pipeline_id = r.pipeline_id order by s.id, r.id`,
    [keys],
  );
  // A budget asks what an attempt costs on the average.
  await superuser.query(
    `insert into millrace.sums (unit, pipeline_id, stage_id, at, outcome, n, cost_usd)
     select 'total', s.pipeline_id, s.id, '-infinity', 'completed', 1000, 1 from millrace.stages s`,
  );
  for (const name of ['bench_limited', 'runs', 'attempts']) {
    await superuser.query(`vacuum analyze ${name.startsWith('bench') ? 'public' : 'millrace'}.${name}`);
  }
  await superuser.query('checkpoint');
}

async function claim(client: pg.Client, stage: string): Promise<number> {
  await client.query('begin');
  const worker = stageWorker(client, 'bench_limited', stage, randomUUID(), batch);
  const started = performance.now();
  const items = await worker.claim();
  const took = performance.now() - started;
  await client.query('rollback');
  if (items.length !== batch) throw new Error(`A claim at ${stage} brought ${items.length} attempts, not ${batch}.`);
  return took;
}
