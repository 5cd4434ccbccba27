-- The columns of a row that the engine knows by name
--
-- A start reads them at once, by the __values function of the pipeline. A column that was renamed
-- since must not make a user's own write fail: then each is read alone, and one that cannot be read
-- counts as empty.
--
-- A trace that the row brings along is that of all its runs. A child run has its parent's: it is
-- part of what the parent does.

-- Says which key a column's value stands for: the value itself or, for the part host, the host of a
-- URL in lower case; what is no URL counts as a whole, and null as ''.
create function millrace.group_key(p_value text, p_part text) returns text
language sql immutable
as $$
  -- An index entry must fit into a page, so what is very long is cut, with its hash to tell it
  -- from others.
  select case when octet_length(k) > 400 then left(k, 80) || md5(k) else k end
  from (
    select coalesce(
      case when p_part = 'host' then
        rtrim(lower((regexp_match(
          btrim(p_value),
          '^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\s]+)(?::\d*)?(?:[/?#]|$)',
          'i'))[1]), '.')
      end, p_value, '') as k) v
$$;

-- Lists the columns of a pipeline's rows that the engine reads by name: what for, at which stage,
-- and which part of the value counts.
create function millrace.value_columns(p_pipeline millrace.pipelines)
returns table (field text, stage text, name text, part text)
stable
as $$
begin
  return query
    select c.*
    from (values
      ('metadata', null, p_pipeline.metadata_column, null),
      ('trace', null, p_pipeline.trace_column, null),
      ('payer', null, p_pipeline.quota ->> 'column', null)) c(field, stage, name, part)
    where c.name is not null
    union all
    select 'key', s.name, s.limits #>> '{concurrency,column}',
      coalesce(s.limits #>> '{concurrency,part}', 'value')
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id
      and s.limits ? 'concurrency';
end
$$;

-- Writes the query that reads the columns of the rows $1: the key at the stage $3 and, where $2
-- says so, all that new runs take; of one field alone where one is named. A call for each key costs
-- more than all the rest, so what is short and taken whole needs none.
create function millrace.values_sql(
  p_pipeline millrace.pipelines, p_field text default null, p_stage text default null
) returns text
language sql stable
as $$
  select format($f$
  select row(%s, %s, %s, %s)::millrace.row_values
  from (
    select r.*
    from unnest($1) with ordinality i(id, place)
    left join lateral (
      select %s as metadata, %s as trace, %s as payer, %s as key
      from %s e
      where e.%I = i.id::%s
      limit 1) r on true
    order by i.place) r$f$,
    case when c.metadata is null then 'null' else 'case when $2 then array_agg(r.metadata) end' end,
    case when c.trace is null then 'null' else 'case when $2 then array_agg(r.trace) end' end,
    case when c.payer is null then 'null'
      else 'case when $2 then array_agg(' || format(k.short, 'payer') || ') end' end,
    case when c.key is null then 'null'
      when c.by_host is null then 'array_agg(' || format(k.short, 'key') || ')'
      else format('array_agg(case when $3 in (%s) then millrace.group_key(r.key, ''host'') '
        'else %s end)', c.by_host, format(k.short, 'key')) end,
    coalesce('case when $2 then e.' || quote_ident(c.metadata) || '::jsonb end', 'null::jsonb'),
    coalesce('case when $2 then e.' || quote_ident(c.trace) || '::uuid end', 'null::uuid'),
    coalesce('case when $2 then e.' || quote_ident(c.payer) || '::text end', 'null::text'),
    coalesce('case $3 ' || c.key || ' end', 'null::text'),
    p_pipeline.entity_table, p_pipeline.entity_key, millrace.key_type(p_pipeline))
  from (
    select min(v.name) filter (where v.field = 'metadata') as metadata,
      min(v.name) filter (where v.field = 'trace') as trace,
      min(v.name) filter (where v.field = 'payer') as payer,
      string_agg('when ' || quote_literal(v.stage) || ' then e.' || quote_ident(v.name) || '::text',
        ' ' order by v.stage) filter (where v.field = 'key') as key,
      string_agg(quote_literal(v.stage), ', ' order by v.stage)
        filter (where v.part = 'host') as by_host
    from millrace.value_columns(p_pipeline) v
    where (p_field is null or v.field = p_field) and (p_stage is null or v.stage = p_stage)) c
  cross join (values (
    'case when octet_length(r.%1$s) > 400 then millrace.group_key(r.%1$s, null) '
    'else coalesce(r.%1$s, '''') end')) k(short)
$$;

-- Reads each of the fields alone, after reading all of them at once has failed, and reports what
-- cannot be read.
create function millrace.values_apart(
  p_pipeline_id int, p_ids text[], p_new boolean, p_stage text
) returns millrace.row_values
as $$
declare
  v_pipeline millrace.pipelines;
  v_column record;
  v_read millrace.row_values;
  v_values millrace.row_values;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  for v_column in
    select c.*
    from millrace.value_columns(v_pipeline) c
    where case when c.field = 'key' then c.stage = p_stage else p_new end
  loop
    begin
      execute format('select (v.read).* from (%s) v(read)',
        millrace.values_sql(v_pipeline, v_column.field, v_column.stage))
      into v_read
      using p_ids, p_new, p_stage;
    exception when others then
      if millrace.error_kind(sqlstate) <> 'lasting' then
        raise;
      end if;
      v_read := null;
      perform millrace.report('error', m.code,
        format(m.message, coalesce(v_column.stage, v_pipeline.name), sqlerrm),
        jsonb_build_object('column', v_column.name))
      from (values
        ('metadata', 'metadata_unreadable',
          'The metadata of pipeline %s cannot be read, so that its runs start without: %s'),
        ('trace', 'trace_unreadable',
          'The traces of pipeline %s cannot be read, so that each run starts with its own: %s'),
        ('payer', 'quota_key_failed',
          'The tenants of pipeline %s cannot be read, so that its runs share one quota: %s'),
        ('key', 'group_key_failed',
          'The keys of stage %s cannot be read, so that its rows wait under one key: %s')
      ) m(field, code, message)
      where m.field = v_column.field;
    end;
    v_values := row(
      coalesce(v_read.metadata, v_values.metadata), coalesce(v_read.traces, v_values.traces),
      coalesce(v_read.payers, v_values.payers), coalesce(v_read.keys, v_values.keys));
  end loop;
  return v_values;
end
$$;

-- Creates the __values function of a pipeline, or drops it where no column is declared.
create function millrace.write_values(p_pipeline millrace.pipelines)
as $write$
declare
  v_name text := p_pipeline.name || '__values';
begin
  if not exists (select from millrace.value_columns(p_pipeline)) then
    if to_regproc(format('millrace.%I', v_name)) is not null then
      execute format('drop function millrace.%I(text[], boolean, text)', v_name);
    end if;
    return;
  end if;
  perform millrace.write_function(
    format('%I(p_ids text[], p_new boolean, p_stage text) returns millrace.row_values', v_name),
    format($f$
begin
  return (%s);
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    return millrace.values_apart(%s, $1, $2, $3);
end $f$, millrace.values_sql(p_pipeline), p_pipeline.id));
end
$write$;
