-- Chapter 4: definitions
--
-- A pipeline is a graph of stages over one entity table. The graph (which stages, which needs) is versioned, and a run
-- finishes on the version it began with. Everything else about a stage (limits, retry policy, on or off) is a setting of
-- today and applies at once. pipeline.define() takes the JSON that `npm run pipelines:sync` writes from the TypeScript.

create table pipeline.pipelines (
  id int generated always as identity constraint pipelines_pkey primary key,
  name text not null constraint pipelines_name_key unique
    constraint pipelines_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  entity_table regclass not null,
  entity_key text not null,
  projection text not null constraint pipelines_projection_known check (projection in ('columns', 'none')),
  enabled boolean not null default true,
  current_version_id int,
  created_at timestamptz not null default pipeline.now()
);
comment on table pipeline.pipelines is 'One row a pipeline. Set enabled to false to pause all of its stages.';

create table pipeline.stages (
  id int generated always as identity constraint stages_pkey primary key,
  pipeline_id int not null constraint stages_pipeline_fkey references pipeline.pipelines on delete cascade,
  name text not null constraint stages_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  kind text not null constraint stages_kind_known check (kind in ('function', 'external')),
  function_name text not null,
  batch_size int not null constraint stages_batch_size_bounds check (batch_size between 1 and 1000),
  max_workers int not null constraint stages_max_workers_bounds check (max_workers between 1 and 1000),
  lease interval not null,
  timeout interval not null,
  retry jsonb not null,
  callback boolean not null default false,
  poll_every interval,
  deadline interval,
  apply text,
  result_limit_bytes int not null,
  enabled boolean not null default true,
  constraint stages_name_key unique (pipeline_id, name)
);
comment on table pipeline.stages is 'Settings of each stage; they apply at once. Set enabled to false to pause one stage.';

create table pipeline.versions (
  id int generated always as identity constraint versions_pkey primary key,
  pipeline_id int not null constraint versions_pipeline_fkey references pipeline.pipelines on delete cascade,
  number int not null,
  graph jsonb not null,
  created_at timestamptz not null default pipeline.now(),
  constraint versions_number_key unique (pipeline_id, number)
);
comment on table pipeline.versions is 'The graphs a pipeline has had. A run finishes on the version it began with.';

create table pipeline.version_stages (
  version_id int not null constraint version_stages_version_fkey references pipeline.versions on delete cascade,
  stage_id int not null constraint version_stages_stage_fkey references pipeline.stages on delete cascade,
  position int not null,
  needs int[] not null,
  dependents int[] not null,
  is_sink boolean not null,
  constraint version_stages_pkey primary key (version_id, stage_id)
);
comment on table pipeline.version_stages is 'One row a stage of a version: needs are its direct needs, dependents all stages that come after it, position a topological order.';

