// Figures for a test that writes attempts and runs itself, past the engine that would have counted them.
import type pg from 'pg';

const counting = `
insert into millrace.sums (unit, pipeline_id, stage_id, at, outcome, n)
select 'total', s.pipeline_id, s.id, '-infinity', a.outcome, count(*)
from (
  select o.stage_id, case when n.retry_count is null then o.state::text else 'retried' end as outcome
  from millrace.attempts o
  left join millrace.attempts n
    on o.state = 'failed'
      and n.run_id = o.run_id
      and n.stage_id = o.stage_id
      and n.number = o.number + 1
      and n.retry_count = o.retry_count + 1
  where o.state in ('completed', 'failed', 'skipped', 'cancelled')
) a
join millrace.stages s on s.id = a.stage_id
group by s.pipeline_id, s.id, a.outcome;
insert into millrace.sums (unit, pipeline_id, stage_id, at, outcome, n)
select 'total', r.pipeline_id, 0, '-infinity', case when r.ended_as is null then r.status::text else 'ended' end, count(*)
from millrace.runs r
where r.status <> 'running'
group by 1, 2, 5;`;

/** Counts the attempts and runs that are there, without times, and forgets all else. */
export async function countAnew(client: pg.Client): Promise<void> {
  const tables = ['pulses', 'sums'].map((name) => `delete from millrace.${name};`);
  await client.query(['begin;', ...tables, counting, 'commit;'].join('\n'));
}
