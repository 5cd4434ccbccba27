-- Throttles: other limits in place of a limit's own, for a while

-- Locks a shared limit and returns it. Without a name, locks a stage and its own limit, which
-- define() may be changing, and returns that limit.
create function millrace.lock_limit_named(p_stage_id int, p_name text) returns millrace.limits
as $$
if p_name is not null then
  return millrace.shared_limit_named(p_name);
end if;
perform millrace.lock_limit(-p_stage_id, true);
perform from millrace.stages s where s.id = p_stage_id for no key update;
return (select l from millrace.limits l where l.stage_id = p_stage_id);
$$;

-- Ends the throttle of a locked limit, and returns true. Returns false where there was nothing to
-- end.
-- p_pauses: whether the limit's pauses end, too.
create function millrace.end_throttle(p_limit millrace.limits, p_pauses boolean) returns boolean
as $$
delete from millrace.limit_uses u
where p_pauses and u.limit_id = p_limit.id and u.kind = 'pause';
if not found and p_limit.throttle is null then
  return false;
end if;
update millrace.limits l
set throttle = null, until = null, reason = null, journal_entry = null, throttled_at = null
where l.id = p_limit.id;
perform millrace.follow_limit(p_limit.id);
return true;
$$;

-- Ends the throttle of a stage; or the throttle and the pauses of the shared limit that a request
-- names. Raises MR004 where there is nothing to end.
create function millrace.end_throttle_of(
  p_pipeline millrace.pipelines, p_stage millrace.stages, p_request jsonb
) returns jsonb
as $$
  v_name text := p_request ->> 'limit';

if not millrace.end_throttle(
    millrace.lock_limit_named(p_stage.id, v_name), v_name is not null) then
  raise exception 'MR004: %', coalesce(
      'shared limit ' || v_name || ' has no throttle, and no service has paused it',
      format('stage %s of pipeline %s has no throttle', p_stage.name, p_pipeline.name))
    using hint = 'Those there are: select * from millrace.throttles.';
end if;
return jsonb_strip_nulls(jsonb_build_object('limit', v_name));
$$;

-- Throttles a stage, or the shared limit that a request names. Raises MR002 where the limits do not
-- suit the target.
-- p_entry: the number of the journal entry.
create function millrace.put_throttle(
  p_stage millrace.stages, p_request jsonb, p_entry bigint
) returns jsonb
as $$
  v_name text := p_request ->> 'limit';
  v_limits jsonb := p_request -> 'limits';
  v_schema jsonb := millrace.shared_limit_schema();
  v_fault text;
  v_limit millrace.limits;

if v_name is null then
  v_schema := v_schema || jsonb_build_object(
    'wanted', 'an object of rate, max_in_flight or both',
    'properties', (v_schema -> 'properties') - '{key_rate,spending}'::text[]);
end if;
v_fault := millrace.schema_fault(v_schema, coalesce(v_limits, 'null'), 'limits');
if v_fault is not null then
  raise exception 'MR002: %', coalesce('shared limit ' || v_name || ': ', '') || v_fault
    using hint = 'To let nothing through, pause the stage instead: '
      'a throttle lets at least one through. Nothing was changed.';
elsif p_stage.kind = 'gate' and v_limits ? 'max_in_flight' then
  raise exception 'MR002: stage % is a gate, which has nothing in flight', p_stage.name
    using hint = 'Throttle its rate alone.';
elsif p_stage.function_name is null and p_stage.kind <> 'gate' then
  raise exception 'MR004: stage % cannot be throttled: no worker takes anything of a % stage',
    p_stage.name, p_stage.kind
    using hint = 'Pause it, or throttle the stage before it.';
elsif p_request ->> 'until' is null then
  raise exception 'MR002: until is missing, but must be a time from now to 400 days from now'
    using hint = 'For good, set the limit in its definition.';
end if;
v_limit := millrace.lock_limit_named(p_stage.id, v_name);
update millrace.limits l
set throttle = v_limits, until = (p_request ->> 'until')::timestamptz,
  reason = p_request ->> 'reason', journal_entry = p_entry,
  throttled_at = v_now
where l.id = v_limit.id;
perform millrace.follow_limit(v_limit.id);
return jsonb_strip_nulls(jsonb_build_object('limit', v_name, 'limits', v_limits, 'until',
  p_request -> 'until'));
$$;

-- Lists throttles, each of a stage's own limit or of a shared limit.
-- stage_id: null for a shared limit; name: null for a stage.
-- limits: the throttle; declared: the definition's limits.
-- until, reason: when the throttle ends by itself, and why it was set.
create view millrace.throttles as
select l.stage_id, l.name, l.throttle as limits, nullif(l.declared, '{}') as declared, l.until,
  l.reason, l.journal_entry, l.throttled_at as began_at
from millrace.limits l
where l.throttle is not null;
