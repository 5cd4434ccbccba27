-- Attempts: done, waiting, released, cancelled, skipped, and shown
--
-- What ends an attempt or a run writes its pulse in the same transaction; figure_faults proves it.

-- The attempt by which each stage of a run is done: completed or skipped, and not started over
-- since. A skipped one's result is null.
create view millrace.done_attempts as
select a.id, a.run_id, a.stage_id, a.number, a.state, a.retry_count, a.created_at, a.started_at,
  a.finished_at, a.error, a.output, a.input_hash
from millrace.attempts a
where a.state in ('completed', 'skipped')
  and not a.superseded;

-- Tells whether an attempt counts and is the newest of its stage and run.
create function millrace.is_last_word(p_attempt millrace.attempts) returns boolean
as $$
return not p_attempt.superseded and not exists (
  select from millrace.attempts n
  where n.run_id = p_attempt.run_id and n.stage_id = p_attempt.stage_id
    and n.number > p_attempt.number);
$$;

-- Builds a change of one stage for the projection.
create function millrace.change_of(
  p_entity_id text, p_status text, p_job_id text default null, p_error text default null,
  p_started_at timestamptz default null, p_completed_at timestamptz default null
) returns millrace.change
immutable
as $$
return row(p_entity_id, p_status, p_job_id, null, p_error, 0, p_started_at, p_completed_at,
  null)::millrace.change;
$$;

-- Builds the work item of an outcome that the engine decides, such as a passed deadline.
create function millrace.work_on(
  p_attempt millrace.attempts, p_entity_id text, p_outcome text,
  p_result jsonb default null, p_error jsonb default null
) returns millrace.work
immutable
as $$
declare
  v_work millrace.work;
begin
  v_work.ord := 1;
  v_work.attempt_id := p_attempt.id;
  v_work.token := p_attempt.token;
  v_work.outcome := p_outcome;
  v_work.result := p_result;
  v_work.error := p_error;
  v_work.service := p_attempt.service;
  v_work.job_id := p_attempt.job_id;
  v_work.run_id := p_attempt.run_id;
  v_work.stage_id := p_attempt.stage_id;
  v_work.entity_id := p_entity_id;
  v_work.was := p_attempt.state;
  return v_work;
end
$$;

-- Notes a pulse of attempts that tell no times, one row a stage. p_stage_ids: one an attempt.
create function millrace.note_pulses(p_outcome text, p_stage_ids int[])
as $$
insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n)
select v_now, s.pipeline_id, s.id, p_outcome, i.n
from (
  select u.id, count(*) as n
  from unnest(p_stage_ids) u(id)
  group by u.id) i
join millrace.stages s on s.id = i.id;
$$;

-- Adds up one kind of usage, such as cost_usd; null when none tells it. Strict: free without usage.
create function millrace.sum_usage(p_usages jsonb[], p_kind text) returns numeric
immutable strict
as $$
select sum((u.value ->> p_kind)::numeric)
from unnest(p_usages) u(value)
where jsonb_typeof(u.value -> p_kind) = 'number'
  and (u.value ->> p_kind)::numeric > 0
$$;

-- Projects changes of one stage onto the entities.
create function millrace.project(p_stage_id int, p_changes millrace.change[])
as $$
perform millrace.project_entities(s.pipeline_id, 'settle', s.name, p_changes, null, null)
from millrace.stages s
where s.id = p_stage_id;
$$;

-- Shows a stage in one state on the entities of runs, since p_at where it has a time.
create function millrace.show_stage(
  p_stage_id int, p_run_ids bigint[], p_status text, p_at timestamptz default null,
  p_job_id text default null
)
as $$
perform millrace.project(p_stage_id, array(
  select millrace.change_of(r.entity_id, p_status, p_job_id,
    p_started_at => case p_status when 'started' then p_at end,
    p_completed_at => case p_status when 'skipped' then p_at end)
  from millrace.runs r
  where r.id = any (p_run_ids)));
$$;

-- Shows the latest runs of held entities, where the pipeline has one status column.
create function millrace.show_status(p_pipeline_id int, p_entity_ids text[])
as $$
if cardinality(p_entity_ids) > 0 and (
    select p.projection = 'status'
    from millrace.pipelines p
    where p.id = p_pipeline_id) then
  perform millrace.project_entities(p_pipeline_id, 'settle', null, array(
    select millrace.change_of(i, 'queued')
    from unnest(p_entity_ids) i), null, null);
end if;
$$;

-- started → waiting for an external job, under the stage's deadline and poll interval.
create function millrace.wait(p_stage_id int, p_items millrace.work[])
as $$
declare
  v_changes millrace.change[];
