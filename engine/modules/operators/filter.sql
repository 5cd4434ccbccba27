-- The operators' filter: which runs a list or a bulk is about, and how they are found
--
-- A call looks at 20,000 rows at most, so no call grows with history. Its answer says where the
-- next call goes on.

-- Returns the fields of a filter, with the form of each.
create function millrace.filter_fields() returns jsonb
immutable
as $$
select '{"pipeline": "name", "stage": "name",
  "status": ["running", "completed", "failed", "cancelled"], "error_code": "text",
  "entity": "key", "runs": "ids", "parent": "id", "since": "time", "before": "time"}'::jsonb
$$;

-- Raises MR002 where a request has other fields than these, or a field has the wrong form.
-- p_fields: for each field the name of a form, or a list of the words that it may have.
-- p_name: the request's name in the message.
create function millrace.check_request(p_request jsonb, p_fields jsonb, p_name text)
stable
as $$
  v_forms constant jsonb := $json${
    "name": {"type": "string", "maxLength": 100, "wanted": "a name"},
    "text": {"type": "string", "minLength": 1, "maxLength": 500},
    "reason": {"type": "string", "maxLength": 2000},
    "key": {"type": "string", "minLength": 1, "maxLength": 2000,
      "wanted": "the key of a row as text, of 1 to 2000 characters"},
    "id": {"type": "integer", "minimum": 1, "maximum": 9007199254740991},
    "ids": {"type": "array", "maxItems": 1000,
      "items": {"type": "integer", "minimum": 1, "maximum": 9007199254740991}},
    "time": {"type": "string", "maxLength": 40, "wanted": "a time such as 2026-11-21T08:00:00Z"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"}, "any": {},
    "cursor": {"type": "string", "wanted": "what the last answer to this question had as next",
      "pattern": "^\\d{1,18}([.]\\d{1,18})?$"},
    "size": {"type": "integer", "minimum": 1, "maximum": 200},
    "seconds": {"type": "integer", "minimum": 60, "maximum": 86400},
    "minutes": {"type": "integer", "minimum": 1, "maximum": 576000},
    "count": {"type": "integer", "minimum": 1, "maximum": 10000}}$json$;

perform millrace.refuse(coalesce(
  millrace.schema_fault(jsonb_build_object(
    'type', 'object', 'additionalProperties', false, 'properties', (
      select coalesce(json_object_agg(f.key, case jsonb_typeof(f.value)
        when 'array' then jsonb_build_object('enum', f.value)
        else v_forms -> (f.value #>> '{}') end)::jsonb, '{}')
      from jsonb_each(p_fields) f)), coalesce(p_request, 'null'), p_name),
  (select format('%s.%s is %s, but must be %s',
     p_name, f.key, p_request -> f.key, v_forms #>> '{time,wanted}')
   from jsonb_each(p_fields) f
   where f.value = '"time"' and not (p_request ->> f.key ~ '^\d{4}-\d\d-\d\d'
     and millrace.input_fault(p_request ->> f.key, 'timestamptz') is null)
   limit 1)), 'Correct that field, or leave it out; nothing was done.', 'MR002');
$$;

-- Finds rows that meet a condition among the first 20,000 rows of a query. A condition that reads
-- the attempts of each row is checked for 2,500 rows.
-- p_rows: the query, whose rows are named r; p_order, p_condition: SQL over r.
-- ids: up to p_limit rows. next: the id of the last row that was checked; null at the end.
create function millrace.scan_rows(
  p_rows text, p_order text, p_condition text, p_limit int, out ids bigint[], out next bigint
)
stable
as $$
  v_most int := case when p_condition like '%millrace.attempts%' then 2500 else 20000 end;

execute format('select array(select r.id from (select r.* from (%1$s) r order by %2$s limit %3$s)'
  ' r where %4$s order by %2$s limit %5$s)', p_rows, p_order, v_most, p_condition, p_limit)
into ids;
if cardinality(ids) = p_limit then
  next := ids[p_limit];
else
  execute format('select r.id from (%s) r order by %s offset %s limit 1',
    p_rows, p_order, v_most - 1)
  into next;
end if;
$$;

-- Returns conditions under which an index finds failed runs by stage and code: one condition for
-- each pipeline, stage and code that has such runs. Null where neither a stage nor a code is given,
-- and for more than 200 conditions, since each becomes a branch of the query. Each run that failed
-- at a stage has a code.
-- p_stage_id: null means all stages; p_code: null means all codes.
create function millrace.failed_heads(p_pipelines int[], p_stage_id int, p_code text)
returns text[]
stable
as $$
  v_heads text[];

if p_stage_id is null and p_code is null then
  return null;
end if;
with recursive head as (
  select s.pipeline_id, s.id as stage_id, c.code
  from millrace.stages s
  cross join lateral (
    select min(r.error_code) as code
    from millrace.runs r
    where r.pipeline_id = s.pipeline_id and r.failed_stage_id = s.id
      and r.status = 'failed'
      and r.error_code >= coalesce(left(p_code, 200), '')) c
  where s.pipeline_id = any (p_pipelines)
    and s.id = coalesce(p_stage_id, s.id)
  union all
  select h.pipeline_id, h.stage_id, (
    select min(r.error_code)
    from millrace.runs r
    where r.pipeline_id = h.pipeline_id and r.failed_stage_id = h.stage_id
      and r.status = 'failed' and r.error_code > h.code)
  from head h
  where h.code is not null and p_code is null
)
select array_agg(format('r.pipeline_id = %s and r.failed_stage_id = %s and r.error_code = %L',
  h.pipeline_id, h.stage_id, h.code))
into v_heads
from (select * from head h where h.code is not null limit 201) h
where p_code is null
  or h.code = left(p_code, 200);
return case when cardinality(v_heads) > 200 then null else coalesce(v_heads, '{}') end;
$$;

-- Does one search of find_runs(), with the same arguments and answer. The filter may have three
-- more fields.
-- but_failed: leaves out failed runs.
-- text: a text anywhere in a run's key, label or errors' messages.
-- payloads: true looks for the text in the run's metadata, too.
create function millrace.find_alike(
  p_pipelines int[], p_filter jsonb, out run_ids bigint[], out next text
)
stable
set plan = in_order
as $$
  v_status text := p_filter ->> 'status';
  v_cursor text := p_filter ->> 'cursor';
  v_code text := quote_literal(p_filter ->> 'error_code');
  v_stage_id int;
  v_named text := concat_ws(' and ',
    'r.id = any (' || quote_literal(translate(p_filter ->> 'runs', '[]', '{}'))
      || '::numeric[]::bigint[])',
    case when p_filter ? 'entity' then format('r.id = any (array(select o.id from millrace.runs o '
      'where o.entity_id = %1$L union all select o.id from millrace.runs o where o.copy_key = %1$L '
      'and o.pipeline_id = any (%2$L)))', p_filter ->> 'entity', p_pipelines) end,
    'r.fan_out_id = any (array(select f.id from millrace.fan_outs f where f.run_id = '
      || (p_filter -> 'parent')::bigint || '))');
  v_by_end boolean := v_named = '' and v_status <> 'running';
  v_order text := case when v_by_end then 'r.finished_at desc, r.id desc' else 'r.id desc' end;
  v_at text := case
    when v_by_end then 'r.finished_at' else 'coalesce(r.finished_at, r.created_at)' end;
  v_condition text := format('r.pipeline_id = any (%L)', p_pipelines);
  v_heads text[];
  v_time text := concat_ws(' and ', 'true',
    v_at || ' >= ' || quote_literal(p_filter ->> 'since'),
    v_at || ' < ' || quote_literal(p_filter ->> 'before'));
  v_rows text;
  v_last bigint;

if p_filter ? 'stage' then
  perform millrace.need_fields(p_filter || '{"verb": "a stage"}', 'pipeline');
  v_stage_id := (millrace.stage_named(p_filter ->> 'pipeline', p_filter ->> 'stage')).id;
end if;
if v_status = 'failed' then
  v_heads := millrace.failed_heads(p_pipelines, v_stage_id, p_filter ->> 'error_code');
end if;
if v_named = '' and v_status = 'running' and (
    select count(*) <= 20000
    from (
      select from millrace.runs r
      where r.pipeline_id = any (p_pipelines) and r.status = 'running'
      limit 20001) r) then
  v_named := 'r.status = ''running''';
end if;
v_rows := case
  -- Pipeline 0 does not exist: the query is valid also for a caller who sees no pipeline.
  when v_by_end then (
    select string_agg(format(
      '(select r.* from millrace.runs r where %s order by %s limit 20000)',
      concat_ws(' and ', i, 'r.finished_at is not null', v_time,
        case when v_status = 'failed' then 'r.status = ''failed''' end,
        '(r.finished_at, r.id) < (timestamptz ''epoch'' + interval ''1 microsecond'' * '
          || split_part(v_cursor, '.', 1) || ', 0' || split_part(v_cursor, '.', 2) || ')'),
      v_order), ' union all ')
    from unnest(coalesce(v_heads, array(
        select 'r.pipeline_id = ' || p
        from unnest(p_pipelines) p)) || 'r.pipeline_id = 0'::text) i)
  else 'select r.* from millrace.runs r where ' || concat_ws(' and ', 'true',
    'r.id < ' || split_part(v_cursor, '.', 1),
    case when v_named <> '' then format('%s and %s offset 0', v_condition, v_named) end)
end;
v_condition := concat_ws(' and ', v_condition, v_time, 'r.status = ' || quote_literal(v_status),
  case when p_filter ? 'but_failed' then 'r.status <> ''failed''' end,
  case when v_status = 'failed' then concat_ws(' and ', 'true',
    'r.failed_stage_id = ' || v_stage_id, 'r.error_code = left(' || v_code || ', 200)')
  when p_filter ?| '{stage,error_code}' then format(
    $sql$r.status <> 'completed' and (
      select true
      from millrace.attempts a
      left join millrace.attempts o on o.id = a.parent_id
      where a.run_id = r.id
        and a.state <> all ('{completed,skipped}'::millrace.attempt_state[])
        and (a.state <> 'failed' or r.status <> 'running')
        and %s
        and millrace.is_newest_attempt(a)
      limit 1)$sql$,
    concat_ws(' and ', 'a.stage_id = ' || v_stage_id,
      'coalesce(a.error, o.error) ->> ''code'' = ' || v_code)) end,
  -- The condition reads attempts, so scan_rows() checks 2,500 runs.
  case when p_filter ? 'text' then format($sql$(
    select strpos(lower(concat_ws(' ', r.entity_id, millrace.label_of(p, millrace.key_of(r)), (
        select string_agg(a.error ->> 'message', ' ') from millrace.attempts a
        where a.run_id = r.id), (
        select m.value from millrace.run_metadata m
        where m.id = r.metadata_id and %L))), lower(%L)) > 0
    from millrace.pipelines p where p.id = r.pipeline_id)$sql$,
    p_filter -> 'payloads', p_filter ->> 'text') end);
select f.ids, f.next
into run_ids, v_last
from millrace.scan_rows(
  v_rows, v_order, v_condition, coalesce((p_filter -> 'limit')::int, 50)) f;
next := case
  when v_by_end then (
    select (extract(epoch from r.finished_at) * 1000000)::bigint || '.' || r.id
    from millrace.runs r
    where r.id = v_last)
  else v_last::text
end;
$$;

-- Finds runs of pipelines by a filter with cursor and limit. The order is by end, the newest first,
-- where the filter names a status that is over; else by id, the highest first. An index serves runs
-- that the filter names, up to 20,000 running runs, and failed runs by stage and code. A filter
-- with a stage or a code but no status lists the failed runs first, then the others.
-- next: the cursor of the next call; null at the end.
create function millrace.find_runs(
  p_pipelines int[], p_filter jsonb, out run_ids bigint[], out next text
)
stable
as $$
  v_more record;

if not p_filter ?| '{stage,error_code}'
    or p_filter ?| '{status,runs,entity,parent}' then
  v_more := millrace.find_alike(p_pipelines, p_filter);
elsif strpos(coalesce(p_filter ->> 'cursor', '.'), '.') > 0 then
  -- The failed runs come first. Their cursor is a time and an id with a point between; the cursor
  -- of the other runs is an id alone.
  select f.* into run_ids, next
  from millrace.find_alike(p_pipelines, p_filter || '{"status": "failed"}') f;
  if next is not null then
    return;
  end if;
  v_more := millrace.find_alike(p_pipelines, p_filter || jsonb_build_object('but_failed', true,
    'cursor', '999999999999999999',
    'limit', coalesce((p_filter -> 'limit')::int, 50) - cardinality(run_ids)));
else
  v_more := millrace.find_alike(p_pipelines, p_filter || '{"but_failed": true}');
end if;
run_ids := coalesce(run_ids, '{}') || v_more.run_ids;
next := v_more.next;
$$;
