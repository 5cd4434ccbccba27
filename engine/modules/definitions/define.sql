-- Definitions: the graph of a pipeline has versions, and a run ends on the version it began with.
-- All other settings of a stage apply at once.

-- Returns the current version where it has this graph. Otherwise inserts a new version with its
-- stages, and makes it the current one.
create function millrace.save_version(p_pipeline_id int, p_definition jsonb) returns int
as $$
  v_graph jsonb := p_definition -> 'graph';
  v_id int;

select v.id
into v_id
from millrace.versions v
join millrace.pipelines p on p.current_version_id = v.id
where p.id = p_pipeline_id and v.graph = v_graph;
if found then
  return v_id;
end if;
insert into millrace.versions (pipeline_id, number, graph)
select p_pipeline_id, coalesce(max(v.number), 0) + 1, v_graph
from millrace.versions v
where v.pipeline_id = p_pipeline_id
returning id into v_id;
insert into millrace.version_stages (
  version_id, stage_id, position, needs, dependents, is_sink, unconditional, when_path, otherwise,
  given_path, on_demand, ends, after, child_pipeline_id)
select v_id, t.id, s.position, i.needs, i.dependents, s.is_sink, s.unconditional, s.when_path,
  s.otherwise, s.given_path, s.on_demand, s.ends,
  coalesce((
    select json_agg(jsonb_build_object('map', m.id, 'stage', c.id, 'kind', a.kind, 'n', a.n)
      order by m.id, c.id)::jsonb
    from jsonb_to_recordset(s.after) a(map text, stage text, kind text, n int)
    join millrace.stages m on m.pipeline_id = p_pipeline_id and m.name = a.map
    join millrace.pipelines p on p.name = m.child ->> 'pipeline'
    join millrace.stages c on c.pipeline_id = p.id and c.name = a.stage), '[]'),
  (select c.id from millrace.pipelines c where c.name = s.child ->> 'pipeline')
from jsonb_to_recordset(p_definition -> 'stages') s(
  name text, position int, needs text[], dependents text[], is_sink boolean,
  unconditional boolean, when_path jsonpath, otherwise text, given_path jsonpath,
  on_demand boolean, ends jsonb, after jsonb, child jsonb)
join millrace.stages t on t.pipeline_id = p_pipeline_id and t.name = s.name
cross join lateral (
  select coalesce(array_agg(o.id order by o.id) filter (where o.name = any (s.needs)), '{}'),
    coalesce(array_agg(o.id order by o.id) filter (where o.name = any (s.dependents)), '{}')
  from millrace.stages o
  where o.pipeline_id = p_pipeline_id) i(needs, dependents);
-- reports_to_parent and is_child stay true once they are, since former versions may need them.
update millrace.stages t
set reports_to_parent = true
from millrace.version_stages vs, jsonb_array_elements(vs.after) a
where vs.version_id = v_id
  and t.id = (a ->> 'stage')::int
  and not t.reports_to_parent;
update millrace.pipelines p
set is_child = true
from millrace.version_stages vs
where vs.version_id = v_id and p.id = vs.child_pipeline_id and not p.is_child;
update millrace.pipelines p
set current_version_id = v_id,
  has_given = p.has_given or exists (
    select from millrace.version_stages vs
    where vs.version_id = v_id and vs.given_path is not null)
where p.id = p_pipeline_id;
return v_id;
$$;

-- Adds to a table the seven columns that the projection writes for each of these stages. Locks the
-- limits before the table, as define() does, which mostly follows in the same transaction.
create function millrace.add_columns(p_table regclass, variadic p_stages text[])
as $$
  c_types constant text[] := array['text not null default ''pending''', 'text', 'jsonb', 'text',
    'int not null default 0', 'timestamptz', 'timestamptz'];

perform millrace.lock_limits(p.name)
from (
  select o.name from millrace.pipelines o where o.entity_table = p_table order by o.id) p;
execute format('alter table %s %s', p_table, (
  select string_agg(format('add column if not exists %I %s', c.name, c.type), ', '
    order by s.n, c.n)
  from unnest(p_stages) with ordinality s(name, n)
  cross join unnest(millrace.stage_columns(s.name), c_types) with ordinality c(name, type, n)));
$$;

-- Locks the limits of a pipeline, its table, and the advisory lock of attach(). So each definition
-- sees what the others have defined. It waits for another definition without the table's lock,
-- since users write to the table, and the other definition may need it.
-- p_mode: the mode of the table's lock.
create function millrace.lock_definition(p_pipeline text, p_table regclass, p_mode text)
as $$
  v_wait boolean := false;

loop
  begin
    if v_wait then
      perform pg_advisory_xact_lock(hashtext('millrace.calls'));
    else
      perform millrace.lock_limits(p_pipeline);
      execute format('lock table %s in %s mode', p_table, p_mode);
      if pg_try_advisory_xact_lock(hashtext('millrace.calls')) then
        return;
      end if;
    end if;
    -- The exception releases the locks of this block.
    raise object_in_use;
  exception when object_in_use then
    v_wait := not v_wait;
  end;
end loop;
$$;

