-- Returns the newest runs of up to 20 rows whose label is the text, or begins with the text where
-- the column's index can find that. Returns none where no index finds labels.
create function millrace.runs_labelled(p_pipeline millrace.pipelines, p_text text)
returns setof bigint
stable
set enable_seqscan = off
as $$
  v_test text := case millrace.label_search(p_pipeline)
    when 'prefix' then format('like %L', regexp_replace(p_text, '([\\%_])', '\\\1', 'g') || '%')
    when 'exact' then format('= %L', p_text)
  end;

if v_test is not null then
  -- Of a sum, r.id + 0, Postgres cannot find the maximum by walking all runs from the newest on.
  return query execute format('select (select max(r.id + 0) from millrace.runs r '
    'where r.entity_id = e.%I::text and r.pipeline_id = %s) from %s e where e.%I %s limit 20',
    p_pipeline.entity_key, p_pipeline.id, p_pipeline.entity_table, p_pipeline.label_column,
    v_test);
end if;
$$;

-- Returns the label of a row; null where the pipeline, or the row, has none.
create function millrace.label_of(p_pipeline millrace.pipelines, p_entity_id text)
returns text
stable
as $$
  v_label text;

if p_pipeline.label_column is not null then
  execute format('select e.%I::text from %s e where e.%I = $1::%s', p_pipeline.label_column,
    p_pipeline.entity_table, p_pipeline.entity_key, millrace.key_type(p_pipeline))
  into v_label
  using p_entity_id;
end if;
-- A label of blanks counts as none, so that pages show the row's key.
return case when v_label ~ '\S' then v_label end;
-- doctor() reports a column or a table that is gone; a list of runs is still read.
exception when undefined_column or undefined_table or data_exception then
  return null;
$$;

-- Returns up to 50 runs by {"text": …}: the number of a run or an attempt, a trace id, a row's key
-- or its label.
create function public.millrace_search(p_query jsonb)
set plan = for_runs
set reads = '{"pipeline": "name", "text": "key"}'
as $$
  v_text text := nullif(trim(p_query ->> 'text'), '');
  v_number bigint := substring(v_text from '^[0-9]{1,18}$');
  v_trace uuid := case when millrace.input_fault(v_text, 'uuid') is null then v_text end;
  v_pipelines int[] := millrace.pipelines_seen(v_caller, p_query ->> 'pipeline');

return jsonb_build_object('runs', millrace.runs_json(array(
  select r.id
  from millrace.runs r
  where r.pipeline_id = any (v_pipelines)
    and r.id in (v_number, (select a.run_id from millrace.attempts a where a.id = v_number))
  union
  (select r.id
   from millrace.runs r
   where r.trace_id = v_trace and r.pipeline_id = any (v_pipelines)
   limit 50)
  union
  select r.id
  from unnest(v_pipelines) p(id)
  cross join lateral (
    -- An order by id alone could make Postgres walk all runs from the newest on.
    select o.id
    from millrace.runs o
    where o.entity_id = any (array[v_text])
      and o.pipeline_id = p.id
    order by o.entity_id desc, o.id desc
    limit 50) r
  union
  select l.id
  from millrace.pipelines p
  cross join millrace.runs_labelled(p, v_text) l(id)
  where p.id = any (v_pipelines) and l.id is not null
  order by id desc
  limit 50)));
$$;