begin
  with waiting as (
    update millrace.attempts a
    set state = 'waiting', queue_at = null, service = i.service, job_id = i.job_id,
      deadline_at = v_now + coalesce(s.deadline, interval '10 minutes'),
      poll_at = v_now + s.poll_every
    from unnest(p_items) i, millrace.stages s
    where a.id = any (array[i.attempt_id]) and a.state = i.was and s.id = p_stage_id
    returning i.entity_id, a.job_id, a.retry_count, a.started_at
  )
  select array_agg(row(w.entity_id, 'started', w.job_id, null, null, w.retry_count, w.started_at,
    null, null)::millrace.change)
  into v_changes
  from waiting w;
  perform millrace.project(p_stage_id, v_changes);
  -- Its children may all have ended while it was still spawning: the tally makes somebody look.
  insert into millrace.child_tallies (fan_out_id)
  select f.id
  from unnest(p_items) i
  cross join lateral (
    select o.id from millrace.fan_outs o where o.attempt_id = i.attempt_id offset 0) f
  where i.service = 'children';
end
$$;

-- Adds attempts of a stage that wait for what the engine does itself; p_job_id: else their own id.
create function millrace.add_waiting(
  p_stage_id int, p_run_ids bigint[], p_service text, p_job_id text default null
) returns setof millrace.attempts
as $$
return query
insert into millrace.attempts (id, run_id, stage_id, number, parent_id, state, created_at,
  started_at, deadline_at, late_at, service, job_id)
overriding system value
select i.id, i.run_id, p_stage_id, coalesce(l.number, 0) + 1,
  case when not l.superseded then l.id end, 'waiting', v_now, v_now, v_now + s.deadline,
  v_now + s.sla, p_service, coalesce(p_job_id, i.id::text)
from (
  select r.id as run_id, nextval('millrace.attempts_id_seq') as id
  from (select u.id from unnest(p_run_ids) u(id) order by u.id) r) i
join millrace.stages s on s.id = p_stage_id
left join lateral (
  select a.id, a.number, a.superseded
  from millrace.attempts a
  where a.run_id = i.run_id and a.stage_id = p_stage_id
  order by a.number desc
  limit 1) l on true
returning *;
$$;

-- started → queued without costing an attempt. The third release in a row fails it, or a row might
-- be released for ever. A release with an error means that the function reached a limit of CPU or
-- memory: the attempt runs alone from then on.
create function millrace.release(p_stage_id int, p_items millrace.work[]) returns int[]
as $$
declare
  v_changes millrace.change[];
  v_grouped bigint[];
  v_tired millrace.work[];
