// Millrace's own RPCs, as the stage runtime calls them: the worker of the map stage spawns in chunks and then waits, workers
// of the child stage complete and claim in one call and collect children after it, in a session beside their own.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { compiled } from '../../../support/definitions.ts';
import type { Engine, Task, Worker } from '../../engine.ts';
import { connectAsService, createEntityTable, type Item, stageWorker } from '../../engines/millrace.ts';
import { oneAtATime } from '../one-at-a-time.ts';

/** How many jobs were done before. */
const earlier = 2_000;
/** As many as the runtime sends at once. */
const chunkSize = 500;
/** As long as the runtime leaves alone at first what is busy. */
const busyPauseMs = 50;
const longestPauseMs = 1_000;

const children = {
  pipeline: 'bench_children',
  entity: { table: 'public.bench_children', key: 'id', projection: 'none' },
  stages: [{ name: 'work', function: 'bench-work', batch_size: 50, max_workers: 8 }],
};
const parents = {
  pipeline: 'bench_parents',
  entity: { table: 'public.bench_parents', key: 'id', projection: 'none' },
  stages: [
    { name: 'split', kind: 'map', child: { pipeline: 'bench_children' }, max_workers: 8 },
    { name: 'join', function: 'bench-join', needs: ['split'] },
  ],
};

/** A system in use: a planner that knows of one row takes any index for as good as another, until the next analyze. */
const history = `
with run as (
  insert into millrace.runs (pipeline_id, version_id, entity_id, status, fan_out_id, item_key, created_at, finished_at)
  select p.id, p.current_version_id, i::text, 'completed', -i / 100, i::text, now(), now()
  from millrace.pipelines p, generate_series(1, $1::int) i where p.name = 'bench_children' returning id, pipeline_id
)
insert into millrace.attempts (run_id, stage_id, number, state, created_at, started_at, finished_at, output)
select r.id, s.id, 1, 'completed', now(), now(), now(), '{}' from run r join millrace.stages s on s.pipeline_id = r.pipeline_id`;

async function seed({ urls, entities }: Task): Promise<void> {
  const owner = new pg.Client({ connectionString: urls.owner });
  await owner.connect();
  for (const definition of [children, parents]) {
    const { rows } = await owner.query('select from millrace.pipelines where name = $1', [definition.pipeline]);
    if (rows.length > 0) continue;
    await createEntityTable(owner, definition.pipeline, 'none');
    await owner.query('select millrace.define($1)', [compiled(definition)]);
  }
  // The engine's tables first: emptying the entities would otherwise delete their runs one by one.
  await owner.query(
    'truncate millrace.runs, millrace.attempts, millrace.claims, millrace.workers, millrace.wake_ups, ' +
      'millrace.fan_outs, millrace.fan_progress, millrace.child_tallies',
  );
  await owner.query('truncate public.bench_children, public.bench_parents');
  await owner.query(
    `insert into public.bench_children (id, label) select i, 'child ' || i from generate_series(1, $1::int) i`,
    [entities],
  );
  await owner.query(`insert into public.bench_parents (id, label) values (1, 'parent')`);
  await owner.query(history, [earlier]);
  await owner.query(`select millrace.start('bench_parents', '1')`);
  for (const name of ['public.bench_children', 'millrace.runs', 'millrace.attempts']) {
    await owner.query(`vacuum analyze ${name}`);
  }
  await owner.end();
}

/** Sends the items in chunks, again when the parent is busy; resolves to the fan-out's number. */
async function spawn(client: pg.Client, worker: string, { attempt, token }: Item, count: number): Promise<number> {
  const text = 'select public.millrace_spawn($1, $2, $3, $4, $5) as answer';
  for (let first = 1; ; first += chunkSize) {
    const last = first + chunkSize > count;
    const length = Math.min(chunkSize, count - first + 1);
    const items = JSON.stringify(Array.from({ length }, (_, place) => ({ key: first + place })));
    for (let pause = busyPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
      const query = { name: 'spawn', text, values: [worker, attempt, token, items, last] };
      const { rows } = await client.query<{ answer: { status: string; fan_out: number } }>(query);
      const { status, fan_out: fanOut } = (rows[0] as (typeof rows)[number]).answer;
      if (status === 'spawned' && last) return fanOut;
      if (status === 'spawned') break;
      if (status !== 'busy') throw new Error(`The chunk from ${first} on was answered ${status}.`);
      await delay(pause);
    }
  }
}

const ignoreFailure = () => {};

async function open({ urls, batch, entities }: Task): Promise<Worker> {
  const [client, collecting] = (await Promise.all([0, 1].map(() => connectAsService(urls.api)))) as [
    pg.Client,
    pg.Client,
  ];
  const host = randomUUID();
  return {
    async run(signal, finished) {
      const pending = new Set<number>();
      const folder = oneAtATime(async () => {
        const values = [[...pending]];
        pending.clear();
        const query = {
          name: 'collect',
          text: 'select public.millrace_collect_children($1) as answer',
          values,
        };
        const { rows } = await collecting.query<{ answer: { wake: { stage: string }[]; busy: number[] } }>(query);
        const { wake, busy } = (rows[0] as (typeof rows)[number]).answer;
        if (wake.some(({ stage }) => stage === 'join')) finished(entities);
        if (busy.length > 0) delay(busyPauseMs, undefined, { signal }).then(() => collect(busy), ignoreFailure);
      });
      const collect = (fanOuts: number[]) => {
        for (const fanOut of fanOuts) pending.add(fanOut);
        folder.ask();
      };
      const splitter = stageWorker(client, parents.pipeline, 'split', host, 1, collect);
      const worker = stageWorker(client, children.pipeline, 'work', host, batch, collect);
      for (const parent of await splitter.claim()) {
        const fanOut = String(await spawn(client, splitter.id, parent, entities));
        for (let pause = busyPauseMs; !(await splitter.wait(parent, 'children', fanOut)); pause *= 2)
          await delay(pause);
      }
      while (!signal.aborted) {
        let items = await worker.claim();
        if (items.length === 0) await delay(1);
        while (items.length > 0) items = await worker.complete(items);
      }
      await folder.settled();
    },
    async close() {
      await Promise.all([client.end(), collecting.end()]);
    },
  };
}

export const engine: Engine = { seed, open };
