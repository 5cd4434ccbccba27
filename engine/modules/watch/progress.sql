-- Progress: a row's newest run, for every role that may select the row

-- Returns when a live run is expected to end: along its longest path, each stage that is not done
-- takes its median. Null where one of these stages has no median.
-- p_seconds: the median seconds of each stage, by its id.
create function millrace.expected_end(p_run millrace.runs, p_seconds json) returns timestamptz
stable
as $$
  v_stage record;
  v_end timestamptz;
  v_ends jsonb := '{}';

for v_stage in
  select vs.stage_id, vs.needs, make_interval(secs => s.value::float8) as takes,
    greatest(a.created_at, a.queue_at) as since
  from millrace.version_stages vs
  left join json_each_text(p_seconds) s on s.key = vs.stage_id::text
  left join lateral millrace.newest_attempt(p_run.id, vs.stage_id) a on true
  where vs.version_id = p_run.version_id and p_run.status = 'running'
    and coalesce(a.state < 'completed', not vs.on_demand)
  order by vs.position
loop
  v_end := greatest(v_now, v_stage.takes + coalesce(v_stage.since, (
    select max((v_ends ->> n::text)::timestamptz) from unnest(v_stage.needs) n), v_now));
  if v_stage.takes is null then
    return null;
  end if;
  v_ends := v_ends || jsonb_build_object(v_stage.stage_id, v_end);
end loop;
return (select max(e.value::timestamptz) from jsonb_each_text(v_ends) e);
$$;

-- Returns a run and its stages, in the order of the definition.
-- p_detail: whether errors have their detail, which is for operators.
create function millrace.run_progress(p_run millrace.runs, p_detail boolean) returns json
stable
as $$
select json_build_object(
  'run', case when p_run.status is not null then json_strip_nulls(json_build_object(
    'status', p_run.status, 'ended_as', p_run.ended_as, 'began_at', p_run.created_at,
    'ended_at', p_run.finished_at)) end,
  'stages', coalesce(json_object_agg(s.name, json_strip_nulls(json_build_object(
    'state', coalesce(a.state::text, case
      when p_run.id is null and p_run.status is not null then 'pruned' else 'pending' end),
    'tries', coalesce(a.retry_count + 1, 0),
    'due_at', case when a.state = 'queued' and a.queue_at > a.created_at then a.queue_at end,
    'started_at', a.started_at, 'ended_at', a.finished_at,
    'error', case when e.error is not null then json_build_object(
      'code', e.error -> 'code', 'message', e.error -> 'message',
      'detail', case when p_detail then e.error -> 'detail' end) end,
    'children', (
      select json_build_object('total', coalesce(f.total, f.spawned),
        'completed', f.completed, 'failed', f.failed, 'cancelled', f.cancelled)
      from millrace.fan_outs f
      where f.run_id = p_run.id and f.stage_id = s.id and a.id is not null
      order by f.id desc
      limit 1))) order by vs.position), '{}'))
from millrace.version_stages vs
join millrace.stages s on s.id = vs.stage_id
left join lateral millrace.newest_attempt(p_run.id, s.id) a on true
-- A retry that has not ended shows the error of the try before.
left join millrace.attempts o on o.id = a.parent_id and a.state < 'completed'
cross join lateral (select coalesce(a.error, o.error) as error) e
where vs.version_id = p_run.version_id
$$;

-- Returns an entity's newest run. Where no run is left, returns a run without an id: with the
-- status and times of the entity's former run, if any, and the pipeline's current version.
create function millrace.newest_run(p_pipeline millrace.pipelines, p_entity_id text)
returns millrace.runs
stable
set plan = by_key
as $$
  v_run millrace.runs;

select r.* into v_run
from millrace.runs r
where r.entity_id = p_entity_id and r.pipeline_id = p_pipeline.id
order by r.entity_id desc, r.pipeline_id desc, r.id desc
limit 1;
if not found then
  select f.status, f.created_at, f.finished_at
  into v_run.status, v_run.created_at, v_run.finished_at
  from millrace.former_runs f
  where f.pipeline_id = p_pipeline.id and f.entity_id = p_entity_id;
  v_run.version_id := p_pipeline.current_version_id;
end if;
return v_run;
$$;

-- Checks the form of a client's list of rows. Returns for each pipeline in the list the table, the
-- key column with its type, and the keys. Raises MR002 for a list of another form or with over 500
-- keys, and MR003 for an unknown pipeline.
create function millrace_evidence.watched_tables(p_rows jsonb)
returns table (pipeline text, target text, key text, key_type text, keys text[])
stable security definer
set callers = everybody
as $$
if (jsonb_typeof(p_rows) = 'object'
    and not jsonb_path_exists(p_rows, '$.* ? (@.type() != "object")')
    and (select count(*) from jsonb_path_query(p_rows, '$.*.*')) <= 500) is not true then
  raise exception 'MR002: p_rows must be an object of pipelines, with at most 500 keys'
    using hint = 'Such as {"leads": {"7": null}}.';