begin
  with released as (
    update millrace.attempts a
    set state = 'queued', token = null, started_at = null, queue_at = v_now,
      isolated = a.isolated or i.error is not null,
      releases = a.releases + (i.error is null)::int
    from unnest(p_items) i
    where a.id = any (array[i.attempt_id])
      and a.state = i.was
      and case when i.error is null then a.releases < 2 else not a.isolated end
    returning i.entity_id, a.retry_count, a.run_id, a.concurrency_group
  )
  select array_agg(row(r.entity_id, 'queued', null, null, null, r.retry_count, null, null,
      null)::millrace.change),
    array_agg(r.run_id) filter (where r.concurrency_group is not null)
  into v_changes, v_grouped
  from released r;
  if v_grouped is not null then
    perform millrace.assign_groups(p_stage_id, v_grouped);
  end if;
  perform millrace.project(p_stage_id, v_changes);
  v_tired := array(
    select jsonb_populate_record(i, jsonb_build_object('outcome', 'failed', 'result', null,
      'service', null, 'job_id', null, 'error', coalesce(i.error, '{"code": "released",
        "message": "released by three workers in a row without a result"}')))
    from unnest(p_items) i
    join millrace.attempts a on a.id = any (array[i.attempt_id])
    where a.state = 'started');
  if cardinality(v_tired) > 0 then
    perform millrace.fail(p_stage_id, v_tired);
  end if;
  return array[p_stage_id];
end
$$;

-- Gives up the children of these runs at these stages, or at all of them.
create function millrace.abandon_fan_outs(p_run_ids bigint[], p_stage_ids int[])
as $$
update millrace.fan_outs f
set state = 'abandoned'
where f.run_id = any (p_run_ids)
  and (p_stage_ids is null or f.stage_id = any (p_stage_ids))
  and f.state = 'open';
$$;

-- queued | started | waiting → cancelled for locked runs, at all or some stages; the caller
-- projects the changes last.
create function millrace.cancel_attempts(p_run_ids bigint[], p_stage_ids int[])
returns millrace.cancelled[]
as $$
declare
  v_cancelled millrace.cancelled[];
begin
  perform from millrace.attempts a
  where a.run_id = any (p_run_ids)
    and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
    and a.state = 'queued'
  order by a.id + 0
  for update;
  with cancelled as (
    update millrace.attempts a
    set state = 'cancelled', finished_at = millrace.now(), queue_at = null, poll_at = null,
      deadline_at = null, late_at = null,
      error = '{"code": "cancelled", "message": "cancelled"}'
    from millrace.runs r
    where a.run_id = any (p_run_ids) and r.id = a.run_id
      and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
      and a.state < 'completed'
    returning a.stage_id, row(r.entity_id, 'failed', a.job_id, null, 'cancelled', a.retry_count,
      a.started_at, null, null)::millrace.change as change
  )
  select coalesce(array_agg(row(c.stage_id, c.change)::millrace.cancelled), '{}') into v_cancelled
  from cancelled c;
  perform millrace.note_pulses('cancelled', array(select c.stage_id from unnest(v_cancelled) c));
  perform millrace.note_pulses('unstarted', array(
    select c.stage_id from unnest(v_cancelled) c where (c.change).started_at is null));
  perform millrace.abandon_fan_outs(p_run_ids, p_stage_ids);
  return v_cancelled;
end
$$;

-- Projects cancelled attempts onto their entities.
create function millrace.project_cancelled(p_cancelled millrace.cancelled[])
as $$
perform millrace.project(s.id, s.changes)
from (
  select c.stage_id as id, array_agg(c.change) as changes
  from unnest(p_cancelled) c
  group by c.stage_id
  order by c.stage_id) s;
$$;

-- Skips a stage in these runs with a reason, and begins the stages that follow. A stage on demand
-- is not shown as skipped.
create function millrace.skip_stage(p_stage_id int, p_run_ids bigint[], p_why jsonb)
returns int[]
as $$
perform millrace.add_skipped(array[p_stage_id], p_run_ids, p_why);
if not p_why ? 'on_demand' then
  perform millrace.show_stage(p_stage_id, p_run_ids, 'skipped', millrace.now());
end if;
return millrace.continue_after_skip(p_stage_id, p_run_ids);
$$;

-- Adds skipped attempts to these runs at those of the stages that are not done; returns these, for
-- the caller to show.
create function millrace.add_skipped(p_stage_ids int[], p_run_ids bigint[], p_why jsonb)
returns int[]
as $$
declare
  v_skipped int[];
begin
  with skipped as (
    insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
    select r.id, vs.stage_id, coalesce(h.number, 0) + 1, 'skipped', v_now, v_now,
      case when vs.otherwise = 'skip_dependents' and p_why ->> 'code' <> 'failed'
          and not p_why ? 'ended'
        then p_why || '{"dependents": true}' else p_why end
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id and vs.stage_id = any (p_stage_ids)
    cross join lateral (
      select max(a.number) as number,
        bool_or(a.state in ('completed', 'skipped') and not a.superseded) as is_done
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = vs.stage_id) h
    where r.id = any (p_run_ids)
      and h.is_done is not true
    order by r.id, vs.position
    returning stage_id
  )
  select array_agg(k.stage_id) into v_skipped from skipped k;
  perform millrace.note_pulses('skipped', v_skipped);
  return array(select distinct s from unnest(v_skipped) s order by s);
end
$$;

-- Begins what follows a skipped stage and finishes runs, unless a user's trigger has ended the run
-- or started the stage over.
create function millrace.continue_after_skip(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
      and (
        select a.id
        from millrace.attempts a
        where a.run_id = r.id and a.stage_id = p_stage_id and a.state = 'skipped'
          and not a.superseded
        limit 1) is not null
    order by r.id);
  v_wake int[];
begin
  v_wake := millrace.hook_advance(p_stage_id, v_runs, true);
  perform millrace.finish_runs(p_stage_id, v_runs);
  perform millrace.show_status(r.pipeline_id, array_agg(r.entity_id))
  from millrace.runs r
  where r.id = any (v_runs) and r.status = 'completed'
  group by r.pipeline_id;
  return v_wake;
end
$$;

-- Follows a failure for good with a skip, unless a user's trigger has started the stage over.
create function millrace.skip_failed_stage(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
      and (
        select millrace.is_last_word(a)
        from millrace.attempts a
        where a.run_id = r.id and a.stage_id = p_stage_id and a.state = 'failed'
        order by a.number desc
        limit 1)
    order by r.id);
begin
  perform millrace.add_skipped(array[p_stage_id], v_runs,
    '{"code": "failed", "message": "the stage failed, and the run goes on without it"}');
  -- by key
  update millrace.attempts a
  set parent_id = (
    select o.id
    from millrace.attempts o
    where o.run_id = a.run_id and o.stage_id = p_stage_id and o.number = a.number - 1)
  where a.run_id = any (v_runs) and a.stage_id = p_stage_id and a.state = 'skipped'
    and not a.superseded;
  return millrace.continue_after_skip(p_stage_id, v_runs);
end
$$;
