-- What a definition may not change under live runs
--
-- millrace.define() calls these once it holds the table, so that no run begins beside them. Each
-- raises MR001 with the number of runs that are in the way and the remedy, or does nothing.

-- Raises MR001 where a definition changes stages that live runs have ahead of them, or a parent's
-- threshold counts.
create function millrace.check_changed_stages(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
as $$
declare
  v_wrong record;
  v_waiting text[];
begin
  select s.name, count(*) as runs
  into v_wrong
  from millrace.stages s
  join millrace.version_stages vs on vs.stage_id = s.id
  join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
  where s.pipeline_id = p_pipeline_id
    and not p_definition -> 'graph' ? s.name
    and not exists (
      select
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = s.id
        and a.state in ('completed', 'skipped')
        and not a.superseded)
  group by s.name
  order by s.name
  limit 1;
  if found then
    raise exception 'stage % is dropped, but % live runs still need it', v_wrong.name,
      v_wrong.runs
      using errcode = 'MR001',
        hint = format('Let them finish, or keep the stage %s, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id '
        '= %s.',
        v_wrong.name, p_pipeline_id);
  end if;
  select c.name, s.name as awaiting, p.name as parent
  into v_wrong
  from millrace.stages c
  join millrace.version_stages vs on vs.after @> jsonb_build_array(jsonb_build_object('stage',
    c.id))
  join millrace.pipelines p on p.current_version_id = vs.version_id
  join millrace.stages s on s.id = vs.stage_id
  where c.pipeline_id = p_pipeline_id
    and not p_definition -> 'graph' ? c.name
  order by c.name, p.name, s.name
  limit 1;
  if found then
    raise exception 'stage % is dropped, but stage % of pipeline % waits until children have done '
      'it',
      v_wrong.name, v_wrong.awaiting, v_wrong.parent
      using errcode = 'MR001',
        hint = format('Keep stage %s until pipeline %s is defined without that threshold, then '
        'drop it. A stage of another name is added first, to be counted instead.', v_wrong.name,
          v_wrong.parent);
  end if;
  v_waiting := array['manual', 'pipeline', 'map', 'gate'];
  select t.name, t.kind, s ->> 'kind' as to_kind, count(*) as attempts
  into v_wrong
  from millrace.stages t
  join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
  join millrace.attempts a on a.stage_id = t.id and a.state in ('queued', 'started', 'waiting')
  where t.pipeline_id = p_pipeline_id
    and t.kind <> s ->> 'kind'
    and (t.kind = any (v_waiting) or s ->> 'kind' = any (v_waiting))
  group by t.name, t.kind, s ->> 'kind'
  limit 1;
  if found then
    raise exception 'stage % cannot change from kind % to % while % attempts of it are under way',
      v_wrong.name, v_wrong.kind, v_wrong.to_kind, v_wrong.attempts
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel their runs; or give the new stage another name.';
  end if;
  select t.name, t.child ->> 'pipeline' as child, count(*) as runs
  into v_wrong
  from millrace.stages t
  join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
  join millrace.version_stages vs on vs.stage_id = t.id
  join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
  where t.pipeline_id = p_pipeline_id
    and t.child ->> 'pipeline' <> s #>> '{child,pipeline}'
    and not millrace.is_done(r.id, t.id)
  group by t.name, t.child ->> 'pipeline'
  limit 1;
  if found then
    raise exception 'stage % cannot change its child pipeline %, which % live runs have ahead of '
      'them or under way',
      v_wrong.name, v_wrong.child, v_wrong.runs
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel them; or give the new stage another name.';
  end if;
end
$$;

-- Raises MR001 where a pipeline changes its table or key under live runs, or under a parent.
create function millrace.check_moves_table(p_pipeline text, p_table regclass, p_key text)
returns void
language plpgsql
as $$
declare
  v_wrong record;
begin
  select p.id, p.entity_table, p.entity_key, count(*) as runs
  into v_wrong
  from millrace.pipelines p
  join millrace.runs r on r.pipeline_id = p.id and r.status = 'running'
  where p.name = p_pipeline
    and (p.entity_table <> p_table or p.entity_key <> p_key)
  group by p.id;
  if found then
    raise exception 'pipeline % cannot move from %.% to %.%: % live runs are filed under the '
      'former',
      p_pipeline, v_wrong.entity_table, v_wrong.entity_key, p_table, p_key, v_wrong.runs
      using errcode = 'MR001', hint = format('Let them finish, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id '
        '= %s.', v_wrong.id);
  end if;
  select o.name as pipeline, s.name as stage
  into v_wrong
  from millrace.pipelines p
  join millrace.version_stages vs on vs.child_pipeline_id = p.id
  join millrace.pipelines o on o.current_version_id = vs.version_id
  join millrace.stages s on s.id = vs.stage_id
  where p.name = p_pipeline
    and (p.entity_table <> p_table or p.entity_key <> p_key)
    and s.child ->> 'insert' is null
  limit 1;
  if found then
    raise exception 'pipeline % cannot move to %.%: stage % of pipeline % starts runs of it by '
      'the keys of the former',
      p_pipeline, p_table, p_key, v_wrong.stage, v_wrong.pipeline
      using errcode = 'MR001',
        hint = 'Define that pipeline without the stage first, or give this one another name.';
  end if;
end
$$;