-- Defines a pipeline or changes it, from the compiled form that definePipeline() writes. Returns
-- the number of its version. The same definition again makes no new version.
create function millrace.define(p_definition jsonb) returns int
set plan_cache_mode = force_generic_plan
-- A definition's names of types and columns are unquoted, and are compared with the catalogue's.
set quote_all_identifiers = off
as $$
  v_name text := p_definition ->> 'pipeline';
  v_table regclass;
  v_pipeline_id int;
  v_version_id int;

perform millrace.check_definition(p_definition);
v_table := to_regclass(p_definition #>> '{entity,table}');
-- Without a projection a start locks only its row, and not the table.
perform millrace.lock_definition(v_name, v_table, case p_definition #>> '{entity,projection}'
  when 'none' then 'exclusive' else 'share row exclusive' end);
perform millrace.check_stages(p_definition);
perform millrace.check_values(p_definition);
perform millrace.check_changes(p_definition);
perform millrace.put_rows('millrace.pipelines', 'name', 'entity_table, entity_key, projection, '
  'metadata_column, label_column, trace_column, due_column, sla, digest, retention_days, '
  'outputs_days, details_to, required_columns', json_agg(r)::jsonb)
from (
  select v_name as name, v_table as entity_table, e.key as entity_key, e.projection,
    e.metadata as metadata_column, e.label as label_column, e.trace as trace_column,
    e.due as due_column, p_definition -> 'sla' as sla, p_definition -> 'digest' as digest,
    p_definition #> '{retention,days}' as retention_days,
    p_definition #> '{retention,outputs_days}' as outputs_days, array(
      select jsonb_array_elements_text(p_definition #> '{progress,details_to}')) as details_to,
    array(
      select distinct c."column"
      from jsonb_to_recordset(p_definition -> 'columns') c("table" text, "column" text)
      where to_regclass(c."table") = v_table) as required_columns
  from jsonb_to_record(p_definition -> 'entity')
    e(key text, projection text, metadata text, label text, trace text, due text)) r;
v_pipeline_id := (millrace.pipeline_named(v_name)).id;
-- Where the definition says nothing of `enabled`, the switch stays as it is.
update millrace.pipelines p
set enabled = (p_definition ->> 'enabled')::boolean
where p.id = v_pipeline_id and p.enabled <> (p_definition ->> 'enabled')::boolean;
perform millrace.forget_groups(v_pipeline_id, p_definition -> 'stages');
perform millrace.put_rows('millrace.stages', 'pipeline_id, name', 'kind, function_name, '
  'batch_size, max_workers, lease, timeout, retry, callback, poll_every, deadline, apply, '
  'result_limit_bytes, on_failure, child, fan_in, decision, agent, limits, has_groups, sla, '
  'concurrency, when_spent, shows, host',
  json_agg(s || jsonb_build_object('pipeline_id', v_pipeline_id))::jsonb)
from jsonb_array_elements(p_definition -> 'stages') s;
update millrace.stages t
set enabled = s.enabled
from jsonb_populate_recordset(null::millrace.stages, p_definition -> 'stages') s
where t.pipeline_id = v_pipeline_id and t.name = s.name and t.enabled <> s.enabled;
perform millrace.choose_slots(s.id)
from millrace.stages s
where s.pipeline_id = v_pipeline_id;
v_version_id := millrace.save_version(v_pipeline_id, p_definition);
perform millrace.save_limits(v_pipeline_id, v_version_id);
perform millrace.save_status(v_pipeline_id, v_version_id, p_definition);
-- A stage of these kinds has no worker. In former versions, too, it must begin by hook_begin(), and
-- not by attempts that are queued for a worker.
update millrace.version_stages vs
set unconditional = false
from millrace.stages t
where t.pipeline_id = v_pipeline_id
  and t.kind in ('manual', 'pipeline', 'gate')
  and vs.stage_id = t.id and vs.unconditional;
update millrace.stages t
set (has_ends, has_conditional_followers) = (
  select coalesce(bool_or(vs.ends is not null), false), exists (
      select from millrace.versions v
      join millrace.version_stages f on f.version_id = v.id and not f.unconditional
      where v.pipeline_id = v_pipeline_id
        and (t.id = any (f.needs)
          or f.after @> jsonb_build_array(jsonb_build_object('map', t.id))))
  from millrace.version_stages vs
  where vs.stage_id = t.id)
where t.pipeline_id = v_pipeline_id;
perform millrace.save_quota(v_pipeline_id, p_definition);
-- The search for due rows begins anew, since a key of the former table may be none of the new one.
insert into millrace.due_progress (pipeline_id)
select p.id
from millrace.pipelines p
where p.id = v_pipeline_id and p.due_column is not null
on conflict on constraint due_progress_pkey do update
set (lap_at, lap_key) = (null, null);
-- Ends the bypass of a stage that has no function any more: no worker could take up its rows.
perform millrace.finish_bypass(s)
from millrace.stages s
where s.pipeline_id = v_pipeline_id and s.bypassed and s.function_name is null;
perform millrace.save_alerts(p_definition);
perform millrace.attach(v_name);
-- A changed fan-in rule also applies to fan-outs that are open: the next sweep collects them.
insert into millrace.child_tallies (fan_out_id)
select f.id
from millrace.fan_outs f
join millrace.stages s on s.id = f.stage_id
where s.pipeline_id = v_pipeline_id and f.state = 'open';
return (select v.number from millrace.versions v where v.id = v_version_id);
$$;
