-- The projection `status`: values that give rows up
--
-- Who writes the value of failures fails the row's run for good; what they write as its error, or
-- what stands there, is the cause.

-- Fails the live runs of rows for good. The caller, an intake trigger, holds the rows. Raises MR005
-- where none is under way.
create function millrace.give_up_by_value(
  p_pipeline_id int, p_was text, p_value text, p_ids text[]
)
as $$
declare
  v_idle text[];
  v_live record;
  v_pipeline millrace.pipelines;
  v_errors text[];
begin
  v_idle := array(
    select i
    from unnest(p_ids) i
    where not exists (
      select
      from millrace.runs r
      where r.pipeline_id = p_pipeline_id and r.entity_id = i and r.status = 'running')
    order by i);
  if cardinality(v_idle) > 0 then
    raise exception '% cannot be written to % at %: no run is under way there',
      p_value, millrace.rows_named(v_idle), p_was
      using errcode = 'MR005', hint = 'There is nothing to give up.';
  end if;
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  if v_pipeline.status ? 'error' then
    execute format(
      'select array_agg(e.%I::text order by i.place) '
      'from unnest($1) with ordinality i(id, place) '
      'left join %s e on e.%I = i.id::%s',
      v_pipeline.status ->> 'error', v_pipeline.entity_table, v_pipeline.entity_key,
      millrace.key_type(v_pipeline))
    into v_errors
    using p_ids;
  end if;
  for v_live in
    select distinct on (r.id) r.id as run_id, s.name as stage,
      nullif(btrim(e.error), '') as cause
    from unnest(p_ids, v_errors) e(id, error)
    join millrace.runs r
      on r.pipeline_id = p_pipeline_id and r.entity_id = e.id and r.status = 'running'
    join millrace.attempts a
      on a.run_id = r.id and a.state in ('queued', 'started', 'waiting')
    join millrace.stages s on s.id = a.stage_id
    order by r.id, a.id
  loop
    perform millrace.fail_one(v_live.run_id, v_live.stage,
      coalesce(v_live.cause, 'given up by hand'), true);
  end loop;
end
$$;
