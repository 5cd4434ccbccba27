-- Throttles: a stage's rate or places in flight, over its definition, for a while
--
-- stages.limits holds what counts today: the limits of the definition with those of the throttle
-- over them. So a claim reads one column, as ever, and a stage without a throttle pays nothing.
-- The definition's own are kept in millrace.throttles, and define() brings both together anew.

-- Puts the limits of a definition and of a throttle together.
create or replace function millrace.throttled(p_declared jsonb, p_limits jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(p_declared, '{}') || p_limits
$$;

-- Raises MR002 unless the limits of a throttle are a rate, places in flight, or both.
create or replace function millrace.check_throttle(p_limits jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text := millrace.schema_fault('{"type": "object", "minProperties": 1,
    "wanted": "an object of rate, max_in_flight or both", "additionalProperties": false,
    "properties": {
      "max_in_flight": {"type": "integer", "minimum": 1, "maximum": 10000},
      "rate": {"type": "object", "required": ["count", "per_seconds"],
        "wanted": "an object of count, per_seconds and burst", "additionalProperties": false,
        "properties": {
          "count": {"type": "integer", "minimum": 1, "maximum": 1000000},
          "per_seconds": {"type": "number", "minimum": 0.001, "maximum": 86400},
          "burst": {"type": "integer", "minimum": 1, "maximum": 1000000}}}}}',
    coalesce(p_limits, 'null'), 'limits');
begin
  if v_fault is not null then
    raise exception '%', v_fault
      using errcode = 'MR002', hint = 'To let nothing through, pause the stage instead: '
        'a throttle lets at least one through. Nothing was changed.';
  end if;
end
$$;

-- Raises MR002 unless a throttle says until when it holds, and why.
create or replace function millrace.check_throttle_end(p_until timestamptz, p_reason text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_until is null or p_until <= millrace.now()
    or p_until > millrace.now() + interval '400 days' then
    raise exception 'until is %, but must be a time from now to 400 days from now',
      coalesce(p_until::text, 'missing')
      using errcode = 'MR002', hint = 'For good, set the limit in its definition.';
  elsif coalesce(btrim(p_reason), '') = '' then
    raise exception 'reason is missing, but a throttle has one'
      using errcode = 'MR002', hint = 'Say in a few words why.';
  end if;
end
$$;

-- Changes the limits of a stage that hold today. It waits for the claims that are passing its
-- limiter, and keeps others out until its transaction ends. What was taken without a limit is
-- counted; what nobody counts any more is forgotten.
create or replace function millrace.set_limits(p_stage_id int, p_limits jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  perform pg_advisory_xact_lock(hashtext('millrace.limiter'), p_stage_id);
  update millrace.stages s
  set limits = p_limits
  where s.id = p_stage_id
  returning s.* into v_stage;
  if millrace.counts_in_flight(p_limits) then
    perform millrace.count_attempts(v_stage, 5000);
  else
    delete from millrace.in_flight f
    using (
      select o.attempt_id, o.token
      from millrace.in_flight o
      where o.stage_id = p_stage_id
      for update skip locked) o
    where f.attempt_id = o.attempt_id and f.token = o.token;
  end if;
end
$$;

-- Puts a throttle on a stage, or another in the place of the one that it has.
create or replace function millrace.throttle_stage(
  p_stage millrace.stages,
  p_limits jsonb,
  p_until timestamptz,
  p_reason text,
  p_line bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_declared jsonb;
begin
  perform millrace.check_throttle(p_limits);
  if p_stage.kind = 'gate' and p_limits ? 'max_in_flight' then
    raise exception 'stage % is a gate, which has nothing in flight', p_stage.name
      using errcode = 'MR002', hint = 'Throttle its rate alone: {"rate": {"count": 10, '
        '"per_seconds": 60}}.';
  elsif p_stage.function_name is null and p_stage.kind <> 'gate' then
    raise exception 'stage % cannot be throttled: no worker takes anything of a % stage',
      p_stage.name, p_stage.kind
      using errcode = 'MR004', hint = 'Pause it, or throttle the stage before it.';
  end if;
  perform millrace.check_throttle_end(p_until, p_reason);
  -- Before the limits are read, which define() or somebody else may be changing.
  perform pg_advisory_xact_lock(hashtext('millrace.limiter'), p_stage.id);
  perform
  from millrace.stages s
  where s.id = p_stage.id
  for no key update;
  select case when t.stage_id is null then s.limits else t.declared end into v_declared
  from millrace.stages s
  left join millrace.throttles t on t.stage_id = s.id
  where s.id = p_stage.id;
  insert into millrace.throttles as t (
    stage_id, limits, declared, until, reason, line, began_at)
  values (p_stage.id, p_limits, v_declared, p_until, p_reason, p_line, millrace.now())
  on conflict on constraint throttles_pkey do update set
    limits = excluded.limits, until = excluded.until, reason = excluded.reason,
    line = excluded.line, began_at = excluded.began_at;
  perform millrace.set_limits(p_stage.id, millrace.throttled(v_declared, p_limits));
  -- It may let more through than before.
  perform millrace.wake(case when millrace.has_ready_work(p_stage.id) then array[p_stage.id] end);
end
$$;

-- Takes the throttle of a stage away and wakes the stage; false where it has none.
create or replace function millrace.unthrottle_stage(p_stage_id int) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_throttle millrace.throttles;
begin
  perform pg_advisory_xact_lock(hashtext('millrace.limiter'), p_stage_id);
  perform
  from millrace.stages s
  where s.id = p_stage_id
  for no key update;
  delete from millrace.throttles t
  where t.stage_id = p_stage_id
  returning t.* into v_throttle;
  if not found then
    return false;
  end if;
  perform millrace.set_limits(p_stage_id, v_throttle.declared);
  perform millrace.wake(case when millrace.has_ready_work(p_stage_id) then array[p_stage_id] end);
  return true;
end
$$;

create or replace function millrace.throttle(
  p_pipeline text,
  p_stage text,
  p_limits jsonb,
  p_until timestamptz,
  p_reason text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_line bigint := nextval('millrace.journal_id_seq');
begin
  perform millrace.throttle_stage(
    millrace.stage_named(p_pipeline, p_stage), p_limits, p_until, p_reason, v_line);
  perform millrace.note('throttle', p_pipeline, p_stage, '{}', jsonb_build_object(
    'id', v_line, 'reason', p_reason,
    'outcome', jsonb_build_object('limits', p_limits, 'until', p_until)));
end
$$;
comment on function millrace.throttle(text, text, jsonb, timestamptz, text) is
  'Sets the rate or the places in flight of a stage, over its definition, until a time and for a '
  'reason: {"rate": {"count": 10, "per_seconds": 60}, "max_in_flight": 5}, one of them or both.';

create or replace function millrace.unthrottle(p_pipeline text, p_stage text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not millrace.unthrottle_stage((millrace.stage_named(p_pipeline, p_stage)).id) then
    raise exception 'stage % of pipeline % has no throttle', p_stage, p_pipeline
      using errcode = 'MR004', hint = 'Those there are: select * from millrace.throttles.';
  end if;
  perform millrace.note('unthrottle', p_pipeline, p_stage);
end
$$;
comment on function millrace.unthrottle(text, text) is
  'Takes the throttle of a stage away; the limits of its definition hold again.';

-- The sweep takes throttles away whose time is over. One whose stage a claim is passing this moment
-- is left to the next.
create or replace function millrace.end_throttles() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_over record;
begin
  for v_over in
    select t.stage_id, s.name as stage, p.name as pipeline
    from millrace.throttles t
    join millrace.stages s on s.id = t.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where t.until <= millrace.now()
    order by t.stage_id
  loop
    continue when not pg_try_advisory_xact_lock(
      hashtext('millrace.limiter'), v_over.stage_id);
    -- Somebody may have made it a longer one meanwhile.
    continue when not exists (
      select
      from millrace.throttles t
      where t.stage_id = v_over.stage_id
        and t.until <= millrace.now());
    perform millrace.unthrottle_stage(v_over.stage_id);
    perform millrace.note('unthrottle', v_over.pipeline, v_over.stage, '{}',
      '{"key": "engine", "reason": "its time was over"}');
  end loop;
end
$$;

-- define() has written what the definition says into stages.limits: it is kept, and the throttle
-- put over it again. define() holds the limiters.
create or replace function millrace.keep_throttles(p_pipeline_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.throttles t
  set declared = s.limits
  from millrace.stages s
  where s.id = t.stage_id and s.pipeline_id = p_pipeline_id;
  update millrace.stages s
  set limits = millrace.throttled(t.declared, t.limits)
  from millrace.throttles t
  where s.id = t.stage_id and s.pipeline_id = p_pipeline_id;
end
$$;
