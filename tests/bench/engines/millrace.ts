// Millrace's own RPCs, as the stage runtime calls them: as service_role, each call with the worker's sequence number,
// complete and the next claim in one call. One worker a stage and connection, as a function's process has one.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { compiled } from '../../support/definitions.ts';
import { type Engine, stageNames, stageResult, type Task, type Worker } from '../engine.ts';

const columns = stageNames
  .map(
    (
      name,
    ) => `${name}_status text not null default 'pending', ${name}_job_id text, ${name}_result jsonb, ${name}_error text,
    ${name}_retry_count int not null default 0, ${name}_started_at timestamptz, ${name}_completed_at timestamptz`,
  )
  .join(',\n');

/** Columns of the entity by the projection; `history` is `status` with a history of every value. */
const projections: Record<string, string> = {
  columns: `, ${columns}`,
  status: ', status_code smallint',
  history: ', status_code smallint, status_changed_at timestamptz',
};
const ready = 10;

/** Makes an entity table: a key, a label and the columns that its projection keeps. */
export async function createEntityTable(client: pg.Client, name: string, projection: string): Promise<void> {
  const projected = projections[projection] ?? '';
  const table = `create table public.${name} (id bigint primary key, label text not null${projected})`;
  await client.query(`${table} with (fillfactor = 50)`);
}

/** The values that a definition gives to the status column: three values a stage, and the history where one is kept. */
function statusOf(projection: string): object | undefined {
  if (!statusOnly(projection)) return undefined;
  const codes = [5, ...stageNames.flatMap((_, place) => [0, 1, 2].map((value) => ready * (place + 1) + value))];
  const history = { table: 'public.bench_values', key: 'entity_id', since: 'status_changed_at' };
  return {
    column: 'status_code',
    values: { all: Object.fromEntries(codes.map((code) => [code, [`code_${code}`, 'A value']])) },
    failed: 5,
    ...(projection === 'history' && { history }),
  };
}

const statusOnly = (projection: string) => projection === 'status' || projection === 'history';

const historyTable = `create table public.bench_values (id bigint generated always as identity primary key,
  entity_id bigint not null references public.bench_history on delete cascade, from_status smallint, to_status smallint not null,
  changed_at timestamptz not null, changed_by text not null, changes jsonb, duration_ms bigint);
  create index on public.bench_values (entity_id, id)`;

/** Makes the entity table and the pipeline of a projection, unless they are there. */
export async function defineChain(client: pg.Client, projection: string): Promise<void> {
  const name = `bench_${projection}`;
  const { rows } = await client.query('select from millrace.pipelines where name = $1', [name]);
  if (rows.length > 0) return;
  await createEntityTable(client, name, projection);
  if (projection === 'history') await client.query(historyTable);
  const status = statusOf(projection);
  const stages = stageNames.map((stage, index) => ({
    name: stage,
    kind: 'function',
    function: `bench-${stage}`,
    needs: stageNames.slice(Math.max(0, index - 1), index),
    batch_size: 50,
    max_workers: 8,
    ...(status && { shows: { queued: 10 * index + 10, started: 10 * index + 11, completed: 10 * index + 12 } }),
  }));
  const shown = status ? { projection: 'status', status } : { projection };
  const definition = { pipeline: name, entity: { table: `public.${name}`, key: 'id', ...shown }, stages };
  await client.query('select millrace.define($1)', [compiled(definition)]);
}

async function seed({ urls, entities, variant }: Task): Promise<void> {
  const projection = projectionOf(variant);
  const owner = new pg.Client({ connectionString: urls.owner });
  await owner.connect();
  await defineChain(owner, projection);
  // The engine's tables first: emptying the entities would otherwise delete their runs one by one.
  await owner.query('truncate millrace.runs, millrace.attempts, millrace.claims, millrace.workers, millrace.wake_ups');
  await owner.query(`truncate public.bench_${projection}${projection === 'history' ? ', public.bench_values' : ''}`);
  await owner.query(
    `insert into public.bench_${projection} (id, label) select i, 'entity ' || i from generate_series(1, $1::int) i`,
    [entities],
  );
  if (projection === 'none') {
    await owner.query(`select millrace.start('bench_none', id::text) from public.bench_none order by id`);
  } else if (statusOnly(projection)) {
    await owner.query(`update public.bench_${projection} set status_code = ${ready}`);
  } else {
    await owner.query(`update public.bench_columns set one_status = 'queued'`);
  }
  for (const name of [`public.bench_${projection}`, 'millrace.runs', 'millrace.attempts', 'millrace.wake_ups']) {
    await owner.query(`vacuum analyze ${name}`);
  }
  await owner.end();
}

