-- Chapter 27: decisions: what a person is asked, and answers
--
-- A manual stage waits for a person. Its attempt waits with the service `decision`, and a row of public.millrace_decisions
-- asks the question. Who may read and answer it is said by row-level security on that table. It has no policy to begin
-- with, so nobody but service_role decides until the project writes some, in which the entities' own policies count:
--   create policy decisions_of_own_books on public.millrace_decisions for select to authenticated
--     using (pipeline = 'books' and exists (select from public.books b where b.id::text = entity_id));
--   create policy decide_on_own_books on public.millrace_decisions for update to authenticated
--     using (pipeline = 'books' and exists (select from public.books b where b.id::text = entity_id));
-- A policy's own functions must name their tables with the schema: millrace_decide() sets its search_path.
--
-- A person decides by public.millrace_decide(), or by writing the column `decision`. Three triggers do the rest: one checks
-- the payload, one completes the waiting attempt in the same transaction, and at the commit one collects the parent of a child.
--
-- Locks: a person holds the decision's row first, then waits for entity and run. So nothing that holds a run ever waits for
-- a decision's row: what ended otherwise (cancelled, started over, too late, deleted) is refused by the attempt's state, and
-- its row is closed later, by the sweep, skipping what is locked. Two people who each change an entity and then decide on it
-- in one transaction may deadlock, which Postgres ends by refusing one of them.

