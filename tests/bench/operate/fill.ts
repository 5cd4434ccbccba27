// A project as it stands after some months, written by plain inserts: 1,000 stages, a million attempts, of which 300,000 are
// queued, and 20,000 runs that failed.

import type pg from 'pg';
import { compiled } from '../../support/definitions.ts';

/** Ten pipelines of four stages have the runs; sixteen of sixty are there beside them. */
const worked = 10;
const beside = 16;
const passed = 4;
const dead = 20_000;
const queued = 300_000;
/** Attempts of a run that failed, on the average: it did so at the first, second or third stage. */
const ofDead = 2;

export interface Size {
  attempts: number;
  queued: number;
  dead: number;
}

/** A million attempts: `scale` times as many with another number, all parts alike. */
export function sizeOf(scale: number): Size {
  return { attempts: 1_000_000 * scale, queued: queued * scale, dead: dead * scale };
}

/** Defines the pipelines and fills the engine's tables and the entities' one; `owner` is a session of the engine's owner. */
export async function fill(owner: pg.Client, size: Size): Promise<void> {
  await owner.query(`create table public.bench_pages (id bigint primary key, url text not null);
    create index bench_pages_by_url on public.bench_pages (url text_pattern_ops)`);
  for (let number = 1; number <= worked + beside; number += 1) {
    await owner.query('select millrace.define($1)', [compiled(definition(number, number <= worked ? passed : 60))]);
  }
  const completed = Math.round((size.attempts - size.queued - ofDead * size.dead) / passed);
  const runs = completed + size.dead + size.queued;
  await owner.query(
    `insert into public.bench_pages (id, url)
     select n, 'https://example.com/pages/' || n from generate_series(1, $1::int) n`,
    [runs],
  );
  // In the order of their ids: those that completed and failed over eighty days, mixed, then those that are queued.
  await owner.query(writeRuns, [runs, completed + size.dead, Math.round((completed + size.dead) / size.dead)]);
  await owner.query(writeAttempts, [passed]);
  await fillMinutes(owner);
  await owner.query('vacuum analyze');
}

/** A full day of minutes for each stage, and their sum, where the engine keeps such figures. */
async function fillMinutes(owner: pg.Client): Promise<void> {
  const { rows } = await owner.query(`select to_regclass('millrace.sums') is not null as there`);
  if (!rows[0]?.there) return;
  await owner.query(`insert into millrace.sums (unit, pipeline_id, stage_id, at, outcome, n, run_ms, wait_ms, runs, waits)
    select 'minute', s.pipeline_id, s.id, m, o.outcome, o.n, 900 * o.n, 90 * o.n, array_fill(0, '{5}') || o.n || array_fill(0, '{10}'),
      array_fill(0, '{4}') || o.n || array_fill(0, '{11}')
    from millrace.stages s, generate_series(date_trunc('minute', now()) - interval '1 day', now(), interval '1 minute') m,
      (values ('completed', 9), ('failed', 1)) o(outcome, n)`);
  await owner.query(`insert into millrace.sums (unit, pipeline_id, stage_id, at, outcome, n)
    select 'total', m.pipeline_id, m.stage_id, '-infinity', m.outcome, sum(m.n) from millrace.sums m where m.unit = 'minute' group by 2, 3, 5
    on conflict do nothing`);
}

const definition = (number: number, stages: number) => ({
  pipeline: `bench_${number}`,
  entity: { table: 'public.bench_pages', key: 'id', projection: 'none', label: 'url' },
  stages: Array.from({ length: stages }, (_, place) => ({
    name: `stage_${place + 1}`,
    kind: 'function',
    function: 'bench',
    needs: place === 0 ? [] : [`stage_${place}`],
    batch_size: 50,
  })),
});

/** $1 runs, of which the first $2 are over, every $3rd of these failed at one of three stages by one of ten errors. */
const writeRuns = `
  insert into millrace.runs
    (pipeline_id, version_id, entity_id, status, created_at, finished_at, failed_stage_id, error_code)
  select p.id, p.current_version_id, n.n::text,
    (case when n.n > $2 then 'running' when n.n % $3 = 0 then 'failed' else 'completed' end)::millrace.run_status,
    b.at, case when n.n <= $2 then b.at + interval '5 seconds' end,
    case when n.n <= $2 and n.n % $3 = 0 then s.first + (n.n / $3) % 3 end,
    case when n.n <= $2 and n.n % $3 = 0 then 'error_' || (n.n / $3) % 10 end
  from generate_series(1, $1::int) n(n)
  cross join lateral (select now() - interval '80 days' * (1 - n.n::float8 / $1) as at) b
  join lateral (select ('bench_' || 1 + n.n % ${worked}) as name) o on true
  join millrace.pipelines p on p.name = o.name
  join (select s.pipeline_id, min(s.id) as first from millrace.stages s group by s.pipeline_id) s on s.pipeline_id = p.id
  order by n.n`;

/** $1 attempts of each run that completed. */
const writeAttempts = `
  insert into millrace.attempts (run_id, stage_id, number, state, created_at, started_at, finished_at, queue_at, error,
    output, usage)
  select r.id, a.stage_id, 1, a.state, r.created_at, case when a.state <> 'queued' then r.created_at end, r.finished_at,
    case when a.state = 'queued' then r.created_at end,
    case when a.state = 'failed' then jsonb_build_object('code', r.error_code, 'message', 'it failed') end,
    case when a.state = 'completed' then '{"text": "a result of some forty bytes or so"}'::jsonb end,
    case when a.state = 'completed' then '{"cost_usd": 0.001, "input_tokens": 900, "output_tokens": 100}'::jsonb end
  from millrace.runs r
  join (select s.pipeline_id, min(s.id) as first from millrace.stages s group by s.pipeline_id) s
    on s.pipeline_id = r.pipeline_id
  cross join lateral (
    select s.first + n - 1 as stage_id, 'completed'::millrace.attempt_state as state
    from generate_series(1, $1::int) n
    where r.status = 'completed'
    union all
    select s.first, 'queued' where r.status = 'running'
    union all
    select n, 'completed' from generate_series(s.first, r.failed_stage_id - 1) n where r.status = 'failed'
    union all
    select r.failed_stage_id, 'failed' where r.status = 'failed') a
  order by r.id`;
