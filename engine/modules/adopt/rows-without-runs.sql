-- Rows that show queued work but have no run

-- Counts rows that show work as queued and have never had a run, as after a restore with triggers
-- off. With the projection columns, the remedy starts a row at its first stage, since results of
-- earlier stages are lost. With the projection status, a row begins behind the stages before its
-- value. Reads the 4,000 rows with the highest keys, since the engine has no index on the status
-- columns of a project's table.
-- status: the column, if any, and the value. remedy: the statement that begins these rows.
create function millrace.rows_without_runs(p_pipeline millrace.pipelines)
returns table (status text, rows bigint, remedy text)
stable
as $$
  v_key text := quote_ident(p_pipeline.entity_key);
  v_wanted record;

select string_agg(format('when e.%I::text = %L then %s', v.column_name, v.value, v.ordinal), ' '
    order by v.ordinal) as cases,
  array_agg(concat_ws(' ', v.label, v.value) order by v.ordinal) as status,
  array_agg(format(case when v.label is null then 'push the migration of `npx millrace adopt`, '
      'then select millrace.begin(%1$L, %5$L, 1000)'
    else 'select millrace.start(%1$L, array(select e.%2$s::text from %3$s e where e.%4$I = '
      '%5$L and not exists (select from millrace.runs r where r.pipeline_id = %6$s and '
      'r.entity_id = e.%2$s::text) limit 1000))' end, p_pipeline.name, v_key,
    p_pipeline.entity_table, v.column_name, v.value, p_pipeline.id)
    order by v.ordinal) as remedies
into v_wanted
from (
  select k.*, row_number() over () as ordinal
  from millrace.version_stages vs
  join millrace.stages s on s.id = vs.stage_id
  cross join lateral (
    select s.name || '_status', s.name || '_status', 'queued'
    where p_pipeline.projection = 'columns'
    union all
    select null, p_pipeline.status ->> 'column', s.shows ->> 'enter'
    where s.shows ->> 'enter' is not null) k(label, column_name, value)
  where vs.version_id = p_pipeline.current_version_id) v;
if v_wanted.cases is null then
  return;
end if;
return query execute format($q$
  select w.status, count(*), w.remedy
  from (
    select e.%1$s::text as key, case %4$s end as ordinal
    from %2$s e
    order by e.%1$s desc
    limit 4000) e
  join unnest($1, $2) with ordinality w(status, remedy, ordinal) on w.ordinal = e.ordinal
  where not exists (
      select from millrace.runs r
      where r.entity_id = any (array[e.key]) and r.pipeline_id = %3$s)
  group by w.status, w.remedy$q$,
  v_key, p_pipeline.entity_table, p_pipeline.id, v_wanted.cases)
using v_wanted.status, v_wanted.remedies;
exception when undefined_column or undefined_table or syntax_error then
  -- attachment_fault() reports a missing column or table.
  return;
$$;
