-- Switches: what a person turns while work goes on. A pipeline or a stage is paused and unpaused; a
-- run is given a priority.

-- Raises MR002 where a priority is none; null is that of who names none.
create or replace function millrace.refuse_priority(p_priority int) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_priority not between 0 and 9 then
    raise exception 'p_priority is %, but must be from 0 to 9', p_priority
      using errcode = 'MR002', hint = '0 is normal, 9 goes first.';
  end if;
end
$$;

-- Gives one run a priority.
create or replace function millrace.prioritise_one(p_run bigint, p_priority int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status millrace.run_status;
begin
  if p_priority is null or p_priority not between 0 and 9 then
    raise exception 'p_priority is %, but must be from 0 to 9', coalesce(p_priority::text, 'null')
      using errcode = 'MR002', hint = '0 is normal, 9 goes first.';
  end if;
  perform millrace.hold_runs(array[p_run]);
  select r.status into v_status from millrace.runs r where r.id = p_run;
  if v_status is distinct from 'running' then
    raise exception 'run % cannot be given a priority: %',
      coalesce(p_run::text, 'null'), coalesce('it is ' || v_status, 'there is no such run')
      using errcode = case when v_status is null then 'MR003' else 'MR004' end,
        hint = 'Only a running run waits for its turn: '
          'select * from millrace.runs where status = ''running''.';
  end if;
  update millrace.runs r set priority = p_priority where r.id = p_run;
  -- A claim that is taking one of them this moment goes first.
  perform
  from millrace.attempts a
  where a.run_id = p_run and a.state = 'queued'
  order by a.id
  for update;
  perform millrace.assign_groups(a.stage_id, array[p_run])
  from (
    select distinct a.stage_id
    from millrace.attempts a
    where a.run_id = p_run and a.state = 'queued' and a.concurrency_group is not null) a;
end
$$;

create or replace function millrace.prioritise(p_run bigint, p_priority int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.prioritise_one(p_run, p_priority);
  perform millrace.note_run('prioritise', p_run, null, jsonb_build_object('priority', p_priority));
end
$$;
comment on function millrace.prioritise(bigint, int) is
  'Gives a running run a priority from 0 (normal) to 9 (first), for its stages that declare '
  'priority; what is queued moves too.';

-- Switches a pipeline, or one stage of it, on or off, as a line of the journal tells. Returns the
-- stages concerned.
create or replace function millrace.switch(
  p_pipeline text, p_stage text, p_enabled boolean, p_line bigint
)
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline_id int;
  v_stage_id int;
begin
  select p.id
  into v_pipeline_id
  from millrace.pipelines p
  where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = millrace.known_pipelines();
  elsif p_stage is null then
    update millrace.pipelines p
    set enabled = p_enabled, switched_line = p_line
    where p.id = v_pipeline_id and p.enabled <> p_enabled;
    return array(
      select s.id from millrace.stages s where s.pipeline_id = v_pipeline_id);
  end if;
  v_stage_id := (millrace.stage_named(p_pipeline, p_stage)).id;
  update millrace.stages s
  set enabled = p_enabled, switched_line = p_line
  where s.id = v_stage_id and s.enabled <> p_enabled;
  return array[v_stage_id];
end
$$;

create or replace function millrace.pause(p_pipeline text, p_stage text default null) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.switch(p_pipeline, p_stage, false,
    millrace.note('pause', p_pipeline, p_stage));
end
$$;
comment on function millrace.pause(text, text) is
  'Stops a pipeline, or one stage, from handing out work. What is in work goes on, and what comes '
  'in waits.';

create or replace view millrace.paused as
select
  p.name as pipeline,
  s.name as stage,
  format('select millrace.unpause(%s);',
    concat_ws(', ', quote_literal(p.name), quote_literal(s.name))) as remedy
from millrace.pipelines p
cross join lateral (
  select null::text as name, 0 as position
  where not p.enabled
  union all
  select t.name, vs.position
  from millrace.version_stages vs
  join millrace.stages t on t.id = vs.stage_id
  where vs.version_id = p.current_version_id
    and not t.enabled) s
order by p.name, s.position;
comment on view millrace.paused is
  'What is paused, with the statement that lets it go on: a pipeline (stage is null), or one of '
  'its stages by itself.';

-- Lets a pipeline or a stage go on, wakes it, and says what is still paused.
create or replace function millrace.switch_on(p_pipeline text, p_stage text, p_line bigint)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stages int[] := millrace.switch(p_pipeline, p_stage, true, p_line);
  v_still record;
begin
  perform millrace.wake(array(
    select s from unnest(v_stages) s where millrace.has_ready_work(s)));
  -- What still holds it back: the pipeline of a stage, or stages of a pipeline.
  select count(*) as count,
    string_agg(coalesce('stage ' || p.stage, 'the pipeline'), ', ') as names,
    string_agg(p.remedy, ' ') as remedies
  into v_still
  from millrace.paused p
  where p.pipeline = p_pipeline
    and (p_stage is null or p.stage is null);
  return case
    when p_stage is null then format('pipeline %s goes on', p_pipeline)
    when v_still.count = 0 then format('stage %s of pipeline %s goes on', p_stage, p_pipeline)
    else format('stage %s of pipeline %s is no longer paused by itself', p_stage, p_pipeline)
  end || case
    when v_still.count > 0 then format(', but %s %s still paused: %s', v_still.names,
      case v_still.count when 1 then 'is' else 'are' end, v_still.remedies)
    else ''
  end;
end
$$;

create or replace function millrace.unpause(p_pipeline text, p_stage text default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return millrace.switch_on(p_pipeline, p_stage, millrace.note('unpause', p_pipeline, p_stage));
end
$$;
comment on function millrace.unpause(text, text) is
  'Lets a paused pipeline, or one stage, hand out work again, and wakes it where some is ready. A '
  'stage paused by itself stays so when its pipeline goes on: the answer names what is still '
  'paused.';
