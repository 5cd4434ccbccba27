-- Retrying runs that failed or were cancelled

-- Raises MR004 where a stage that is to run in these locked runs needs a result that pruning has
-- deleted.
-- p_anew: the stages that start over. Their own deleted results do not matter.
create function millrace.refuse_deleted(p_run_ids bigint[], p_anew int[] default '{}')
set plan = by_key
as $$
  v_gone record;

select p.name as pipeline, r.entity_id, s.name as stage, n.name as need, d.deleted_after into v_gone
from unnest(p_run_ids) i(id)
-- by key
cross join lateral (
  select a.stage_id, a.deleted_after
  from millrace.done_attempts a
  where a.run_id = any (array[i.id])
  offset 0) d
cross join lateral (
  select o.* from millrace.runs o where o.id = any (array[i.id]) offset 0) r
join millrace.pipelines p on p.id = r.pipeline_id
join millrace.version_stages vs
  on vs.version_id = r.version_id and d.stage_id = any (vs.needs)
join millrace.stages s on s.id = vs.stage_id
join millrace.stages n on n.id = d.stage_id
where d.deleted_after is not null
  and d.stage_id <> all (p_anew)
  and (vs.stage_id = any (p_anew)
    or not vs.on_demand and not exists (
      select from millrace.done_attempts o
      where o.run_id = any (array[i.id]) and o.stage_id = vs.stage_id))
order by i.id, vs.position
limit 1;
if found then
  raise exception
    'MR004: stage % of entity % needs the result of %, which was deleted after % days',
    v_gone.stage, v_gone.entity_id, v_gone.need, v_gone.deleted_after
    using hint = format('Start the whole row anew: '
      'select millrace.start(%L, %L).', v_gone.pipeline, v_gone.entity_id);
end if;
$$;

-- Begins a stage again in those of the locked runs that are running. Returns the stages that got
-- work.
create function millrace.begin_again(p_stage_id int, p_run_ids bigint[]) returns int[]
as $$
  v_kind text := (select s.kind from millrace.stages s where s.id = p_stage_id);

p_run_ids := millrace.running_of(p_run_ids);
perform millrace.hook_stages_left(p_run_ids, array[p_stage_id], 'retried')
where v_kind in ('map', 'pipeline');
return millrace.hook_begin_kind(v_kind, p_stage_id, p_run_ids);
$$;

-- Reopens locked runs: failed | cancelled | completed → running. Retries all their failed and
-- cancelled stages, since a run cannot end while one is left. Returns the stages that got work.
-- p_except: stages that are not retried.
create function millrace.reopen_runs(p_run_ids bigint[], p_except int[] default '{}')
returns int[]
as $$
  v_stage record;
  v_wake int[] := '{}';

update millrace.runs r
set status = 'running', finished_at = null, failed_stage_id = null, error_code = null,
  ended_as = null
where r.id = any (p_run_ids);
perform millrace.recount_parents(p_run_ids);
for v_stage in
  select a.stage_id, array_agg(a.run_id order by a.run_id) as run_ids
  from millrace.attempts a
  where a.run_id = any (p_run_ids)
    and a.state in ('failed', 'cancelled')
    and millrace.is_newest_attempt(a)
    and a.stage_id <> all (p_except)
  group by a.stage_id
  order by a.stage_id
loop
  -- A retry may fail at once and end its run.
  v_wake := v_wake || millrace.begin_again(v_stage.stage_id, v_stage.run_ids);
end loop;
return v_wake;
$$;

-- Retries locked runs that failed or were cancelled, and wakes their stages. Leaves out a run that
-- is not its entity's latest, or has no failed or cancelled stage. Returns how many it retried.
create function millrace.retry_runs(p_run_ids bigint[]) returns int
as $$
  v_wake int[];

p_run_ids := array(
  select r.id
  from millrace.runs r
  -- The state is read under the locks, since the entity may have been queued anew.
  where r.id = any (p_run_ids)
    and r.status in ('failed', 'cancelled')
    and millrace.is_latest_run(r.id)
    and exists (
      select from millrace.attempts a
      where a.run_id = r.id
        and a.state in ('failed', 'cancelled')
        and millrace.is_newest_attempt(a))
  order by r.id);
perform millrace.refuse_deleted(p_run_ids);
v_wake := millrace.reopen_runs(p_run_ids);
perform millrace.wake(v_wake || millrace.begin_branches(p_run_ids));
return cardinality(p_run_ids);
$$;
