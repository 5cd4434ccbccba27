-- Queueing a stage, by a status that a user writes or by start()

-- Returns the key under which a column's value is sorted; '' for null. A value that is too long for
-- an index entry is cut to 80 characters, with its hash.
-- p_part: `host` takes the host of a URL in lower case; a value that is no URL stays itself.
create function millrace.group_key(p_value text, p_part text) returns text
immutable
as $$
select case when octet_length(k) > 400 then left(k, 80) || md5(k) else k end
from (
  select coalesce(
    case when p_part = 'host' then
      rtrim(lower((regexp_match(
        btrim(p_value),
        '^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\s]+)(?::\d*)?(?:[/?#]|$)',
        'i'))[1]), '.')
    end, p_value, '') as k) v
$$;

-- Returns the concurrency group of each run at a stage, in the order of p_run_ids: 0 and the key of
-- its row. A copy for which a person has edited the key's column has a group by the edited value.
-- p_keys: the keys, in the same order; null reads them from the rows.
create function millrace.groups_of_runs(
  p_stage millrace.stages, p_run_ids bigint[], p_keys text[] default null
) returns text[]
as $$
  v_key jsonb := p_stage.limits -> 'concurrency';
  v_runs record;

select array_agg(r.entity_id order by i.ordinal) as ids,
  array_agg(r.edited -> (v_key ->> 'column') order by i.ordinal) as edited
