// Figures for a test that writes attempts and runs itself, past the engine that would have counted them.
import type pg from 'pg';

const counting = `
insert into millrace.totals
  (pipeline_id, stage_id, completed, failed, retried, skipped, cancelled)
select s.pipeline_id, s.id,
  count(*) filter (where a.state = 'completed'),
  count(*) filter (where a.state = 'failed' and not a.again),
  count(*) filter (where a.state = 'failed' and a.again),
  count(*) filter (where a.state = 'skipped'),
  count(*) filter (where a.state = 'cancelled')
from (
  select o.stage_id, o.state, n.retry_count is not null as again
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
group by s.pipeline_id, s.id;
insert into millrace.totals (pipeline_id, stage_id, completed, ended, failed, cancelled)
select r.pipeline_id, 0,
  count(*) filter (where r.status = 'completed' and r.ended_as is null),
  count(*) filter (where r.status = 'completed' and r.ended_as is not null),
  count(*) filter (where r.status = 'failed'),
  count(*) filter (where r.status = 'cancelled')
from millrace.runs r
where r.status <> 'running'
group by r.pipeline_id;`;

/** Counts the attempts and runs that are there, without times, and forgets all else. */
export async function countAnew(client: pg.Client): Promise<void> {
  const tables = ['pulses', 'minutes', 'hours', 'totals'].map((name) => `delete from millrace.${name};`);
  await client.query(['begin;', ...tables, counting, 'commit;'].join('\n'));
}
