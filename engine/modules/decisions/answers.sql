-- Answers: decisions of persons, by millrace_decide() or by writing the column `decision`. An
-- answer that ends a child run does not collect the children. Otherwise the parent would stay
-- locked until the person's commit. The sweep collects them.

-- Checks an answer before it is written, closes the question and writes who answered. Raises MR002
-- where the answer does not fit the schema or is too long, and MR004 where the question is closed
-- or has another answer. The same answer again changes nothing.
create function millrace.check_answer() returns trigger
set plan = by_key
as $$
new.decision := coalesce(new.decision, 'null');
if old.decided_at is not null and new.decision = old.decision then
  return old;
elsif old.decided_at is not null then
  raise exception 'MR004: attempt % is already decided: %',
      old.attempt_id, millrace.cut_text(old.decision::text, 100)
    using hint = 'To decide anew, start the stage over: it asks again.';
elsif old.closed_at is not null then
  raise exception 'MR004: attempt % can no longer be decided: %', old.attempt_id, old.closed_why
    using hint = 'Look for an open decision: closed_at is null.';
end if;
perform millrace.refuse(
  coalesce(millrace.schema_fault(old.schema, new.decision, 'decision'), (
    select format('decision has %s bytes, but the limit of stage %s is %s',
      octet_length(new.decision::text), s.name, s.result_limit_bytes)
    from millrace.attempts a
    join millrace.stages s on s.id = a.stage_id
    where a.id = old.attempt_id
      and octet_length(new.decision::text) > s.result_limit_bytes)),
  'Correct it and decide again: the column schema of public.millrace_decisions says how.', 'MR002');
-- The ids of some identity providers are no uuids, at which auth.uid() raises.
new.decided_by := case
  when auth.jwt() ->> 'sub' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then auth.uid()
end;
new.decided_at := v_now;
new.closed_at := new.decided_at;
new.closed_why := 'decided';
return new;
$$;

create trigger millrace_decisions_check
  before update of decision on public.millrace_decisions
  for each row execute function millrace.check_answer();

-- Completes the attempts of a statement's answers, with the result {decision, decided_by}. Raises
-- MR004 where an attempt no longer waits.
create function millrace.take_answers() returns trigger
set plan = by_key
as $$
  v_decided bigint[] := array(
    select n.attempt_id from new_rows n where n.decided_at is not null
    except
    select o.attempt_id from old_rows o where o.decided_at is not null);
  v_done record;

if v_decided = '{}' then
  return null;
end if;
perform millrace.lock_runs(array(
  select d.run_id from public.millrace_decisions d where d.attempt_id = any (v_decided)));
-- apply_outcomes() is called unguarded: the person gets its error, such as one of the apply
-- function.
v_done := millrace.apply_outcomes(array(
  select millrace.work_on(a.attempt,
    (select r.entity_id from millrace.runs r where r.id = (a.attempt).run_id), 'completed',
    jsonb_build_object('decision', d.decision, 'decided_by', d.decided_by))
  from public.millrace_decisions d
  -- by key
  cross join lateral (
    select o as attempt
    from millrace.attempts o
    where o.id = d.attempt_id and o.state = 'waiting'
    offset 0) a
  where d.attempt_id = any (v_decided)
  order by d.attempt_id));
perform millrace.refuse(format('attempt %s can no longer be decided: %s', d.id, coalesce(
  (select i.reason from unnest(v_done.items) i where i.attempt_id = d.id),
  millrace.why_undecided((select a from millrace.attempts a where a.id = d.id)))),
  'Look for another open decision of the same entity.', 'MR004')
from unnest(v_decided) d(id)
where d.id not in (
  select i.attempt_id from unnest(v_done.items) i where i.verdict is null);
perform millrace.wake(v_done.ready);
return null;
$$;

create trigger millrace_decisions_take
  after update on public.millrace_decisions
  referencing old table as old_rows new table as new_rows
  for each statement execute function millrace.take_answers();

-- Takes a person's decision on a manual stage. The decision is checked against the stage's schema,
-- and the run goes on. Answers {attempt, verdict: accepted | duplicate}. Policies for select and
-- update on public.millrace_decisions say who may decide.
create function public.millrace_decide(p_attempt bigint, p_decision jsonb)
set callers = people
set plan = by_key
as $$
  v_decided_at timestamptz;

select d.decided_at into v_decided_at
from public.millrace_decisions d
where d.attempt_id = p_attempt
for update;
if not found then
  raise exception 'MR003: there is no decision on attempt % that you may make',
      coalesce(p_attempt::text, 'null')
    using hint = 'The policies of public.millrace_decisions say who may.';
end if;
update public.millrace_decisions d set decision = p_decision where d.attempt_id = p_attempt;
return jsonb_build_object('attempt', p_attempt,
  'verdict', case when v_decided_at is null then 'accepted' else 'duplicate' end);
$$;
