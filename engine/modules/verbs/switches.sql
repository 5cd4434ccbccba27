-- Enables or disables a pipeline, or one of its stages, as the request's verb says (unpause or
-- pause). Unpausing wakes the stages with ready work, and returns the remedies of the pauses that
-- still hold back some of the work.
-- p_entry: the number of the journal entry.
create function millrace.switch(
  p_pipeline millrace.pipelines, p_stage millrace.stages, p_request jsonb, p_entry bigint
) returns jsonb
as $$
  v_enabled boolean := p_request ->> 'verb' = 'unpause';

update millrace.pipelines p
set enabled = v_enabled, switched_entry = p_entry
where p.id = p_pipeline.id and p_stage.id is null and p.enabled <> v_enabled;
update millrace.stages s
set enabled = v_enabled, switched_entry = p_entry
where s.id = p_stage.id and s.enabled <> v_enabled;
if not v_enabled then
  return '{}';
end if;
perform millrace.wake(array(
  select s.id
  from millrace.stages s
  where s.pipeline_id = p_pipeline.id
    and s.id = coalesce(p_stage.id, s.id)
    and millrace.has_ready_work(s.id)));
return (
  select jsonb_strip_nulls(jsonb_build_object(
    'now', 'still paused: ' || string_agg(p.remedy, ' ')))
  from millrace.paused p
  where p.pipeline = p_pipeline.name
    and (p_stage.id is null or p.stage is null));
$$;
