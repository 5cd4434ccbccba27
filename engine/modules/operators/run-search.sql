-- Searching runs, by what people have in their hands: the number of a run, a trace id, the key of a
-- row, or its label

-- Finds rows of a pipeline by their label, so far as an index leads to them.
create function millrace.rows_labelled(
  p_pipeline millrace.pipelines, p_text text, p_limit int
)
returns table (entity_id text, label text)
stable
set enable_seqscan = off
-- What nearly all labels contain would be a long list.
set gin_fuzzy_search_limit = 10000
as $$
declare
  v_how text := millrace.label_search(p_pipeline);
  v_pattern text := regexp_replace(p_text, '([\\%_])', '\\\1', 'g') || '%';
  v_test text;
begin
  -- Fewer than three letters make no trigram.
  if v_how is null or (v_how = 'contains' and length(p_text) < 3) then
    return;
  end if;
  v_test := case v_how
    when 'contains' then format('ilike %L', '%' || v_pattern)
    when 'prefix' then format('like %L', v_pattern)
    else format('= %L', p_text)
  end;
  return query execute format(
    'select e.%1$I::text, e.%2$I::text from %3$s e where e.%2$I %4$s limit %5$s',
    p_pipeline.entity_key, p_pipeline.label_column, p_pipeline.entity_table, v_test, p_limit);
end
$$;

-- Reads the label of a row; null where there is no such row, or no label to be seen.
create function millrace.label_of(p_pipeline millrace.pipelines, p_entity_id text)
returns text
stable
as $$
declare
  v_type text := millrace.key_type(p_pipeline);
  v_label text;
begin
  if p_pipeline.label_column is not null and pg_input_is_valid(p_entity_id, v_type) then
    execute format('select e.%1$I::text from %2$s e where e.%3$I = $1::%4$s',
      p_pipeline.label_column, p_pipeline.entity_table, p_pipeline.entity_key, v_type)
    into v_label
    using p_entity_id;
  end if;
  -- Blanks name nothing: the row's key does.
  return case when v_label ~ '\S' then v_label end;
-- A column or a table that is gone is doctor()'s to name.
exception when undefined_column or undefined_table then
  return null;
end
$$;

-- Finds runs, the newest first, by the number of a run, a trace id, the key of a row, or the label
-- that entity.label names: by the whole of it, how it begins, or what it contains, as the index of
-- yours allows.
create function millrace.search(
  p_text text, p_pipeline text default null, p_limit int default 20
)
returns table (
  pipeline text, run_id bigint, entity_id text, label text, status millrace.run_status,
  created_at timestamptz, finished_at timestamptz, found_by text
)
stable
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
as $$
#variable_conflict use_column
declare
  v_text text := trim(p_text);
  v_number bigint := substring(v_text from '^[0-9]{1,18}$');
  v_trace uuid;
begin
  if v_text is null or length(v_text) not between 1 and 500 then
    raise exception 'p_text has % characters, but must have from 1 to 500',
      coalesce(length(v_text)::text, 'no')
      using errcode = 'MR002',
        hint = 'Give the number of a run, a trace id, the key of a row, or a label.';
  elsif coalesce(p_limit not between 1 and 100, true) then
    raise exception 'p_limit is %, but must be from 1 to 100', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Leave it out for 20.';
  elsif p_pipeline is not null then
    perform millrace.pipeline_named(p_pipeline);
  end if;
  if pg_input_is_valid(v_text, 'uuid') then
    v_trace := v_text;
  end if;
  return query
    select p.name, r.id, r.entity_id, millrace.label_of(p, r.entity_id), r.status, r.created_at,
      r.finished_at, f.found_by
    from (
      -- Limited here, or the planner may walk all runs from the newest on.
      select u.run_id, (array_agg(u.found_by order by u.place))[1] as found_by
      from (
        select r.id as run_id, 'run' as found_by, 1 as place
        from millrace.runs r
        where r.id = v_number
        union all
        (select r.id, 'trace', 2
         from millrace.runs r
         join millrace.pipelines p on p.id = r.pipeline_id
         where r.trace_id = v_trace
           and p.name = coalesce(p_pipeline, p.name)
         limit p_limit)
        union all
        (select r.id, 'entity', 3
         from millrace.runs r
         join millrace.pipelines p on p.id = r.pipeline_id
         where r.entity_id = v_text
           and p.name = coalesce(p_pipeline, p.name)
         order by r.id desc
         limit p_limit)
        union all
        select n.id, 'label', 4
        from millrace.pipelines p
        cross join lateral millrace.rows_labelled(p, v_text, p_limit) e
        cross join lateral (
          select r.id
          from millrace.runs r
          where r.entity_id = e.entity_id
            and r.pipeline_id = p.id
          order by r.id desc
          limit 1) n
        where p.label_column is not null
          and p.name = coalesce(p_pipeline, p.name)) u
      group by u.run_id
      order by u.run_id desc
      limit p_limit) f
    join millrace.runs r on r.id = f.run_id
    join millrace.pipelines p on p.id = r.pipeline_id and p.name = coalesce(p_pipeline, p.name)
    order by f.run_id desc;
end
$$;
