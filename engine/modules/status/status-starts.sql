-- Starts a stage by a written value, or starts it over. A row with a value but no run was adopted,
-- or its runs were pruned: it has done the stages before, but none of a layer at whose gate it
-- waits.
create function millrace.start_at_value(
  p_pipeline_id int, p_stage_id int, p_means text, p_fresh boolean, p_was text, p_value text,
  p_ids text[]
)
as $$
declare
  -- The value itself is written, but not what stands beside it.
  v_shown boolean := p_fresh and p_means = 'start' and (
    select not p.status ?| array['attempts', 'retry_at', 'error']
    from millrace.pipelines p
    where p.id = p_pipeline_id);
  -- Of several stages that are ready at a value the first begins; conditions decide which runs.
  v_by_name boolean := (not p_fresh
      or p_means = 'start' and not millrace.begins_runs(p_pipeline_id, p_stage_id))
    and not exists (
      select
      from millrace.pipelines p
      join millrace.version_stages vs on vs.version_id = p.current_version_id
      join millrace.stages o on o.id = vs.stage_id
      join millrace.stages s on s.id = p_stage_id
      where p.id = p_pipeline_id
        and o.id <> s.id
        and coalesce(o.shows ->> 'queued', o.shows ->> 'asked')
          = coalesce(s.shows ->> 'queued', s.shows ->> 'asked'));
  v_why text;
  v_hint text;
begin
  begin
    perform millrace.queue_stage(p_pipeline_id, p_stage_id, p_ids,
      case when v_shown then '{}' else p_ids end, p_by_name => v_by_name,
      p_done_before => (
        select s.id
        from millrace.pipelines p
        cross join lateral millrace.stages_of_version(p.current_version_id) s
        where p_fresh
          and p.id = p_pipeline_id
          and p_was is not null
          and p_was not in (select e #>> '{}' from jsonb_array_elements(p.status -> 'entries') e)
          and (s.id = p_stage_id or s.shows ->> 'enter' = p_was)
        order by s.place
        limit 1));
  exception when sqlstate 'MR005' then
    get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
    raise exception '% cannot be written to %: %', p_value,
      concat_ws(' at ', millrace.rows_named(p_ids), p_was), v_why
      using errcode = 'MR005', hint = coalesce((
        select format('Write %s instead; the stages after it follow by themselves.', s.ready)
        from millrace.pipelines p
        cross join lateral millrace.stages_of_version(p.current_version_id) s
        where p.id = p_pipeline_id
          and s.name = substring(v_hint from '^Queue (\w+) instead')), v_hint);
  end;
  -- A question that may be taken back leads back to the value from which it was asked.
  update millrace.runs r
  set began_from = p_was
  where r.pipeline_id = p_pipeline_id
    and r.entity_id = any (p_ids)
    and r.status = 'running'
    and (select s.shows -> 'discard' = 'true' from millrace.stages s where s.id = p_stage_id);
end
$$;
