-- Fails the live runs of rows for good. The message is the text in the row's error column.
create function millrace.give_up_by_value(p_pipeline_id int, p_ids text[])
as $$
  v_pipeline millrace.pipelines := (
    select p from millrace.pipelines p where p.id = p_pipeline_id);
  v_run_id bigint;
  v_stage text;
  v_cause text;

for v_run_id, v_stage, v_cause in execute format($q$
  select distinct on (r.id) r.id, s.name as stage, nullif(btrim(%s), '') as cause
  from millrace.runs r
  join millrace.attempts a on a.run_id = r.id and a.state < 'completed'
  join millrace.stages s on s.id = a.stage_id
  join %s e on e.%I = any (array[millrace.key_of(r)::%s])
  where r.pipeline_id = $1
    and r.entity_id = any ($2)
    and r.status = 'running'
  order by r.id, a.id$q$, coalesce('e.' || quote_ident(v_pipeline.status ->> 'error'), 'null'),
  v_pipeline.entity_table, v_pipeline.entity_key, millrace.key_type(v_pipeline))
using p_pipeline_id, p_ids
loop
  perform millrace.do_to_runs(array[v_run_id], jsonb_build_object('verb', 'fail', 'stage',
    v_stage, 'permanent', true, 'message', coalesce(v_cause, 'given up by hand')));
end loop;
$$;
