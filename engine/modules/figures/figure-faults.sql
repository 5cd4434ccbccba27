-- What the totals tell, with the pulses that are still to be added up.
create view millrace.counted_figures as
select t.pipeline_id, t.stage_id, t.outcome, t.n
from millrace.sums t
where t.unit = 'total'
union all
select p.pipeline_id, p.stage_id, p.outcome, p.n
from millrace.pulses p;

-- Finds stages whose figures are no recount of their attempts, and runs that no figure counts.
create view millrace.figure_faults (rule, run_id, attempt_id, detail) as
with figure as (
  select c.stage_id, sum(case c.outcome when 'removed' then -c.n else c.n end) as n
  from millrace.counted_figures c
  where c.stage_id <> 0
    and c.outcome <> 'unstarted'
  group by c.stage_id
), recount as (
  select a.stage_id, count(*) as n
  from millrace.attempts a
  where a.state in ('completed', 'failed', 'skipped', 'cancelled')
  group by a.stage_id
)
select 'every attempt that is over is counted once', null::bigint, null::bigint,
  format('stage %s: %s, and the figures say %s', coalesce(f.stage_id, r.stage_id),
    coalesce(r.n, 0), coalesce(f.n, 0))
from figure f
full join recount r on r.stage_id = f.stage_id
where coalesce(f.n, 0) <> coalesce(r.n, 0)

-- A reopened run has several ends.
union all
select 'every run that is over is counted', null::bigint, null::bigint,
  format('pipeline %s: %s %s', r.pipeline_id, r.n, r.outcome)
from (
  select o.pipeline_id, case when o.ended_as is not null then 'ended' else o.status::text end
    as outcome, count(*) as n
  from millrace.runs o
  where o.status <> 'running'
  group by 1, 2) r
where r.n > (
  select coalesce(sum(c.n), 0)
  from millrace.counted_figures c
  where c.pipeline_id = r.pipeline_id
    and c.stage_id = 0
    and c.outcome = r.outcome);