into v_runs
from unnest(p_run_ids) with ordinality i(id, ordinal)
left join millrace.runs r on r.id = any (array[i.id])
where p_keys is null;
return array(
  select '0' || case when e.edited is null then coalesce(e.key, '')
    else millrace.group_key(e.edited #>> '{}', v_key ->> 'part') end
  from unnest(v_runs.edited, coalesce(p_keys, (millrace.values_of_entities(
    p_stage.pipeline_id, v_runs.ids, false, p_stage.name)).keys))
    with ordinality e(edited, key, ordinal)
  order by e.ordinal);
$$;

-- Writes the concurrency group of attempts that were just queued at a stage. The group stays until
-- an attempt is queued again, even where the row's column changes meanwhile.
create function millrace.assign_groups(p_stage_id int, p_run_ids bigint[])
as $$
update millrace.attempts a
set concurrency_group = u.concurrency_group
from millrace.stages s
cross join unnest(p_run_ids, millrace.groups_of_runs(s, p_run_ids))
  u(id, concurrency_group)
where s.id = p_stage_id and s.has_groups and a.run_id = u.id
  -- by key
  and a.run_id = any (p_run_ids) and a.stage_id = p_stage_id and a.state = 'queued';
$$;

-- Adds a queued attempt of a stage to each run. The attempt before becomes its parent unless it was
-- superseded.
-- p_start: the next claim charges the attempt to its tenant's quota.
-- p_keys: the concurrency keys of the rows; null where they are not known.
create function millrace.queue_attempts(
  p_stage_id int, p_run_ids bigint[], p_start boolean default false, p_keys text[] default null
)
as $$
  v_again boolean := exists (
    select from millrace.attempts a
    where a.run_id = any (p_run_ids) and a.stage_id = p_stage_id);
  v_stage millrace.stages := (select s from millrace.stages s where s.id = p_stage_id);

insert into millrace.attempts (run_id, stage_id, number, parent_id, queue_at, created_at, late_at,
  uncounted, concurrency_group)
select r.id, p_stage_id, coalesce(l.number, 0) + 1, case when not l.superseded then l.id end,
  v_now, v_now, v_now + v_stage.sla, p_start and v_stage.has_quota, r.concurrency_group
from unnest(p_run_ids, case when v_stage.has_groups
    then millrace.groups_of_runs(v_stage, p_run_ids, p_keys) end) r(id, concurrency_group)
left join lateral (
  select a.id, a.number, a.superseded
  from millrace.attempts a
  where v_again and a.run_id = r.id and a.stage_id = p_stage_id
  order by a.number desc
  limit 1) l on true
order by r.id;
$$;

-- Begins a stage of locked runs without a look at its needs or thresholds. Returns the stages that
-- got work.
-- p_by_name: a start names the stage, so that its conditions do not count.
create function millrace.begin_at_once(
  p_run_ids bigint[], p_stage_id int, p_by_name boolean
) returns int[]
as $$
perform millrace.hook_before_stage(p_run_ids, p_stage_id);
if (
    select bool_and(vs.unconditional)
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    where r.id = any (p_run_ids)) then
  perform millrace.queue_attempts(p_stage_id, p_run_ids);
  return array[p_stage_id];
end if;
return millrace.hook_begin(p_stage_id, p_run_ids, p_by_name);
$$;

-- Begins all stages that may begin in runs, and clears the columns of stages without an attempt.
-- Returns the stages that got work.
create function millrace.begin_branches(p_run_ids bigint[]) returns int[]
as $$
perform millrace.clear_pending(p_run_ids);
return millrace.hook_advance(null, p_run_ids);
$$;

-- Cancels the live attempts of stages in locked runs and marks all attempts there as superseded.
-- The caller projects. The parents of child runs count their children anew.
create function millrace.supersede(p_run_ids bigint[], p_stage_ids int[])
as $$
perform millrace.cancel_attempts(p_run_ids, p_stage_ids);
update millrace.attempts a
set superseded = true
where a.run_id = any (p_run_ids) and a.stage_id = any (p_stage_ids)
  and not a.superseded;
perform millrace.hook_stages_left(p_run_ids, p_stage_ids, 'superseded');
perform millrace.recount_parents(p_run_ids);
$$;

-- Deletes stages that start over from the list of those whose results the row brought along.
create function millrace.forget_given(p_run_ids bigint[], p_stage_ids int[])
as $$
update millrace.runs r
set given = array(select g from unnest(r.given) g where g <> all (p_stage_ids))
where r.id = any (p_run_ids)
  and r.given && p_stage_ids;
$$;

-- Starts a stage and its dependents over in locked live runs. Returns the stages that got work.
-- Raises MR005 where a run's version has no such stage.
create function millrace.start_over(
  p_run_ids bigint[], p_stage_id int, p_by_name boolean
) returns int[]
as $$
  v_lacking record;
  v_version record;
  v_closure int[];
  v_wake int[] := '{}';

select count(*) as runs, min(r.entity_id) as entity_id into v_lacking
from millrace.runs r
where r.id = any (p_run_ids)
  and not exists (
    select from millrace.version_stages vs
    where vs.version_id = r.version_id and vs.stage_id = p_stage_id);
if v_lacking.runs > 0 then
  raise exception
    'MR005: stage % is not part of the version that %',
    (select s.name from millrace.stages s where s.id = p_stage_id),
    format(case v_lacking.runs when 1 then '1 live run began with (entity %2$s)'
      else '%s live runs began with (entity %s, …)' end, v_lacking.runs, v_lacking.entity_id)
    using hint = 'Let the runs finish, or cancel them first: select millrace.cancel(run).';
end if;
for v_version in
  select r.pipeline_id, vs.dependents, array_agg(r.id order by r.id) as runs,
    array_agg(r.entity_id) as entity_ids
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  where r.id = any (p_run_ids)
  group by r.pipeline_id, vs.version_id, vs.dependents
  order by vs.version_id
loop
  v_closure := v_version.dependents || p_stage_id;
  perform millrace.supersede(v_version.runs, v_closure);
  perform millrace.forget_given(v_version.runs, v_closure);
  perform millrace.project_queued(
    v_version.pipeline_id, p_stage_id, v_version.dependents, v_version.entity_ids);
  v_wake := v_wake || millrace.begin_at_once(
    millrace.runs_to_begin(p_stage_id, v_version.runs), p_stage_id, p_by_name);
end loop;
return v_wake;
$$;

-- Locks the live runs of entities. Returns the locked runs and their entities. A transition may end
-- a run without a lock on its entity, so only a run that is locked itself is surely live.
create function millrace.lock_live_runs(
  p_pipeline_id int, p_entity_ids text[], out run_ids bigint[], out entity_ids text[]
)
as $$
select coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.entity_id), '{}')
from (
  select r.id, r.entity_id
  from millrace.runs r
  where r.pipeline_id = p_pipeline_id and r.entity_id = any (p_entity_ids)
    and r.status = 'running'
  -- by key
  order by r.id + 0
  for no key update) l
$$;

-- Begins a stage in new runs, and the other stages that begin a run.
-- p_keys: the concurrency keys of the runs' rows at the stage; null where they are not known.
-- p_dirty_ids: the entities with columns to clear.
-- p_by_name: the start names the stage, so that its conditions do not count.
-- p_alone: every run begins with this stage and no other.
-- begun: the runs in which the stage began.
-- ready: the stages at which attempts became ready.
create function millrace.begin_new_runs(
  p_stage millrace.version_stages, p_run_ids bigint[], p_keys text[], p_dirty_ids text[],
  p_by_name boolean, p_alone boolean, out begun bigint[], out ready int[]
)
as $$
begun := p_run_ids;
ready := '{}';
if p_dirty_ids <> '{}' then
  perform millrace.project_queued(s.pipeline_id, s.id, p_stage.dependents, p_dirty_ids)
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id and p.projection <> 'none'
  where s.id = p_stage.stage_id;
  if found then
    -- A user's trigger may have ended some of the runs.
    begun := millrace.runs_to_begin(p_stage.stage_id, p_run_ids);
  end if;
