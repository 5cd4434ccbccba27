-- Returns a fault for each row that shows a stage as queued or started without a live run, and for
-- each live run without a row. Checks the runs whose ids are above p_after, up to and with
-- p_until. The engine has not written rows that never had a run, so these are not checked.
create function millrace.row_faults(
  p_after bigint default 0, p_until bigint default 9223372036854775807
) returns setof millrace.fault
stable
as $$
  v_pipeline record;

for v_pipeline in
  select p.id, p.name, p.entity_key, c.oid::regclass as entity_table,
    format_type(a.atttypid, a.atttypmod) as key_type,
    coalesce((
      select string_agg(format('(%L, e.%I)', s.name, s.name || '_status'), ', ')
      from millrace.stages s
      where s.pipeline_id = p.id and p.projection = 'columns'
        and millrace.has_columns(p, s.name)), '(null, null)') as statuses
  from millrace.pipelines p
  join pg_class c on c.oid = p.entity_table
  join pg_attribute a
    on a.attrelid = c.oid and a.attname = p.entity_key and not a.attisdropped
  -- Postgres plans a query for each pipeline, so pipelines without runs in the slice are left out.
  where p.id = any (array(
    select distinct r.pipeline_id
    from millrace.runs r
    where r.id > p_after and r.id <= p_until))
  order by p.id
loop
  return query execute format($q$
    select 'a live run has its row', r.id, null::bigint,
      format('%%s has no row %%s', %1$L, r.entity_id)
    from millrace.runs r
    where r.pipeline_id = $1
      and r.status = 'running'
      and r.id > $2
      and r.id <= $3
      and not exists (select from %1$s e where e.%2$I = millrace.key_of(r)::%4$s)
    union all
    select 'a row that shows queued or started has a live run', l.id, null::bigint,
      format('row %%s of %%s, whose last run is %%s: select millrace.start(%%L, %%L, %%L)',
        e.%2$I, %1$L, l.status, %5$L, e.%2$I, w.stage)
    from millrace.runs l
    cross join lateral (
      select case when millrace.input_fault(l.entity_id, %4$L) is null
        then l.entity_id::%4$s end) k(key)
    cross join lateral (select o.* from %1$s o where o.%2$I = k.key limit 1) e
    cross join lateral (
      select v.stage
      from (values %3$s) v(stage, status)
      where v.status in ('queued', 'started')
      limit 1) w
    where l.pipeline_id = $1
      and l.status <> 'running'
      and l.id > $2
      and l.id <= $3
      and not exists (
        select from (
          select r.id, r.status
          from millrace.runs r
          where r.entity_id = l.entity_id and r.pipeline_id = $1
          -- by key
          offset 0) o
        where o.id > l.id or o.status = 'running')$q$,
    v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.statuses, v_pipeline.key_type,
    v_pipeline.name)
  using v_pipeline.id, p_after, p_until;
end loop;
$$;
