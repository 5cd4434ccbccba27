// Measures the cost of watched rows to the workers' transitions: 10,000 while nobody watches, while 200 rows are watched, and while
// 5,000 rows of another pipeline are.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { BenchDatabase } from '../database.ts';
import { stageNames } from '../engine.ts';
import { connectAsService, defineChain, engine, stageWorker } from '../engines/millrace.ts';
import { median, type Result, round } from '../results.ts';

const rounds = 5;
const sessions = 2;
const entities = 2_000;
const transitions = entities * stageNames.length;
const batch = 50;

/** The pipeline whose rows are watched, and how many of them, each by a client of its own: the most messages that there can be. */
const ways: [variant: string, pipeline: string, watched: number][] = [
  ['nobody watches', 'bench_columns', 0],
  ['200 of the rows are watched', 'bench_columns', 200],
  ['5,000 rows of another pipeline are watched', 'bench_none', 5_000],
];

interface Measured {
  /** Of the workers' sessions, for 1,000 transitions. */
  cpuMs: number;
  /** Messages a second, on the average and in the busiest second. */
  messages: number;
  busiest: number;
}

/** Measures each way in turn, several rounds; takes the medians, and of the busiest seconds the busiest. */
export async function watch(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  await defineChain(database.owner, 'none');
  const clients = await Promise.all(Array.from({ length: sessions }, () => connectAsService(database.urls.api)));
  const found = ways.map((): Measured[] => []);
  // The first round is for the sessions' plans.
  for (let number = 0; number <= rounds; number += 1) {
    for (const [place, [variant, pipeline, watched]] of ways.entries()) {
      const measured = await measureOnce(database, clients, pipeline, watched);
      if (number > 0) found[place]?.push(measured);
      progress(
        `watch ${number}/${rounds}: ${variant}: ${round(measured.cpuMs)} ms, ${round(measured.messages)} messages/s`,
      );
    }
  }
  await Promise.all(clients.map((client) => client.end()));
  return ways.flatMap(([variant], place) => asResults(variant, found[place] ?? []));
}

function asResults(variant: string, found: Measured[]): Result[] {
  const result = { work: 'watch', engine: 'millrace', variant };
  return [
    { ...result, value: round(median(found.map(({ cpuMs }) => cpuMs))), unit: 'ms of CPU for 1,000 transitions' },
    { ...result, value: round(median(found.map(({ messages }) => messages))), unit: 'messages/s' },
    { ...result, value: Math.max(...found.map(({ busiest }) => busiest)), unit: 'messages in the busiest second' },
  ];
}

async function measureOnce(
  { owner, superuser, urls }: BenchDatabase,
  clients: pg.Client[],
  pipeline: string,
  watched: number,
): Promise<Measured> {
  await engine.seed({ work: 'chain', engine: 'millrace', variant: 'projection columns', urls, entities, batch });
  await superuser.query('truncate millrace.watches, realtime.messages');
  await superuser.query(
    `insert into millrace.watches (pipeline_id, entity_id, topic, until)
     select p.id, n::text, 'client ' || n, now() + interval '1 hour'
     from millrace.pipelines p, generate_series(1, $2::int) n
     where p.name = $1`,
    [pipeline, watched],
  );
  await superuser.query('analyze millrace.watches');
  const [started, spent] = [performance.now(), await cpuMs(clients)];
  const progress = { left: entities };
  await Promise.all(clients.map((client) => work(client, progress)));
  const cpu = (await cpuMs(clients)) - spent;
  const seconds = (performance.now() - started) / 1000;
  const { rows } = await owner.query<{ messages: number; busiest: number }>(
    `select coalesce(sum(n), 0)::int as messages, coalesce(max(n), 0)::int as busiest
     from (select count(*) as n from realtime.messages group by date_trunc('second', inserted_at)) s`,
  );
  const { messages = 0, busiest = 0 } = rows[0] ?? {};
  return { cpuMs: (cpu / transitions) * 1000, messages: messages / seconds, busiest };
}

/** Works at all stages until all entities have left the last one. */
async function work(client: pg.Client, progress: { left: number }): Promise<void> {
  const host = randomUUID();
  const workers = stageNames.map((stage) => stageWorker(client, 'bench_columns', stage, host, batch));
  while (progress.left > 0) {
    let isIdle = true;
    for (const worker of workers) {
      for (let items = await worker.claim(); items.length > 0; ) {
        const next = await worker.complete(items);
        if (worker === workers.at(-1)) progress.left -= items.length;
        isIdle = false;
        items = next;
      }
    }
    if (isIdle) await delay(1);
  }
}

/** The milliseconds of CPU that the server has spent on sessions, as Linux tells them. */
async function cpuMs(clients: pg.Client[]): Promise<number> {
  let sum = 0;
  for (const client of clients) {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    sum += Number(fs.readFileSync(`/proc/${rows[0]?.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  }
  return sum;
}
