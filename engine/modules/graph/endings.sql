-- Endings: a condition on a stage's result, or on the row, ends the run under a name

-- started | waiting | queued → completed for attempts that end their runs under a name. Skips the
-- other stages that are not done before the first projection, at which a user's trigger may queue
-- one of them anew.
create function millrace.complete_and_end(p_stage_id int, p_items millrace.work[], p_name text)
as $$
  v_runs bigint[] := array(select i.run_id from unnest(p_items) i);
  v_stages int[] := array(
    select distinct vs.stage_id
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = any (v_runs) and vs.stage_id <> p_stage_id);
  v_changes millrace.change[];
  v_stage_id int;

v_changes := millrace.close_completed(p_items, v_now, false, '{}', null);
-- Leaves out the stage itself: children of its fan-out that still run go on.
perform millrace.cancel_attempts(v_runs, v_stages);
perform millrace.end_runs(v_runs, 'completed', p_ended_as => p_name);
v_stages := millrace.add_skipped(v_stages, v_runs, jsonb_build_object(
  'code', 'skipped', 'message', 'the run ended as ' || p_name, 'ended', p_name));
-- Tallies the stages that are done for thresholds of the runs' parents.
insert into millrace.child_tallies (fan_out_id, stage_id, done)
select r.fan_out_id, s.id, count(*)
from millrace.runs r
cross join lateral (
  select o.stage_id
  from millrace.done_attempts o
  where o.run_id = r.id and (o.stage_id = p_stage_id or o.error ? 'ended')
  offset 0) d
join millrace.stages s on s.id = d.stage_id and s.reports_to_parent
where r.id = any (v_runs)
  and (r.fan_out_id is not null) is true
group by r.fan_out_id, s.id;
perform millrace.project(p_stage_id, v_changes);
foreach v_stage_id in array v_stages loop
  -- Leaves out runs whose row a user's trigger has started anew since.
  perform millrace.show_stage(v_stage_id, array(
    select r.id
    from millrace.runs r
    where r.id = any (v_runs) and r.ended_as is not null
      and (
        select d.error ? 'ended'
        from millrace.done_attempts d
        where d.run_id = r.id and d.stage_id = v_stage_id
        limit 1)
      and millrace.is_latest_run(r.id)
    order by r.id), 'skipped', v_now);
end loop;
perform millrace.hook_spent(s, p_items)
from millrace.stages s
where s.id = p_stage_id and (s.has_quota or s.limits ? 'shared');
$$;
