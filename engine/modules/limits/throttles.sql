-- Throttles: a limit over a limit, for a while
--
-- limits.limits holds what counts today: what was declared with the throttle over it. So a claim
-- reads one column, as ever, and a limit without a throttle pays nothing. define() and
-- define_limit() bring both together anew. A stage without limits has one of its own while it is
-- throttled.

-- Raises MR002 unless the limits of a throttle are a rate, places in flight, or both.
create function millrace.check_throttle(p_limits jsonb) returns void
language plpgsql immutable
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
create function millrace.check_throttle_end(p_until timestamptz, p_reason text)
returns void
language plpgsql
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

-- Locks a stage's own limit against claims and changes, and returns it; one that says nothing where
-- the stage has none. The stage is locked before its limits are read, which define() or somebody
-- else may be changing.
create function millrace.own_limit(p_stage_id int) returns millrace.limits
language plpgsql volatile
as $$
declare
  v_limit millrace.limits;
begin
  perform pg_advisory_xact_lock(hashtext('millrace.limit'), -p_stage_id);
  perform from millrace.stages s where s.id = p_stage_id for no key update;
  insert into millrace.limits (stage_id, declared, limits, bucket)
  values (p_stage_id, '{}', '{}', millrace.full_bucket())
  on conflict on constraint limits_stage_key do nothing;
  select l.* into v_limit from millrace.limits l where l.stage_id = p_stage_id;
  insert into millrace.limited_stages (limit_id, stage_id)
  values (v_limit.id, p_stage_id)
  on conflict on constraint limited_stages_pkey do nothing;
  return v_limit;
end
$$;

-- Puts a throttle on a limit, which the caller has locked, or another in the place of the one that
-- it has.
create function millrace.put_throttle(
  p_limit millrace.limits, p_limits jsonb, p_until timestamptz, p_reason text, p_line bigint
) returns void
language plpgsql
as $$
begin
  update millrace.limits l
  set throttle = p_limits, until = p_until, reason = p_reason, line = p_line,
    throttled_at = millrace.now()
  where l.id = p_limit.id;
  perform millrace.set_limit(p_limit, p_limit.declared || p_limits);
end
$$;

-- Takes the throttle of a limit away, which the caller has locked; false where it has none.
create function millrace.take_throttle(p_limit millrace.limits) returns boolean
language plpgsql
as $$
begin
  if p_limit.throttle is null then
    return false;
  end if;
  update millrace.limits l
  set throttle = null, until = null, reason = null, line = null, throttled_at = null
  where l.id = p_limit.id;
  perform millrace.set_limit(p_limit, p_limit.declared);
  return true;
end
$$;

-- Throttles a stage, whose own limit it locks.
create function millrace.throttle_stage(
  p_stage millrace.stages, p_limits jsonb, p_until timestamptz, p_reason text, p_line bigint
) returns void
language plpgsql
as $$
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
  perform millrace.put_throttle(
    millrace.own_limit(p_stage.id), p_limits, p_until, p_reason, p_line);
end
$$;

-- Throttles a shared limit.
create function millrace.throttle_shared(
  p_name text, p_limits jsonb, p_until timestamptz, p_reason text, p_line bigint
) returns void
language plpgsql
as $$
begin
  perform millrace.check_shared_limit(p_name, p_limits, true);
  perform millrace.check_throttle_end(p_until, p_reason);
  perform millrace.put_throttle(
    millrace.shared_limit_named(p_name), p_limits, p_until, p_reason, p_line);
end
$$;

-- Lets a shared limit go on as it was defined: takes its throttle away, and forgets what it has
-- learned; where a key is named, only what it has learned of that. Raises MR004 where there is
-- neither.
create function millrace.release_limit(p_name text, p_key text) returns void
language plpgsql
as $$
declare
  v_limit millrace.limits := millrace.shared_limit_named(p_name);
  v_throttled boolean := p_key is null and millrace.take_throttle(v_limit);
  v_learned boolean := millrace.forget_refusals(v_limit.id, p_key);
begin
  if v_throttled or v_learned then
    return;
  elsif p_key is not null then
    raise exception 'shared limit % has learned nothing of %', p_name, p_key
      using errcode = 'MR004', hint = 'Look at them: select * from millrace.learned_limits.';
  end if;
  raise exception 'shared limit % has no throttle, and has learned nothing', p_name
    using errcode = 'MR004', hint = 'Look at them: select * from millrace.shared_limit_state.';
end
$$;

-- The sweep takes a throttle away whose time is over, and notes that.
create function millrace.end_throttle(p_limit millrace.limits) returns void
language plpgsql
as $$
declare
  v_line jsonb := '{"key": "engine", "reason": "its time was over"}';
begin
  perform millrace.take_throttle(p_limit);
  if p_limit.name is not null then
    v_line := v_line || jsonb_build_object('outcome', jsonb_build_object('limit', p_limit.name));
  end if;
  perform millrace.note('unthrottle', p.name, s.name, '{}', v_line)
  from (select) o
  left join millrace.stages s on s.id = p_limit.stage_id
  left join millrace.pipelines p on p.id = s.pipeline_id;
end
$$;

create or replace view millrace.throttles as
select l.stage_id, l.name, l.throttle as limits, nullif(l.declared, '{}') as declared, l.until,
  l.reason, l.line, l.throttled_at as began_at
from millrace.limits l
where l.throttle is not null;
comment on view millrace.throttles is
  'What holds over a stage''s own limits, or over a shared limit (name), for a while: declared '
  'holds again when it is over.';
