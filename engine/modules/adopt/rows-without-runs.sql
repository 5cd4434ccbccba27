-- Rows that show work which nothing has begun

-- Counts rows that show work as queued though they have never had a run, as after a restore with
-- triggers off, each kind with the statement that begins them. A run begins at its first stage:
-- an earlier stage's result is lost. A row in one column begins behind the value's earlier stages.
-- Reads 4,000 rows, the last by key: the status columns of a user's table have no index of the
-- engine's.
create function millrace.rows_without_runs(p_pipeline millrace.pipelines)
returns table (shown text, rows bigint, remedy text)
stable
as $$
declare
  v_wanted text;
  v_shown text;
  v_key text := quote_ident(p_pipeline.entity_key);
  v_found boolean;
begin
  select string_agg(format('(%L, %L, %L, e.%I::text)', concat_ws(' ', v.label, v.value), v.value,
      format(case when v.label is null then 'push the migration of `npx millrace adopt`, then '
          'select millrace.begin(%1$L, %5$L, 1000)'
        else 'select millrace.start(%1$L, array(select e.%2$s::text from %3$s e where e.%4$I = '
          '%5$L and not exists (select from millrace.runs r where r.pipeline_id = %6$s and '
          'r.entity_id = e.%2$s::text) limit 1000))' end, p_pipeline.name, v_key,
        p_pipeline.entity_table, v.column_name, v.value, p_pipeline.id), v.column_name), ', '),
    string_agg(format('e.%I::text = %L', v.column_name, v.value), ' or ')
  into v_wanted, v_shown
  from (
    select distinct k.*
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    cross join lateral (
      select s.name || '_status', s.name || '_status', 'queued'
      where p_pipeline.projection = 'columns'
      union all
      select null, p_pipeline.status ->> 'column', s.shows ->> 'enter'
      where s.shows ->> 'enter' is not null) k(label, column_name, value)
    where vs.version_id = p_pipeline.current_version_id) v;
  if v_wanted is null then
    return;
  end if;
  -- Mostly there is none, and the query that counts takes longer to plan than this to run.
  execute format($q$
    select exists (
      select from (
        select e.%1$s::text as key, %4$s as is_wanted
        from %2$s e
        order by e.%1$s desc
        limit 4000) e
      where e.is_wanted
        and not exists (
          select from millrace.runs r
          where r.entity_id = any (array[e.key]) and r.pipeline_id = %3$s))$q$,
    v_key, p_pipeline.entity_table, p_pipeline.id, v_shown)
  into v_found;
  if not v_found then
    return;
  end if;
  return query execute format($q$
    select w.shown, count(*), w.remedy
    from (select * from %2$s o order by o.%1$s desc limit 4000) e
    cross join lateral (values %4$s) w(shown, value, remedy, found)
    where w.found = w.value
      and not exists (
        select from millrace.runs r
        where r.entity_id = any (array[e.%1$s::text]) and r.pipeline_id = %3$s)
    group by w.shown, w.remedy$q$,
    v_key, p_pipeline.entity_table, p_pipeline.id, v_wanted);
exception when undefined_column or undefined_table or syntax_error then
  -- attachment_fault() says so.
  return;
end
$$;
