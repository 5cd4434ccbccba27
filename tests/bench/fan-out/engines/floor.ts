// The least that a fan-out in Postgres can do: children inserted by set, one statement that completes a batch, tallies it
// and claims the next, and a counter. No item keys, no retries, leases, versions or policies.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Engine, stageResult, type Task, type Worker } from '../../engine.ts';
import { addTally, closeTotal, createJoinCounter } from '../join-counter.ts';
import { oneAtATime } from '../one-at-a-time.ts';

const chunkSize = 5_000;
const stages = { parent: 1, child: 2, join: 3 } as const;

const schema = `
drop schema if exists floor cascade;
create schema floor;
create table floor.jobs (
  id bigint generated always as identity primary key,
  item int not null,
  stage smallint not null,
  state smallint not null default 0,
  due_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  result jsonb
);
create index jobs_ready on floor.jobs (stage, due_at) where state = 0;
create function floor.step(p_ids bigint[], p_results jsonb[], p_stage smallint, p_limit int) returns table (id bigint)
language plpgsql as $$
begin
  if cardinality(p_ids) > 0 then
    update floor.jobs j set state = 2, finished_at = clock_timestamp(), result = i.result
    from unnest(p_ids, p_results) i(id, result) where j.id = i.id and j.state = 1;
    if p_stage = ${stages.child} then
      insert into join_counter.tallies (done) values (cardinality(p_ids));
    end if;
  end if;
  -- By "any (array(…))" the rows are fetched by key, whatever the planner believes of a table that grows by the second.
  return query
    update floor.jobs j set state = 1, started_at = clock_timestamp()
    where j.id = any (array(
      select q.id from floor.jobs q where q.stage = p_stage and q.state = 0 order by q.due_at limit p_limit for update skip locked
    ))
    returning j.id;
end $$;
create function floor.collect() returns boolean language plpgsql as $$
begin
  if join_counter.collect() then
    insert into floor.jobs (item, stage) values (1, ${stages.join});
    return true;
  end if;
  return false;
end $$;
`;

async function seed({ urls }: Task): Promise<void> {
  const client = new pg.Client({ connectionString: urls.owner });
  await client.connect();
  await client.query(schema);
  await createJoinCounter(client);
  await client.query('insert into floor.jobs (item, stage) values (1, $1)', [stages.parent]);
  const history =
    'insert into floor.jobs (item, stage, state, result) select i, $1, 2, $2 from generate_series(1, 2000) i';
  await client.query(history, [stages.child, JSON.stringify(stageResult)]);
  await client.query('vacuum analyze floor.jobs');
  await client.end();
}

async function open({ urls, batch, entities }: Task): Promise<Worker> {
  const clients = [0, 1].map(() => new pg.Client({ connectionString: urls.owner }));
  const [client, collecting] = clients as [pg.Client, pg.Client];
  await Promise.all(clients.map((one) => one.connect()));

  async function step(ids: string[], stage: number): Promise<string[]> {
    const results = ids.map(() => JSON.stringify(stageResult));
    const text = 'select id from floor.step($1, $2, $3::smallint, $4)';
    const { rows } = await client.query<{ id: string }>({ name: 'step', text, values: [ids, results, stage, batch] });
    return rows.map((row) => row.id);
  }
  async function spawn(): Promise<void> {
    const text = `insert into floor.jobs (item, stage) select i, ${stages.child} from generate_series($1::int, $2::int) i`;
    for (let first = 1; first <= entities; first += chunkSize) {
      await client.query({ name: 'spawn', text, values: [first, Math.min(first + chunkSize - 1, entities)] });
    }
    await client.query(closeTotal, [entities]);
    await client.query(addTally, [0]);
  }
  return {
    async run(signal, finished) {
      const collect = oneAtATime(async () => {
        const { rows } = await collecting.query<{ ready: boolean }>({
          name: 'collect',
          text: 'select floor.collect() as ready',
        });
        if (rows[0]?.ready) finished(entities);
      });
      const parents = await step([], stages.parent);
      if (parents.length > 0) {
        await spawn();
        await step(parents, stages.parent);
        collect.ask();
      }
      while (!signal.aborted) {
        let ids = await step([], stages.child);
        if (ids.length === 0) await delay(1);
        while (ids.length > 0) {
          ids = await step(ids, stages.child);
          collect.ask();
        }
      }
      await collect.settled();
    },
    async close() {
      await Promise.all(clients.map((one) => one.end()));
    },
  };
}

export const engine: Engine = { seed, open };
