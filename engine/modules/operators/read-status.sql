-- The operators' read of pipelines with one status column

-- The values of a pipeline with the projection status, {"pipeline": "links"}: how many rows show
-- each, of 4,000 by the key, 4,000 with a live and 4,000 with a failed run, so that no call grows
-- with the table; since when, where a column keeps it; and the legal moves. whole: whether these
-- were all rows. With a value: the rows that show it. For operators.
create function public.millrace_status(p_query jsonb) returns jsonb
stable
set millrace.plan = for_runs
as $$
declare
  v_caller millrace.caller := millrace.enter();
  v_pipeline millrace.pipelines;
  v_rows text;
  v_found jsonb;
begin
  perform millrace.check_request(p_query, '{"pipeline": "name", "value": "text"}', 'p_query');
  v_pipeline := millrace.pipeline_seen(v_caller, p_query ->> 'pipeline');
  if v_pipeline.status is null then
    raise exception 'pipeline % shows no status in one column', v_pipeline.name
      using errcode = 'MR004', hint = 'Its runs are in millrace_runs({"pipeline": …}).';
  end if;
  v_rows := format($sql$
    select t.%2$I::text as key, t.%3$I::text as value, %4$s::timestamptz as since
    from (
      (select o.%2$I from %1$s o order by o.%2$I desc limit 4000)
      union
      (select r.entity_id::%5$s from millrace.runs r
       where r.pipeline_id = %6$s and r.status = 'running' order by r.id desc limit 4000)
      union
      (select r.entity_id::%5$s from millrace.runs r
       where r.pipeline_id = %6$s and r.status = 'failed' order by r.id desc limit 4000)
    ) k(key)
    join %1$s t on t.%2$I = k.key$sql$,
    v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.status ->> 'column',
    coalesce('t.' || quote_ident(v_pipeline.status #>> '{history,since}'), 'null'),
    millrace.key_type(v_pipeline), v_pipeline.id);
  if p_query ? 'value' then
    execute format($sql$
      select coalesce(jsonb_agg(jsonb_build_object(
        'entity', millrace.cut_text(f.key), 'since', f.since,
        'run', millrace.runs_json(array(
          select r.id
          from millrace.runs r
          where r.entity_id = f.key and r.pipeline_id = %s
          order by r.entity_id desc, r.id desc
          limit 1)) -> 0) order by f.since, f.key), '[]')
      from (
        select l.* from (%s) l where l.value = %L order by l.since, l.key limit 50) f$sql$,
      v_pipeline.id, v_rows, p_query ->> 'value')
    into v_found;
    return jsonb_build_object(
      'pipeline', v_pipeline.name, 'value', p_query -> 'value', 'rows', v_found);
  end if;
  execute format($sql$
    with counted as materialized (
      select l.value, count(*) as rows, min(l.since) as oldest from (%s) l group by l.value)
    select jsonb_build_object(
      'looked', (select coalesce(sum(c.rows), 0) from counted c),
      'values', coalesce(jsonb_agg(jsonb_build_object(
        'value', coalesce(v.value, c.value), 'name', v.name, 'description', v.description,
        'layer', v.category, 'rows', coalesce(c.rows, 0), 'oldest', c.oldest)
        order by v.sort_order, c.value), '[]'))
    from (
      select s.* from millrace.status_values s where s.pipeline_id = %s and not s.retired) v
    full join counted c on c.value = v.value$sql$, v_rows, v_pipeline.id)
  into v_found;
  return v_found || jsonb_build_object(
    -- Fewer than were asked for by the key are all that there are.
    'whole', (v_found ->> 'looked')::bigint < 4000,
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
