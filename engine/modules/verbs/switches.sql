-- Switches: a person pauses a pipeline or a stage, and lets it go on

-- Switches a pipeline, or one stage of it, on or off, as a line of the journal tells.
create function millrace.switch(
  p_pipeline_id int,
  p_stage_id int,
  p_enabled boolean,
  p_line bigint)
returns void
language plpgsql
as $$
begin
  update millrace.pipelines p
  set enabled = p_enabled, switched_line = p_line
  where p.id = p_pipeline_id and p_stage_id is null and p.enabled <> p_enabled;
  update millrace.stages s
  set enabled = p_enabled, switched_line = p_line
  where s.id = p_stage_id and s.enabled <> p_enabled;
end
$$;

-- Lets a pipeline or a stage go on, wakes it, and says what is still paused.
create function millrace.switch_on(
  p_pipeline millrace.pipelines,
  p_stage millrace.stages,
  p_line bigint)
returns text
language plpgsql
as $$
declare
  v_still record;
begin
  perform millrace.switch(p_pipeline.id, p_stage.id, true, p_line);
  perform millrace.wake(array(
    select s.id
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id
      and s.id = coalesce(p_stage.id, s.id)
      and millrace.has_ready_work(s.id)));
  -- What still holds it back: the pipeline of a stage, or stages of a pipeline.
  select count(*) as count,
    string_agg(coalesce('stage ' || p.stage, 'the pipeline'), ', ') as names,
    string_agg(p.remedy, ' ') as remedies
  into v_still
  from millrace.paused p
  where p.pipeline = p_pipeline.name
    and (p_stage.id is null or p.stage is null);
  return case
    when p_stage.id is null then format('pipeline %s goes on', p_pipeline.name)
    when v_still.count = 0 then
      format('stage %s of pipeline %s goes on', p_stage.name, p_pipeline.name)
    else format('stage %s of pipeline %s is no longer paused by itself',
      p_stage.name, p_pipeline.name)
  end || case
    when v_still.count > 0 then format(', but %s %s still paused: %s', v_still.names,
      case v_still.count when 1 then 'is' else 'are' end, v_still.remedies)
    else ''
  end;
end
$$;
