-- What a definition may say of other pipelines: thresholds on their stages, and runs of them

-- Raises MR001 unless the thresholds of a stage count stages of the children that its maps start.
create function millrace.check_thresholds(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable
as $$
declare
  v_after jsonb;
  v_map jsonb;
begin
  for v_after in select a from jsonb_array_elements(p_stage -> 'after') a loop
    v_map := (
      select s
      from jsonb_array_elements(p_stages) s
      where s ->> 'name' = v_after ->> 'map');
    if not exists (
        select
        from millrace.pipelines p
        join millrace.version_stages vs on vs.version_id = p.current_version_id
        join millrace.stages s on s.id = vs.stage_id
        where p.name = v_map #>> '{child,pipeline}'
          and s.name = v_after ->> 'stage') then
      raise exception 'stage %: after names the stage % of pipeline %, which does not exist',
        p_stage ->> 'name', v_after -> 'stage', v_map #>> '{child,pipeline}'
        using errcode = 'MR001',
          hint = 'Name a stage of the map''s child pipeline in "stage"; define the child pipeline '
            'first.';
    end if;
  end loop;
end
$$;

-- Raises MR001 unless the child pipeline of a map or pipeline stage exists and fits.
create function millrace.check_child(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable
as $$
declare
  v_path text[] := '{child,pipeline}';
  v_child millrace.pipelines;
begin
  if not p_stage ? 'child' then
    return;
  end if;
  select p.*
  into v_child
  from millrace.pipelines p
  where p.name = p_stage #>> v_path;
  if not found then
    perform millrace.refuse_value(p_stage, v_path, 'the name of a pipeline that is defined already',
      'Define the child pipeline first.');
  elsif millrace.contains_pipeline(v_child.id, p_definition ->> 'pipeline') then
    perform millrace.refuse_value(p_stage, v_path,
      'a pipeline that does not start this one in turn',
      'Pipelines that contain one another would never end.');
  elsif p_stage ->> 'kind' = 'pipeline'
    and (v_child.entity_table, v_child.entity_key)
      <> (to_regclass(p_definition #>> '{entity,table}'), p_definition #>> '{entity,key}') then
    perform millrace.refuse_value(p_stage, v_path,
      format('a pipeline over the same table and key (this one is over %s.%s)',
        v_child.entity_table, v_child.entity_key),
      'A stage of kind pipeline runs over the same row; for rows of another table use the kind '
      'map.');
  end if;
end
$$;
