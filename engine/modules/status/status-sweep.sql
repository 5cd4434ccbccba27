-- Shows due retries as queued, where their stage has a value for backoff, on up to so many free
-- rows.
create function millrace.show_due(p_pipeline_id int, p_limit int) returns int
as $$
declare
  v_pipeline millrace.pipelines;
  v_stages int[];
  v_values text[];
  v_ids text[];
begin
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  select array_agg(s.id), array_agg(s.shows ->> 'backoff')
  into v_stages, v_values
  from millrace.stages s
  where s.pipeline_id = p_pipeline_id
    and s.shows ->> 'backoff' <> s.shows ->> 'queued';
  execute format($q$
    select array(
      select e.%1$I::text
      from millrace.attempts a
      join millrace.runs r on r.id = a.run_id
      join %2$s e on e.%1$I = any (array[r.entity_id::%3$s])
      where a.stage_id = any ($1)
        and a.queue_at between $3 and $4
        and a.state = 'queued'
        and a.retry_count > 0
        and e.%4$I::text = any ($2)
      order by a.id
      limit $5)$q$, v_pipeline.entity_key, v_pipeline.entity_table, millrace.key_type(v_pipeline),
    v_pipeline.status ->> 'column')
  into v_ids
  using v_stages, v_values, (
    select s.value::timestamptz - interval '10 minutes'
    from millrace.settings s
    where s.name = 'last_sweep_at'), millrace.now(), p_limit;
  v_ids := millrace.lock_entities(p_pipeline_id, v_ids, false);
  perform millrace.show_status(p_pipeline_id, v_ids);
  return cardinality(v_ids);
end
$$;
