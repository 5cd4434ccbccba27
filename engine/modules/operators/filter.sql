-- The operators' filter: what lists and bulks may ask of runs, and how they are found
--
-- A call looks at so many runs at most, newest first (a bulk: oldest first), and says up to which
-- it has come, so that none grows with history. Rows, parents, what runs and what has failed are
-- looked up by their indexes; anything else goes through the runs by their ids.

-- Says which fields a filter may have, and of which form each is.
create function millrace.filter_fields() returns jsonb
language sql immutable
as $$
  select '{"pipeline": "name", "stage": "name",
    "status": ["running", "completed", "failed", "cancelled"],
    "error_code": "text", "entity": "key", "entities": "keys", "label": "text",
    "run": "id", "runs": "ids", "trace": "uuid", "parent": "id",
    "since": "time", "before": "time"}'::jsonb
$$;

-- Raises MR002 unless a request has these fields alone, each in its form (or one of a list of
-- words), and to a size that a person might send.
create function millrace.check_request(p_asked jsonb, p_fields jsonb, p_name text)
immutable
as $$
declare
  v_forms jsonb := (
    select f.forms || jsonb_build_object(
      'keys', jsonb_build_object('type', 'array', 'maxItems', 1000, 'items', f.forms -> 'key'),
      'ids', jsonb_build_object('type', 'array', 'maxItems', 1000, 'items', f.forms -> 'id'))
    from (
      select $json${
        "name": {"type": "string", "maxLength": 100, "wanted": "a name"},
        "names": {"type": ["array", "null"], "maxItems": 1000,
          "items": {"type": "string", "maxLength": 100}},
        "text": {"type": "string", "minLength": 1, "maxLength": 500},
        "reason": {"type": "string", "maxLength": 2000},
        "key": {"type": "string", "minLength": 1, "maxLength": 2000,
          "wanted": "the key of a row as text, of 1 to 2000 characters"},
        "id": {"type": "integer", "minimum": 1, "maximum": 9007199254740991},
        "uuid": {"type": "string", "wanted": "a UUID as text",
          "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"},
        "time": {"type": "string", "maxLength": 40, "wanted": "a time such as 2026-11-21T08:00:00Z",
          "pattern":
        "^\\d{4}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d(:?\\d\\d)?)?)?$"},
        "boolean": {"type": "boolean"},
        "object": {"type": "object"},
        "cursor": {"type": "string"},
        "size": {"type": "integer", "minimum": 1, "maximum": 200},
        "seconds": {"type": "integer", "minimum": 60, "maximum": 86400},
        "minutes": {"type": "integer", "minimum": 1, "maximum": 576000},
        "count": {"type": "integer", "minimum": 1, "maximum": 10000},
        "number": {"type": "integer", "minimum": 1, "maximum": 1000000},
        "priority": {"type": "integer", "minimum": 0, "maximum": 9}}$json$::jsonb as forms) f);
  v_fault text;
