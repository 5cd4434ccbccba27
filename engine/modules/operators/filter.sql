-- The operators' filter: which runs a list or a bulk is about, and how they are found
--
-- A call looks at 20,000 rows at most and says up to which it has come, so that none grows with
-- history. What no index leads to is looked for by the runs' ids.

-- Says which fields a filter may have, and of which form each is.
create function millrace.filter_fields() returns jsonb
language sql immutable
as $$
  select '{"pipeline": "name", "stage": "name",
    "status": ["running", "completed", "failed", "cancelled"], "error_code": "text",
    "entity": "key", "runs": "ids", "parent": "id", "since": "time", "before": "time"}'::jsonb
$$;

-- Raises MR002 unless a request has these fields alone, each in its form or one of a list of words.
create function millrace.check_request(p_asked jsonb, p_fields jsonb, p_name text)
immutable
as $$
declare
  v_forms jsonb := (
    select f.forms || jsonb_build_object(
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
        "time": {"type": "string", "maxLength": 40, "wanted": "a time such as 2026-11-21T08:00:00Z",
          "pattern":
        "^\\d{4}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d(:?\\d\\d)?)?)?$"},
        "boolean": {"type": "boolean"},
        "object": {"type": "object"},
        "cursor": {"type": "string", "wanted": "what the last answer to this question had as next",
          "pattern": "^\\d{1,18}([.]\\d{1,18})?$"},
        "size": {"type": "integer", "minimum": 1, "maximum": 200},
        "seconds": {"type": "integer", "minimum": 60, "maximum": 86400},
        "minutes": {"type": "integer", "minimum": 1, "maximum": 576000},
        "count": {"type": "integer", "minimum": 1, "maximum": 10000}}$json$::jsonb as forms) f);
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

-- Reads a filter that check_request() accepts: names become ids, and pipeline_ids are the caller's.
create function millrace.read_filter(p_caller millrace.caller, p_asked jsonb)
returns jsonb
stable
as $$
begin
  if p_asked ? 'stage' and not p_asked ? 'pipeline' then
    raise exception 'pipeline is missing, but a stage belongs to one'
      using errcode = 'MR002', hint = 'Set pipeline to its name.';
  end if;
  return jsonb_strip_nulls(p_asked - '{cursor,limit,pipeline,stage}'::text[] || jsonb_build_object(
    'since', millrace.request_time(p_asked, 'since'),
    'before', millrace.request_time(p_asked, 'before'),
    'pipeline_ids', case
      when p_asked ? 'pipeline' then
        array[(millrace.pipeline_seen(p_caller, p_asked ->> 'pipeline')).id]
      else array(
        select p.id from millrace.pipelines p where millrace.sees(p_caller, p.name))
    end,
    'stage_id', case when p_asked ? 'stage' then
      (millrace.stage_named(p_asked ->> 'pipeline', p_asked ->> 'stage')).id end));
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
    'coalesce(r.finished_at, r.created_at) >= ' || quote_literal(p_filter ->> 'since'),
    'coalesce(r.finished_at, r.created_at) < ' || quote_literal(p_filter ->> 'before'),
    case when p_filter ->> 'status' = 'failed' then concat_ws(' and ', 'true',
      'r.failed_stage_id = ' || quote_literal(p_filter ->> 'stage_id'),
      'r.error_code = ' || quote_literal(left(p_filter ->> 'error_code', 200)))
    when p_filter ?| array['stage_id', 'error_code'] then format(
      $sql$r.status <> 'completed' and (
      select true
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
          where n.run_id = a.run_id and n.stage_id = a.stage_id and n.number > a.number)
      limit 1)$sql$,
      concat_ws(E'\n        ',
        'and a.stage_id = ' || quote_literal(p_filter ->> 'stage_id'),
        'and coalesce(a.error, o.error) ->> ''code'' = '
          || quote_literal(p_filter ->> 'error_code'))) end)
$$;

