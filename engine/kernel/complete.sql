-- Completing: results, next stages, runs and projection of a batch, in the caller's transaction

-- Completes attempts of one stage: started | waiting | queued → completed. Returns the stages that
-- got work. Raises MR000 where a uniform batch has changed since its locks; record_items() then
-- records it item by item.
-- p_uniform_limit: the stage's limit of a result, from lock_uniform_batch(); null for other
-- batches.
-- p_run_ids: the runs of the items; null reads them from p_items.
create function millrace.complete(
  p_stage_id int, p_items millrace.work[], p_uniform_limit int default null,
  p_run_ids bigint[] default null
) returns int[]
as $$
  v_on record;
  v_next record;
  v_stages int[];
  v_changes millrace.change[];
  v_is_projected boolean;

select s.pipeline_id, s.name, s.apply is not null or s.has_ends as is_uneven,
  s.result_limit_bytes, s.has_quota or s.limits ? 'shared' as is_paid,
  s.reports_to_parent or s.has_conditional_followers as followed
into v_on
from millrace.stages s
where s.id = p_stage_id;
if p_run_ids is null then
  p_run_ids := array(select i.run_id from unnest(p_items) i);
end if;
v_next := millrace.advance(p_stage_id, p_run_ids);
v_stages := v_next.followers;
if not v_next.all_ready then
  v_stages := array(select distinct r.stage_id from unnest(v_next.ready) r);
end if;
if v_next.has_groups then
  perform millrace.assign_groups(s, case when v_next.all_ready then p_run_ids
    else array(
      select r.run_id from unnest(v_next.ready) r where r.stage_id = s) end)
  from unnest(v_stages) s;
end if;
v_changes := millrace.close_completed(p_items, v_now, p_uniform_limit is not null,
  case when v_next.all_ready then v_next.names end, v_next.ready);
-- A new definition may have changed the stage since the locks.
if p_uniform_limit is not null and (v_on.is_uneven
  or v_on.result_limit_bytes < p_uniform_limit
  or cardinality(v_changes) is distinct from cardinality(p_items)) then
  raise exception 'the batch is not uniform' using errcode = 'MR000';
end if;
-- Where every run has queued a follower, no run can be completed.
if v_stages = '{}' or not v_next.all_ready then
  perform millrace.finish_runs(p_stage_id, p_run_ids);
end if;
v_is_projected := millrace.project_entities(
  v_on.pipeline_id, 'apply', v_on.name, v_changes, null, null);
if v_on.is_paid then
  perform millrace.hook_spent(s, p_items) from millrace.stages s where s.id = p_stage_id;
end if;
if v_on.followed then
  return v_stages || millrace.hook_advance(p_stage_id, p_run_ids);
end if;
return v_stages;
$$;

-- Writes the attempts of complete() and their pulses. Returns the changes to project.
-- p_uniform: only writes attempts that are started under their item's token.
-- p_names: the stages that became ready in every run; null reads p_ready.
-- p_ready: the stages that became ready, by run.
create function millrace.close_completed(
  p_items millrace.work[], p_now timestamptz, p_uniform boolean, p_names text[],
  p_ready millrace.ready[]
) returns millrace.change[]
as $$
  v_changes millrace.change[];
  v_run_ms real[];
  v_wait_ms real[];
  v_used millrace.used[];

with done as (
  update millrace.attempts a
  set state = 'completed', finished_at = p_now, started_at = coalesce(a.started_at, p_now),
    queue_at = null, poll_at = null, deadline_at = null, late_at = null,
    -- The job that brought the result may be one that an earlier attempt submitted.
    service = coalesce(i.service, a.service), job_id = coalesce(i.job_id, a.job_id),
    output = i.result, usage = i.usage, error = null
  from unnest(p_items) i
  -- by key
  where a.id = any (array[i.attempt_id])
    and a.state = i.was
    and (not p_uniform or a.state = 'started' and a.token = i.token)
  returning i.entity_id, a.job_id, i.result, a.retry_count, a.started_at, a.run_id,
    a.created_at, i.usage
)
select array_agg(c::millrace.change),
  array_agg(date_part('epoch', p_now - d.started_at) * 1000),
  array_agg(date_part('epoch', d.started_at - d.created_at) * 1000)
    filter (where d.retry_count = 0),
  array_agg(row(d.run_id, 'completed', d.usage)::millrace.used) filter (where d.usage is not null)
