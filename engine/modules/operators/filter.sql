-- The operators' filter: which runs a list or a bulk is about, and how they are found
--
-- A call looks at 20,000 rows at most and says up to which it has come: none grows with history.

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
stable
as $$
declare
  v_forms constant jsonb := $json${
    "name": {"type": "string", "maxLength": 100, "wanted": "a name"},
    "text": {"type": "string", "minLength": 1, "maxLength": 500},
    "reason": {"type": "string", "maxLength": 2000},
    "key": {"type": "string", "minLength": 1, "maxLength": 2000,
      "wanted": "the key of a row as text, of 1 to 2000 characters"},
    "id": {"type": "integer", "minimum": 1, "maximum": 9007199254740991},
    "ids": {"type": "array", "maxItems": 1000,
      "items": {"type": "integer", "minimum": 1, "maximum": 9007199254740991}},
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
    "count": {"type": "integer", "minimum": 1, "maximum": 10000}}$json$;
  v_fault text := coalesce(
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
     limit 1),
    (select format('%s.%s is %s, but must be a time such as 2026-11-21T08:00:00Z',
       p_name, f.key, p_asked -> f.key)
     from jsonb_each(p_fields) f
     where f.value = '"time"'
       and not pg_input_is_valid(p_asked ->> f.key, 'timestamptz')
     limit 1));
begin
  if v_fault is not null then
    raise exception '%', v_fault
      using errcode = 'MR002', hint = 'Correct that field, or leave it out; nothing was done.';
  end if;
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
    'since', (p_asked ->> 'since')::timestamptz,
    'before', (p_asked ->> 'before')::timestamptz,
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
        and a.state <> all ('{completed,skipped}'::millrace.attempt_state[])
        and (a.state <> 'failed' or r.status <> 'running')
        %s
        and millrace.is_last_word(a)
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

-- Finds runs by a filter, the newest end first where their status is over, else by their ids, the
-- newest first, or by their ids, the oldest first (p_up). What the filter names, and up to 20,000
-- running or failed runs, are read by their index. next: where to go on; null at the end.
create function millrace.find_runs(
  p_filter jsonb,
  p_cursor text,
  p_limit int,
  p_up boolean default false,
  out run_ids bigint[],
  out next text)
stable
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
declare
  v_status text := p_filter ->> 'status';
  v_pipelines int[] := array(
    select i::int from jsonb_array_elements_text(p_filter -> 'pipeline_ids') i);
  v_named text := nullif(concat_ws(' and ',
    case when p_filter ? 'runs' then format('r.id = any (%L)', array(
      select i::bigint from jsonb_array_elements_text(p_filter -> 'runs') i)) end,
    case when p_filter ? 'entity' then
      format('r.pipeline_id = any (%L) and r.entity_id = %L', v_pipelines, p_filter ->> 'entity')
    end,
    case when p_filter ? 'parent' then format('r.fan_out_id = any (%L)', array(
      select f.id
      from millrace.fan_outs f
      where f.run_id = (p_filter ->> 'parent')::bigint)) end), '');
  v_by_end boolean := v_named is null and not p_up and v_status <> 'running';
  v_order text := case
    when v_by_end then 'r.finished_at desc, r.id desc'
    when p_up then 'r.id'
    else 'r.id desc'
  end;
  v_few boolean := true;
  v_rows text;
  v_last bigint;
begin
  if v_named is null and not v_by_end and v_status in ('running', 'failed') then
    v_named := format('r.pipeline_id = any (%L) and r.status = %L', v_pipelines, v_status);
    execute format('select count(*) <= 20000 from (select from millrace.runs r where %s '
      'limit 20001) r', v_named)
    into v_few;
  end if;
  v_rows := case when v_by_end then (
      select coalesce(string_agg(format(
        '(select r.* from millrace.runs r where %s order by %s limit 20000)',
        concat_ws(' and ', 'r.pipeline_id = ' || i,
          'r.finished_at is not null',
          case when v_status = 'failed' then 'r.status = ''failed''' end,
          'r.finished_at >= ' || quote_literal(p_filter ->> 'since'),
          'r.finished_at < ' || quote_literal(p_filter ->> 'before'),
          '(r.finished_at, r.id) < (timestamptz ''epoch'' + interval ''1 microsecond'' * '
            || split_part(p_cursor, '.', 1) || ', 0' || split_part(p_cursor, '.', 2) || ')'),
        v_order), ' union all '), 'select r.* from millrace.runs r where false')
      from unnest(v_pipelines) i)
    else 'select r.* from millrace.runs r where ' || concat_ws(' and ', 'true',
      'r.id ' || case when p_up then '> ' else '< ' end || split_part(p_cursor, '.', 1),
      case when v_few then v_named || ' offset 0' end)
  end;
  select f.ids, f.next
  into run_ids, v_last
  from millrace.find_among(v_rows, v_order, millrace.filter_conditions(p_filter), p_limit) f;
  next := case
    when v_by_end then (
      select (extract(epoch from r.finished_at) * 1000000)::bigint || '.' || r.id
      from millrace.runs r
      where r.id = v_last)
    else v_last::text
  end;
end
$$;