-- Checks one value of a stage's definition and names field, value and remedy when it will not do.
create function pipeline.refuse_value(p_stage jsonb, p_path text[], p_wanted text, p_hint text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'stage %: % is %, but must be %', coalesce(p_stage ->> 'name', '?'), array_to_string(p_path, '.'), coalesce((p_stage #> p_path)::text, 'missing'), p_wanted
    using errcode = 'MR001', hint = p_hint;
end
$$;
comment on function pipeline.refuse_value(jsonb, text[], text, text) is 'Raises MR001 about one value of a stage''s definition.';

-- The bounds of every number; all but seconds and factors are whole.
create function pipeline.check_number(p_stage jsonb, p_path text[], p_min numeric, p_max numeric, p_whole boolean default false) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_value jsonb := p_stage #> p_path;
begin
  if jsonb_typeof(v_value) = 'number' and (v_value #>> '{}')::numeric between p_min and p_max
     and (not p_whole or trunc((v_value #>> '{}')::numeric) = (v_value #>> '{}')::numeric) then
    return;
  elsif v_value is not null and v_value <> 'null' then
    perform pipeline.refuse_value(p_stage, p_path, format('a %snumber from %s to %s', case when p_whole then 'whole ' else '' end, p_min, p_max),
      format('Set it to a number from %s to %s, or leave it out for the default.', p_min, p_max));
  end if;
end
$$;
comment on function pipeline.check_number(jsonb, text[], numeric, numeric, boolean) is 'Raises MR001 unless the value at this path of a stage is absent or a number within bounds.';

create function pipeline.check_type(p_stage jsonb, p_path text[], p_type text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage #> p_path is not null and jsonb_typeof(p_stage #> p_path) not in (p_type, 'null') then
    perform pipeline.refuse_value(p_stage, p_path, format('of type %s', p_type), format('Give a JSON %s, or leave it out for the default.', p_type));
  end if;
end
$$;
comment on function pipeline.check_type(jsonb, text[], text) is 'Raises MR001 unless the value at this path of a stage is absent or of this JSON type.';

create function pipeline.check_keys(p_stage jsonb, p_path text[], p_known text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_unknown text;
begin
  if jsonb_typeof(p_stage #> p_path) = 'object' then
    select k into v_unknown from jsonb_object_keys(p_stage #> p_path) k where k <> all (p_known) order by k limit 1;
    if found then
      raise exception 'stage %: % is not known', coalesce(p_stage ->> 'name', '?'), array_to_string(p_path || v_unknown, '.')
        using errcode = 'MR001', hint = 'Known here: ' || array_to_string(p_known, ', ') || '.';
    end if;
  end if;
end
$$;
comment on function pipeline.check_keys(jsonb, text[], text[]) is 'Raises MR001 when an object of a stage''s definition has a field that nobody reads.';

create function pipeline.check_backoff(p_stage jsonb, p_path text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_backoff jsonb := p_stage #> p_path;
begin
  perform pipeline.check_keys(p_stage, p_path, array['kind', 'seconds', 'base_seconds', 'factor', 'cap_seconds', 'jitter']);
  if v_backoff is null then
    return;
  elsif v_backoff ->> 'kind' = 'list' and jsonb_typeof(v_backoff -> 'seconds') = 'array' and jsonb_array_length(v_backoff -> 'seconds') > 0
        and not jsonb_path_exists(v_backoff, '$.seconds[*] ? (@.type() != "number" || @ < 0 || @ > 604800)') then
    return;
  elsif v_backoff ->> 'kind' = 'exponential' then
    perform pipeline.check_number(p_stage, p_path || 'base_seconds'::text, 0, 86400);
    perform pipeline.check_number(p_stage, p_path || 'factor'::text, 1, 100);
    perform pipeline.check_number(p_stage, p_path || 'cap_seconds'::text, 0, 604800);
    perform pipeline.check_number(p_stage, p_path || 'jitter'::text, 0, 1);
    return;
  end if;
  perform pipeline.refuse_value(p_stage, p_path, 'a backoff',
    'Use {"kind": "list", "seconds": [5, 30]} or {"kind": "exponential", "base_seconds": 5, "factor": 2, "cap_seconds": 300, "jitter": 0.2}.');
end
$$;
comment on function pipeline.check_backoff(jsonb, text[]) is 'Raises MR001 unless the backoff at this path of a stage is well formed or absent.';

create function pipeline.check_retry(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_code text;
begin
  perform pipeline.check_type(p_stage, '{retry}', 'object');
  perform pipeline.check_keys(p_stage, '{retry}', array['max_attempts', 'backoff', 'by_code']);
  perform pipeline.check_type(p_stage, '{retry,by_code}', 'object');
  perform pipeline.check_number(p_stage, '{retry,max_attempts}', 1, 100, true);
  perform pipeline.check_backoff(p_stage, '{retry,backoff}');
  for v_code in select k from jsonb_object_keys(coalesce(p_stage #> '{retry,by_code}', '{}')) k loop
    perform pipeline.check_type(p_stage, array['retry', 'by_code', v_code], 'object');
    perform pipeline.check_keys(p_stage, array['retry', 'by_code', v_code], array['max_attempts', 'backoff']);
    perform pipeline.check_number(p_stage, array['retry', 'by_code', v_code, 'max_attempts'], 1, 100, true);
    perform pipeline.check_backoff(p_stage, array['retry', 'by_code', v_code, 'backoff']);
  end loop;
end
$$;
comment on function pipeline.check_retry(jsonb) is 'Raises MR001 unless a stage''s retry policy is well formed.';

create function pipeline.check_completion(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  perform pipeline.check_type(p_stage, '{completion}', 'object');
  perform pipeline.check_keys(p_stage, '{completion}', array['callback', 'poll_seconds', 'deadline_seconds']);
  perform pipeline.check_type(p_stage, '{completion,callback}', 'boolean');
  perform pipeline.check_number(p_stage, '{completion,poll_seconds}', 1, 3600);
  perform pipeline.check_number(p_stage, '{completion,deadline_seconds}', 1, 604800);
  if p_stage ->> 'kind' = 'external' and p_stage #>> '{completion,poll_seconds}' is null and not coalesce((p_stage #>> '{completion,callback}')::boolean, false) then
    raise exception 'stage %: an external stage needs completion by callback or by polling', p_stage ->> 'name'
      using errcode = 'MR001', hint = 'Set completion.callback to true, or completion.poll_seconds to a number, or both.';
  end if;
end
$$;
comment on function pipeline.check_completion(jsonb) is 'Raises MR001 unless the way in which a stage''s external jobs end is well formed.';

create function pipeline.check_needs(p_stage jsonb, p_names text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_need text;
begin
  if p_stage -> 'needs' is not null and (jsonb_typeof(p_stage -> 'needs') <> 'array' or jsonb_path_exists(p_stage, '$.needs[*] ? (@.type() != "string")')) then
    perform pipeline.refuse_value(p_stage, '{needs}', 'a list of names of stages', 'Write "needs": ["other_stage"].');
  end if;
  select n into v_need from jsonb_array_elements_text(coalesce(p_stage -> 'needs', '[]')) n where n <> all (p_names) limit 1;
  if found then
    raise exception 'stage %: needs names %, which is no stage of this pipeline', p_stage ->> 'name', v_need
      using errcode = 'MR001', hint = 'Stages are: ' || array_to_string(p_names, ', ') || '.';
  end if;
  select n into v_need from jsonb_array_elements_text(coalesce(p_stage -> 'needs', '[]')) n group by n having count(*) > 1 limit 1;
  if found then
    raise exception 'stage %: needs names % twice', p_stage ->> 'name', v_need using errcode = 'MR001', hint = 'Name each need once.';
  end if;
end
$$;
comment on function pipeline.check_needs(jsonb, text[]) is 'Raises MR001 unless the needs of a stage are known stages, each named once.';

create function pipeline.check_stage(p_stage jsonb, p_names text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(p_stage ->> 'name', '') !~ '^[a-z][a-z0-9_]{0,40}$' then
    raise exception 'stages[].name is %, but must be a lower-case name', coalesce(p_stage -> 'name', 'null')
      using errcode = 'MR001', hint = 'Use letters, digits and underscores, beginning with a letter, at most 41.';
  end if;
  if coalesce(p_stage ->> 'kind', 'function') not in ('function', 'external') then
    perform pipeline.refuse_value(p_stage, '{kind}', 'function or external', 'A stage that hands work to a job service is external, any other is a function.');
  end if;
  perform pipeline.check_keys(p_stage, '{}', array['name', 'kind', 'function', 'needs', 'batch_size', 'max_workers', 'lease_seconds', 'timeout_seconds', 'retry', 'completion', 'apply', 'enabled', 'result_limit_bytes']);
  perform pipeline.check_needs(p_stage, p_names);
  perform pipeline.check_type(p_stage, '{function}', 'string');
  perform pipeline.check_type(p_stage, '{enabled}', 'boolean');
  perform pipeline.check_number(p_stage, '{batch_size}', 1, 1000, true);
  perform pipeline.check_number(p_stage, '{max_workers}', 1, 1000, true);
  perform pipeline.check_number(p_stage, '{lease_seconds}', 5, 3600);
  perform pipeline.check_number(p_stage, '{timeout_seconds}', 1, 86400);
  perform pipeline.check_number(p_stage, '{result_limit_bytes}', 1, 10485760, true);
  perform pipeline.check_retry(p_stage);
  perform pipeline.check_completion(p_stage);
  if (p_stage ->> 'timeout_seconds')::numeric > pipeline.setting('worker_seconds')::numeric then
    perform pipeline.refuse_value(p_stage, '{timeout_seconds}', format('at most %s, the seconds that a worker may run: no worker could ever claim it', pipeline.setting('worker_seconds')),
      'Lower the timeout, or raise worker_seconds in pipeline.settings (paid plans allow about 190) together with WORKER_SECONDS of the functions.');
  end if;
  if p_stage ->> 'apply' is not null and to_regprocedure((p_stage ->> 'apply') || '(jsonb)') is null then
    perform pipeline.refuse_value(p_stage, '{apply}', 'a function that takes one jsonb', 'Create the function in an earlier migration and name it with its schema.');
  end if;
end
$$;
comment on function pipeline.check_stage(jsonb, text[]) is 'Raises MR001 with the field and the remedy when a stage''s definition is not valid.';

-- Topological positions by Kahn's method; what never becomes free is part of a cycle.
create function pipeline.order_stages(p_stages jsonb) returns text[]
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_ordered text[] := '{}';
  v_free text[];
begin
  loop
    select array_agg(s.value ->> 'name' order by s.ordinality) into v_free
    from jsonb_array_elements(p_stages) with ordinality s
    where s.value ->> 'name' <> all (v_ordered)
      and not exists (select from jsonb_array_elements_text(coalesce(s.value -> 'needs', '[]')) n where n <> all (v_ordered));
    exit when v_free is null;
    v_ordered := v_ordered || v_free;
  end loop;
  if cardinality(v_ordered) < jsonb_array_length(p_stages) then
    raise exception 'the stages % need each other in a cycle',
      (select string_agg(s ->> 'name', ', ') from jsonb_array_elements(p_stages) s where s ->> 'name' <> all (v_ordered))
      using errcode = 'MR001', hint = 'Remove one of their needs, so that some stage can be first.';
  end if;
  return v_ordered;
end
$$;
comment on function pipeline.order_stages(jsonb) is 'Names of the stages in a topological order; MR001 when there is a cycle.';

create function pipeline.check_definition(p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_names text[];
  v_twice text;
  v_stage jsonb;
begin
  if jsonb_typeof(p_definition) is distinct from 'object' or jsonb_typeof(p_definition -> 'stages') is distinct from 'array' then
    raise exception 'a definition must be an object with "pipeline", "entity" and a list "stages", this is %', coalesce(jsonb_typeof(p_definition), 'null')
      using errcode = 'MR001', hint = 'Write it with definePipeline() in supabase/functions/_pipelines and run `npm run pipelines:sync`.';
  end if;
  if coalesce(p_definition ->> 'pipeline', '') !~ '^[a-z][a-z0-9_]{0,40}$' then
    raise exception 'pipeline is %, but must be a lower-case name', coalesce(p_definition -> 'pipeline', 'null')
      using errcode = 'MR001', hint = 'Use letters, digits and underscores, beginning with a letter, at most 41.';
  end if;
  if to_regclass(p_definition #>> '{entity,table}') is null then
    raise exception 'entity.table is %, which is no table', coalesce(p_definition #> '{entity,table}', 'null')
      using errcode = 'MR001', hint = 'Create the table in an earlier migration and name it with its schema.';
  end if;
  if coalesce(p_definition #>> '{entity,projection}', 'columns') not in ('columns', 'none') then
    raise exception 'entity.projection is %, but must be columns or none', p_definition #> '{entity,projection}'
      using errcode = 'MR001', hint = 'columns keeps seven columns a stage on the entity, none keeps the run''s state in the engine alone.';
  end if;
  select array_agg(s ->> 'name') into v_names from jsonb_array_elements(p_definition -> 'stages') s;
  if v_names is null then
    raise exception 'pipeline %: stages is empty', p_definition ->> 'pipeline' using errcode = 'MR001', hint = 'Name at least one stage.';
  end if;
  select n into v_twice from unnest(v_names) n group by n having count(*) > 1 limit 1;
  if v_twice is not null then
    raise exception 'pipeline %: stage % is listed twice', p_definition ->> 'pipeline', v_twice using errcode = 'MR001', hint = 'Give each stage a name of its own.';
  end if;
  for v_stage in select s from jsonb_array_elements(p_definition -> 'stages') s loop
    perform pipeline.check_stage(v_stage, v_names);
  end loop;
  perform pipeline.order_stages(p_definition -> 'stages');
end
$$;
comment on function pipeline.check_definition(jsonb) is 'Raises MR001 when a definition is not valid.';

create function pipeline.save_stages(p_pipeline_id int, p_definition jsonb) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
  insert into pipeline.stages as t (pipeline_id, name, kind, function_name, batch_size, max_workers, lease, timeout, retry, callback, poll_every, deadline, apply, result_limit_bytes, enabled)
  select p_pipeline_id, s ->> 'name', coalesce(s ->> 'kind', 'function'),
    coalesce(s ->> 'function', replace(p_definition ->> 'pipeline', '_', '-') || '-' || replace(s ->> 'name', '_', '-')),
    coalesce((s ->> 'batch_size')::int, 10), coalesce((s ->> 'max_workers')::int, 2),
    make_interval(secs => coalesce((s ->> 'lease_seconds')::float8, 60)),
    make_interval(secs => coalesce((s ->> 'timeout_seconds')::float8, 30)),
    coalesce(s -> 'retry', '{}'),
    coalesce((s #>> '{completion,callback}')::boolean, false),
    make_interval(secs => (s #>> '{completion,poll_seconds}')::float8),
    case when s ? 'completion' then make_interval(secs => coalesce((s #>> '{completion,deadline_seconds}')::float8, 600)) end,
    s ->> 'apply', coalesce((s ->> 'result_limit_bytes')::int, 1048576), true
  from jsonb_array_elements(p_definition -> 'stages') s
  on conflict on constraint stages_name_key do update set
    kind = excluded.kind, function_name = excluded.function_name, batch_size = excluded.batch_size, max_workers = excluded.max_workers,
    lease = excluded.lease, timeout = excluded.timeout, retry = excluded.retry, callback = excluded.callback, poll_every = excluded.poll_every,
    deadline = excluded.deadline, apply = excluded.apply, result_limit_bytes = excluded.result_limit_bytes;
  -- What somebody switched off by hand stays off, unless the definition says otherwise.
  update pipeline.stages t set enabled = (s ->> 'enabled')::boolean
  from jsonb_array_elements(p_definition -> 'stages') s
  where t.pipeline_id = p_pipeline_id and t.name = s ->> 'name' and s ->> 'enabled' is not null;
$$;
comment on function pipeline.save_stages(int, jsonb) is 'Writes the settings of a definition''s stages.';

create function pipeline.graph_of(p_definition jsonb) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(s ->> 'name', coalesce((select jsonb_agg(n order by n) from jsonb_array_elements_text(s -> 'needs') n), '[]'))
  from jsonb_array_elements(p_definition -> 'stages') s
$$;
comment on function pipeline.graph_of(jsonb) is 'The versioned part of a definition: stage name to the names of its needs.';

create function pipeline.save_version(p_pipeline_id int, p_definition jsonb) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_graph jsonb := pipeline.graph_of(p_definition);
  v_order text[] := pipeline.order_stages(p_definition -> 'stages');
  v_id int;
begin
  select v.id into v_id from pipeline.versions v join pipeline.pipelines p on p.current_version_id = v.id
  where p.id = p_pipeline_id and v.graph = v_graph;
  if found then
    return v_id;
  end if;
  insert into pipeline.versions (pipeline_id, number, graph)
  select p_pipeline_id, coalesce(max(v.number), 0) + 1, v_graph from pipeline.versions v where v.pipeline_id = p_pipeline_id
  returning id into v_id;

  insert into pipeline.version_stages (version_id, stage_id, position, needs, dependents, is_sink)
  with recursive edge as (
    select g.key as after, n as before from jsonb_each(v_graph) g, jsonb_array_elements_text(g.value) n
  ), reach as (
    select before, after from edge union select r.before, e.after from reach r join edge e on e.before = r.after
  )
  select v_id, s.id, array_position(v_order, s.name),
    coalesce((select array_agg(n.id order by n.id) from edge e join pipeline.stages n on n.name = e.before and n.pipeline_id = p_pipeline_id where e.after = s.name), '{}'),
    coalesce((select array_agg(n.id order by n.id) from reach r join pipeline.stages n on n.name = r.after and n.pipeline_id = p_pipeline_id where r.before = s.name), '{}'),
    not exists (select from edge e where e.before = s.name)
  from pipeline.stages s where s.pipeline_id = p_pipeline_id and v_graph ? s.name;
  update pipeline.pipelines set current_version_id = v_id where id = p_pipeline_id;
  return v_id;
end
$$;
comment on function pipeline.save_version(int, jsonb) is 'The id of the version with this graph: the current one when it is the same, else a new one.';

-- A stage that the new graph drops may still be ahead of live runs, which finish on their own version with it.
create function pipeline.check_dropped_stages(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_dropped record;
begin
  select s.name, count(*) as runs into v_dropped
  from pipeline.stages s
  join pipeline.version_stages vs on vs.stage_id = s.id
  join pipeline.runs r on r.version_id = vs.version_id and r.status = 'running'
  where s.pipeline_id = p_pipeline_id and not pipeline.graph_of(p_definition) ? s.name
    and not exists (select from pipeline.attempts a where a.run_id = r.id and a.stage_id = s.id and a.state = 'completed' and not a.superseded)
  group by s.name order by s.name limit 1;
  if found then
    raise exception 'stage % is dropped, but % live runs still need it', v_dropped.name, v_dropped.runs
      using errcode = 'MR001', hint = format('Let them finish, or cancel them (select pipeline.cancel(id) from pipeline.runs where status = ''running''), or keep the stage %s.', v_dropped.name);
  end if;
end
$$;
comment on function pipeline.check_dropped_stages(int, jsonb) is 'Raises MR001 with the number of live runs when a definition drops a stage that they still need.';

create function pipeline.check_moved(p_pipeline text, p_table regclass, p_key text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_live record;
begin
  select p.entity_table, p.entity_key, count(*) as runs into v_live
  from pipeline.pipelines p join pipeline.runs r on r.pipeline_id = p.id and r.status = 'running'
  where p.name = p_pipeline and (p.entity_table <> p_table or p.entity_key <> p_key) group by p.entity_table, p.entity_key;
  if found then
    raise exception 'pipeline % cannot move from %.% to %.%: % live runs are filed under the former', p_pipeline, v_live.entity_table, v_live.entity_key, p_table, p_key, v_live.runs
      using errcode = 'MR001', hint = 'Let them finish, or cancel them: select pipeline.cancel(id) from pipeline.runs where status = ''running''.';
  end if;
end
$$;
comment on function pipeline.check_moved(text, regclass, text) is 'Raises MR001 when a pipeline with live runs is to change its table or key.';

create function pipeline.define(p_definition jsonb) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline_id int;
  v_version_id int;
  v_table regclass;
begin
  perform pipeline.check_definition(p_definition);
  v_table := to_regclass(p_definition #>> '{entity,table}');
  perform pipeline.check_moved(p_definition ->> 'pipeline', v_table, coalesce(p_definition #>> '{entity,key}', 'id'));
  insert into pipeline.pipelines as p (name, entity_table, entity_key, projection, enabled)
  values (p_definition ->> 'pipeline', v_table, coalesce(p_definition #>> '{entity,key}', 'id'),
    coalesce(p_definition #>> '{entity,projection}', 'columns'), coalesce((p_definition ->> 'enabled')::boolean, true))
  on conflict on constraint pipelines_name_key do update
    set entity_table = excluded.entity_table, entity_key = excluded.entity_key, projection = excluded.projection,
        enabled = coalesce((p_definition ->> 'enabled')::boolean, p.enabled)
  returning p.id into v_pipeline_id;
  perform pipeline.check_dropped_stages(v_pipeline_id, p_definition);
  perform pipeline.save_stages(v_pipeline_id, p_definition);
  v_version_id := pipeline.save_version(v_pipeline_id, p_definition);
  perform pipeline.attach(p_definition ->> 'pipeline');
  perform pipeline.schedule_polls();
  return (select v.number from pipeline.versions v where v.id = v_version_id);
end
$$;
comment on function pipeline.define(jsonb) is 'Defines a pipeline or changes it, and returns the number of its current version. Calling it again with the same definition changes nothing.';

revoke all on all functions in schema pipeline from public;
