-- Runs that are longer at a stage than its bound now, from ready to done, retries included.
-- late_at: when it was over.
create view millrace.late_runs as
select p.name as pipeline, s.name as stage, a.run_id, r.entity_id, a.id as attempt_id, a.state,
  s.sla, a.late_at
from millrace.attempts a
join millrace.runs r on r.id = a.run_id
join millrace.stages s on s.id = a.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
where a.late_at <= (select millrace.now())
order by a.late_at;

-- Counts late runs stage by stage, the first 10,000 of all, and names the one that is longest so.
create function millrace.late_counts()
returns table (pipeline_id int, stage_id int, late bigint, longest bigint)
language sql stable
as $$
  select s.pipeline_id, s.id, count(*), (array_agg(l.run_id order by l.late_at))[1]
  from (
    select a.stage_id, a.run_id, a.late_at
    from millrace.attempts a
    where a.late_at <= (select millrace.now())
    order by a.late_at
    limit 10001) l
  join millrace.stages s on s.id = l.stage_id
  group by s.pipeline_id, s.id
$$;
