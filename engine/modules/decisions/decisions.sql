-- Decisions: what a person is asked
--
-- A manual stage waits for a person. Its attempt waits with the service `decision`, and a row of
-- public.millrace_decisions asks the question. Row-level security on that table says who may read
-- and answer it. It has no policy to begin with, so nobody but service_role decides until the
-- project writes some, in which the entities' own policies count:
--   create policy decisions_of_own_books on public.millrace_decisions
--     for select to authenticated
--     using (pipeline = 'books'
--       and exists (select from public.books b where b.id::text = entity_id));
--   create policy decide_on_own_books on public.millrace_decisions
--     for update to authenticated
--     using (pipeline = 'books'
--       and exists (select from public.books b where b.id::text = entity_id));
-- A policy's own functions must name their tables with the schema: millrace_decide() sets its
-- search_path.
--
-- Locks: a person holds the decision's row first, then waits for entity and run. So nothing that
-- holds a run ever waits for a decision's row. The attempt's state refuses an answer to what ended
-- otherwise (cancelled, started over, too late, deleted), and the sweep closes its row later,
-- skipping what is locked. Two people who each change an entity and then decide on it in one
-- transaction may deadlock, which Postgres ends by refusing one of them.

-- Asks for the decision of a manual stage in held runs: adds attempts that wait for a person until
-- the stage's deadline, and their questions.
create function millrace.open_decisions(p_stage_id int, p_run_ids bigint[])
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
begin
  with asked as (
    insert into millrace.attempts
      (id, run_id, stage_id, number, parent_id, state, created_at, started_at, deadline_at, late_at,
        service, job_id)
    overriding system value
    select i.id, i.run_id, p_stage_id, coalesce(l.number, 0) + 1,
      case when not l.superseded then l.id end,
      'waiting', v_now, v_now, v_now + s.deadline, v_now + s.sla, 'decision', i.id::text
    -- The id is drawn by hand, since it is the job's id too.
    from (
      select u.id as run_id, nextval('millrace.attempts_id_seq') as id
      from (select r.id from unnest(p_run_ids) r(id) order by r.id) u
    ) i
    join millrace.stages s on s.id = p_stage_id
    left join lateral (
      select a.*
      from millrace.attempts a
      where a.run_id = i.run_id
        and a.stage_id = p_stage_id
      order by a.number desc
      limit 1
    ) l on true
    returning *
  ), question as (
    insert into public.millrace_decisions
      (attempt_id, pipeline, stage, run_id, entity_id, schema, opened_at, deadline_at)
    select a.id, p.name, s.name, r.id, r.entity_id, coalesce(s.decision -> 'schema', '{}'),
      v_now, a.deadline_at
    from asked a
    join millrace.runs r on r.id = a.run_id
    join millrace.stages s on s.id = a.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    returning *
  )
  select array_agg(millrace.change_of(q.entity_id, 'started', q.attempt_id::text,
    p_started_at => v_now)) into v_changes
  from question q;
  perform millrace.project(p_stage_id, v_changes);
end
$$;

-- Says why a manual stage's attempt can no longer be decided.
create function millrace.why_undecided(p_state millrace.attempt_state, p_error jsonb)
returns text
immutable
as $$
begin
  return case p_state
    when 'failed' then coalesce(p_error ->> 'message', 'it failed')
    else millrace.stale_reason(p_state, p_error)
  end;
end
$$;

-- Looks at the next open decisions: closes those whose attempt ended otherwise, and removes those
-- whose attempt is gone; returns how many it closed.
create function millrace.close_decisions(p_limit int) returns int
as $$
declare
  v_seen text;
  v_ids bigint[];
begin
  select s.value into v_seen
  from millrace.settings s
  where s.name = 'decisions_seen'
  for update skip locked;
  v_ids := array(
    select d.attempt_id
    from public.millrace_decisions d
    where d.closed_at is null
      and d.attempt_id > v_seen::bigint
    order by d.attempt_id
    limit p_limit);
  update millrace.settings s
  set value = v.value
  from (
    select case when cardinality(v_ids) < p_limit then '0' else v_ids[p_limit]::text end as value
  ) v
  where s.name = 'decisions_seen'
    and v_seen <> v.value;
  v_ids := array(
    select d.attempt_id
    from public.millrace_decisions d
    left join millrace.attempts a on a.id = d.attempt_id
    where d.attempt_id = any (v_ids)
      and d.closed_at is null
      and a.state is distinct from 'waiting'
    order by d.attempt_id
    for update of d skip locked);
  return case when cardinality(v_ids) > 0 then millrace.close_held(v_ids) else 0 end;
end
$$;

-- Closes locked decisions whose attempts ended otherwise, and removes those whose attempt is gone.
-- The table is public, so a trigger of a user's may refuse one row: that row alone stays as it is.
create function millrace.close_held(p_ids bigint[]) returns int
as $$
declare
  v_closed record;
begin
  v_closed := millrace.in_halves(p_ids::text[], $q$
    with closed as (
      update public.millrace_decisions d
      set closed_at = coalesce(a.finished_at, millrace.now()),
        closed_why = millrace.why_undecided(a.state, a.error)
      from millrace.attempts a
      where d.attempt_id = any ($1::bigint[])
        and a.id = d.attempt_id
      returning d.attempt_id
    ), gone as (
      delete from public.millrace_decisions d
      where d.attempt_id = any ($1::bigint[])
        and not exists (select from millrace.attempts a where a.id = d.attempt_id)
    )
    select count(*) from closed$q$, 'infinity');
  perform millrace.report('error', 'decision_not_closed',
    format('The decision on attempt %s cannot be closed: %s', r.id, r.why))
  from unnest(v_closed.refused, v_closed.why) r(id, why);
  return v_closed.done;
end
$$;

-- Finds attempts without the question that they wait for, by the runs between two ids. A function,
-- since a view would stand in the way of removing the table of decisions.
create function millrace.decision_faults(
  p_after bigint default 0, p_until bigint default 9223372036854775807
) returns setof millrace.fault
language sql stable
as $$
  select 'an attempt that waits for a person has its open question', a.run_id, a.id,
    'stage ' || s.name
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id and s.kind = 'manual'
  where a.state = 'waiting'
    and a.run_id > p_after
    and a.run_id <= p_until
    and not exists (
      select
      from public.millrace_decisions d
      where d.attempt_id = a.id
        and d.closed_at is null)
$$;
