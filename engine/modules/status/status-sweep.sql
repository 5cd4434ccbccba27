-- Writes the value `queued` onto rows whose retry is due, where their stage has a value for
-- backoff. Returns how many rows it locked and wrote, p_limit at most.
create function millrace.show_due(p_pipeline_id int, p_limit int) returns int
as $$
  v_pipeline millrace.pipelines := (
    select p from millrace.pipelines p where p.id = p_pipeline_id);
  v_ids text[];

execute format($q$
  select array(
    select e.%1$I::text
    from millrace.stages s
    join millrace.attempts a on a.stage_id = s.id
    join millrace.runs r on r.id = a.run_id
    join %2$s e on e.%1$I = any (array[millrace.key_of(r)::%3$s])
    where s.pipeline_id = $1
      and s.shows ->> 'backoff' <> s.shows ->> 'queued'
      and a.queue_at between $2 and $3
      and a.state = 'queued' and a.retry_count > 0
      and e.%4$I::text = s.shows ->> 'backoff'
    order by a.id
    limit $4)$q$, v_pipeline.entity_key, v_pipeline.entity_table, millrace.key_type(v_pipeline),
  v_pipeline.status ->> 'column')
into v_ids
using p_pipeline_id, millrace.last_sweep() - interval '10 minutes', v_now, p_limit;
v_ids := millrace.lock_entities(p_pipeline_id, v_ids, false);
perform millrace.show_status(p_pipeline_id, v_ids);
return cardinality(v_ids);
$$;
