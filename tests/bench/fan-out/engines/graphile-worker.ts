// graphile-worker as its manual's page on performance has it: add_jobs, a local queue, batched completions and prepared
// statements. It has no results and no fan-in, so each child stores its result and adds to a counter in one statement, and
// whoever finds the counter full adds the join's job.
import { runMigrations } from 'graphile-worker';
import pg from 'pg';
import { type Engine, stageResult, type Task, type Worker } from '../../engine.ts';
import { quiet, runTasks } from '../../engines/graphile-worker.ts';
import { closeTotal, createJoinCounter } from '../join-counter.ts';
import { oneAtATime } from '../one-at-a-time.ts';

const chunkSize = 5_000;

const addChildren = `
select from graphile_worker.add_jobs(array(
  select row('child', json_build_object('item', i), null, null, null, null, null, null)::graphile_worker.job_spec
  from generate_series($1::int, $2::int) i))`;
const storeAndTally = `
with stored as (insert into bench_children_results values ($1, $2))
insert into join_counter.tallies (done) values (1)`;
const collectAndJoin = `
with collect as materialized (select join_counter.collect() as ready)
select ready, case when ready then (select id from graphile_worker.add_job('join')) end from collect`;

async function seed({ urls }: Task): Promise<void> {
  const owner = new pg.Client({ connectionString: urls.owner });
  await owner.connect();
  await owner.query('drop schema if exists graphile_worker cascade');
  await runMigrations({ connectionString: urls.owner, logger: quiet });
  await createJoinCounter(owner);
  await owner.query(
    'drop table if exists bench_children_results; create table bench_children_results (item int primary key, result jsonb not null)',
  );
  await owner.query(`select graphile_worker.add_job('parent')`);
  await owner.end();
}

async function open({ urls, batch, entities }: Task): Promise<Worker> {
  const collecting = new pg.Client({ connectionString: urls.owner });
  await collecting.connect();
  return {
    async run(signal, finished) {
      const collect = oneAtATime(async () => {
        const { rows } = await collecting.query<{ ready: boolean }>({ name: 'collect', text: collectAndJoin });
        if (rows[0]?.ready) finished(entities);
      });
      await runTasks(urls.owner, batch, signal, {
        async parent(_, { withPgClient }) {
          await withPgClient(async (client) => {
            for (let first = 1; first <= entities; first += chunkSize) {
              const values = [first, Math.min(first + chunkSize - 1, entities)];
              await client.query({ name: 'add children', text: addChildren, values });
            }
            await client.query({ name: 'close', text: closeTotal, values: [entities] });
          });
          collect.ask();
        },
        async child(payload, { withPgClient }) {
          const values = [(payload as { item: number }).item, JSON.stringify(stageResult)];
          await withPgClient((client) => client.query({ name: 'store', text: storeAndTally, values }));
          collect.ask();
        },
        // The measuring ends when it is ready.
        async join() {},
      });
      await collect.settled();
    },
    close: () => collecting.end(),
  };
}

export const engine: Engine = { seed, open };
