-- Limits as views, findings of doctor() and pages have them

-- Lists each shared limit with its present state.
-- declared, today: the limits by definition, and with a throttle.
-- throttled_for, throttled_until: the throttle's reason and end.
-- paused_until: the end of a pause of the whole limit.
-- in_flight: the attempts in flight at the limit's stages.
-- spent_usd, spent_tokens, window_ends_at: the spending in the present window.
-- spent_for: the stages for which the budget does not pay one more attempt.
create view millrace.shared_limit_state as
select l.name, n.stages, l.declared, l.limits as today,
  l.reason as throttled_for, l.until as throttled_until,
  (
    select p.until
    from millrace.limit_pauses p
    where p.name = l.name and p.key is null) as paused_until,
  (
    select count(*)
    from millrace.limited_stages m
    cross join millrace.in_flight_at(m.stage_id)
    where m.limit_id = l.id) as in_flight,
  u.usd as spent_usd,
  u.tokens as spent_tokens,
  u.window_ends_at,
  n.spent_for
from millrace.limits l
cross join lateral (
  select max(b.spent) filter (where b.kind = 'usd') as usd,
    max(b.spent) filter (where b.kind = 'tokens') as tokens,
    upper(millrace.window_of(l.limits -> 'spending')) as window_ends_at
  from millrace.budgets_of(l, null) b
  where l.limits ? 'spending') u
cross join lateral (
  select coalesce(array_agg(s.name order by s.id), '{}') as stages,
    coalesce(array_agg(s.name order by s.id) filter (where exists (
      select from millrace.budgets_of(l, s.id) b where b.is_spent)), '{}') as spent_for
  from (
    select t.id, p.name || '.' || t.name as name
    from millrace.limited_stages m
    join millrace.stages t on t.id = m.stage_id
    join millrace.pipelines p on p.id = t.pipeline_id
    where m.limit_id = l.id) s) n
where l.name is not null
order by l.name;

-- Returns as text until when a shared limit, or each of its keys, is paused; null without a pause.
-- Names the ten keys whose pauses last the longest.
create function millrace.pauses_in_words(p_name text) returns text
stable
as $$
select string_agg(format('%s takes nothing until %s: a service asked for patience',
  coalesce(o.key, 'it'), to_char(o.until, 'YYYY-MM-DD HH24:MI:SS')), '; '
  order by o.until desc, o.key)
from (
  select k.*
  from millrace.limit_pauses k
  where k.name = p_name
  order by k.until desc, k.key
  limit 10) o
$$;

-- Returns a finding for each shared limit: what it allows now where that is less than declared. A
-- spent budget, and a pause of over ten minutes, are not ok. A throttle is ok.
create view millrace.shared_limit_findings (what, ok, detail) as
select 'shared limit ' || l.name || ' lets its stages work',
  l.spent_for = '{}' and not exists (
    select from millrace.limit_pauses k
    where k.name = l.name and k.until > k.since + interval '10 minutes'),
  coalesce(nullif(concat_ws('; ',
    'throttled until ' || to_char(l.throttled_until, 'YYYY-MM-DD HH24:MI:SS: ')
      || l.throttled_for,
    millrace.pauses_in_words(l.name)
      || format(': select millrace.unthrottle_limit(%L) asks again at once', l.name),
    case
      when l.spent_for <> '{}' then format(
        'its budget pays for nothing more at %s until %s: select millrace.throttle_limit(%L, '
          || '''{"spending": …}'', until, ''reason'') raises it for a while',
        array_to_string(l.spent_for, ' and '),
        to_char(l.window_ends_at, 'YYYY-MM-DD HH24:MI:SS'), l.name)
    end), ''), 'as declared')
from millrace.shared_limit_state l;
