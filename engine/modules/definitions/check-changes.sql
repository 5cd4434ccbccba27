-- What a definition may not change under live runs
--
-- millrace.define() calls these once it holds the table, so that no run begins beside them. Each
-- raises MR001 with the number of runs that are in the way and the remedy, or does nothing.

-- Raises MR001 when a definition drops a stage that live runs still have ahead of them: they finish
-- on their own version, with it.
create function millrace.check_dropped_stages(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
as $$
declare
  v_dropped record;
begin
  select s.name, count(*) as runs
  into v_dropped
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
    raise exception 'stage % is dropped, but % live runs still need it', v_dropped.name,
      v_dropped.runs
      using errcode = 'MR001',
        hint = format('Let them finish, or keep the stage %s, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id '
        '= %s.',
        v_dropped.name, p_pipeline_id);
  end if;
end
$$;

-- Raises MR001 when a definition drops a stage that a threshold of a parent pipeline counts.
create function millrace.check_counted_stages(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
as $$
declare
  v_counted record;
begin
  select c.name, s.name as awaiting, p.name as parent
  into v_counted
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
      v_counted.name, v_counted.awaiting, v_counted.parent
      using errcode = 'MR001',
        hint = format('Keep stage %s until pipeline %s is defined without that threshold, then '
        'drop it. A stage of another name is added first, to be counted instead.', v_counted.name,
          v_counted.parent);
  end if;
end
$$;

-- Raises MR001 when a pipeline with live runs is to change its table or key.
create function millrace.check_moved(p_pipeline text, p_table regclass, p_key text)
returns void
language plpgsql
as $$
declare
  v_live record;
begin
  select p.id, p.entity_table, p.entity_key, count(*) as runs
  into v_live
  from millrace.pipelines p
  join millrace.runs r on r.pipeline_id = p.id and r.status = 'running'
  where p.name = p_pipeline
    and (p.entity_table <> p_table or p.entity_key <> p_key)
  group by p.id;
  if found then
    raise exception 'pipeline % cannot move from %.% to %.%: % live runs are filed under the '
      'former',
      p_pipeline, v_live.entity_table, v_live.entity_key, p_table, p_key, v_live.runs
      using errcode = 'MR001', hint = format('Let them finish, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id '
        '= %s.', v_live.id);
  end if;
end
$$;

-- Raises MR001 when a pipeline is to change its table or key under a parent that starts runs of it:
-- a run inside a run is over the same row, and without an insert function an item's key is that of
-- the row.
create function millrace.check_parents(p_pipeline text, p_table regclass, p_key text)
returns void
language plpgsql
as $$
declare
  v_parent record;
begin
  select o.name as pipeline, s.name as stage
  into v_parent
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
      p_pipeline, p_table, p_key, v_parent.stage, v_parent.pipeline
      using errcode = 'MR001',
        hint = 'Define that pipeline without the stage first, or give this one another name.';
  end if;
end
$$;

-- Raises MR001 when a stage whose attempts wait for people or children, or at a gate, is to become
-- one that a worker runs while they wait, or the other way round.
create function millrace.check_changed_kinds(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
as $$
declare
  v_waiting text[] := array['manual', 'pipeline', 'map', 'gate'];
  v_changed record;
begin
  select t.name, t.kind, s ->> 'kind' as to_kind, count(*) as attempts
  into v_changed
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
      v_changed.name, v_changed.kind, v_changed.to_kind, v_changed.attempts
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel their runs; or give the new stage another name.';
  end if;
end
$$;

-- Raises MR001 when a definition changes the child pipeline of a stage that live runs have not
-- done: they would go on with rows of the wrong table.
create function millrace.check_changed_children(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
as $$
declare
  v_changed record;
begin
  select t.name, t.child ->> 'pipeline' as child, count(*) as runs
  into v_changed
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
      v_changed.name, v_changed.child, v_changed.runs
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel them; or give the new stage another name.';
  end if;
end
$$;
