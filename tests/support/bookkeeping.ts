// Breaches of the engine's bookkeeping, which strand no row: figures, metadata, bypasses and limits that do not fit what they are of.
// Each statement returns them as millrace.check_invariants() returns its own.

/** Stages whose figures are no recount of their attempts, and runs that no figure counts. A reopened run has several ends. */
const miscounted = `
  select 'every attempt that is over is counted once' as rule, null::bigint as run_id, null::bigint as attempt_id,
    format('stage %s: %s, and the figures say %s', stage_id, coalesce(r.n, 0), coalesce(f.n, 0)) as detail
  from (
    select c.stage_id, sum(case c.outcome when 'removed' then -c.n else c.n end) as n
    from millrace.counted_figures c
    where c.stage_id <> 0 and c.outcome <> 'unstarted'
    group by c.stage_id) f
  full join (
    select a.stage_id, count(*) as n
    from millrace.attempts a
    where a.state in ('completed', 'failed', 'skipped', 'cancelled')
    group by a.stage_id) r using (stage_id)
  where coalesce(f.n, 0) <> coalesce(r.n, 0)
  union all
  select 'every run that is over is counted', null, null, format('pipeline %s: %s %s', r.pipeline_id, r.n, r.outcome)
  from (
    select o.pipeline_id, case when o.ended_as is not null then 'ended' else o.status::text end as outcome, count(*) as n
    from millrace.runs o
    where o.status <> 'running'
    group by 1, 2) r
  where r.n > (
    select coalesce(sum(c.n), 0)
    from millrace.counted_figures c
    where c.pipeline_id = r.pipeline_id and c.stage_id = 0 and c.outcome = r.outcome)`;

/** Days whose costs by model and tenant are not those that the figures have of the stage. */
const wronglySpent = `
  select 'costs by model and tenant are those of the figures', null, null,
    format('stage %s on %s: %s, and the figures say %s', stage_id, at, coalesce(s.usd, 0), coalesce(f.usd, 0))
  from (
    select c.stage_id, date_trunc('day', c.at, 'UTC') as at, sum(c.cost_usd) as usd
    from millrace.sums c
    where c.unit = 'hour'
    group by 1, 2) f
  full join (
    select d.stage_id, d.at, sum(d.usd) as usd from millrace.costs d where d.unit = 'day' group by 1, 2) s
    using (stage_id, at)
  where coalesce(s.usd, 0) <> coalesce(f.usd, 0)
    and at > (select millrace.now() - o.value::int * interval '1 day' from millrace.settings o where o.name = 'hours_days')`;

const leftOverMetadata = `
  select 'metadata has a run, or is to be deleted', null, null, 'metadata ' || m.id
  from millrace.run_metadata m
  where not exists (select from millrace.runs r where r.metadata_id = m.id)
    and not exists (select from millrace.dropped_metadata d where d.metadata_id = m.id)`;

const wronglyBypassed = `
  select 'a stage is switched as its bypass says', null, null,
    format('stage %s is %s', s.name, case when s.bypassed then 'bypassed' else 'not bypassed' end)
  from millrace.stages s
  where s.bypassed <> exists (select from millrace.bypasses b where b.stage_id = s.id)`;

/** Limits that hold for other stages than name them, or otherwise than these say. */
const strayLimits = `
  select 'the limits of a stage are its own and those that it names', null, null, format('stage %s of %s', s.name, p.name)
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  left join millrace.limits o on o.stage_id = s.id
  where s.limits is distinct from nullif(o.limits, '{}')
    or array(
      select coalesce(l.name, '')
      from millrace.limited_stages m
      join millrace.limits l on l.id = m.limit_id
      where m.stage_id = s.id
      order by 1)
    <> array(select n from jsonb_array_elements_text(s.limits -> 'shared') n union all select '' order by 1)`;

export const bookkeepingFaults = [miscounted, wronglySpent, leftOverMetadata, wronglyBypassed, strayLimits].join(
  '\n  union all\n',
);

/** The checks that every test of a whole pipeline ends with: the engine's invariants, and its bookkeeping. */
export const allFaults = `select * from millrace.check_invariants() union all ${bookkeepingFaults}`;
