-- Adopting rows: what waits at the gates

-- Begins up to so many rows that wait at the value by which a layer is entered, since they were
-- adopted so, in the order of their keys; returns how many. Each begins at the layer's first stage
-- that it does not bring along. Rows that somebody holds, and those with a live run, are left out.
create function millrace.begin(p_pipeline text, p_value text, p_limit int)
returns bigint
language plpgsql
set enable_seqscan = off
as $$
declare
  v_pipeline millrace.pipelines := millrace.adopting_pipeline(p_pipeline);
  v_stage_id int := (
    select s.id
    from millrace.stages_of_version(v_pipeline.current_version_id) s
    where s.shows ->> 'enter' = p_value
    order by s.place
    limit 1);
  v_keys text[];
begin
  if v_stage_id is null then
    raise exception 'p_value is %, at which no layer of pipeline % is entered',
      coalesce(p_value, 'null'), p_pipeline
      using errcode = 'MR002', hint = coalesce((
        select 'Rows wait at: ' || string_agg(distinct s.shows ->> 'enter', ', ') || '.'
        from millrace.stages_of_version(v_pipeline.current_version_id) s), 'It has no layers.');
  elsif p_limit is null or p_limit not between 1 and 100000 then
    raise exception 'p_limit is %, but must be from 1 to 100000', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'It is how many rows begin now.';
  end if;
  execute format($q$
    select array_agg(k.key order by k.place)
    from (
      select t.key, row_number() over () as place
      from (
        select e.%1$I::text as key
        from %2$s e
        where e.%3$I = $1::%4$s
        order by e.%1$I
        limit $2
        for no key update skip locked) t) k$q$,
    v_pipeline.entity_key, v_pipeline.entity_table, v_pipeline.status ->> 'column',
    millrace.status_type(v_pipeline))
  into v_keys
  using p_value, p_limit;
  v_keys := array(
    select k.key
    from unnest(v_keys) with ordinality k(key, place)
    where not exists (
      select
      from millrace.runs r
      where r.entity_id = k.key
        and r.pipeline_id = v_pipeline.id
        and r.status = 'running')
    order by k.place);
  if cardinality(v_keys) > 0 then
    perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_keys, v_keys,
      p_by_name => false, p_done_before => v_stage_id);
    perform millrace.show_status(v_pipeline.id, v_keys);
  end if;
  return cardinality(v_keys);
end
$$;
comment on function millrace.begin(text, text, int) is
  'Begins up to so many rows that wait at the value by which a layer is entered, since they were '
  'adopted so; returns how many. Each begins at the layer''s first stage that it does not bring '
  'along.';
