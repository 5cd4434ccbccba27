-- Definitions
--
-- A pipeline is a graph of stages over one entity table. The graph (which stages, which needs) is
-- versioned, and a run finishes on the version it began with. Everything else about a stage
-- (limits, retry policy, on or off) is a setting of today and applies at once. millrace.define()
-- takes the JSON that `npm run pipelines:sync` writes from the TypeScript.

-- Adds to a stage the limits that it did not say. A service takes what it is sent, however long its
-- queue; so an external stage has at most 100 in flight unless it says otherwise.
create or replace function millrace.limits_of(p_stage jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_stage ->> 'kind' = 'external' then
      '{"max_in_flight": 100}' || coalesce(p_stage -> 'limits', '{}')
    else p_stage -> 'limits'
  end
$$;

-- Reads of a stage how long it may wait: for a service as long as its completion says, for people
-- or children a week unless the definition says otherwise.
create or replace function millrace.deadline_of(p_stage jsonb) returns interval
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select make_interval(secs => case
    when p_stage ? 'completion' then (p_stage #>> '{completion,deadline_seconds}')::float8
    when p_stage ->> 'kind' in ('manual', 'pipeline', 'map') then coalesce(
      (p_stage #>> '{decision,deadline_seconds}')::float8,
      (p_stage #>> '{fan_in,deadline_seconds}')::float8,
      604800)
  end)
$$;

-- Writes the settings of a definition's stages. The columns of a worker mean nothing where no
-- function runs the stage.
create or replace function millrace.save_stages(p_pipeline_id int, p_definition jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into millrace.stages as t (
    pipeline_id, name, kind, function_name, batch_size, max_workers, lease, timeout, retry,
    callback, poll_every, deadline, deadline_from, apply, result_limit_bytes, on_failure,
    child, fan_in, decision, agent, limits, has_groups, sla, concurrency)
  select p_pipeline_id, s ->> 'name', s ->> 'kind',
    case when s ->> 'kind' not in ('manual', 'pipeline', 'gate') then coalesce(
      s ->> 'function',
      replace(concat_ws('-', p_definition ->> 'pipeline', s ->> 'name'), '_', '-')) end,
    coalesce((s ->> 'batch_size')::int,
      case when s ? 'concurrency' then least(50, (s ->> 'concurrency')::int) else 10 end),
    coalesce((s ->> 'max_workers')::int, ceil((s ->> 'concurrency')::numeric / 50)::int, 2),
    make_interval(secs => coalesce((s ->> 'lease_seconds')::float8, 60)),
    make_interval(secs => coalesce((s ->> 'timeout_seconds')::float8, 30)),
    coalesce(s -> 'retry', '{}'),
    coalesce((s #>> '{completion,callback}')::boolean, false),
    make_interval(secs => (s #>> '{completion,poll_seconds}')::float8),
    millrace.deadline_of(s),
    coalesce(s #>> '{completion,deadline_from}', 'start'),
    s ->> 'apply', coalesce((s ->> 'result_limit_bytes')::int, 1048576),
    coalesce(s ->> 'on_failure', 'fail_run'),
    s -> 'child', s -> 'fan_in', s -> 'decision', s -> 'agent', millrace.limits_of(s),
    coalesce(s -> 'limits' ? 'concurrency' or (s #>> '{limits,priority}')::boolean, false),
    make_interval(secs => (s ->> 'sla_seconds')::float8), (s ->> 'concurrency')::int
  from jsonb_array_elements(p_definition -> 'stages') s
  on conflict on constraint stages_name_key do update set (
    kind, function_name, batch_size, max_workers, lease, timeout, retry,
    callback, poll_every, deadline, deadline_from, apply, result_limit_bytes, on_failure,
    child, fan_in, decision, agent, limits, has_groups, sla, concurrency
  ) = (
    excluded.kind, excluded.function_name, excluded.batch_size, excluded.max_workers,
    excluded.lease, excluded.timeout, excluded.retry, excluded.callback, excluded.poll_every,
    excluded.deadline, excluded.deadline_from, excluded.apply, excluded.result_limit_bytes,
    excluded.on_failure, excluded.child, excluded.fan_in, excluded.decision, excluded.agent,
    excluded.limits, excluded.has_groups, excluded.sla, excluded.concurrency),
    sla_changed_at = case
      when t.sla is distinct from excluded.sla then millrace.now()
      else t.sla_changed_at
    end;
  select millrace.choose_places(s.id)
  from millrace.stages s
  where s.pipeline_id = p_pipeline_id;
$$;

-- Switches stages as the definition says; what somebody switched off by hand stays off where it
-- says nothing. In older versions too no worker is to be queued for a stage that waits for a person
-- or a child run now, or is a gate.
create or replace function millrace.switch_stages(p_pipeline_id int, p_definition jsonb)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update millrace.stages t
  set enabled = (s ->> 'enabled')::boolean
  from jsonb_array_elements(p_definition -> 'stages') s
  where t.pipeline_id = p_pipeline_id
    and t.name = s ->> 'name'
    and s ? 'enabled';
  update millrace.version_stages vs
  set unconditional = false
  from millrace.stages t
  where t.pipeline_id = p_pipeline_id
    and t.kind in ('manual', 'pipeline', 'gate')
    and vs.stage_id = t.id
    and vs.unconditional;
$$;

-- Reads the versioned part of a definition: each stage's needs, or an object of needs, condition,
-- thresholds, child pipeline, and how it begins and ends runs.
create or replace function millrace.graph_of(p_definition jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(
    g.name, case when g.more = '{}' then g.needs else g.more || jsonb_build_object('needs',
      g.needs) end)
  from (
    select s ->> 'name' as name,
      coalesce((select jsonb_agg(n order by n) from jsonb_array_elements_text(s -> 'needs') n),
        '[]') as needs,
      jsonb_strip_nulls(jsonb_build_object(
        'when', s -> 'when',
        'otherwise', s -> 'otherwise',
        'after', s -> 'after',
        'given', s -> 'given',
        'unchanged', s -> 'unchanged',
        'on_demand', case when s -> 'on_demand' = 'true' then true end,
        'ends', s -> 'ends',
        'child', s #> '{child,pipeline}',
        'kind', case when s ->> 'kind' in ('manual', 'pipeline', 'map', 'gate')
          then s -> 'kind' end)) as more
    from jsonb_array_elements(p_definition -> 'stages') s) g
$$;

-- Reads the thresholds of a stage as version_stages keeps them, with ids for names.
create or replace function millrace.after_of(p_pipeline_id int, p_stage jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'map', m.id,
    'stage', c.id,
    'kind', k,
    'n', case when k = 'all' then 0 else (a ->> k)::int end) order by m.id, c.id), '[]')
  from jsonb_array_elements(p_stage -> 'after') a
  join millrace.stages m on m.pipeline_id = p_pipeline_id and m.name = a ->> 'map'
  join millrace.pipelines p on p.name = m.child ->> 'pipeline'
  join millrace.stages c on c.pipeline_id = p.id and c.name = a ->> 'stage'
  join unnest(array['count', 'consecutive', 'all']) k on a ? k
$$;

-- Writes the graph of a new version; the stages that its thresholds count are watched from now on.
create or replace function millrace.save_version_stages(
  p_pipeline_id int,
  p_version_id int,
  p_stages jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_order text[] := millrace.order_stages(p_stages);
begin
  insert into millrace.version_stages (
    version_id, stage_id, position, needs, dependents, is_sink, unconditional, when_path, otherwise,
    after, child_pipeline_id)
  with recursive edge as (
    select s ->> 'name' as after, e as before
    from jsonb_array_elements(p_stages) s, unnest(millrace.edges_to(s)) e
  ), reach as (
    select before, after from edge
    union
    select r.before, e.after from reach r join edge e on e.before = r.after
  )
  select p_version_id, t.id, array_position(v_order, t.name),
    array(
      select n.id from millrace.stages n
      where n.pipeline_id = p_pipeline_id and s -> 'needs' ? n.name order by n.id),
    array(
      select n.id from reach r
      join millrace.stages n on n.name = r.after and n.pipeline_id = p_pipeline_id
      where r.before = t.name order by n.id),
    not exists (select from jsonb_array_elements(p_stages) f where f -> 'needs' ? t.name),
    not s ? 'when' and not s ? 'after' and s ->> 'kind' not in ('manual',
      'pipeline', 'gate') and not exists (
      select from reach r join jsonb_array_elements(p_stages) b on b ->> 'name' = r.before
      where r.after = t.name and b ->> 'otherwise' = 'skip_dependents'),
    (s ->> 'when')::jsonpath, case when s ? 'when' then coalesce(s ->> 'otherwise', 'skip') end,
    millrace.after_of(p_pipeline_id, s),
    (select c.id from millrace.pipelines c where c.name = s #>> '{child,pipeline}')
  from jsonb_array_elements(p_stages) s
  join millrace.stages t on t.pipeline_id = p_pipeline_id and t.name = s ->> 'name';
  update millrace.stages t
  set counted_by_parent = true
  from millrace.version_stages vs, jsonb_array_elements(vs.after) a
  where vs.version_id = p_version_id
    and t.id = (a ->> 'stage')::int
    and not t.counted_by_parent;
  update millrace.pipelines p
  set is_child = true
  from millrace.version_stages vs
  where vs.version_id = p_version_id
    and p.id = vs.child_pipeline_id
    and not p.is_child;
end
$$;

-- Marks the stages right after which some version has a stage that is not unconditional. A new kind
-- of stage may have changed that in former versions too.
create or replace function millrace.note_awaited(p_pipeline_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.stages t
  set has_conditional_followers = true
  from millrace.versions v
  join millrace.version_stages f on f.version_id = v.id and not f.unconditional
  where v.pipeline_id = p_pipeline_id
    and t.pipeline_id = p_pipeline_id
    and not t.has_conditional_followers
    and (t.id = any (f.needs) or f.after @> jsonb_build_array(jsonb_build_object('map', t.id)));
end
$$;

-- Finds the version with this graph: the current one when it is the same, else a new one that is
-- current from now on.
create or replace function millrace.save_version(p_pipeline_id int, p_definition jsonb) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_graph jsonb := millrace.graph_of(p_definition);
  v_id int;
begin
  select v.id
  into v_id
  from millrace.versions v
  join millrace.pipelines p on p.current_version_id = v.id
  where p.id = p_pipeline_id
    and v.graph = v_graph;
  if found then
    return v_id;
  end if;
  insert into millrace.versions (pipeline_id, number, graph)
  select p_pipeline_id, coalesce(max(v.number), 0) + 1, v_graph
  from millrace.versions v
  where v.pipeline_id = p_pipeline_id
  returning id into v_id;
  perform millrace.save_version_stages(p_pipeline_id, v_id, p_definition -> 'stages');
  perform millrace.save_endings(p_pipeline_id, v_id, p_definition -> 'stages');
  perform millrace.save_unchanged(p_pipeline_id, v_id, p_definition -> 'stages');
  update millrace.pipelines set current_version_id = v_id where id = p_pipeline_id;
  return v_id;
end
$$;

-- Adds to a table the seven columns of each of these stages; those that are there already stay.
create or replace function millrace.add_columns(p_table regclass, variadic p_stages text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage text;
begin
  foreach v_stage in array p_stages loop
    execute millrace.stage_columns_ddl(p_table::text, v_stage);
  end loop;
end
$$;
comment on function millrace.add_columns(regclass, text[]) is
  'Adds to a table the seven columns that the projection keeps for each of these stages.';

-- Writes the pipeline's own row and returns its id.
create or replace function millrace.save_pipeline(p_definition jsonb, p_table regclass) returns int
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into millrace.pipelines as p (name, entity_table, entity_key, projection, metadata_column,
    label_column, trace_column, enabled)
  select p_definition ->> 'pipeline', p_table, e.key, e.projection, e.metadata, e.label, e.trace,
    coalesce((p_definition ->> 'enabled')::boolean, true)
  from jsonb_to_record(p_definition -> 'entity')
    e(key text, projection text, metadata text, label text, trace text)
  on conflict on constraint pipelines_name_key do update set
    entity_table = excluded.entity_table,
    entity_key = excluded.entity_key,
    projection = excluded.projection,
    metadata_column = excluded.metadata_column,
    label_column = excluded.label_column,
    trace_column = excluded.trace_column,
    enabled = coalesce((p_definition ->> 'enabled')::boolean, p.enabled)
  returning p.id
$$;

-- Locks the entity table that a definition is about to change. attach() would wait for whoever
-- writes the table in any case; waiting here, the checks see the runs that those begin. Without a
-- projection, who begins a run has only locked its row; and where rows are shown anew, nobody may
-- hold one.
create or replace function millrace.lock_table(p_definition jsonb, p_table regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('lock table %s in %s mode', p_table, case
    when p_definition #>> '{entity,projection}' = 'none'
      or exists (select from millrace.changed_values(p_definition))
      then 'exclusive'
    else 'share row exclusive'
  end);
end
$$;

-- Defines a pipeline or changes it: checks the definition, and what it changes under live runs,
-- then writes it.
create or replace function millrace.define(p_definition jsonb) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_definition jsonb := millrace.check_definition(p_definition);
  v_name text := v_definition ->> 'pipeline';
  v_table regclass := to_regclass(v_definition #>> '{entity,table}');
  v_key text := v_definition #>> '{entity,key}';
  v_pipeline_id int;
  v_version_id int;
  v_changed jsonb;
begin
  perform millrace.check_table(v_table);
  perform millrace.lock_limits(v_name);
  perform millrace.lock_table(v_definition, v_table);
  v_changed := (
    select jsonb_object_agg(c.was, c.now) from millrace.changed_values(v_definition) c);
  perform millrace.check_moved(v_name, v_table, v_key);
  perform millrace.check_parents(v_name, v_table, v_key);
  v_pipeline_id := millrace.save_pipeline(v_definition, v_table);
  perform millrace.check_dropped_stages(v_pipeline_id, v_definition);
  perform millrace.check_counted_stages(v_pipeline_id, v_definition);
  perform millrace.check_changed_kinds(v_pipeline_id, v_definition);
  perform millrace.check_changed_children(v_pipeline_id, v_definition);
  perform millrace.forget_groups(v_pipeline_id, v_definition);
  perform millrace.save_stages(v_pipeline_id, v_definition);
  perform millrace.save_limits(v_pipeline_id);
  perform millrace.save_when_spent(v_pipeline_id, v_definition);
  perform millrace.end_bypass_of_changed(v_pipeline_id);
  perform millrace.switch_stages(v_pipeline_id, v_definition);
  v_version_id := millrace.save_version(v_pipeline_id, v_definition);
  perform millrace.save_back_pressures(v_pipeline_id);
  perform millrace.save_status(v_pipeline_id, v_version_id, v_definition);
  perform millrace.note_awaited(v_pipeline_id);
  perform millrace.save_quota(v_pipeline_id, v_definition);
  perform millrace.save_due(v_pipeline_id, v_definition);
  perform millrace.save_alerts(v_definition);
  perform millrace.save_run_sla(v_pipeline_id, v_definition);
  perform millrace.warn_of_label(v_pipeline_id);
  update millrace.pipelines p
  set retention_days = (v_definition #>> '{retention,days}')::int
  where p.id = v_pipeline_id;
  perform millrace.attach(v_name);
  perform millrace.show_changed(v_pipeline_id, v_changed);
  -- A fan-in rule that was changed applies to what waits already: the next sweep collects it.
  insert into millrace.child_tallies (fan_out_id)
  select f.id
  from millrace.fan_outs f
  join millrace.stages s on s.id = f.stage_id
  where s.pipeline_id = v_pipeline_id
    and f.state = 'open';
  perform millrace.schedule_polls();
  return (select v.number from millrace.versions v where v.id = v_version_id);
end
$$;
comment on function millrace.define(jsonb) is
  'Defines a pipeline or changes it, and returns the number of its current version. Calling it '
  'again with the same definition changes nothing.';
