-- Dead letters, and retrying all that meet a condition

-- Failed runs by their numbers: dead_letters without names, and without a look at attempts.
create or replace view millrace.failed_runs as
select r.id as run_id, r.pipeline_id, r.failed_stage_id as stage_id, r.entity_id, r.error_code,
  r.finished_at as failed_at,
  not exists (
    select
    from millrace.runs o
    where o.entity_id = r.entity_id
      and o.pipeline_id = r.pipeline_id
      and o.id > r.id)
  and not exists (
    select
    from millrace.fan_outs f
    where f.id = r.fan_out_id
      and f.state in ('abandoned', 'closed')) as can_retry
from millrace.runs r
where r.status = 'failed';

-- Runs alone say which there are. What only the attempt knows is asked by subselects, so that a
-- count asks nothing, and a list asks for the rows that it shows.

-- What is exhausted or failed for good. Where can_retry is true, try again with millrace.retry(run)
-- or millrace.replay(pipeline, condition).
create or replace view millrace.dead_letters as
select (
    select a.id
    from millrace.attempts a
    where a.run_id = f.run_id
      and a.stage_id = f.stage_id
    order by a.number desc
    limit 1) as attempt_id,
  f.run_id, p.name as pipeline, s.name as stage, f.entity_id, f.error_code,
  (
    select coalesce(a.error ->> 'detail', a.error ->> 'message')
    from millrace.attempts a
    where a.run_id = f.run_id
      and a.stage_id = f.stage_id
    order by a.number desc
    limit 1) as error_message,
  (
    select a.retry_count
    from millrace.attempts a
    where a.run_id = f.run_id
      and a.stage_id = f.stage_id
    order by a.number desc
    limit 1) as retry_count,
  f.failed_at, f.can_retry
from millrace.failed_runs f
join millrace.pipelines p on p.id = f.pipeline_id
join millrace.stages s on s.id = f.stage_id;
comment on column millrace.dead_letters.can_retry is
  'Whether retry() and replay() take it: not where its entity has a later run, nor a child whose '
  'parent has given it up, which goes on with its parent.';

