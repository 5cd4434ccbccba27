-- Returns the values of a pipeline with the projection status, how many rows show each and since
-- when, and the legal moves. It reads the 4,000 rows with the highest keys, 4,000 rows with a live
-- run, and the 4,000 rows whose runs failed last. {"value": "new"} adds the 50 of these rows that
-- have shown the value longest.
-- looked: how many rows were read. whole: whether these are all rows.
create function public.millrace_status(p_query jsonb)
set plan = for_runs
set reads = '{"pipeline": "name", "value": "text"}'
as $$
  v_found jsonb;

if v_pipeline.status is null then
  raise exception 'MR004: pipeline % shows no status in one column', v_pipeline.name
    using hint = 'Its runs are in millrace_runs({"pipeline": …}).';
end if;
execute format($sql$
  with looked as (
    select t.%2$I::text as key, t.%3$I::text as value, l.id as run, %4$s as since
    from (
      (select o.%2$I from %1$s o order by o.%2$I desc limit 4000)
      union
      (select millrace.key_of(r)::%5$s from millrace.runs r
       where r.pipeline_id = %6$s and r.status = 'running' limit 4000)
      union
      (select millrace.key_of(r)::%5$s from millrace.runs r
       where r.pipeline_id = %6$s and r.status = 'failed' order by r.finished_at desc limit 4000)
    ) k(key)
    join %1$s t on t.%2$I = k.key
    left join lateral (
      select r.id
      from millrace.runs r
      where r.entity_id = any (array[t.%2$I::text]) and r.pipeline_id = %6$s
      order by r.entity_id desc, r.id desc
      limit 1) l on true)
  select jsonb_build_object(
    'looked', (select count(*) from looked),
    'values', array(
      select jsonb_build_object(
        'value', value, 'name', v.name, 'description', v.description,
        'layer', v.category, 'rows', coalesce(c.rows, 0), 'oldest', c.oldest, 'median', c.median)
      from (
        select l.value, count(*) as rows, min(l.since) as oldest,
          percentile_disc(0.5) within group (order by l.since) as median
        from looked l
        group by l.value) c
      full join (
        select s.* from millrace.status_values s where s.pipeline_id = %6$s and not s.retired) v
        using (value)
      order by v.sort_order, value),
    'rows', array(
      select jsonb_build_object('entity', millrace.cut_text(l.key), 'since', l.since,
        'run', millrace.runs_json(array[l.run]) -> 0)
      from looked l
      where l.value = %7$L
      order by l.since, l.key
      limit 50))$sql$,
  v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.status ->> 'column',
  coalesce('t.' || quote_ident(v_pipeline.status #>> '{history,since}'),
    '(select max(coalesce(a.finished_at, a.started_at, a.created_at))
      from millrace.attempts a where a.run_id = l.id)'),
  millrace.key_type(v_pipeline), v_pipeline.id, p_query ->> 'value')
into v_found;
return v_found || jsonb_build_object(
  'whole', (v_found ->> 'looked')::int < 4000,
  'table', v_pipeline.entity_table::text, 'column', v_pipeline.status -> 'column',
  'moves', array(
    select jsonb_build_object(
      'from', m.from_value, 'to', m.to_value, 'by', m.by, 'means', m.means)
    from millrace.status_moves m
    where m.pipeline = v_pipeline.name
    order by m.from_value nulls first, m.by, m.to_value));
$$;
