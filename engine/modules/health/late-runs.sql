-- Returns live attempts that are past the bound of their stage run, the first p_most to become
-- late. A view in its place could not set the planner, and would read all attempts of a large
-- project.
create function millrace.late_attempts(p_most int)
returns table (
  id bigint, run_id bigint, stage_id int, state millrace.attempt_state, late_at timestamptz
)
stable rows 100
set plan = in_order
as $$
return query
select a.id, a.run_id, a.stage_id, a.state, a.late_at
from millrace.attempts a
where a.late_at <= v_now
order by a.late_at
limit p_most;
$$;

-- Lists runs that have been at a stage, retries included, for longer than its bound: the first
-- 10,000 to become late.
-- late_at: when the run became late, by the bound that the stage had when it became ready.
-- sla: the bound that the stage has now.
create view millrace.late_runs as
select p.name as pipeline, s.name as stage, a.run_id, (
    -- A look-up by key for each run: a join could read all runs.
    select r.entity_id
    from millrace.runs r
    where r.id = a.run_id) as entity_id, a.id as attempt_id, a.state, s.sla, a.late_at
from millrace.late_attempts(10000) a
join millrace.stages s on s.id = a.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
order by a.late_at;

-- Counts late runs by stage, among the first 10,001 of all stages to become late.
-- longest: the run that became late first.
create view millrace.late_counts (pipeline_id, stage_id, late, longest) as
select s.pipeline_id, s.id, count(*), (array_agg(l.run_id order by l.late_at))[1]
from millrace.late_attempts(10001) l
join millrace.stages s on s.id = l.stage_id
group by 1, 2;
