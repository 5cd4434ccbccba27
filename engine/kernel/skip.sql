-- Skipping: a stage is done without a result

-- Skips a stage in these runs, begins the stages that follow, and completes the runs that are done.
-- Returns the stages that got work. A stage on demand does not become `skipped` on the row. A stage
-- that failed stays `failed` there, and the skipped attempt has the failed one as its parent.
-- p_why: the reason, the skipped attempt's error.
create function millrace.skip_stage(p_stage_id int, p_run_ids bigint[], p_why jsonb)
returns int[]
as $$
  v_wake int[];

perform millrace.add_skipped(array[p_stage_id], p_run_ids, p_why);
if p_why ->> 'code' = 'failed' then
  -- by key
  update millrace.attempts a
  set parent_id = (
    select o.id
    from millrace.attempts o
    where o.run_id = a.run_id and o.stage_id = p_stage_id and o.number = a.number - 1)
  where a.run_id = any (p_run_ids) and a.stage_id = p_stage_id and a.state = 'skipped'
    and not a.superseded;
elsif not p_why ? 'on_demand' then
  perform millrace.show_stage(p_stage_id, p_run_ids, 'skipped', v_now);
end if;
-- A user's trigger may have ended a run or started the stage over. runs_at() leaves such runs out.
p_run_ids := millrace.runs_at(p_stage_id, p_run_ids, 'skipped');
v_wake := millrace.hook_advance(p_stage_id, p_run_ids, true);
perform millrace.finish_runs(p_stage_id, p_run_ids);
perform millrace.show_status(r.pipeline_id, array_agg(r.entity_id))
from millrace.runs r
where r.id = any (p_run_ids) and r.status = 'completed'
group by r.pipeline_id;
return v_wake;
$$;

-- Adds skipped attempts to these runs, at those of the stages that are not done. Returns the stages
-- that got one, whose state the caller projects.
create function millrace.add_skipped(p_stage_ids int[], p_run_ids bigint[], p_why jsonb)
returns int[]
as $$
  v_skipped int[];

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
$$;

-- Returns those of the runs that are running and in which the stage is in this state.
create function millrace.runs_at(
  p_stage_id int, p_run_ids bigint[], p_state millrace.attempt_state
) returns bigint[]
as $$
return array(
  select r
  from unnest(millrace.running_of(p_run_ids)) r
  where (
    select a.state
    from millrace.attempts a
    where a.run_id = r and a.stage_id = p_stage_id and not a.superseded
    order by a.number desc
    limit 1) = p_state);
$$;