-- How many runs have failed at which stage by which error, and when the oldest and the newest did.
-- It counts to 10,000 each, and shows 1,000 causes at most.
create or replace view millrace.dead_letter_counts as
with recursive cause as (
  (
    select r.pipeline_id, r.failed_stage_id, r.error_code
    from millrace.runs r
    where r.status = 'failed'
    order by r.pipeline_id, r.failed_stage_id, r.error_code
    limit 1)
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
select p.name as pipeline, s.name as stage, c.error_code, n.runs, o.finished_at as oldest,
  y.finished_at as newest
from (select * from cause limit 1000) c
join millrace.pipelines p on p.id = c.pipeline_id
join millrace.stages s on s.id = c.failed_stage_id
cross join lateral (
  select count(*) as runs
  from (
    select
    from millrace.runs r
    where r.status = 'failed'
      and r.pipeline_id = c.pipeline_id
      and r.failed_stage_id = c.failed_stage_id
      and r.error_code = c.error_code
    limit 10000) l) n
cross join lateral (
  select r.finished_at
  from millrace.runs r
  where r.status = 'failed'
    and r.pipeline_id = c.pipeline_id
    and r.failed_stage_id = c.failed_stage_id
    and r.error_code = c.error_code
  order by r.finished_at
  limit 1) o
cross join lateral (
  select r.finished_at
  from millrace.runs r
  where r.status = 'failed'
    and r.pipeline_id = c.pipeline_id
    and r.failed_stage_id = c.failed_stage_id
    and r.error_code = c.error_code
  order by r.finished_at desc
  limit 1) y;

-- Writes a number that was counted to a cap only: 10000 of 10000 is "10,000+".
create function millrace.capped(p_count bigint, p_cap int) returns text
language sql immutable
as $$
  select to_char(least(p_count, p_cap), 'FM999,999,999,999')
    || case when p_count >= p_cap then '+' else '' end
$$;

-- Finds the runs that a replay takes, so many at most, by the index of failed runs.
create function millrace.runs_to_replay(
  p_pipeline text, p_condition jsonb, p_limit int
) returns bigint[]
language plpgsql stable
as $$
declare
  v_pipeline_id int := (select p.id from millrace.pipelines p where p.name = p_pipeline);
  v_stages int[] := array(
    select s.id
    from millrace.stages s
    where s.pipeline_id = v_pipeline_id
      and s.name = coalesce(p_condition ->> 'stage', s.name));
begin
  return array(
    select f.run_id
    from millrace.failed_runs f
    where f.pipeline_id = v_pipeline_id
      and f.stage_id = any (v_stages)
      and f.error_code = coalesce(left(p_condition ->> 'error_code', 200), f.error_code)
      and f.failed_at >= coalesce((p_condition ->> 'failed_since')::timestamptz, '-infinity')
      and f.failed_at < coalesce((p_condition ->> 'failed_before')::timestamptz, 'infinity')
      and f.can_retry
    order by f.run_id
    limit p_limit);
end
$$;

-- Retries the dead letters of a pipeline that can be retried and meet a condition {stage,
-- error_code, failed_since, failed_before, limit}. Counts only, to 10,000, unless p_dry_run is
-- false.
create function millrace.replay(
  p_pipeline text, p_condition jsonb default '{}', p_dry_run boolean default true
) returns jsonb
language plpgsql
set millrace.plan = by_index
as $$
declare
  v_cap constant int := 10000;
  v_limit int := (p_condition ->> 'limit')::int;
  v_runs bigint[];
  v_answer jsonb;
  v_key text;
  v_value jsonb;
begin
  perform millrace.pipeline_named(p_pipeline);
  if jsonb_typeof(p_condition) is distinct from 'object' then
    raise exception 'the condition is %, but must be an object',
      coalesce(jsonb_typeof(p_condition), 'null')
      using errcode = 'MR002',
        hint = 'Use {} for all, or stage, error_code, failed_since, failed_before and limit.';
  end if;
  for v_key, v_value in select c.key, c.value from jsonb_each(p_condition) c order by c.key loop
    if v_key = 'stage' then
      perform millrace.stage_named(p_pipeline, p_condition ->> v_key);
    elsif v_key = 'limit' and jsonb_typeof(v_value) = 'number'
        and v_value::numeric between 1 and 1000000 then
      continue;
    elsif v_key = 'error_code' and jsonb_typeof(v_value) = 'string' then
      continue;
    elsif v_key in ('failed_since', 'failed_before') then
      begin
        perform (p_condition ->> v_key)::timestamptz;
      exception when data_exception then
        raise exception 'condition.% is %, which is no time', v_key, v_value
          using errcode = 'MR002', hint = 'Write a time such as 2026-11-21T08:00:00Z.';
      end;
    else
      raise exception 'condition.% is %, which is not known', v_key, v_value
        using errcode = 'MR002', hint = 'Use stage, error_code (texts), failed_since, '
          || 'failed_before (times) and limit (a number from 1).';
    end if;
  end loop;
  v_runs := millrace.runs_to_replay(
    p_pipeline, p_condition, case when p_dry_run then least(v_limit, v_cap) else v_limit end);
  if p_dry_run then
    return jsonb_build_object('matched', cardinality(v_runs), 'replayed', 0,
      'hint', 'Nothing was done: pass p_dry_run => false to replay them.')
      || case when cardinality(v_runs) = v_cap then '{"more": true}' else '{}' end::jsonb;
  end if;
  perform millrace.hold_runs(v_runs);
  v_answer := jsonb_build_object(
    'matched', cardinality(v_runs), 'replayed', millrace.retry_runs(v_runs));
  perform millrace.note('replay', p_pipeline, p_condition ->> 'stage', v_runs,
    jsonb_build_object('filter', p_condition, 'outcome', v_answer));
  return v_answer;
end
$$;
