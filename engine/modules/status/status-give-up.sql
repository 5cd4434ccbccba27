-- Fails the live runs of rows for good, by the error that stands in them. Raises MR005 where no run
-- is under way.
create function millrace.give_up_by_value(
  p_pipeline_id int, p_was text, p_value text, p_ids text[]
)
as $$
declare
  v_pipeline millrace.pipelines;
  v_idle text[] := array(
    select unnest(p_ids)
    except
    select r.entity_id
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running'
    order by 1);
  v_causes jsonb;
  v_live record;
begin
  if cardinality(v_idle) > 0 then
    raise exception '% cannot be written to % at %: no run is under way there',
      p_value, millrace.rows_named(v_idle), p_was
      using errcode = 'MR005', hint = 'There is nothing to give up.';
  end if;
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  if v_pipeline.status ? 'error' then
    execute format('select jsonb_object_agg(e.%1$I::text, nullif(btrim(e.%2$I), '''')) '
      'from %3$s e where e.%1$I = any ($1::%4$s[])', v_pipeline.entity_key,
      v_pipeline.status ->> 'error', v_pipeline.entity_table, millrace.key_type(v_pipeline))
    into v_causes
    using p_ids;
  end if;
  for v_live in
    select distinct on (r.id) r.id as run_id, r.entity_id, s.name as stage
    from millrace.runs r
    join millrace.attempts a
      on a.run_id = r.id and a.state in ('queued', 'started', 'waiting')
    join millrace.stages s on s.id = a.stage_id
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running'
    order by r.id, a.id
  loop
    perform millrace.do_to_runs(array[v_live.run_id], jsonb_build_object('verb', 'fail',
      'stage', v_live.stage, 'permanent', true,
      'message', coalesce(v_causes ->> v_live.entity_id, 'given up by hand')));
  end loop;
end
$$;