begin
  if octet_length(p_asked::text) > 200000 then
    v_fault := format('%s has %s bytes, but may have 200000 at most',
      p_name, octet_length(p_asked::text));
  else
    v_fault := coalesce(
      millrace.schema_fault(jsonb_build_object(
        'type', 'object', 'additionalProperties', false, 'properties', (
          select coalesce(jsonb_object_agg(f.key, case jsonb_typeof(f.value)
            when 'array' then jsonb_build_object('enum', f.value)
            else v_forms -> (f.value #>> '{}') end), '{}')
          from jsonb_each(p_fields) f)), coalesce(p_asked, 'null'), p_name),
      (select format('%s.%s is %s, but must be written without a decimal point', p_name, e.key, n)
       from jsonb_each(p_asked) e
       cross join jsonb_path_query(e.value, 'lax $[*] ? (@.type() == "number")') n
       where n::text ~ '[.]'
       limit 1));
  end if;
  if v_fault is not null then
    raise exception '%', v_fault
      using errcode = 'MR002', hint = 'Correct that field, or leave it out; nothing was done.';
  end if;
end
$$;

-- Reads a time that somebody wrote; null where they wrote none.
create function millrace.request_time(p_asked jsonb, p_field text) returns timestamptz
stable
as $$
begin
  return (p_asked ->> p_field)::timestamptz;
exception
  when data_exception then
    raise exception '% is %, but must be a time such as 2026-11-21T08:00:00Z',
      p_field, millrace.short_json(p_asked -> p_field)
      using errcode = 'MR002', hint = 'Correct that field, or leave it out; nothing was done.';
end
$$;

-- Reads the cursor of a list: the last number shown, or, by_end, the last end and number; null at
-- its beginning. It only says where to go on: whoever makes one up sees no more.
create function millrace.request_cursor(p_asked jsonb, p_by_end boolean default false)
returns text
immutable
as $$
begin
  if p_asked ->> 'cursor' !~ (case when p_by_end then '^[0-9]{1,17}[.]' else '^' end
      || '[0-9]{1,18}$') then
    raise exception 'cursor is %, but must be what the last answer to this question had as next',
      millrace.short_json(p_asked -> 'cursor')
      using errcode = 'MR002', hint = 'Leave it out to begin with the newest.';
  end if;
  return p_asked ->> 'cursor';
end
$$;

-- Reads a filter that check_request() accepts: names become ids, and pipeline_ids are the caller's.
create function millrace.read_filter(p_caller millrace.caller, p_asked jsonb)
returns jsonb
stable
as $$
declare
  v_pipeline millrace.pipelines;
  v_filter jsonb := jsonb_build_object(
    'status', p_asked -> 'status',
    'error_code', p_asked -> 'error_code',
    'trace', p_asked -> 'trace',
    'parent', p_asked -> 'parent',
    'since', millrace.request_time(p_asked, 'since'),
    'before', millrace.request_time(p_asked, 'before'),
    'runs', coalesce(p_asked -> 'runs', jsonb_build_array(p_asked -> 'run')),
    'entities', coalesce(p_asked -> 'entities', jsonb_build_array(p_asked -> 'entity')));
begin
  if p_asked ? 'pipeline' then
    v_pipeline := millrace.pipeline_seen(p_caller, p_asked ->> 'pipeline');
    v_filter := v_filter || jsonb_build_object('pipeline_ids', array[v_pipeline.id]);
  else
    v_filter := v_filter || jsonb_build_object('pipeline_ids', array(
      select p.id
      from millrace.pipelines p
      where millrace.sees(p_caller, p.name)
      order by p.id));
  end if;
  if (p_asked ? 'stage' or p_asked ? 'label') and v_pipeline.id is null then
    raise exception 'pipeline is missing, but a stage or a label belongs to one'
      using errcode = 'MR002', hint = 'Set pipeline to its name.';
  end if;
  if p_asked ? 'stage' then
    v_filter := v_filter || jsonb_build_object(
      'stage_id', (millrace.stage_named(v_pipeline.name, p_asked ->> 'stage')).id);
  end if;
  if p_asked ? 'label' then
    if v_pipeline.label_column is null then
      raise exception 'pipeline % declares no label, so no row is found by one', v_pipeline.name
        using errcode = 'MR002', hint = 'Ask by entity, the key of the row.';
    end if;
    v_filter := v_filter || jsonb_build_object('entities', array(
      select l.entity_id
      from millrace.rows_labelled(v_pipeline, p_asked ->> 'label', 1000) l));
  elsif v_filter -> 'entities' = '[null]' then
    v_filter := v_filter - 'entities';
  end if;
  return jsonb_strip_nulls(case
    when v_filter -> 'runs' = '[null]' then v_filter - 'runs'
    else v_filter
  end);
end
$$;

-- Writes the conditions of a filter over a row r of runs, as SQL. A stage or an error is that at
-- which a run failed, was cancelled, or is while it runs.
create function millrace.filter_conditions(p_filter jsonb) returns text
language sql immutable
as $$
  select concat_ws(E'\n    and ',
    format('r.pipeline_id = any (%L)', array(
      select i::int from jsonb_array_elements_text(p_filter -> 'pipeline_ids') i)),
    'r.id <= ' || (p_filter ->> 'last_run_id')::bigint,
    'r.status = ' || quote_literal(p_filter ->> 'status'),
    'r.trace_id = ' || quote_literal(p_filter ->> 'trace'),
    'coalesce(r.finished_at, r.created_at) >= ' || quote_literal(p_filter ->> 'since'),
    'coalesce(r.finished_at, r.created_at) < ' || quote_literal(p_filter ->> 'before'),
    case when p_filter ->> 'status' = 'failed' then concat_ws(' and ', 'true',
      'r.failed_stage_id = ' || quote_literal(p_filter ->> 'stage_id'),
      'r.error_code = ' || quote_literal(left(p_filter ->> 'error_code', 200)))
    when p_filter ?| array['stage_id', 'error_code'] then format(
      $sql$r.status <> 'completed' and exists (
      select
      from millrace.attempts a
      left join millrace.attempts o on o.id = a.parent_id
      where a.run_id = r.id
        and not a.superseded
        and a.state <> all ('{completed,skipped}'::millrace.attempt_state[])
        and (a.state <> 'failed' or r.status <> 'running')
        %s
        and not exists (
          select
          from millrace.attempts n
          where n.run_id = a.run_id and n.stage_id = a.stage_id and n.number > a.number))$sql$,
      concat_ws(E'\n        ',
        'and a.stage_id = ' || quote_literal(p_filter ->> 'stage_id'),
        'and coalesce(a.error, o.error) ->> ''code'' = '
          || quote_literal(p_filter ->> 'error_code'))) end)
$$;

-- Writes the condition by which a filter's runs are best read; null: by their ids alone. Running
-- and failed runs are read by their index, as long as a call can look at all of them behind the
-- cursor.
create function millrace.filter_source(
  p_filter jsonb,
  p_behind text,
  p_most int)
returns text
stable
as $$
declare
  v_pipelines text := format('r.pipeline_id = any (%L)', array(
    select i::int from jsonb_array_elements_text(p_filter -> 'pipeline_ids') i));
  v_source text;
  v_found int;
begin
  if p_filter ? 'runs' then
    return format('r.id = any (%L)', array(
      select i::bigint from jsonb_array_elements_text(p_filter -> 'runs') i));
  elsif p_filter ? 'entities' then
    return v_pipelines || format(' and r.entity_id = any (%L)', array(
      select i from jsonb_array_elements_text(p_filter -> 'entities') i));
  elsif p_filter ? 'trace' then
    return format('r.trace_id = %L', p_filter ->> 'trace');
  elsif p_filter ? 'parent' then
    return format('r.fan_out_id = any (%L)', array(
      select f.id from millrace.fan_outs f where f.run_id = (p_filter ->> 'parent')::bigint));
  elsif p_filter ->> 'status' in ('running', 'failed') then
    v_source := concat_ws(' and ', format('r.status = %L', p_filter ->> 'status'), v_pipelines,
      case when p_filter ->> 'status' = 'failed' then concat_ws(' and ', 'true',
        'r.failed_stage_id = ' || quote_literal(p_filter ->> 'stage_id'),
        'r.error_code = ' || quote_literal(left(p_filter ->> 'error_code', 200))) end);
    execute format(
      'select count(*) from (select from millrace.runs r where %s limit %s) r',
      concat_ws(' and ', v_source, p_behind), p_most + 1)
    into v_found;
    return case when v_found <= p_most then v_source end;
  end if;
  return null;
end
$$;

-- Sizes the portion of runs that is looked at in one go: where an unfailed run is, its attempts
-- tell, which takes longer.
create function millrace.filter_portion(p_filter jsonb) returns int
language sql immutable
as $$
  select case
    when p_filter ?| array['stage_id', 'error_code']
      and p_filter ->> 'status' is distinct from 'failed' then 500
    else 2000
  end
$$;

-- Finds runs by a filter in the order of their ids, the newest first (p_up: the oldest). It looks
-- at a portion at a time, to a number and a time. next: where to go on; null at the end.
create function millrace.find_runs(
  p_filter jsonb,
  p_after bigint,
  p_limit int,
  p_up boolean default false,
  out run_ids bigint[],
  out next bigint)
stable
as $$
declare
  c_most constant int := 20000;
  v_until timestamptz := millrace.now() + interval '40 milliseconds';
  v_order text := case when p_up then 'asc' else 'desc' end;
  v_behind text := case when p_up then 'r.id > ' else 'r.id < ' end;
  v_source text := millrace.filter_source(p_filter, v_behind || p_after, c_most);
  v_portion int := case
    when v_source is null then millrace.filter_portion(p_filter)
    else c_most
  end;
  v_found bigint[];
  v_looked int := 0;
begin
  run_ids := '{}';
  next := p_after;
  loop
    execute format($sql$
      with looked as materialized (
        select r.* from millrace.runs r where %1$s order by r.id %2$s limit %3$s
      )
      select array(select r.id from looked r where %4$s order by r.id %2$s limit %5$s),
        (select r.id from looked r order by r.id %2$s limit 1 offset %3$s - 1)$sql$,
      concat_ws(' and ', 'true', v_source, v_behind || next), v_order, v_portion,
      millrace.filter_conditions(p_filter), p_limit - cardinality(run_ids))
    into v_found, next;
    run_ids := run_ids || v_found;
    v_looked := v_looked + v_portion;
    if cardinality(run_ids) = p_limit then
      next := run_ids[p_limit];
    end if;
    exit when next is null or cardinality(run_ids) = p_limit or v_looked >= c_most
      or millrace.now() > v_until;
  end loop;
end
$$;

-- Finds runs that are over by a filter of their status, the newest end first, likewise. next: the
-- microsecond of the last end, and its run.
create function millrace.find_ended(
  p_filter jsonb,
  p_cursor text,
  p_limit int,
  out run_ids bigint[],
  out next text)
stable
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
declare
  c_most constant int := 20000;
  v_until timestamptz := millrace.now() + interval '40 milliseconds';
  v_portion int := millrace.filter_portion(p_filter);
  v_found bigint[];
  v_last bigint;
  v_looked int := 0;
begin
  run_ids := '{}';
  next := p_cursor;
  loop
    execute format($sql$
      with looked as materialized (
        select u.* from (%1$s) u order by u.finished_at desc, u.id desc limit %2$s
      )
      select
        array(select r.id from looked r where %3$s
          order by r.finished_at desc, r.id desc limit %4$s),
        (select r.id from looked r
          order by r.finished_at desc, r.id desc limit 1 offset %2$s - 1)$sql$,
      (
        select coalesce(string_agg(format($sql$
          (select r.*
           from millrace.runs r
           where %s
           order by r.finished_at desc, r.id desc
           limit %s)$sql$,
            concat_ws(' and ', 'r.pipeline_id = ' || i,
              'r.finished_at is not null',
              case when p_filter ->> 'status' = 'failed' then 'r.status = ''failed''' end,
              'r.finished_at >= ' || quote_literal(p_filter ->> 'since'),
              'r.finished_at < ' || quote_literal(p_filter ->> 'before'),
              case when next is not null then format(
                '(r.finished_at, r.id) '
                '< (timestamptz ''epoch'' + %s * interval ''1 microsecond'', %s)',
                split_part(next, '.', 1), split_part(next, '.', 2)) end),
            v_portion), ' union all '), 'select r.* from millrace.runs r where false')
        from jsonb_array_elements_text(p_filter -> 'pipeline_ids') i), v_portion,
      millrace.filter_conditions(p_filter), p_limit - cardinality(run_ids))
    into v_found, v_last;
    run_ids := run_ids || v_found;
    v_looked := v_looked + v_portion;
    v_last := coalesce(run_ids[p_limit], v_last);
    next := (
      select (extract(epoch from r.finished_at) * 1000000)::bigint || '.' || r.id
      from millrace.runs r
      where r.id = v_last);
    exit when next is null or cardinality(run_ids) = p_limit or v_looked >= c_most
      or millrace.now() > v_until;
  end loop;
end
$$;
