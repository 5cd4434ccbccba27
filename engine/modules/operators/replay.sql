-- Replaying: retrying all dead letters that meet a condition

-- Retries the dead letters of a pipeline that can be retried and meet a condition {stage,
-- error_code, failed_since, failed_before, limit}. Counts only, to 10,000, unless p_dry_run is
-- false.
create function millrace.replay(
  p_pipeline text, p_condition jsonb default '{}', p_dry_run boolean default true
) returns jsonb
set millrace.plan = by_index
as $$
declare
  c_cap constant int := 10000;
  v_pipeline_id int := (millrace.pipeline_named(p_pipeline)).id;
  v_runs bigint[];
  v_answer jsonb;
begin
  perform millrace.check_request(p_condition, '{"stage": "name", "error_code": "text",
    "failed_since": "time", "failed_before": "time", "limit": "number"}', 'condition');
  if p_condition ? 'stage' then
    perform millrace.stage_named(p_pipeline, p_condition ->> 'stage');
  end if;
  v_runs := array(
    select f.run_id
    from millrace.failed_runs f
    join millrace.stages s on s.id = f.stage_id
      and s.name = coalesce(p_condition ->> 'stage', s.name)
    where f.pipeline_id = v_pipeline_id
      and f.error_code = coalesce(left(p_condition ->> 'error_code', 200), f.error_code)
      and f.failed_at >= coalesce(millrace.request_time(p_condition, 'failed_since'), '-infinity')
      and f.failed_at < coalesce(millrace.request_time(p_condition, 'failed_before'), 'infinity')
      and f.can_retry
    order by f.run_id
    limit least((p_condition ->> 'limit')::int, case when p_dry_run then c_cap end));
  if p_dry_run then
    return jsonb_build_object('matched', cardinality(v_runs), 'replayed', 0,
      'hint', 'Nothing was done: pass p_dry_run => false to replay them.')
      || case when cardinality(v_runs) = c_cap then '{"more": true}' else '{}' end::jsonb;
  end if;
  perform millrace.hold_runs(v_runs);
  v_answer := jsonb_build_object(
    'matched', cardinality(v_runs), 'replayed', millrace.retry_runs(v_runs));
  perform millrace.note('replay', p_pipeline, p_condition ->> 'stage', v_runs,
    jsonb_build_object('filter', p_condition, 'outcome', v_answer));
  return v_answer;
end
$$;
