-- What a definition may say of other pipelines: thresholds on their stages, and runs of them

-- Raises MR001 unless the thresholds of stages count stages of the children that their maps start.
create function millrace.check_thresholds(p_stages jsonb) returns void
language plpgsql stable
as $$
declare
  v_wrong record;
begin
  select s.name, a.stage, m.child ->> 'pipeline' as child into v_wrong
  from jsonb_to_recordset(p_stages) s(name text, after jsonb)
  cross join jsonb_to_recordset(s.after) a(map text, stage text)
  join jsonb_to_recordset(p_stages) m(name text, child jsonb) on m.name = a.map
  where not exists (
      select
      from millrace.pipelines p
      join millrace.version_stages vs on vs.version_id = p.current_version_id
      join millrace.stages c on c.id = vs.stage_id
      where p.name = m.child ->> 'pipeline' and c.name = a.stage)
  limit 1;
  if found then
    raise exception 'stage %: after names the stage % of pipeline %, which does not exist',
      v_wrong.name, to_json(v_wrong.stage), v_wrong.child
      using errcode = 'MR001',
        hint = 'Name a stage of the map''s child pipeline in "stage"; define the child pipeline '
          'first.';
  end if;
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
