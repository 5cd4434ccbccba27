-- The projection `status`: retries that fell due

-- Shows due retries as queued, where their stage has a value for backoff, on rows that nobody
-- holds: so many, and one page more at most.
create function millrace.show_due(p_pipeline_id int, p_limit int) returns int
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(
    select s.id
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id and p.projection = 'status'
    where s.pipeline_id = p_pipeline_id
      and s.shows ->> 'backoff' <> s.shows ->> 'queued');
  -- A sweep that could not show all of them leaves the rest to the next ones.
  v_since timestamptz := (
    select s.value::timestamptz - interval '10 minutes'
    from millrace.settings s
    where s.name = 'last_sweep_at');
  v_last_id bigint := 0;
  v_due record;
  v_rows text[];
  v_shown int := 0;
  v_pipeline millrace.pipelines;
  v_ids text[];
begin
  while cardinality(v_stages) > 0 and v_shown < p_limit loop
    select max(d.id) as last_id, count(*) as found, array_agg(r.entity_id) as entity_ids
    into v_due
    from (
      select a.id, a.run_id
      from millrace.attempts a
      where a.stage_id = any (v_stages)
        and a.queue_at between v_since and v_now
        and a.state = 'queued'
        and a.retry_count > 0
        and a.id > v_last_id
      order by a.id
      limit p_limit) d
    join millrace.runs r on r.id = d.run_id;
    exit when v_due.found = 0;
    select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
    execute format(
      'select array(select e.%1$I::text from %2$s e '
      'where e.%1$I = any ($1::%3$s[]) and e.%4$I::text = any ($2))',
      v_pipeline.entity_key, v_pipeline.entity_table, millrace.key_type(v_pipeline),
      v_pipeline.status ->> 'column')
    into v_ids
    using v_due.entity_ids, array(
      select s.shows ->> 'backoff' from millrace.stages s where s.pipeline_id = p_pipeline_id);
    v_rows := millrace.lock_entities(p_pipeline_id,
      v_ids, false);
    perform millrace.show_status(p_pipeline_id, v_rows);
    v_shown := v_shown + cardinality(v_rows);
    v_last_id := v_due.last_id;
  end loop;
  return v_shown;
end
$$;
