-- Raises MR001 where a definition changes a pipeline's table or key, or stages that live runs have
-- ahead of them or parents count. define() holds the table, so that no run begins beside it.
create function millrace.check_changes(p_pipeline_id int, p_definition jsonb)
as $$
declare
  c_waiting constant text[] := array['manual', 'pipeline', 'map', 'gate'];
  v_table regclass := to_regclass(p_definition #>> '{entity,table}');
  v_key text := p_definition #>> '{entity,key}';
  v_cancel text := format('cancel them: select millrace.cancel(id) from millrace.runs '
    'where status = ''running'' and pipeline_id = %s.', p_pipeline_id);
  v_wrong record;
begin
  with stage as materialized (
    select t.*, s.kind as new_kind, s.child #>> '{pipeline}' as new_child, s.name is null as dropped
    from millrace.stages t
    left join jsonb_to_recordset(p_definition -> 'stages') s(name text, kind text, child jsonb)
      on s.name = t.name
    where t.pipeline_id = p_pipeline_id
  ), moved as materialized (
    select p.*
    from millrace.pipelines p
    where p.id = p_pipeline_id and (p.entity_table <> v_table or p.entity_key <> v_key)
  )
  select f.* into v_wrong
  from (
    select 1 as place, format('pipeline %s cannot move from %s.%s to %s.%s: %s live runs are filed '
      'under the former', p.name, p.entity_table, p.entity_key, v_table, v_key, count(*)) as what,
      'Let them finish, or ' || v_cancel as remedy
    from moved p
    join millrace.runs r on r.pipeline_id = p.id and r.status = 'running'
    group by p.name, p.entity_table, p.entity_key
    union all
    select 2, format('pipeline %s cannot move to %s.%s: stage %s of pipeline %s starts runs of it '
      'by the keys of the former', p.name, v_table, v_key, s.name, o.name),
      'Define that pipeline without the stage first, or give this one another name.'
    from moved p
    join millrace.version_stages vs on vs.child_pipeline_id = p.id
    join millrace.pipelines o on o.current_version_id = vs.version_id
    join millrace.stages s on s.id = vs.stage_id and s.child ->> 'insert' is null
    union all
    select 3, format('stage %s %s, but %s live runs still need it', s.name, w.what, count(*)),
      format('Let them finish, or keep the stage %s, or %s', s.name, v_cancel)
    from stage s
    cross join lateral (values
      (s.dropped, 'is dropped'),
      (s.child ->> 'pipeline' <> s.new_child,
        'has no more ' || (s.child ->> 'pipeline') || ' as its child pipeline')) w(wrong, what)
    join millrace.version_stages vs on vs.stage_id = s.id
    join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
    where w.wrong and not millrace.is_done(r.id, s.id)
    group by s.name, w.what
    union all
    select 4, format('stage %s is dropped, but stage %s of pipeline %s waits until children have '
      'done it', c.name, s.name, p.name), format('Keep stage %s until pipeline %s is defined '
      'without that threshold.', c.name, p.name)
    from stage c
    join millrace.version_stages vs
      on vs.after @> jsonb_build_array(jsonb_build_object('stage', c.id))
    join millrace.pipelines p on p.current_version_id = vs.version_id
    join millrace.stages s on s.id = vs.stage_id
    where c.dropped
    union all
    select 5, format('stage %s cannot change from kind %s to %s while %s attempts of it are under '
      'way', s.name, s.kind, s.new_kind, count(*)),
      'Let them finish, or cancel their runs; or give the new stage another name.'
    from stage s
    join millrace.attempts a on a.stage_id = s.id and a.state in ('queued', 'started', 'waiting')
    where s.kind <> s.new_kind and c_waiting && array[s.kind, s.new_kind]
    group by s.name, s.kind, s.new_kind) f
  order by f.place, f.what
  limit 1;
  if found then
    raise exception '%', v_wrong.what using errcode = 'MR001', hint = v_wrong.remedy;
  end if;
end
$$;