function projectionOf(variant: string): string {
  if (variant.includes('with history')) return 'history';
  return ['none', 'status'].find((projection) => variant.includes(`projection ${projection}`)) ?? 'columns';
}

export interface Item {
  attempt: number;
  token: string;
}

interface Answer {
  status: string;
  reason: string | null;
  batch: Item[];
  collect: number[];
  items?: { attempt: number; verdict: string; reason: string | null }[];
}

/** One worker of one stage, on a session of its own or shared with the workers of other stages. */
export interface StageWorker {
  id: string;
  claim(): Promise<Item[]>;
  /** Completes the items and returns the next batch, of `limit` items at most. */
  complete(items: Item[], limit?: number): Promise<Item[]>;
  /** Says that an item waits for a job of a service, and takes nothing new. False: its row is busy, so say it again. */
  wait(item: Item, service: string, jobId: string): Promise<boolean>;
}

/**
 * Makes a worker, which signs on with its first claim. Its calls throw when any item is not accepted. `onCollect` hears of the
 * parents that have something to collect children after a call.
 */
export function stageWorker(
  client: pg.Client,
  pipeline: string,
  stage: string,
  host: string,
  batch: number,
  onCollect?: (fanOuts: number[]) => void,
): StageWorker {
  const id = randomUUID();
  let sequence = 0;
  async function call(name: string, text: string, values: unknown[]): Promise<Answer> {
    const { rows } = await client.query<{ answer: Answer }>({ name, text, values });
    const answer = (rows[0] as { answer: Answer }).answer;
    if (answer.status === 'refused') throw new Error(`A worker of ${stage} was refused: ${answer.reason}`);
    if (answer.collect.length > 0) onCollect?.(answer.collect);
    return answer;
  }
  async function report(reports: object[], limit: number, mayBeBusy = false): Promise<Answer> {
    sequence += 1;
    const text = 'select public.millrace_complete($1, $2, $3, $4) as answer';
    const answer = await call('complete', text, [id, sequence, JSON.stringify(reports), limit]);
    const refused = answer.items?.find(({ verdict }) => verdict !== 'accepted' && !(mayBeBusy && verdict === 'busy'));
    if (refused) throw new Error(`Attempt ${refused.attempt} was answered ${refused.verdict}: ${refused.reason}`);
    return answer;
  }
  return {
    id,
    async claim() {
      sequence += 1;
      const text = 'select public.millrace_claim($1, $2, $3, $4, $5, $6) as answer';
      return (await call('claim', text, [pipeline, stage, id, host, sequence, batch])).batch;
    },
    async complete(items, limit = batch) {
      const completed = { outcome: 'completed', result: stageResult };
      const reports = items.map(({ attempt, token }) => ({ attempt, token, ...completed }));
      return (await report(reports, limit)).batch;
    },
    async wait({ attempt, token }, service, jobId) {
      const answer = await report([{ attempt, token, outcome: 'waiting', service, job_id: jobId }], 0, true);
      return answer.items?.[0]?.verdict === 'accepted';
    },
  };
}

/** A session as the Data API opens it. */
export async function connectAsService(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('set role service_role');
  return client;
}

async function open({ urls, batch, variant }: Task): Promise<Worker> {
  const client = await connectAsService(urls.api);
  const pipeline = `bench_${projectionOf(variant)}`;
  const host = randomUUID();
  const workers = stageNames.map((stage) => stageWorker(client, pipeline, stage, host, batch));
  return {
    async run(signal, finished) {
      while (!signal.aborted) {
        let idle = true;
        for (const worker of workers) {
          for (let items = await worker.claim(); items.length > 0; ) {
            const next = await worker.complete(items);
            if (worker === workers.at(-1)) finished(items.length);
            idle = false;
            items = next;
          }
        }
        if (idle) await delay(1);
      }
    },
    close: () => client.end(),
  };
}

export const engine: Engine = { seed, open };