end if;
return query
select p.name, p.entity_table::text, p.entity_key, millrace.key_type(p),
  array(select jsonb_object_keys(r.value))
from jsonb_each(p_rows) r
cross join millrace.pipeline_named(r.key) p;
exception when sqlstate 'MR003' then
  -- Raises anew without the hint, which names all pipelines: the caller may be a stranger.
  raise exception '%', sqlerrm using errcode = 'MR003';
$$;

-- Selects rows with the caller's rights, and returns {key: entity_id} of the rows that the caller
-- may see.
create function millrace_evidence.visible_rows(
  p_target text, p_key text, p_key_type text, p_keys text[]
) returns json
stable
set callers = everybody
as $$
  v_seen json;

execute format('select json_object_agg(k.key, e.%1$I::text) from unnest($1) k(key) '
  'join %2$s e on e.%1$I = k.key::%3$s', p_key, p_target, p_key_type)
into v_seen
using p_keys;
return v_seen;
$$;

-- Returns the answer of millrace_progress(), and watches the rows that its caller may see.
-- p_seen: those rows, {"leads": {key: entity_id}}.
-- p_role: the caller's role.
create function millrace_evidence.progress_of(
  p_rows jsonb, p_client uuid, p_seen jsonb, p_role text
) returns json
security definer
set callers = everybody
as $$
  v_topic text;
  v_pipeline millrace.pipelines;
  v_rows json[] := '{}';

if p_client is not null and to_regclass('realtime.messages') is not null then
  v_topic := concat('millrace:',
    nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub', ':', p_client);
  -- Watches the rows for a minute; of all rows that the client has named, the last 500.
  insert into millrace.watches as w (pipeline_id, entity_id, topic, until)
  select distinct p.id, k.value, v_topic, v_now + interval '60 s'
  from jsonb_each(p_seen) r
  join millrace.pipelines p on p.name = r.key
  cross join jsonb_each_text(r.value) k
  -- At 5,000 leases no more are written: each change counts all leases, and sends a message for
  -- each lease on its row.
  where (select count(*) from millrace.watches) < 5000
  order by 1, 2
  on conflict on constraint watches_pkey do update
  set until = excluded.until
  where w.until < v_now + interval '40 s';
  delete from millrace.watches w
  where w.ctid = any (array(
    select o.ctid
    from millrace.watches o
    where o.topic = v_topic
    order by o.until desc
    offset 500));
end if;
-- Reads the runs in statements after the lease was written. A transition that has not seen the
-- lease is seen by these statements.
for v_pipeline in
  select p.* from millrace.pipelines p where p_rows ? p.name
loop
  v_rows := v_rows || array(
    select json_build_object('pipeline', v_pipeline.name, 'key', k.key, 'version', v.version,
      'progress', g.progress, 'expected_end', millrace.expected_end(n.run, (
        -- The median seconds from ready to done of each stage in the last day.
        select json_object_agg(s.id, (
          select millrace.bucket_quantile(millrace.add_buckets(array_agg(f.runs)), 0.5)
            + coalesce(millrace.bucket_quantile(millrace.add_buckets(array_agg(f.waits)), 0.5), 0)
          from millrace.sums f
          where f.unit = 'hour' and f.pipeline_id = v_pipeline.id and f.stage_id = s.id
            and f.at > v_now - interval '1 day' and f.outcome = 'completed') / 1000)
        from millrace.stages s
        where s.pipeline_id = v_pipeline.id)))
    from jsonb_each_text(p_rows -> v_pipeline.name) k(key, version)
    left join lateral (
      select millrace.newest_run(v_pipeline, s.id) as run
      from (select p_seen -> v_pipeline.name ->> k.key) s(id)
      where s.id is not null
      offset 0) n on true
    left join lateral (
      select millrace.run_progress(n.run, p_role = any (v_pipeline.details_to)) as progress
      where n.run is distinct from null
      offset 0) g on true
    cross join lateral (select left(md5(g.progress::text), 12)) v(version)
    where coalesce(v.version, '') is distinct from k.version);
end loop;
return json_build_object('topic', v_topic, 'rows', v_rows);
$$;

-- Returns the progress of rows to every role that may select them, and watches the rows for a
-- minute: {topic, rows: [{pipeline, key, version, progress, expected_end}]}. Leaves out rows whose
-- version is unchanged.
-- p_rows: {"leads": {"7": version}}, with the version that the caller knows, or null.
-- p_client: an id that the client draws, for its topic of Realtime; null watches nothing.
-- version, progress: null where the caller may see no such row.
create function public.millrace_progress(p_rows jsonb, p_client uuid default null) returns json
set callers = everybody
begin atomic
  select millrace_evidence.progress_of(p_rows, p_client, coalesce((
    select json_object_agg(t.pipeline, s.seen)::jsonb
    from millrace_evidence.watched_tables(p_rows) t
    cross join lateral millrace_evidence.visible_rows(
      t.target, t.key, t.key_type, t.keys) s(seen)
    where s.seen is not null), '{}'), current_user::text);
end;
