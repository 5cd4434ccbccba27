-- Chapter 6: definitions
--
-- A pipeline is a graph of stages over one entity table. The graph (which stages, which needs) is versioned, and a run
-- finishes on the version it began with. Everything else about a stage (limits, retry policy, on or off) is a setting of
-- today and applies at once. millrace.define() takes the JSON that `npm run pipelines:sync` writes from the TypeScript.

-- A service takes what it is sent, however long its queue; so a stage that says nothing does not send it everything.
create or replace function millrace.limits_of(p_stage jsonb) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select case
    when millrace.is_kind(p_stage, array['external']) then
      '{"max_in_flight": 100}' || coalesce(p_stage -> 'limits', '{}')
    else p_stage -> 'limits'
  end
$$;
comment on function millrace.limits_of(jsonb) is 'The limits of a definition''s stage: an external one has at most 100 in flight unless it says otherwise.';

create or replace function millrace.save_stages(p_pipeline_id int, p_definition jsonb) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
  insert into millrace.stages as t (pipeline_id, name, kind, function_name, batch_size, max_workers, lease, timeout, retry, callback, poll_every, deadline, apply, result_limit_bytes, enabled,
    on_failure, child, fan_in, decision, agent, limits, has_groups, sla, deadline_from)
  select p_pipeline_id, s ->> 'name', coalesce(s ->> 'kind', 'function'),
    case when not millrace.is_kind(s, array['manual', 'pipeline']) then
      coalesce(s ->> 'function', replace(p_definition ->> 'pipeline', '_', '-') || '-' || replace(s ->> 'name', '_', '-')) end,
    coalesce((s ->> 'batch_size')::int, 10), coalesce((s ->> 'max_workers')::int, 2),
    make_interval(secs => coalesce((s ->> 'lease_seconds')::float8, 60)),
    make_interval(secs => coalesce((s ->> 'timeout_seconds')::float8, 30)),
    coalesce(s -> 'retry', '{}'),
    coalesce((s #>> '{completion,callback}')::boolean, false),
    make_interval(secs => (s #>> '{completion,poll_seconds}')::float8),
    case when s ? 'completion' then make_interval(secs => coalesce((s #>> '{completion,deadline_seconds}')::float8, 600))
      -- What waits for people or children is given a week, unless the definition says otherwise.
      when millrace.is_kind(s, array['manual', 'pipeline', 'map']) then
        make_interval(secs => coalesce((s #>> '{decision,deadline_seconds}')::float8, (s #>> '{fan_in,deadline_seconds}')::float8, 604800)) end,
    s ->> 'apply', coalesce((s ->> 'result_limit_bytes')::int, 1048576), true,
    coalesce(s ->> 'on_failure', 'fail_run'), s -> 'child', s -> 'fan_in', s -> 'decision', s -> 'agent', millrace.limits_of(s),
    coalesce(s -> 'limits' ? 'concurrency' or (s #>> '{limits,priority}')::boolean, false),
    make_interval(secs => (s ->> 'sla_seconds')::float8),
    coalesce(s #>> '{completion,deadline_from}', 'start')
  from jsonb_array_elements(p_definition -> 'stages') s
  on conflict on constraint stages_name_key do update set
    kind = excluded.kind, function_name = excluded.function_name, batch_size = excluded.batch_size, max_workers = excluded.max_workers,
    lease = excluded.lease, timeout = excluded.timeout, retry = excluded.retry, callback = excluded.callback, poll_every = excluded.poll_every,
    deadline = excluded.deadline, apply = excluded.apply, result_limit_bytes = excluded.result_limit_bytes, on_failure = excluded.on_failure,
    child = excluded.child, fan_in = excluded.fan_in, decision = excluded.decision, agent = excluded.agent, limits = excluded.limits, has_groups = excluded.has_groups,
    deadline_from = excluded.deadline_from,
    sla = excluded.sla, sla_changed_at = case when t.sla is distinct from excluded.sla then millrace.now() else t.sla_changed_at end;
  -- What somebody switched off by hand stays off, unless the definition says otherwise.
  update millrace.stages t set enabled = (s ->> 'enabled')::boolean
  from jsonb_array_elements(p_definition -> 'stages') s
  where t.pipeline_id = p_pipeline_id and t.name = s ->> 'name' and s ->> 'enabled' is not null;
  -- In older versions too no worker is to be queued for a stage that waits for a person or a child run now.
  update millrace.version_stages vs set unconditional = false
  from millrace.stages t where t.pipeline_id = p_pipeline_id and t.kind in ('manual', 'pipeline') and vs.stage_id = t.id and vs.unconditional;
$$;
comment on function millrace.save_stages(int, jsonb) is 'Writes the settings of a definition''s stages.';

create or replace function millrace.graph_of(p_definition jsonb) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(g.name, case when g.more = '{}' then g.needs else g.more || jsonb_build_object('needs', g.needs) end)
  from (
    select s ->> 'name' as name, coalesce((select jsonb_agg(n order by n) from jsonb_array_elements_text(s -> 'needs') n), '[]') as needs,
      jsonb_strip_nulls(jsonb_build_object('when', s -> 'when', 'otherwise', s -> 'otherwise', 'after', s -> 'after', 'child', s #> '{child,pipeline}',
        'kind', case when millrace.is_kind(s, array['manual', 'pipeline', 'map']) then s -> 'kind' end)) as more
    from jsonb_array_elements(p_definition -> 'stages') s
  ) g
$$;
comment on function millrace.graph_of(jsonb) is 'The versioned part of a definition: each stage''s needs, or an object of needs, condition, thresholds and child pipeline.';

-- Thresholds with ids for names. The stages they count are watched from now on.
create or replace function millrace.after_of(p_pipeline_id int, p_stages jsonb, p_stage jsonb) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object('map', m.id, 'stage', c.id, 'kind', k, 'n', case when k = 'all' then 0 else (a ->> k)::int end) order by m.id, c.id), '[]')
  from jsonb_array_elements(p_stage -> 'after') a
  join millrace.stages m on m.pipeline_id = p_pipeline_id and m.name = a ->> 'map'
  join millrace.pipelines p on p.name = m.child ->> 'pipeline'
  join millrace.stages c on c.pipeline_id = p.id and c.name = a ->> 'stage'
  join unnest(array['count', 'consecutive', 'all']) k on a ? k
$$;
comment on function millrace.after_of(int, jsonb, jsonb) is 'The thresholds of a stage as version_stages keeps them.';

create or replace function millrace.save_version_stages(p_pipeline_id int, p_version_id int, p_stages jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_order text[] := millrace.order_stages(p_stages);
begin
  insert into millrace.version_stages (version_id, stage_id, position, needs, dependents, is_sink, unconditional, when_path, otherwise, after, child_pipeline_id)
  with recursive edge as (
    select s ->> 'name' as after, e as before from jsonb_array_elements(p_stages) s, unnest(millrace.edges_to(s)) e
  ), reach as (
    select before, after from edge union select r.before, e.after from reach r join edge e on e.before = r.after
  )
  select p_version_id, t.id, array_position(v_order, t.name),
    array(select n.id from millrace.stages n where n.pipeline_id = p_pipeline_id and s -> 'needs' ? n.name order by n.id),
    array(select n.id from reach r join millrace.stages n on n.name = r.after and n.pipeline_id = p_pipeline_id where r.before = t.name order by n.id),
    not exists (select from jsonb_array_elements(p_stages) f where f -> 'needs' ? t.name),
    s ->> 'when' is null and jsonb_array_length(coalesce(s -> 'after', '[]')) = 0 and not millrace.is_kind(s, array['manual', 'pipeline'])
      and not exists (select from reach r join jsonb_array_elements(p_stages) b on b ->> 'name' = r.before where r.after = t.name and b ->> 'otherwise' = 'skip_dependents'),
    (s ->> 'when')::jsonpath, case when s ->> 'when' is not null then coalesce(s ->> 'otherwise', 'skip') end,
    millrace.after_of(p_pipeline_id, p_stages, s), (select c.id from millrace.pipelines c where c.name = s #>> '{child,pipeline}')
  from jsonb_array_elements(p_stages) s join millrace.stages t on t.pipeline_id = p_pipeline_id and t.name = s ->> 'name';
  update millrace.stages t set counted_by_parent = true
  from millrace.version_stages vs, jsonb_array_elements(vs.after) a
  where vs.version_id = p_version_id and t.id = (a ->> 'stage')::int and not t.counted_by_parent;
  update millrace.pipelines p set is_child = true
  from millrace.version_stages vs where vs.version_id = p_version_id and p.id = vs.child_pipeline_id and not p.is_child;
end
$$;
comment on function millrace.save_version_stages(int, int, jsonb) is 'Writes the graph of a new version; the stages that its thresholds count are watched from now on.';

-- A new kind of stage may have changed what is plain in former versions too.
create or replace function millrace.note_awaited(p_pipeline_id int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.stages t set has_conditional_followers = true
  from millrace.versions v join millrace.version_stages f on f.version_id = v.id and not f.unconditional
  where v.pipeline_id = p_pipeline_id and t.pipeline_id = p_pipeline_id and not t.has_conditional_followers
    and (t.id = any (f.needs) or f.after @> jsonb_build_array(jsonb_build_object('map', t.id)));
end
$$;
comment on function millrace.note_awaited(int) is 'Marks the stages right after which some version has a stage that is not plain.';

create or replace function millrace.save_version(p_pipeline_id int, p_definition jsonb) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_graph jsonb := millrace.graph_of(p_definition);
  v_id int;
begin
  select v.id into v_id from millrace.versions v join millrace.pipelines p on p.current_version_id = v.id
  where p.id = p_pipeline_id and v.graph = v_graph;
  if found then
    return v_id;
  end if;
  insert into millrace.versions (pipeline_id, number, graph)
  select p_pipeline_id, coalesce(max(v.number), 0) + 1, v_graph from millrace.versions v where v.pipeline_id = p_pipeline_id
  returning id into v_id;
  perform millrace.save_version_stages(p_pipeline_id, v_id, p_definition -> 'stages');
  update millrace.pipelines set current_version_id = v_id where id = p_pipeline_id;
  return v_id;
end
$$;
comment on function millrace.save_version(int, jsonb) is 'The id of the version with this graph: the current one when it is the same, else a new one.';

-- A stage that the new graph drops may still be ahead of live runs, which finish on their own version with it.
create or replace function millrace.check_dropped_stages(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_dropped record;
begin
  select s.name, count(*) as runs into v_dropped
  from millrace.stages s
  join millrace.version_stages vs on vs.stage_id = s.id
  join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
  where s.pipeline_id = p_pipeline_id and not millrace.graph_of(p_definition) ? s.name
    and not exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = s.id and a.state in ('completed', 'skipped') and not a.superseded)
  group by s.name order by s.name limit 1;
  if found then
    raise exception 'stage % is dropped, but % live runs still need it', v_dropped.name, v_dropped.runs
      using errcode = 'MR001', hint = format('Let them finish, or keep the stage %s, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id = %s.',
        v_dropped.name, p_pipeline_id);
  end if;
end
$$;
comment on function millrace.check_dropped_stages(int, jsonb) is 'Raises MR001 with the number of live runs when a definition drops a stage that they still need.';

create or replace function millrace.check_counted_stages(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_counted record;
begin
  select c.name, s.name as awaiting, p.name as parent into v_counted
  from millrace.stages c
  join millrace.version_stages vs on vs.after @> jsonb_build_array(jsonb_build_object('stage', c.id))
  join millrace.pipelines p on p.current_version_id = vs.version_id join millrace.stages s on s.id = vs.stage_id
  where c.pipeline_id = p_pipeline_id and not millrace.graph_of(p_definition) ? c.name order by c.name, p.name, s.name limit 1;
  if found then
    raise exception 'stage % is dropped, but stage % of pipeline % waits until children have done it', v_counted.name, v_counted.awaiting, v_counted.parent
      using errcode = 'MR001', hint = format('Keep stage %s until pipeline %s is defined without that threshold, then drop it. A stage of another name is added first, to be counted instead.', v_counted.name, v_counted.parent);
  end if;
end
$$;
comment on function millrace.check_counted_stages(int, jsonb) is 'Raises MR001 when a definition drops a stage that a threshold of a parent pipeline counts.';

create or replace function millrace.check_moved(p_pipeline text, p_table regclass, p_key text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_live record;
begin
  select p.id, p.entity_table, p.entity_key, count(*) as runs into v_live
  from millrace.pipelines p join millrace.runs r on r.pipeline_id = p.id and r.status = 'running'
  where p.name = p_pipeline and (p.entity_table <> p_table or p.entity_key <> p_key) group by p.id;
  if found then
    raise exception 'pipeline % cannot move from %.% to %.%: % live runs are filed under the former', p_pipeline, v_live.entity_table, v_live.entity_key, p_table, p_key, v_live.runs
      using errcode = 'MR001', hint = format('Let them finish, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id = %s.', v_live.id);
  end if;
end
$$;

-- A run inside a run is over the same row; and without an insert function an item's key is that of the row.
create or replace function millrace.check_parents(p_pipeline text, p_table regclass, p_key text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_parent record;
begin
  select o.name as pipeline, s.name as stage into v_parent
  from millrace.pipelines p join millrace.version_stages vs on vs.child_pipeline_id = p.id
  join millrace.pipelines o on o.current_version_id = vs.version_id join millrace.stages s on s.id = vs.stage_id
  where p.name = p_pipeline and (p.entity_table <> p_table or p.entity_key <> p_key) and s.child ->> 'insert' is null limit 1;
  if found then
    raise exception 'pipeline % cannot move to %.%: stage % of pipeline % starts runs of it by the keys of the former', p_pipeline, p_table, p_key, v_parent.stage, v_parent.pipeline
      using errcode = 'MR001', hint = 'Define that pipeline without the stage first, or give this one another name.';
  end if;
end
$$;
comment on function millrace.check_parents(text, regclass, text) is 'Raises MR001 when a pipeline is to change its table or key under a parent that starts runs of it.';
comment on function millrace.check_moved(text, regclass, text) is 'Raises MR001 when a pipeline with live runs is to change its table or key.';

-- A stage whose attempts wait for people or children cannot turn into one that a worker runs while they wait, or the other way.
create or replace function millrace.check_changed_kinds(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed record;
begin
  select t.name, t.kind, coalesce(s ->> 'kind', 'function') as to_kind, count(*) as attempts into v_changed
  from millrace.stages t join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
  join millrace.attempts a on a.stage_id = t.id and a.state in ('queued', 'started', 'waiting')
  where t.pipeline_id = p_pipeline_id and t.kind <> coalesce(s ->> 'kind', 'function')
    and (t.kind in ('manual', 'pipeline', 'map') or millrace.is_kind(s, array['manual', 'pipeline', 'map']))
  group by t.name, t.kind, s ->> 'kind' limit 1;
  if found then
    raise exception 'stage % cannot change from kind % to % while % attempts of it are under way', v_changed.name, v_changed.kind, v_changed.to_kind, v_changed.attempts
      using errcode = 'MR001', hint = 'Let them finish, or cancel their runs; or give the new stage another name.';
  end if;
end
$$;
comment on function millrace.check_changed_kinds(int, jsonb) is 'Raises MR001 when a definition changes the kind of a stage in a way that its live attempts could not follow.';

-- Runs that began with another child pipeline would go on with rows of the wrong table.
create or replace function millrace.check_changed_children(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed record;
begin
  select t.name, t.child ->> 'pipeline' as child, count(*) as runs into v_changed
  from millrace.stages t join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
  join millrace.version_stages vs on vs.stage_id = t.id
  join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
  where t.pipeline_id = p_pipeline_id and t.child ->> 'pipeline' <> s #>> '{child,pipeline}' and not millrace.is_done(r.id, t.id)
  group by t.name, t.child ->> 'pipeline' limit 1;
  if found then
    raise exception 'stage % cannot change its child pipeline %, which % live runs have ahead of them or under way', v_changed.name, v_changed.child, v_changed.runs
      using errcode = 'MR001', hint = 'Let them finish, or cancel them; or give the new stage another name.';
  end if;
end
$$;
comment on function millrace.check_changed_children(int, jsonb) is 'Raises MR001 when a definition changes the child pipeline of a stage that live runs have not done.';

create or replace function millrace.define(p_definition jsonb) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline_id int;
  v_version_id int;
  v_table regclass;
begin
  perform millrace.check_definition(p_definition);
  v_table := to_regclass(p_definition #>> '{entity,table}');
  perform millrace.check_table(v_table);
  perform millrace.lock_limiters(p_definition ->> 'pipeline');
  -- attach() would wait for whoever writes the table in any case; waiting here, the checks see the runs that those begin.
  -- Without a projection, who begins a run has only locked its row.
  execute format('lock table %s in %s mode', v_table,
    case when p_definition #>> '{entity,projection}' = 'none' or p_definition ? 'replaces' then 'exclusive' else 'share row exclusive' end);
  perform millrace.check_moved(p_definition ->> 'pipeline', v_table, coalesce(p_definition #>> '{entity,key}', 'id'));
  perform millrace.check_parents(p_definition ->> 'pipeline', v_table, coalesce(p_definition #>> '{entity,key}', 'id'));
  perform millrace.check_replaced(p_definition ->> 'pipeline', v_table, coalesce(p_definition #>> '{entity,key}', 'id'));
  insert into millrace.pipelines as p (name, entity_table, entity_key, projection, metadata_column, enabled)
  values (p_definition ->> 'pipeline', v_table, coalesce(p_definition #>> '{entity,key}', 'id'),
    coalesce(p_definition #>> '{entity,projection}', 'columns'), p_definition #>> '{entity,metadata}', coalesce((p_definition ->> 'enabled')::boolean, true))
  on conflict on constraint pipelines_name_key do update
    set entity_table = excluded.entity_table, entity_key = excluded.entity_key, projection = excluded.projection, metadata_column = excluded.metadata_column,
        enabled = coalesce((p_definition ->> 'enabled')::boolean, p.enabled)
  returning p.id into v_pipeline_id;
  perform millrace.check_dropped_stages(v_pipeline_id, p_definition);
  perform millrace.check_counted_stages(v_pipeline_id, p_definition);
  perform millrace.check_changed_kinds(v_pipeline_id, p_definition);
  perform millrace.check_changed_children(v_pipeline_id, p_definition);
  perform millrace.save_cut_over(v_pipeline_id, p_definition);
  perform millrace.forget_groups(v_pipeline_id, p_definition);
  perform millrace.save_stages(v_pipeline_id, p_definition);
  v_version_id := millrace.save_version(v_pipeline_id, p_definition);
  perform millrace.note_awaited(v_pipeline_id);
  perform millrace.save_quota(v_pipeline_id, p_definition);
  perform millrace.attach(p_definition ->> 'pipeline');
  -- A fan-in rule that was changed applies to what waits already: the next sweep collects it.
  insert into millrace.child_tallies (fan_out_id)
  select f.id from millrace.fan_outs f join millrace.stages s on s.id = f.stage_id where s.pipeline_id = v_pipeline_id and f.state = 'open';
  perform millrace.schedule_polls();
  return (select v.number from millrace.versions v where v.id = v_version_id);
end
$$;
comment on function millrace.define(jsonb) is 'Defines a pipeline or changes it, and returns the number of its current version. Calling it again with the same definition changes nothing.';