-- Finds rows r that meet a condition among the first of those listed: 20,000, or 2,500 where the
-- attempts of each are asked. next: the last one looked at; null at the end.
create function millrace.find_among(
  p_rows text, p_order text, p_condition text, p_limit int, out ids bigint[], out next bigint
)
stable
as $$
declare
  v_most int := case when p_condition like '%millrace.attempts%' then 2500 else 20000 end;
  v_rows text := format('select r.* from (%s) r order by %s limit %s', p_rows, p_order, v_most);
begin
  execute format('select array(select r.id from (%s) r where %s order by %s limit %s)',
    v_rows, p_condition, p_order, p_limit)
  into ids;
  if cardinality(ids) = p_limit then
    next := ids[p_limit];
  else
    execute format('select r.id from (%s) r order by %s offset %s', v_rows, p_order, v_most - 1)
    into next;
  end if;
end
$$;

-- Finds runs by a filter in the order of their ids, the newest first, or the oldest (p_up). Running
-- and failed runs are read by their index where it leads to 20,000 at most.
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
  v_pipelines text := format('r.pipeline_id = any (%L)', array(
    select i::int from jsonb_array_elements_text(p_filter -> 'pipeline_ids') i));
  v_source text := concat_ws(' and ', 'true',
    case when p_up then 'r.id > ' else 'r.id < ' end || p_after,
    case when p_filter ? 'runs' then format('r.id = any (%L)', array(
      select i::bigint from jsonb_array_elements_text(p_filter -> 'runs') i)) end,
    case when p_filter ? 'entity' then
      format('%s and r.entity_id = %L', v_pipelines, p_filter ->> 'entity') end,
    case when p_filter ? 'parent' then format('r.fan_out_id = any (%L)', array(
      select f.id
      from millrace.fan_outs f
      where f.run_id = (p_filter ->> 'parent')::bigint)) end);
  v_by_status text := case
    when p_filter ->> 'status' in ('running', 'failed')
      and not p_filter ?| array['runs', 'entity', 'parent'] then
      concat_ws(' and ', v_source, format('r.status = %L', p_filter ->> 'status'), v_pipelines,
        case when p_filter ->> 'status' = 'failed' then concat_ws(' and ', 'true',
          'r.failed_stage_id = ' || quote_literal(p_filter ->> 'stage_id'),
          'r.error_code = ' || quote_literal(left(p_filter ->> 'error_code', 200))) end)
  end;
  v_found int;
begin
  if v_by_status is not null then
    execute format('select count(*) from (select from millrace.runs r where %s limit 20001) r',
      v_by_status)
    into v_found;
  end if;
  select f.ids, f.next
  into run_ids, next
  from millrace.find_among(
    'select r.* from millrace.runs r where '
      || case when v_found <= 20000 then v_by_status else v_source end,
    case when p_up then 'r.id' else 'r.id desc' end,
    millrace.filter_conditions(p_filter), p_limit) f;
end
$$;

-- Finds runs that are over by a filter, the newest end first. next: the microsecond of the last
-- end, and its run.
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
  c_order constant text := 'r.finished_at desc, r.id desc';
  v_last bigint;
begin
  select f.ids, f.next
  into run_ids, v_last
  from millrace.find_among((
    select coalesce(string_agg(format(
      '(select r.* from millrace.runs r where %s order by %s limit 20000)',
      concat_ws(' and ', 'r.pipeline_id = ' || i,
        'r.finished_at is not null',
        case when p_filter ->> 'status' = 'failed' then 'r.status = ''failed''' end,
        'r.finished_at >= ' || quote_literal(p_filter ->> 'since'),
        'r.finished_at < ' || quote_literal(p_filter ->> 'before'),
        '(r.finished_at, r.id) < (timestamptz ''epoch'' + interval ''1 microsecond'' * '
          || split_part(p_cursor, '.', 1) || ', 0' || split_part(p_cursor, '.', 2) || ')'),
      c_order), ' union all '), 'select r.* from millrace.runs r where false')
    from jsonb_array_elements_text(p_filter -> 'pipeline_ids') i),
    c_order, millrace.filter_conditions(p_filter), p_limit) f;
  next := (
    select (extract(epoch from r.finished_at) * 1000000)::bigint || '.' || r.id
    from millrace.runs r
    where r.id = v_last);
end
$$;
