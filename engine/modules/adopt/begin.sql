-- Beginning rows that were adopted. Rows that were in work wait where their layer is entered until
-- they are begun. The functions that adopt them are cli/adopt/adopt.sql: a project needs them once.

-- Looks up a pipeline whose rows may be adopted or begun.
-- p_name: the caller's parameter that says how many at once, for the message.
create function millrace.adopting_pipeline(p_pipeline text, p_name text, p_most int)
returns millrace.pipelines
stable
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
begin
  if v_pipeline.projection <> 'status' then
    raise exception 'pipeline % has the projection %, not status', p_pipeline,
      v_pipeline.projection
      using errcode = 'MR002',
        hint = 'Only rows that show their status in one column can be adopted.';
  elsif (p_most between 1 and 100000) is not true then
    raise exception '% is %, but must be from 1 to 100000', p_name, coalesce(p_most::text, 'null')
      using errcode = 'MR002', hint = 'Some hundred take well under a second.';
  end if;
  return v_pipeline;
end
$$;

-- Begins up to so many rows that wait at the value by which a layer is entered, each at its first
-- stage that the row does not bring along, and returns how many.
create function millrace.begin(p_pipeline text, p_value text, p_limit int)
returns bigint
set enable_seqscan = off
as $$
declare
  v_pipeline millrace.pipelines := millrace.adopting_pipeline(p_pipeline, 'p_limit', p_limit);
  v_stage_id int;
  v_gates text;
  v_keys text[];
begin
  select (array_agg(s.id order by s.place) filter (where s.shows ->> 'enter' = p_value))[1],
    string_agg(distinct s.shows ->> 'enter', ', ')
  into v_stage_id, v_gates
  from millrace.stages_of_version(v_pipeline.current_version_id) s;
  if v_stage_id is null then
    raise exception 'p_value is %, at which no layer of pipeline % is entered',
      coalesce(p_value, 'null'), p_pipeline
      using errcode = 'MR002',
        hint = coalesce('Rows wait at: ' || v_gates || '.', 'It has no layers.');
  end if;
  execute format($q$
    with taken as materialized (
      select e.%1$I as key
      from %2$s e
      where e.%3$I = $1::%4$s
      order by e.%1$I
      limit $2
      for no key update skip locked
    )
    select array(
      select t.key::text
      from taken t
      where not exists (
        select from millrace.runs r
        where r.entity_id = t.key::text and r.pipeline_id = $3 and r.status = 'running')
      order by t.key)$q$,
    v_pipeline.entity_key, v_pipeline.entity_table, v_pipeline.status ->> 'column',
    millrace.column_type(v_pipeline.entity_table, v_pipeline.status ->> 'column'))
  into v_keys
  using p_value, p_limit, v_pipeline.id;
  if cardinality(v_keys) > 0 then
    perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_keys, v_keys,
      p_by_name => false, p_done_before => v_stage_id);
    perform millrace.show_status(v_pipeline.id, v_keys);
  end if;
  return cardinality(v_keys);
end
$$;