into v_changes, v_run_ms, v_wait_ms, v_used
from done d
-- The columns stand in the order of the type. change_of() would cost a hundredth of a transition.
cross join lateral (
  select d.entity_id, 'completed' as status, d.job_id, d.result, null as error, d.retry_count,
    d.started_at, p_now as completed_at, coalesce(p_names, (
      select array_agg(s.name)
      from unnest(p_ready) r
      join millrace.stages s on s.id = r.stage_id
      where r.run_id = d.run_id)) as queued) c;
insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n, run_ms, wait_ms)
select p_now, s.pipeline_id, s.id, 'completed', cardinality(v_changes), v_run_ms, v_wait_ms
from millrace.stages s
where s.id = p_items[1].stage_id and v_changes is not null;
perform millrace.note_usage(p_now, p_items[1].stage_id, v_used) where v_used is not null;
return v_changes;
$$;

-- Queues the unconditional followers of a stage that is done, where their other needs are done and
-- they have not begun.
-- ready: the stages that it queued in each run; null where no run had to be looked at.
-- followers: the unconditional followers of the stage.
-- names: their names.
-- has_groups: one of them has concurrency groups.
-- all_ready: every follower is queued in every run.
create function millrace.advance(
  p_stage_id int, p_run_ids bigint[],
  out ready millrace.ready[], out followers int[], out names text[], out has_groups boolean,
  out all_ready boolean
)
as $$
-- Most batches are of one version, with followers that need this stage alone. Then the runs' other
-- attempts need not be read.
with version as materialized (
  select distinct r.version_id as id from millrace.runs r
  where r.id = any (p_run_ids)
)
select coalesce(array_agg(distinct s.id), '{}'), coalesce(array_agg(distinct s.name), '{}'),
  coalesce(bool_or(s.has_groups), false),
  (select count(*) = 1 from version) and bool_and(cardinality(f.needs) = 1 and not exists (
    select from millrace.attempts a
    where a.run_id = any (p_run_ids) and a.stage_id = s.id))
into followers, names, has_groups, all_ready
from version v
join millrace.version_stages f on f.version_id = v.id
join millrace.stages s on s.id = f.stage_id
where p_stage_id = any (f.needs) and f.unconditional;
if followers = '{}' then
  all_ready := true;
elsif all_ready then
  insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
  select r.id, s.id, 1, v_now, v_now, v_now + s.sla
  from millrace.stages s
  cross join unnest(p_run_ids) r(id)
  where s.id = any (followers);
else
  with run as materialized (
    select r.id, r.version_id from millrace.runs r where r.id = any (p_run_ids)
  ), follower as materialized (
    select f.version_id, f.stage_id, f.needs, v_now + s.sla as late_at
    from millrace.version_stages f
    join millrace.stages s on s.id = f.stage_id
    where f.version_id in (select r.version_id from run r)
      and p_stage_id = any (f.needs) and f.unconditional
  ), added as (
    insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
    select r.id, f.stage_id, coalesce(h.number, 0) + 1, v_now, v_now, f.late_at
    from run r
    join follower f on f.version_id = r.version_id
    cross join lateral (
      select max(a.number) as number, bool_or(not a.superseded) as begun
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = f.stage_id) h
    where h.begun is not true
      and (cardinality(f.needs) = 1 or cardinality(f.needs) - 1 = (
        select count(*)
        from millrace.done_attempts n
        where n.run_id = r.id and n.stage_id = any (f.needs)
          and n.stage_id <> p_stage_id))
    order by r.id
    returning run_id, stage_id
  )
  select coalesce(array_agg(row(a.run_id, a.stage_id)::millrace.ready), '{}') into ready
  from added a;
  all_ready := cardinality(ready) = cardinality(followers) * cardinality(p_run_ids);
end if;
$$;