create or replace function millrace.open_decisions(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
begin
  with asked as (
    insert into millrace.attempts (id, run_id, stage_id, number, parent_id, state, created_at, started_at, deadline_at, late_at, service, job_id)
    overriding system value
    select i.id, i.run_id, p_stage_id, coalesce(l.number, 0) + 1, case when not l.superseded then l.id end, 'waiting', v_now, v_now, v_now + s.deadline, v_now + s.sla, 'decision', i.id::text
    -- The id is drawn by hand, since it is the job's id too.
    from (select u.id as run_id, nextval('millrace.attempts_id_seq') as id from (select r.id from unnest(p_run_ids) r(id) order by r.id) u) i
    join millrace.stages s on s.id = p_stage_id
    left join lateral (select a.* from millrace.attempts a where a.run_id = i.run_id and a.stage_id = p_stage_id order by a.number desc limit 1) l on true
    returning *
  ), question as (
    insert into public.millrace_decisions (attempt_id, pipeline, stage, run_id, entity_id, schema, opened_at, deadline_at)
    select a.id, p.name, s.name, r.id, r.entity_id, coalesce(s.decision -> 'schema', '{}'), v_now, a.deadline_at
    from asked a join millrace.runs r on r.id = a.run_id join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id
    returning *
  )
  select array_agg(row(q.entity_id, 'started', q.attempt_id::text, null, null, 0, v_now, null, null)::millrace.change) into v_changes from question q;
  perform millrace.project(p_stage_id, v_changes);
end
$$;
comment on function millrace.open_decisions(int, bigint[]) is 'Asks for the decision of a manual stage in held runs: attempts that wait for a person until the stage''s deadline, and their rows in public.millrace_decisions.';

-- Before: what may be seen from the row alone.
create or replace function millrace.check_answer() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text;
begin
  new.decision := coalesce(new.decision, 'null');
  if old.decided_at is not null and new.decision = old.decision then
    return old;
  elsif old.decided_at is not null then
    raise exception 'attempt % is already decided: %', old.attempt_id, millrace.short_json(old.decision)
      using errcode = 'MR004', hint = 'A decision stands. To decide anew, start the stage over: it asks again.';
  elsif old.closed_at is not null then
    raise exception 'attempt % can no longer be decided: %', old.attempt_id, old.closed_why
      using errcode = 'MR004', hint = 'Look for an open decision: closed_at is null.';
  end if;
  v_fault := millrace.schema_fault(old.schema, new.decision, 'decision');
  if v_fault is not null then
    raise exception '%', v_fault using errcode = 'MR002', hint = 'Correct it and decide again; nothing was written. The column schema of public.millrace_decisions says what is allowed.';
  end if;
  -- Some identity providers' ids are no uuids, and then auth.uid() raises.
  new.decided_by := case when auth.jwt() ->> 'sub' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then auth.uid() end;
  new.decided_at := millrace.now();
  new.closed_at := new.decided_at;
  new.closed_why := 'decided';
  return new;
end
$$;
comment on function millrace.check_answer() is 'Trigger: refuses an answer that does not fit the schema or comes too late, and notes who gave it.';

-- After, for all rows of the statement at once: the attempts complete as if a job had ended.
create or replace function millrace.take_answers() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_decided bigint[] := array(
    select n.attempt_id from new_rows n where n.decided_at is not null except select o.attempt_id from old_rows o where o.decided_at is not null);
  v_found record;
  v_items millrace.work[];
  v_done record;
begin
  if cardinality(v_decided) = 0 then
    return null;
  end if;
  perform millrace.hold_runs(array(select d.run_id from public.millrace_decisions d where d.attempt_id = any (v_decided)));
  select d.attempt_id, millrace.why_undecided(a.state, a.error) as why into v_found
  from public.millrace_decisions d left join millrace.attempts a on a.id = d.attempt_id
  where d.attempt_id = any (v_decided) and a.state is distinct from 'waiting' order by d.attempt_id limit 1;
  if found then
    raise exception 'attempt % can no longer be decided: %', v_found.attempt_id, v_found.why
      using errcode = 'MR004', hint = 'Its row will be closed by the sweep. Look for another open decision of the same entity.';
  end if;
  v_items := array(
    select row(row_number() over (order by a.id), a.id, null, null, 'completed', jsonb_build_object('decision', d.decision, 'decided_by', d.decided_by), null, null,
      a.service, a.job_id, a.run_id, a.stage_id, r.entity_id, a.state, null, null, null, null)::millrace.work
    from public.millrace_decisions d join millrace.attempts a on a.id = d.attempt_id join millrace.runs r on r.id = a.run_id
    where d.attempt_id = any (v_decided));
  select i.attempt_id, octet_length(i.result::text) as size, s.name, s.result_limit_bytes into v_found
  from unnest(v_items) i join millrace.stages s on s.id = i.stage_id where octet_length(i.result::text) > s.result_limit_bytes limit 1;
  if found then
    raise exception 'the decision on attempt % has % bytes, but the limit of stage % is %', v_found.attempt_id, v_found.size, v_found.name, v_found.result_limit_bytes
      using errcode = 'MR002', hint = 'Make it shorter, or raise the stage''s result_limit_bytes.';
  end if;
  -- Not guarded: a fault, such as one of the stage's apply function, is the person's answer, and nothing is written.
  v_done := millrace.apply_outcomes(v_items);
  select i.attempt_id, i.reason into v_found from unnest(v_done.items) i where i.verdict is not null limit 1;
  if found then
    raise exception 'the decision on attempt % was not taken: %', v_found.attempt_id, v_found.reason
      using errcode = 'MR004', hint = 'The stage''s apply function, or another decision of the same statement, ended the attempt.';
  end if;
  perform millrace.wake(v_done.ready);
  return null;
end
$$;
comment on function millrace.take_answers() is 'Trigger: completes the attempts that a statement decided, with the result {decision, decided_by}, and wake-ups what follows.';

create trigger millrace_decisions_check before update of decision on public.millrace_decisions for each row execute function millrace.check_answer();

create trigger millrace_decisions_take after update on public.millrace_decisions referencing old table as old_rows new table as new_rows
  for each statement execute function millrace.take_answers();

-- At the commit, so that nobody holds a parent for as long as a person's transaction lasts, and without waiting for anybody:
-- what is left out here the sweep does.
create or replace function millrace.apply_decisions() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_run_id bigint := new.run_id;
  v_fan_out millrace.fan_outs;
  v_done record;
  v_context text;
begin
  -- Above read committed it would not see what other children have reported.
  while current_setting('transaction_isolation') = 'read committed' loop
    select f.* into v_fan_out from millrace.runs r join millrace.fan_outs f on f.id = r.fan_out_id where r.id = v_run_id;
    exit when not found or not exists (select from millrace.child_tallies t where t.fan_out_id = v_fan_out.id)
      or not pg_try_advisory_xact_lock(hashtextextended('millrace.collect_children', v_fan_out.id));
    v_done := millrace.collect_children(v_fan_out.id);
    perform millrace.wake(v_done.wake);
    exit when v_done.busy;
    -- The parent may be a child itself, whose run has ended with it.
    v_run_id := v_fan_out.run_id;
  end loop;
  return null;
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    case millrace.error_kind(sqlstate, v_context)
      when 'fatal' then
        raise;
      when 'lasting' then
        perform millrace.report('error', 'collect_failed', format('The children of fan-out %s cannot be added up: %s', v_fan_out.id, sqlerrm));
      else
        null;
    end case;
    return null;
end
$$;
comment on function millrace.apply_decisions() is 'Trigger: adds up at once, for the parents, what a decision has come to in a child run.';

create constraint trigger millrace_decisions_apply after update on public.millrace_decisions deferrable initially deferred
  for each row when (old.decided_at is null and new.decided_at is not null) execute function millrace.apply_decisions();

create or replace function millrace.why_undecided(p_state millrace.attempt_state, p_error jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  return case when p_state = 'failed' then coalesce(p_error ->> 'message', 'it failed') else millrace.stale_reason(p_state, p_error) end;
end
$$;
comment on function millrace.why_undecided(millrace.attempt_state, jsonb) is 'What became of a manual stage''s attempt that ended without a decision.';

-- With the rights of the caller, so that the policies of public.millrace_decisions say who may.
create or replace function public.millrace_decide(p_attempt bigint, p_decision jsonb) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_decided_at timestamptz;
begin
  select d.decided_at into v_decided_at from public.millrace_decisions d where d.attempt_id = p_attempt for update;
  if not found then
    raise exception 'there is no decision on attempt % that you may make', coalesce(p_attempt::text, 'null')
      using errcode = 'MR003', hint = 'Open ones: select * from public.millrace_decisions where closed_at is null. Who may read and decide is said by the policies of that table.';
  end if;
  update public.millrace_decisions d set decision = p_decision where d.attempt_id = p_attempt;
  return jsonb_build_object('attempt', p_attempt, 'verdict', case when v_decided_at is null then 'accepted' else 'duplicate' end);
end
$$;
comment on function public.millrace_decide(bigint, jsonb) is 'A person''s decision on a manual stage: checked against its schema, recorded, and the run goes on, all in one transaction. Answers {attempt, verdict: accepted | duplicate}. Needs a policy for select and update on public.millrace_decisions.';
revoke all on function public.millrace_decide(bigint, jsonb) from public, anon, authenticated, service_role;
grant execute on function public.millrace_decide(bigint, jsonb) to authenticated, service_role;

-- The table is public, so a trigger of a user's may refuse one row.
create or replace function millrace.close_held(p_ids bigint[]) returns int
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_ids) / 2;
  v_closed int;
  v_context text;
begin
  begin
    update public.millrace_decisions d
    set closed_at = coalesce(a.finished_at, millrace.now()),
        closed_why = millrace.why_undecided(a.state, a.error)
    from millrace.attempts a
    where d.attempt_id = any (p_ids) and a.id = d.attempt_id;
    get diagnostics v_closed = row_count;
    delete from public.millrace_decisions d
    where d.attempt_id = any (p_ids)
      and not exists (select from millrace.attempts a where a.id = d.attempt_id);
    return v_closed;
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    if v_half = 0 then
      perform millrace.report('error', 'decision_not_closed',
        format('The decision on attempt %s cannot be closed: %s', p_ids[1], sqlerrm));
      return 0;
    end if;
  end;
  return millrace.close_held(p_ids[:v_half]) + millrace.close_held(p_ids[v_half + 1:]);
end
$$;
comment on function millrace.close_held(bigint[]) is
  'Closes locked decisions whose attempts ended otherwise and removes those whose attempt is gone, but for those that refuse it; returns how many it closed.';

create or replace function millrace.close_decisions(p_limit int) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_seen text;
  v_ids bigint[];
begin
  select s.value into v_seen from millrace.settings s where s.name = 'decisions_seen' for update skip locked;
  v_ids := array(select d.attempt_id from public.millrace_decisions d where d.closed_at is null and d.attempt_id > v_seen::bigint order by d.attempt_id limit p_limit);
  update millrace.settings s set value = v.value
  from (select case when cardinality(v_ids) < p_limit then '0' else v_ids[p_limit]::text end as value) v
  where s.name = 'decisions_seen' and v_seen <> v.value;
  v_ids := array(
    select d.attempt_id from public.millrace_decisions d left join millrace.attempts a on a.id = d.attempt_id
    where d.attempt_id = any (v_ids) and d.closed_at is null and a.state is distinct from 'waiting' order by d.attempt_id for update of d skip locked);
  return case when cardinality(v_ids) > 0 then millrace.close_held(v_ids) else 0 end;
end
$$;
comment on function millrace.close_decisions(int) is 'Looks at the next open decisions: closes those whose attempt ended otherwise, removes those whose attempt is gone; returns how many it closed.';

create or replace function millrace.forget_decisions(p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  -- One that somebody is answering this very moment is left to close_decisions(), or to prune_decisions() if it was closed.
  delete from public.millrace_decisions d where d.attempt_id in (
    select o.attempt_id from public.millrace_decisions o where o.run_id = any (p_run_ids) for update skip locked);
end
$$;
comment on function millrace.forget_decisions(bigint[]) is 'Removes the decisions of runs that are being deleted, without waiting for anybody.';

create or replace function millrace.prune_decisions() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.millrace_decisions d where d.attempt_id in (
    select o.attempt_id from public.millrace_decisions o
    where not exists (select from millrace.attempts a where a.id = o.attempt_id) for update skip locked);
end
$$;
comment on function millrace.prune_decisions() is 'Removes decisions whose attempt is gone since somebody was just answering when their run was deleted.';
