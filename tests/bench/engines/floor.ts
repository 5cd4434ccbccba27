// The least that a queue in Postgres can do: one narrow table, one partial index, two statements. No leases, no
// retries, no runs, no projection: what anything more has to be measured against.
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Engine, stageNames, stageResult, type Task, type Worker } from '../engine.ts';

const schema = `
drop schema if exists floor cascade;
create schema floor;
create table floor.jobs (
  id bigint generated always as identity primary key,
  entity_id bigint not null,
  stage smallint not null,
  state smallint not null default 0,
  due_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  result jsonb
);
create index jobs_ready on floor.jobs (stage, due_at) where state = 0;
create function floor.step(p_ids bigint[], p_results jsonb[], p_stage smallint, p_limit int) returns table (id bigint, entity_id bigint)
language plpgsql as $$
begin
  with done as (
    update floor.jobs j set state = 2, finished_at = clock_timestamp(), result = i.result
    from unnest(p_ids, p_results) i(id, result) where j.id = i.id and j.state = 1
    returning j.entity_id, j.stage
  )
  insert into floor.jobs (entity_id, stage) select d.entity_id, d.stage + 1 from done d where d.stage < ${stageNames.length};
  return query
    update floor.jobs j set state = 1, started_at = clock_timestamp()
    where j.id = any (array(
      select q.id from floor.jobs q where q.stage = p_stage and q.state = 0 order by q.due_at limit p_limit for update skip locked
    ))
    returning j.id, j.entity_id;
end $$;
`;

// By `any (array(…))` the rows are fetched by key, whatever the planner believes of a table that grows by the second.
const claim = `
update floor.jobs set state = 1, started_at = clock_timestamp()
where id = any (array(
  select id from floor.jobs where stage = $1 and state = 0 order by due_at limit $2 for update skip locked
))
returning id, entity_id`;

const complete = `
with done as (
  update floor.jobs j set state = 2, finished_at = clock_timestamp(), result = i.result
  from unnest($1::bigint[], $2::jsonb[]) i(id, result) where j.id = i.id and j.state = 1
  returning j.entity_id, j.stage
)
insert into floor.jobs (entity_id, stage) select entity_id, stage + 1 from done where stage < ${stageNames.length}`;

/** Makes an empty floor and returns how long one entity takes through it, claim and complete apart, in milliseconds. */
export async function openSingleLead(client: pg.Client): Promise<() => Promise<number>> {
  await client.query(schema);
  return async () => {
    await client.query('insert into floor.jobs (entity_id, stage) values (1, 1)');
    const started = performance.now();
    for (let stage = 1; stage <= stageNames.length; stage += 1) {
      const { rows } = await client.query<{ id: string }>({ name: 'claim', text: claim, values: [stage, 50] });
      const results = [JSON.stringify(stageResult)];
      await client.query({ name: 'complete', text: complete, values: [rows.map(({ id }) => id), results] });
    }
    return performance.now() - started;
  };
}

async function seed({ urls, entities }: Task): Promise<void> {
  const client = new pg.Client({ connectionString: urls.owner });
  await client.connect();
  await client.query(schema);
  await client.query('insert into floor.jobs (entity_id, stage) select i, 1 from generate_series(1, $1::int) i', [
    entities,
  ]);
  await client.query('vacuum analyze floor.jobs');
  await client.end();
}

type Step = (ids: string[], stage: number) => Promise<string[]>;

/** A step completes the jobs given, which adds the next stage's, and claims the next batch of the same stage. */
function steps(client: pg.Client, batch: number, inOneCall: boolean): Step {
  async function query(name: string, text: string, values: unknown[]): Promise<string[]> {
    const { rows } = await client.query<{ id: string }>({ name, text, values });
    return rows.map((row) => row.id);
  }
  return async (ids, stage) => {
    const results = ids.map(() => JSON.stringify(stageResult));
    if (inOneCall) {
      return query('step', 'select id from floor.step($1, $2, $3::smallint, $4)', [ids, results, stage, batch]);
    }
    if (ids.length > 0) await query('complete', complete, [ids, results]);
    return query('claim', claim, [stage, batch]);
  };
}

async function open({ urls, batch, variant }: Task): Promise<Worker> {
  const client = new pg.Client({ connectionString: urls.owner });
  await client.connect();
  const step = steps(client, batch, variant.startsWith('one call'));
  return {
    async run(signal, finished) {
      while (!signal.aborted) {
        let idle = true;
        for (let stage = 1; stage <= stageNames.length; stage += 1) {
          for (let ids = await step([], stage); ids.length > 0; ) {
            const next = await step(ids, stage);
            if (stage === stageNames.length) finished(ids.length);
            idle = false;
            ids = next;
          }
        }
        if (idle) await delay(1);
      }
    },
    close: () => client.end(),
  };
}

export const engine: Engine = { seed, open };
