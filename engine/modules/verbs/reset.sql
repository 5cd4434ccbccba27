-- Resetting: stages of a run, or its failed children, start over

-- Starts a stage of a locked run over, with all stages that depend on it. Without a stage, starts
-- the whole run over. Raises MR002 where a copy would begin a stage that writes rows or asks a
-- person: a copy takes the results of such stages over. Naming a stage on demand asks for it; any
-- other, and what depends on it, is skipped.
create function millrace.reset_one(
  p_run millrace.runs, p_stage millrace.version_stages, out wake int[], out did jsonb
)
as $$
  v_stages int[] := p_stage.dependents || p_stage.stage_id;

if p_stage.stage_id is null then
  v_stages := array(
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = p_run.version_id);
else
  perform millrace.forget_given(array[p_run.id], v_stages);
end if;
wake := millrace.reopen_run(p_run, v_stages);
perform millrace.refuse_copies(array[p_run.id], s.id)
from millrace.version_stages vs
join millrace.stages s on s.id = vs.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
where vs.version_id = p_run.version_id
  and (p.projection = 'status' or s.apply is not null or s.kind in ('manual', 'map', 'pipeline'))
  and not millrace.is_done(p_run.id, s.id)
  and s.id <> all (array(
    select unnest(d.dependents || d.stage_id)
    from millrace.version_stages d
    where d.version_id = p_run.version_id and d.on_demand
      and d.stage_id is distinct from p_stage.stage_id
      and not millrace.is_done(p_run.id, d.stage_id)));
if p_stage.on_demand then
  wake := wake || millrace.hook_begin(p_stage.stage_id,
    millrace.runs_ready_for(p_stage.stage_id, array[p_run.id]), true);
end if;
wake := wake || millrace.begin_branches(array[p_run.id]);
$$;

-- Retries the failed and cancelled children of a stage's newest fan-out, in a locked run. Where the
-- fan-out is over, starts the stages that need the stage over. Raises MR004 where the stage has no
-- fan-out.
-- did: the number of children.
create function millrace.reset_failed_children(
  p_run millrace.runs, p_stage millrace.version_stages, out wake int[], out did jsonb
)
as $$
  v_fan_out millrace.fan_outs;
  v_failed record;
  v_entities text[];
  v_stages int[];

select f.* into v_fan_out
from millrace.fan_outs f
where f.run_id = p_run.id and f.stage_id = p_stage.stage_id
order by f.id desc
limit 1;
select array_agg(r.id) as ids, array_agg(r.entity_id) as entities, count(*) as n
into v_failed
from millrace.runs r
where r.fan_out_id = v_fan_out.id and r.status in ('failed', 'cancelled');
if v_fan_out.id is null then
  raise exception 'MR004: this stage of run % has no children', p_run.id
    using hint = 'Only a map or pipeline stage that has spawned has any; '
      'use millrace.reset(run, stage).';
end if;
did := jsonb_build_object('children', v_failed.n);
if v_failed.n = 0 then
  return;
elsif v_fan_out.state = 'open' then
  -- The stage still waits, so its children are retried at once. Locked rows and runs are skipped.
  v_entities := millrace.lock_entities(v_fan_out.child_pipeline_id, v_failed.entities, false);
  did := jsonb_build_object('children', millrace.retry_runs(array(
    select r.id
    from millrace.runs r
    where r.id = any (v_failed.ids) and r.entity_id = any (v_entities)
    order by r.id
    for no key update skip locked)));
  return;
end if;
-- Only stages that need this one start over: a threshold that has begun a stage still holds.
v_stages := array(
  select distinct d
  from millrace.version_stages vs
  cross join unnest(vs.dependents || vs.stage_id) d
  where vs.version_id = p_run.version_id
    and p_stage.stage_id = any (vs.needs)) || p_stage.stage_id;
wake := millrace.reopen_run(p_run, v_stages);
-- Clears the row's pending stages before the stage begins. A stage that fails at once has stages on
-- demand skipped without a projection, and the row would keep their old values.
perform millrace.clear_pending(array[p_run.id]);
wake := wake || millrace.begin_again(p_stage.stage_id, array[p_run.id]);
wake := wake || millrace.begin_branches(array[p_run.id]);
$$;
