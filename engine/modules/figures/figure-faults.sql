-- What must hold of figures

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
  select t.stage_id,
    sum(case t.outcome when 'removed' then -t.n else t.n end)
      filter (where t.outcome not in ('dequeued', 'unstarted')) as finished,
    sum(t.n) filter (where t.outcome in ('completed', 'copied')) as completed,
    sum(t.n) filter (where t.outcome in ('failed', 'retried')) as failed,
    sum(t.n) filter (where t.outcome in ('skipped', 'copied')) as skipped,
    sum(t.n) filter (where t.outcome = 'cancelled') as cancelled
  from millrace.counted_figures t
  where t.stage_id <> 0
  group by t.stage_id
), recount as (
  select a.stage_id, count(*) as finished,
    count(*) filter (where a.state = 'completed') as completed,
    count(*) filter (where a.state = 'failed') as failed,
    count(*) filter (where a.state = 'skipped') as skipped,
    count(*) filter (where a.state = 'cancelled') as cancelled
  from millrace.attempts a
  where a.state in ('completed', 'failed', 'skipped', 'cancelled')
  group by a.stage_id
)
select 'every attempt that is over is counted once', null::bigint, null::bigint,
  format('stage %s: %s, and the figures say %s', coalesce(f.stage_id, r.stage_id),
    coalesce(r.finished, 0), coalesce(f.finished, 0))
from figure f
full join recount r on r.stage_id = f.stage_id
where coalesce(f.finished, 0) <> coalesce(r.finished, 0)
  or r.completed > coalesce(f.completed, 0)
  or r.failed > coalesce(f.failed, 0)
  or r.skipped > coalesce(f.skipped, 0)
  or r.cancelled > coalesce(f.cancelled, 0)

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
  select coalesce(sum(t.n), 0)
  from millrace.counted_figures t
  where t.pipeline_id = r.pipeline_id
    and t.stage_id = 0
    and t.outcome = r.outcome);
