-- Hurrying: a retry in backoff goes at once.

-- Makes what waits in backoff in one run, or at one stage of it, due now; returns how many. What a
-- quota holds back stays: the next claim would put it back.
create or replace function millrace.hurry_one(p_run bigint, p_stage text) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage, p_whole => true);
  v_now timestamptz := millrace.now();
  v_ids bigint[];
  v_stages int[];
begin
  v_ids := array(
    select a.id
    from millrace.attempts a
    where a.run_id = p_run
      and a.state = 'queued'
      and a.queue_at > v_now
      and not a.held
      and (p_stage is null or a.stage_id = (v_held.version_stage).stage_id)
    order by a.id
    for update);
  if cardinality(v_ids) = 0 then
    raise exception 'run % has nothing that waits to be tried again%',
      p_run, coalesce(' at stage ' || p_stage, '')
      using errcode = 'MR004', hint = 'Only a retry in backoff can be hurried: '
        'select * from millrace.timeline(' || p_run || ').';
  end if;
  update millrace.attempts a set queue_at = v_now where a.id = any (v_ids);
  v_stages := array(
    select distinct a.stage_id from millrace.attempts a where a.id = any (v_ids) order by 1);
  perform millrace.assign_groups(s, array[p_run]) from unnest(v_stages) s;
  if exists (
      select from millrace.pipelines p
      where p.id = (v_held.run).pipeline_id and p.projection = 'status') then
    perform millrace.show_status((v_held.run).pipeline_id, array[(v_held.run).entity_id]);
  end if;
  perform millrace.wake(v_stages);
  return cardinality(v_ids);
end
$$;

create or replace function millrace.hurry(p_run bigint, p_stage text default null) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempts int := millrace.hurry_one(p_run, p_stage);
begin
  perform millrace.note_run('hurry', p_run, p_stage,
    jsonb_build_object('attempts', v_attempts));
  return v_attempts;
end
$$;
comment on function millrace.hurry(bigint, text) is
  'Makes a retry that waits in backoff due at once, and returns how many attempts those were.';

create or replace function millrace.run_of(p_pipeline text, p_entity_id text) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off
as $$
declare
  v_run bigint := (
    select max(r.id)
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.entity_id = p_entity_id
      and p.name = p_pipeline);
begin
  if v_run is null then
    raise exception 'entity % has no run of pipeline %',
      millrace.short_json(coalesce(to_jsonb(p_entity_id), 'null')), coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Start one: select millrace.start(pipeline, entity).';
  end if;
  return v_run;
end
$$;
comment on function millrace.run_of(text, text) is
  'The newest run of a row, for every verb that takes a run: '
  'select millrace.cancel(millrace.run_of(''leads'', ''7'')).';
