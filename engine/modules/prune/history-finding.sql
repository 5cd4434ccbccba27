-- Estimates what the history comes to by the time that it is pruned: the attempts of the last day,
-- each of the size that an attempt has now, for as many days as their pipelines keep runs.
create function millrace.history_finding() returns setof millrace.finding
as $$
select 'history stays below history_gb', greatest(h.size, h.later) <= h.most,
  format('%s now; a day brings %s, which comes to %s by the time it is pruned%s',
    pg_size_pretty(h.size), pg_size_pretty(h.daily), pg_size_pretty(h.later),
    case when greatest(h.size, h.later) > h.most then ': keep runs or their results for fewer '
      'days (retention), return smaller results, or raise the setting history_gb' end)
from (
  select s.size, trunc(s.each * d.attempts) as daily, trunc(s.each * d.kept) as later,
    (select s.value::int * 1e9 from millrace.settings s where s.name = 'history_gb') as most
  from (
    select sum(t) as size,
      -- A table without statistics has no count: 1.2 kB an attempt stand in.
      sum(t) / greatest(max(c.reltuples) filter (where c.relname = 'attempts')::numeric,
        sum(t) / 1200, 1) as each
    from pg_class c
    cross join pg_total_relation_size(c.oid) t
    where c.relnamespace = 'millrace'::regnamespace
      and c.relkind = 'r'
      -- The size of a table and its indexes asks for twenty files, of which an empty one has none.
      and pg_relation_size(c.oid) > 0) s
  cross join (
    select coalesce(sum(m.n), 0) as attempts,
      coalesce(sum(m.n * millrace.retention_days(p)), 0) as kept
    from millrace.pipelines p
    join millrace.stages s on s.pipeline_id = p.id
    join millrace.sums m on m.unit = 'hour' and (m.pipeline_id, m.stage_id) = (p.id, s.id)
      and m.at > (select millrace.now()) - interval '1 day'
      and m.outcome in ('completed', 'failed', 'retried', 'skipped')) d) h
$$;