end if;
if not p_stage.is_first then
  perform millrace.hook_before_stage(begun, p_stage.stage_id);
end if;
if begun = '{}' then
  return;
elsif p_stage.unconditional then
  perform millrace.queue_attempts(
    p_stage.stage_id, begun, true, case when begun = p_run_ids then p_keys end);
  ready := array[p_stage.stage_id];
else
  ready := millrace.hook_begin(
    p_stage.stage_id, begun, p_by_name, p_dirty_ids = '{}');
end if;
if not p_alone then
  ready := ready || millrace.begin_branches(begun);
end if;
$$;

-- Queues a stage for locked entities and wakes the stage. An entity without a live run gets a new
-- one. In a live run the stage starts over with its dependents.
-- p_dirty_ids: the entities with columns to clear.
-- p_start: `named`: the stage's conditions do not count. `due`: they count. `written`: they count
-- where runs begin with the stage, unless the stage is on demand.
-- p_done_before: a stage. Rows without a run have been through all stages before it. Null: they
-- have been through none.
create function millrace.queue_stage(
  p_pipeline_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[],
  p_start text default 'written', p_done_before int default null
)
as $$
  v_pipeline millrace.pipelines;
  v_stage millrace.version_stages;
  v_on record;
  v_by_name boolean;
  v_live bigint[] := '{}';
  v_over text[];
  v_made record;
  v_new bigint[];
  v_begun record;
  v_wake int[] := '{}';

select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
select vs.* into v_stage
from millrace.version_stages vs
where (vs.version_id, vs.stage_id) = (v_pipeline.current_version_id, p_stage_id);
select s.name, s.has_quota, v_stage.is_first and (
    select count(*) = 1
    from millrace.version_stages vs
    where vs.version_id = v_stage.version_id and vs.is_first) as alone
into v_on
from millrace.stages s
where s.id = p_stage_id;
if v_stage.stage_id is null then
  raise exception 'MR004: stage % is not part of the pipeline''s current version', v_on.name
    using hint = 'It was dropped from the definition; queue another stage.';
end if;
v_by_name := p_start = 'named'
  or p_start = 'written' and (not v_stage.is_first or v_stage.on_demand);
-- A user's trigger on the same statement may have deleted some of the rows.
if current_setting('millrace.rows_gone', true) = 'on' then
  p_entity_ids := millrace.lock_entities(p_pipeline_id, p_entity_ids, true);
  p_dirty_ids := array(select d from unnest(p_dirty_ids) d where d = any (p_entity_ids));
end if;
-- No other session can begin a run meanwhile, since the entities are locked.
if exists (
    select from millrace.runs r
    where r.pipeline_id = p_pipeline_id and r.entity_id = any (p_entity_ids)
      and r.status = 'running') then
  select l.* into v_live, v_over
  from millrace.lock_live_runs(p_pipeline_id, p_entity_ids) l;
  p_entity_ids := array(
    select e from unnest(p_entity_ids) e where e not in (select unnest(v_over)));
  p_dirty_ids := array(
    select d from unnest(p_dirty_ids) d where d not in (select unnest(v_over)));
end if;
v_made := millrace.new_runs(v_pipeline, p_entity_ids, v_on.name);
v_new := v_made.ids;
if not v_on.alone or p_done_before is not null then
  v_new := millrace.hook_runs_made(v_stage, v_new, p_done_before);
end if;
if v_on.has_quota then
  perform millrace.hook_before_start(
    v_pipeline, case when v_pipeline.quota is null then v_live || v_new else v_live end);
end if;
if v_live <> '{}' then
  v_wake := millrace.start_over(v_live, p_stage_id, v_by_name);
end if;
v_begun := millrace.begin_new_runs(v_stage, v_new,
  case when v_new = v_made.ids then v_made.keys end, p_dirty_ids, v_by_name, v_on.alone);
if v_on.has_quota then
  perform millrace.hook_started(
    case when v_on.alone and v_stage.unconditional then v_live
      else v_live || v_begun.begun end, v_now);
end if;
perform millrace.hook_entities_changed(p_pipeline_id, p_entity_ids);
perform millrace.wake(v_wake || v_begun.ready);
$$;
