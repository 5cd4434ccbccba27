-- Shared limits: throttles, what is known of them, and the sweep's part
--
-- As a stage's throttle (throttles.sql): shared_limits.limits holds what counts today, the limit as
-- declared with the throttle over it, and define_limit() brings both together anew.

-- Puts a throttle on a shared limit, or another in the place of the one that it has.
create or replace function millrace.throttle_shared(
  p_name text,
  p_limits jsonb,
  p_until timestamptz,
  p_reason text,
  p_line bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits;
begin
  perform millrace.check_shared_limit(p_name, p_limits, true);
  perform millrace.check_throttle_end(p_until, p_reason);
  v_limit := millrace.shared_limit_named(p_name);
  update millrace.shared_limits l
  set throttle = p_limits, until = p_until, reason = p_reason, line = p_line,
    throttled_at = millrace.now()
  where l.id = v_limit.id;
  perform millrace.set_shared_limit(v_limit, millrace.throttled(v_limit.declared, p_limits));
end
$$;

-- Takes the throttle of a shared limit away; false where it has none.
create or replace function millrace.unthrottle_shared(p_name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits := millrace.shared_limit_named(p_name);
begin
  if v_limit.throttle is null then
    return false;
  end if;
  update millrace.shared_limits l
  set throttle = null, until = null, reason = null, line = null, throttled_at = null
  where l.id = v_limit.id;
  perform millrace.set_shared_limit(v_limit, v_limit.declared);
  return true;
end
$$;

-- Lets a shared limit go on as it was defined: takes its throttle away, and forgets what it has
-- learned; where a key is named, only what it has learned of that. Raises MR004 where there is
-- neither.
create or replace function millrace.release_limit(p_name text, p_key text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_throttled boolean := p_key is null and millrace.unthrottle_shared(p_name);
  v_learned boolean := millrace.forget_refusals(millrace.shared_limit_named(p_name), p_key);
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

create or replace function millrace.throttle_limit(
  p_name text,
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
  perform millrace.throttle_shared(p_name, p_limits, p_until, p_reason, v_line);
  perform millrace.note('throttle', null, null, '{}', jsonb_build_object(
    'id', v_line, 'reason', p_reason,
    'outcome', jsonb_build_object('limit', p_name, 'limits', p_limits, 'until', p_until)));
end
$$;
comment on function millrace.throttle_limit(text, jsonb, timestamptz, text) is
  'Sets parts of a shared limit over its definition, lower or higher, until a time and for a '
  'reason: {"rate": {"count": 10, "per_seconds": 60}}, max_in_flight, spending, or several.';

create or replace function millrace.unthrottle_limit(p_name text, p_key text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.release_limit(p_name, p_key);
  perform millrace.note('unthrottle', null, null, '{}', jsonb_build_object('outcome',
    jsonb_strip_nulls(jsonb_build_object('limit', p_name, 'key', p_key))));
end
$$;
comment on function millrace.unthrottle_limit(text, text) is
  'Takes the throttle of a shared limit away and forgets what it has learned of services that '
  'refused; what it was defined as holds again. With a key, such as a host, it forgets that alone.';

-- The sweep adds up what was spent, takes throttles away whose time is over, reads refusals that no
-- claim came for, forgets what limits learned that have their whole rate back, and brings those to
-- the clock that are ahead of it. A limit that a claim is passing this moment is left to the next
-- sweep.
create or replace function millrace.sweep_shared_limits() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
  v_id int;
begin
  perform millrace.sum_limit_uses(10000);
  for v_id, v_name in
    select l.id, l.name
    from millrace.shared_limits l
    where l.until <= millrace.now()
      or (l.lowered_at is not null and millrace.share_of(l) >= 1)
      or (l.limits ? 'rate' and l <> millrace.on_the_clock(l))
      or exists (select from millrace.limit_refusals r where r.limit_id = l.id)
      or exists (select from millrace.limit_keys k where k.limit_id = l.id)
    order by l.id
  loop
    continue when not pg_try_advisory_xact_lock(hashtext('millrace.shared_limit'), v_id);
    perform millrace.learn(v_id);
    perform millrace.sweep_limit_keys(v_id);
    -- Somebody may have made it a longer one meanwhile.
    continue when not exists (
      select from millrace.shared_limits l where l.id = v_id and l.until <= millrace.now());
    perform millrace.unthrottle_shared(v_name);
    perform millrace.note('unthrottle', null, null, '{}', jsonb_build_object(
      'key', 'engine', 'reason', 'its time was over',
      'outcome', jsonb_build_object('limit', v_name)));
  end loop;
end
$$;

create or replace view millrace.shared_limit_state as
select l.name,
  array(
    select p.name || '.' || s.name
    from millrace.limited_stages m
    join millrace.stages s on s.id = m.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where m.limit_id = l.id
    order by s.id) as stages,
  l.declared,
  case
    when h.share < 1 then jsonb_set(l.limits, '{rate,count}',
      to_jsonb(round(((l.limits #>> '{rate,count}')::float8 * h.share)::numeric, 3)))
    else l.limits
  end as today,
  case when l.throttle is not null then l.reason end as throttled_for,
  l.until as throttled_until,
  case when h.share < 1 then round(h.share::numeric, 3) end as learned_share,
  case when h.share < 1 then l.refused_by end as learned_from,
  case when h.share < 1 then l.lowered_since end as learned_since,
  case when l.refused_until > millrace.now() then l.refused_until end as refused_until,
  (
    select count(*)
    from millrace.limited_stages m
    join millrace.in_flight f on f.stage_id = m.stage_id
    where m.limit_id = l.id) as in_flight,
  u.usd as spent_usd,
  u.tokens as spent_tokens,
  u.window_ends_at,
  array(
    select p.name || '.' || s.name
    from millrace.limited_stages m
    join millrace.stages s on s.id = m.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where m.limit_id = l.id
      and u.window_ends_at is not null
      and millrace.is_spent_under(l, s.id)
    order by s.id) as spent_for
from millrace.shared_limits l
cross join lateral (select millrace.share_of(l) as share) h
cross join lateral (
  select case when l.limits ? 'spending' then (millrace.spent_under(l, 'usd')).spent end as usd,
    case when l.limits ? 'spending' then (millrace.spent_under(l, 'tokens')).spent end as tokens,
    millrace.window_over(l) as window_ends_at) u
order by l.name;
comment on view millrace.shared_limit_state is
  'Each shared limit: its stages, what it was declared as and what holds today, why it is '
  'throttled, what it learned from whom, what is in flight and spent, and for which stages its '
  'budget pays nothing more in this window.';

-- Says what a shared limit has learned of the services that refused, in a sentence for each of the
-- ten that hold it back the longest; null where there is nothing.
create or replace function millrace.learned_in_words(p_name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select string_agg(concat(
      case when o.key is null then 'it' else o.key end, ' learned ', o.learned_share,
      ' of its rate from ', o.learned_from, ' since ',
      to_char(o.learned_since, 'YYYY-MM-DD HH24:MI:SS'),
      ', and takes nothing until ' || to_char(o.refused_until, 'YYYY-MM-DD HH24:MI:SS')), '; '
    order by o.seconds desc, o.key)
  from (
    select k.*
    from millrace.learned_limits k
    where k.name = p_name
    order by k.seconds desc, k.key
    limit 10) o
$$;

-- Looks at shared limits that hold less than was declared, or whose budget pays for nothing more.
-- A service that refuses for ten minutes in all needs somebody to look.
create or replace function millrace.shared_limit_findings()
returns table (what text, ok boolean, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'shared limit ' || l.name || ' lets its stages work',
    cardinality(l.spent_for) = 0 and not exists (
      select from millrace.learned_limits k where k.name = l.name and k.seconds > 600),
    coalesce(nullif(concat_ws('; ',
      case
        when l.throttled_until is not null then format('throttled until %s: %s',
          to_char(l.throttled_until, 'YYYY-MM-DD HH24:MI:SS'), l.throttled_for)
      end,
      millrace.learned_in_words(l.name)
        || format(': select millrace.unthrottle_limit(%L) asks again at once', l.name),
      case
        when cardinality(l.spent_for) > 0 then format(
          'its budget pays for nothing more at %s until %s: select millrace.throttle_limit(%L, '
            || '''{"spending": …}'', until, ''reason'') raises it for a while',
          array_to_string(l.spent_for, ' and '),
          to_char(l.window_ends_at, 'YYYY-MM-DD HH24:MI:SS'), l.name)
      end), ''), 'as declared')
  from millrace.shared_limit_state l
$$;
