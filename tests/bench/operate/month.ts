// Whether the tables come to a size: a month of so many runs a day, each with two attempts, kept for a week.

import type pg from 'pg';
import { compiled } from '../../support/definitions.ts';
import type { Result } from '../results.ts';

const days = 30;
const keptDays = 7;

/** Sizes of runs and attempts with their indexes after days 10, 20 and 30, and what share of their rows was dead before a vacuum. */
export async function measureMonth(
  superuser: pg.Client,
  runsADay: number,
  progress: (message: string) => void,
): Promise<Result[]> {
  await superuser.query(`create table public.bench_days (id bigint primary key);
    create table public.bench_clock (at timestamptz not null);
    insert into public.bench_clock values ('2026-01-01');
    create or replace function millrace.now() returns timestamptz
    language plpgsql volatile set search_path = pg_catalog, pg_temp
    as $$ begin return (select at from public.bench_clock) + (clock_timestamp() - transaction_timestamp()); end $$`);
  const definition = {
    pipeline: 'bench_days',
    entity: { table: 'public.bench_days', key: 'id', projection: 'none' },
    retention: { days: keptDays },
    stages: [{ name: 'one', kind: 'function', function: 'bench', needs: [] }],
  };
  await superuser.query('select millrace.define($1)', [compiled(definition)]);
  const results: Result[] = [];
  for (let day = 1; day <= days; day += 1) {
    for (const statement of oneDay) await superuser.query(statement, statement.includes('$1') ? [runsADay] : []);
    await superuser.query(`update public.bench_clock set at = at + interval '1 day'`);
    for (let more = true; more; ) {
      const { rows } = await superuser.query<{ more: boolean }>(
        `select (millrace.prune() ->> 'more')::boolean as more`,
      );
      more = rows[0]?.more ?? false;
    }
    await superuser.query('select pg_stat_force_next_flush()');
    const { rows } = await superuser.query<{ mb: number; dead: number }>(sizes);
    const { mb = 0, dead = 0 } = rows[0] ?? {};
    // As autovacuum does once a fiftieth of a table is dead.
    await superuser.query('vacuum millrace.runs, millrace.attempts');
    progress(`operate: day ${day}: ${mb} MB, ${dead} % dead before the vacuum`);
    if (day % 10 === 0) {
      const variant = `${runsADay.toLocaleString('en-US')} runs a day, kept ${keptDays} days, day ${day}`;
      results.push({ work: 'operate size', engine: 'millrace', variant, value: mb, unit: 'MB' });
      results.push({ work: 'operate dead rows before a vacuum', engine: 'millrace', variant, value: dead, unit: '%' });
    }
  }
  return results;
}

/** Runs begin, their attempts are queued, started and completed, and they end, spread over the day, in the life that rows have. */
const oneDay = [
  `insert into millrace.runs (pipeline_id, version_id, entity_id, created_at)
   select p.id, p.current_version_id, n::text, c.at + n * interval '1 day' / $1
   from generate_series(1, $1::int) n, millrace.pipelines p, public.bench_clock c where p.name = 'bench_days'`,
  `insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at)
   select r.id, s.id, n, r.created_at, r.created_at
   from millrace.runs r join millrace.stages s on s.pipeline_id = r.pipeline_id, generate_series(1, 2) n where r.status = 'running'`,
  `update millrace.attempts set state = 'started', started_at = created_at, token = gen_random_uuid() where state = 'queued'`,
  `update millrace.attempts set state = 'completed', finished_at = created_at, queue_at = null, output = '{"text": "a result"}'
   where state = 'started'`,
  `update millrace.runs set status = 'completed', finished_at = created_at where status = 'running'`,
];

const sizes = `select round(sum(pg_total_relation_size(relid)) / 1048576)::int as mb,
  round(100.0 * sum(n_dead_tup) / greatest(1, sum(n_live_tup + n_dead_tup)))::int as dead
  from pg_stat_user_tables where schemaname = 'millrace' and relname in ('runs', 'attempts')`;
