-- The operators' read of pipelines with one status column: of so many live and failed runs' rows,
-- and so many by the key, so that it does not grow with history

-- Writes as SQL the rows that are looked at: since is what the column that keeps it says, else the
-- newest attempt.
create function millrace.status_rows_sql(p_pipeline millrace.pipelines, p_most int)
returns text
language sql stable
as $$
  select format($sql$
    select t.%2$I::text as key, t.%3$I::text as value, l.run_id, %5$s as since
    from (
      (select o.%2$I from %1$s o order by o.%2$I desc limit %6$s)
      union
      (select r.entity_id::%4$s from millrace.runs r
       where r.pipeline_id = %7$s and r.status = 'running' order by r.id desc limit %6$s)
      union
      (select r.entity_id::%4$s from millrace.runs r
       where r.pipeline_id = %7$s and r.status = 'failed' order by r.id desc limit %6$s)
    ) k(key)
    join %1$s t on t.%2$I = k.key
    left join lateral (
      select r.id as run_id
      from millrace.runs r
      where r.entity_id = t.%2$I::text and r.pipeline_id = %7$s
      order by r.entity_id desc, r.id desc
      limit 1) l on true
    left join lateral (
      select coalesce(a.finished_at, a.started_at, a.created_at) as at
      from millrace.attempts a
      where a.run_id = l.run_id
      order by a.id desc
      limit 1) n on %8$s$sql$,
    p_pipeline.entity_table, p_pipeline.entity_key, p_pipeline.status ->> 'column',
    millrace.key_type(p_pipeline), coalesce('t.' || quote_ident(h.column_name), 'n.at'), p_most,
    p_pipeline.id, (h.column_name is null)::text)
  from (select p_pipeline.status #>> '{history,since}') h(column_name)
$$;

-- The values of a pipeline with the projection status, {"pipeline": "links"}: how many rows show
-- each, since when, and the legal moves; whole: whether these were all rows. With a value: the rows
-- that show it. For operators.
create function public.millrace_status(p_query jsonb) returns jsonb
stable
set millrace.plan = for_runs
as $$
declare
  v_caller millrace.caller := millrace.enter();
  v_pipeline millrace.pipelines;
  v_rows jsonb;
  c_most constant int := 4000;
  v_values jsonb;
  v_looked bigint;
begin
  perform millrace.check_request(p_query, '{"pipeline": "name", "value": "text"}', 'p_query');
  v_pipeline := millrace.pipeline_seen(v_caller, p_query ->> 'pipeline');
  if v_pipeline.status is null then
    raise exception 'pipeline % shows no status in one column', v_pipeline.name
      using errcode = 'MR004', hint = 'Its runs are in millrace_runs({"pipeline": …}).';
  elsif p_query ? 'value' then
    execute format($sql$
      select coalesce(jsonb_agg(jsonb_build_object(
        'entity', millrace.cut_text(f.key), 'since', f.since,
        'run', millrace.runs_json(array[f.run_id]) -> 0) order by f.since, f.key), '[]')
      from (
        select l.* from (%s) l
        where l.value is not distinct from %L
        order by l.since, l.key
        limit 50) f$sql$,
      millrace.status_rows_sql(v_pipeline, 4000), (p_query ->> 'value'))
    into v_rows;
    return jsonb_build_object('pipeline', v_pipeline.name, 'value', p_query -> 'value',
      'rows', v_rows);
  end if;
  execute format($sql$
    with looked as materialized (%s),
    counted as (
      select l.value, count(*) as rows, min(l.since) as oldest,
        percentile_disc(0.5) within group (order by l.since) as median
      from looked l
      group by l.value)
    select (select count(*) from looked), coalesce(jsonb_agg(jsonb_build_object(
      'value', coalesce(v.value, c.value), 'name', v.name, 'description', v.description,
      'layer', v.category,
      'rows', coalesce(c.rows, 0), 'oldest', c.oldest, 'median', c.median)
      order by v.sort_order, c.value), '[]')
    from (
      select s.* from millrace.status_values s
      where s.pipeline_id = %s and not s.retired) v
    full join counted c on c.value = v.value$sql$,
    millrace.status_rows_sql(v_pipeline, c_most), v_pipeline.id)
  into v_looked, v_values;
  -- Fewer than were asked for by the key are all that there are.
  return jsonb_build_object(
    'values', v_values, 'looked', v_looked, 'whole', v_looked < c_most,
    'pipeline', v_pipeline.name, 'table', v_pipeline.entity_table::text,
    'column', v_pipeline.status -> 'column',
    'moves', array(
      select jsonb_build_object(
        'from', m.from_value, 'to', m.to_value, 'by', m.by, 'means', m.means)
      from millrace.status_moves m
      where m.pipeline = v_pipeline.name
      order by m.from_value nulls first, m.by, m.to_value));
end
$$;
