-- Switches a pipeline, or one stage of it, on or off, and wakes what goes on. Returns what holds it
-- back still.
create function millrace.switch(
  p_pipeline millrace.pipelines,
  p_stage_id int,
  p_enabled boolean,
  p_line bigint)
returns text
as $$
update millrace.pipelines p
set enabled = p_enabled, switched_line = p_line
where p.id = p_pipeline.id and p_stage_id is null and p.enabled <> p_enabled;
update millrace.stages s
set enabled = p_enabled, switched_line = p_line
where s.id = p_stage_id and s.enabled <> p_enabled;
if not p_enabled then
  return null;
end if;
perform millrace.wake(array(
  select s.id
  from millrace.stages s
  where s.pipeline_id = p_pipeline.id
    and s.id = coalesce(p_stage_id, s.id)
    and millrace.has_ready_work(s.id)));
return (
  select 'still paused: ' || string_agg(p.remedy, ' ')
  from millrace.paused p
  where p.pipeline = p_pipeline.name
    and (p_stage_id is null or p.stage is null));
$$;
