-- Dead letters, and retrying all that meet a condition

-- The latest attempts of stages that stand in the way of finished runs. What a parent has given up
-- goes on with the parent alone.
create or replace view millrace.dead_letters as
select a.id as attempt_id, r.id as run_id, p.name as pipeline, s.name as stage, r.entity_id,
  a.error ->> 'code' as error_code,
  coalesce(a.error ->> 'detail', a.error ->> 'message') as error_message,
  a.retry_count, a.finished_at as failed_at,
  not exists (
    select
    from millrace.runs o
    where o.entity_id = r.entity_id
      and o.pipeline_id = any (millrace.ways_of(r.pipeline_id))
      and o.id > r.id)
  and not exists (
    select
    from millrace.fan_outs f
    where f.id = r.fan_out_id
      and f.state in ('abandoned', 'closed')) as can_retry
from millrace.runs r
join millrace.pipelines p on p.id = r.pipeline_id
join millrace.attempts a on a.run_id = r.id and a.state = 'failed' and not a.superseded
join millrace.stages s on s.id = a.stage_id
where r.status = 'failed'
  and not exists (
    select
    from millrace.attempts n
    where n.run_id = a.run_id
      and n.stage_id = a.stage_id
      and n.number > a.number);
comment on view millrace.dead_letters is
  'What is exhausted or failed for good. Where can_retry is true, try again with '
  'millrace.retry(run) or millrace.replay(pipeline, condition).';
comment on column millrace.dead_letters.can_retry is
  'Whether retry() and replay() take it: not where its entity has a later run, nor a child whose '
  'parent has given it up, which goes on with its parent.';

-- Raises MR002 or MR003 unless the condition of a replay is well formed.
create or replace function millrace.check_condition(p_pipeline text, p_condition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
  v_value jsonb;
begin
  if not exists (select from millrace.pipelines p where p.name = p_pipeline) then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Look it up: select name from millrace.pipelines.';
  end if;
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
end
$$;

-- Retries dead letters in bulk by a person's call.
create or replace function millrace.replay(
  p_pipeline text, p_condition jsonb default '{}', p_dry_run boolean default true
) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_runs bigint[];
  v_answer jsonb;
begin
  perform millrace.check_condition(p_pipeline, p_condition);
  v_runs := array(
    select d.run_id
    from millrace.dead_letters d
    where d.pipeline = p_pipeline
      and d.stage = coalesce(p_condition ->> 'stage', d.stage)
      and d.error_code is not distinct from coalesce(p_condition ->> 'error_code', d.error_code)
      and d.failed_at >= coalesce((p_condition ->> 'failed_since')::timestamptz, '-infinity')
      and d.failed_at < coalesce((p_condition ->> 'failed_before')::timestamptz, 'infinity')
      and d.can_retry
    order by d.run_id
    limit (p_condition ->> 'limit')::int);
  if p_dry_run then
    return jsonb_build_object('matched', cardinality(v_runs), 'replayed', 0,
      'hint', 'Nothing was done: pass p_dry_run => false to replay them.');
  end if;
  perform millrace.hold_runs(v_runs);
  v_answer := jsonb_build_object(
    'matched', cardinality(v_runs), 'replayed', millrace.retry_runs(v_runs));
  perform millrace.note('replay', p_pipeline, p_condition ->> 'stage', v_runs,
    jsonb_build_object('filter', p_condition, 'outcome', v_answer));
  return v_answer;
end
$$;
comment on function millrace.replay(text, jsonb, boolean) is
  'Retries the dead letters of a pipeline that can be retried and meet a condition {stage, '
  'error_code, failed_since, failed_before, limit}. Counts only, unless p_dry_run is false.';
