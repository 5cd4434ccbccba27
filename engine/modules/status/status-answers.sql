-- Answers the questions of a stage by a value that a person wrote into the rows. A write of rows
-- waits for no decision, whose transaction may wait for this row. Where another transaction has
-- locked the decision, its attempt is completed here, and the sweep closes the decision.
create function millrace.answer_by_value(
  p_pipeline_id int, p_stage_id int, p_value text, p_ids text[]
)
as $$
  v_decision jsonb := (
    select s.shows #> array['answers', p_value, 'decision']
    from millrace.stages s
    where s.id = p_stage_id);
  v_asked bigint[] := array(
    select a.id
    from millrace.runs r
    cross join lateral (
      select o.id
      from millrace.attempts o
      where o.run_id = r.id and o.stage_id = p_stage_id and o.state = 'waiting'
      offset 0) a
    where r.pipeline_id = p_pipeline_id and r.entity_id = any (p_ids)
      and r.status = 'running'
    order by a.id);
  v_free bigint[] := array(
    select d.attempt_id
    from public.millrace_decisions d
    where d.attempt_id = any (v_asked) and d.closed_at is null
    order by d.attempt_id
    for update skip locked);

update public.millrace_decisions d
set decision = v_decision
where d.attempt_id = any (v_free);
v_asked := array(select unnest(v_asked) except select unnest(v_free));
if v_asked = '{}' then
  return;
end if;
perform millrace.lock_runs(array(
  select a.run_id from millrace.attempts a where a.id = any (v_asked)));
perform millrace.wake((millrace.apply_outcomes(array(
  select millrace.work_on(a, r.entity_id, 'completed',
    jsonb_build_object('decision', v_decision, 'decided_by', null))
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id
  where a.id = any (v_asked) and a.state = 'waiting'
  order by a.id))).ready);
$$;

-- Takes questions of a stage back: skips the stage and its dependents, and completes the runs. The
-- rows show the value from which the runs began. The sweep closes the decisions.
create function millrace.take_question_back(
  p_pipeline_id int, p_stage_id int, p_ids text[]
)
as $$
  v_error constant jsonb := jsonb_build_object(
    'code', 'discarded', 'message', 'the question was taken back', 'on_demand', true);
  v_runs bigint[] := (millrace.lock_live_runs(p_pipeline_id, p_ids)).run_ids;
  v_asked int[];

with closed as (
  update millrace.attempts a
  set state = 'skipped', finished_at = v_now, deadline_at = null, poll_at = null,
    late_at = null, error = v_error
  where a.run_id = any (v_runs)
    and a.stage_id = p_stage_id and a.state = 'waiting'
  returning a.stage_id
)
select array_agg(c.stage_id) into v_asked from closed c;
perform millrace.note_pulses('skipped', v_asked);
perform millrace.add_skipped(array(
  select unnest(vs.dependents)
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  where r.id = any (v_runs)), v_runs, v_error);
perform millrace.finish_runs(vs.stage_id, array_agg(r.id))
from millrace.runs r
join millrace.version_stages vs on vs.version_id = r.version_id and vs.is_sink
where r.id = any (v_runs)
group by vs.stage_id;
perform millrace.show_status(p_pipeline_id, p_ids);
$$;
