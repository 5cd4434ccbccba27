-- Lists failed runs with the error: they failed for good, or used up their attempts. Sorted by time
-- the view reads all dead letters of a pipeline. The newest alone are in
-- public.millrace_runs('{"pipeline": …, "status": "failed"}').
-- can_retry: whether millrace.retry(run_id) can queue the run; false where the row has a later run,
-- or the run's parent has given it up.
create view millrace.dead_letters as
select (d.attempt).id as attempt_id, d.run_id, p.name as pipeline, s.name as stage, d.entity_id,
  d.error_code,
  concat_ws(' ', (d.attempt).error ->> 'message', (d.attempt).error ->> 'detail')
    as error_message,
  (d.attempt).retry_count, d.failed_at, d.can_retry
from (
  select r.id as run_id, r.pipeline_id, r.failed_stage_id as stage_id, r.entity_id, r.error_code,
    r.finished_at as failed_at, (
      select a
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = r.failed_stage_id
      order by a.number desc
      limit 1) as attempt,
    not exists (
      select from millrace.runs o
      where o.entity_id = r.entity_id and o.pipeline_id = r.pipeline_id
        and o.id > r.id)
    and not exists (
      select from millrace.fan_outs f
      where f.id = r.fan_out_id
        and f.state in ('abandoned', 'closed')) as can_retry
  from millrace.runs r
  where r.status = 'failed') d
-- Left joins: a count of the view leaves them out and reads the index alone.
left join millrace.pipelines p on p.id = d.pipeline_id
left join millrace.stages s on s.id = d.stage_id;

-- Counts failed runs by pipeline, stage and error code, to 10,000 each. Lists about 1,000 groups at
-- most.
-- oldest, newest: when the first and the last run of the group failed.
create view millrace.dead_letter_counts as
with recursive cause as (
  select 0 as pipeline_id, 0 as failed_stage_id, '' as error_code
  union all
  select n.pipeline_id, n.failed_stage_id, n.error_code
  from cause c
  cross join lateral (
    select r.pipeline_id, r.failed_stage_id, r.error_code
    from millrace.runs r
    where r.status = 'failed'
      and (r.pipeline_id, r.failed_stage_id, r.error_code)
        > (c.pipeline_id, c.failed_stage_id, c.error_code)
    order by r.pipeline_id, r.failed_stage_id, r.error_code
    limit 1) n
)
select p.name as pipeline, s.name as stage, c.error_code, n.runs, e.oldest, e.newest
from (select * from cause limit 1001) c
join millrace.pipelines p on p.id = c.pipeline_id
join millrace.stages s on s.id = c.failed_stage_id
cross join lateral (
  select min(r.finished_at) as oldest, max(r.finished_at) as newest
  from millrace.runs r
  where r.status = 'failed' and r.pipeline_id = c.pipeline_id
    and r.failed_stage_id = c.failed_stage_id and r.error_code = c.error_code) e
cross join lateral (
  select count(*) as runs
  from (
    select from millrace.runs r
    where r.status = 'failed' and r.pipeline_id = c.pipeline_id
      and r.failed_stage_id = c.failed_stage_id and r.error_code = c.error_code
    limit 10000) l) n;

-- Returns a capped count as text: 10000 with the cap 10000 is "10,000+".
create function millrace.capped(p_count bigint, p_cap int) returns text
immutable
as $$
select to_char(least(p_count, p_cap), 'FM999,999,999,999')
  || case when p_count >= p_cap then '+' else '' end
$$;
