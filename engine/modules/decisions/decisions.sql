-- Decisions: a row of public.millrace_decisions asks a person. An answer locks that row first, and
-- then waits for the entity and the run. So no transaction that has locked a run waits for the row
-- of a decision.

-- Returns why a manual stage's attempt can no longer be decided.
create function millrace.why_undecided(p_attempt millrace.attempts) returns text
immutable
as $$
select coalesce(
  case p_attempt.state when 'failed' then p_attempt.error ->> 'message' end,
  millrace.stale_reason(p_attempt.state, p_attempt.error))
$$;

-- Closes open decisions whose attempt ended otherwise, and deletes those whose attempt is gone.
-- Leaves out rows that another transaction has locked. Writes decisions for which Postgres
-- raises an error into millrace.log. Returns how many it closed.
create function millrace.close_decisions(p_limit int) returns int
as $$
  v_closed record;

v_closed := millrace.in_halves(array(
  select d.attempt_id::text
  from public.millrace_decisions d
  where d.closed_at is null
    and (select a.state from millrace.attempts a where a.id = d.attempt_id)
      is distinct from 'waiting'
  -- In random order: otherwise rows that are refused would come first for ever.
  order by random()
  limit p_limit
  for update skip locked), $q$
  with closed as (
    update public.millrace_decisions d
    set closed_at = coalesce(a.finished_at, millrace.now()),
      closed_why = millrace.why_undecided(a)
    from millrace.attempts a
    where d.attempt_id = any ($1::bigint[])
      and a.id = d.attempt_id
    returning 1
  ), gone as (
    delete from public.millrace_decisions d
    where d.attempt_id = any ($1::bigint[])
      and not exists (select from millrace.attempts a where a.id = d.attempt_id)
  )
  select count(*) from closed$q$, 'infinity');
perform millrace.report('error', 'decision_not_closed',
  format('The decision on attempt %s cannot be closed: %s', f.key, f.why))
from unnest(v_closed.refused) f;
return v_closed.done;
$$;
