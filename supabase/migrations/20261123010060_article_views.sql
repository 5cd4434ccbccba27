-- Articles: where they stand, for whoever watches the queue

-- Of each step it counts the thousand that entered first: so much a page can ask for time and
-- again, however many there are. Whoever is no curator has their own articles to count.
create view public.article_backlog with (security_invoker = true) as
with asked as (
  select (select public.is_curator()) or current_user <> 'authenticated' as for_all
), seen as (
  select q.*
  from asked a
  join (select distinct k.code / 10 as step from public.status_lookup k) s on a.for_all
  cross join lateral (
    select f.*, row_number() over () as place
    from (
      select e.id, e.status_code, e.status_changed_at
      from public.ingestion_queue e
      -- No equality, by which an index on the time alone would do as well.
      where e.status_step between s.step and s.step
      order by e.status_step, e.created_at
      limit 1001) f) q
  union all
  select q.*
  from asked a
  cross join lateral (
    select e.id, e.status_code, e.status_changed_at, row_number() over () as place
    from public.ingestion_queue e
    where e.added_by = (select auth.uid())
    limit 1001) q
  where not a.for_all
), counted as (
  select s.*, max(s.place) over (partition by s.status_code / 10) > 1000 as more
  from seen s
)
select l.code, l.name, l.category, count(*) as articles, min(c.status_changed_at) as oldest_since,
  (array_agg(c.id order by c.status_changed_at, c.id))[1] as oldest_id, bool_or(c.more) as more
from counted c
join public.status_lookup l on l.code = c.status_code
where c.place <= 1000
group by l.code;
comment on view public.article_backlog is
  'Where articles pile up: how many stand at each code, and since when the oldest does; of a step '
  'with more than 1,000 those that entered first. Users who are no curators see their own.';
comment on column public.article_backlog.more is
  'Whether there are more at this step (the tens of the code) than the 1,000 that were counted.';

create view public.article_state_times with (security_invoker = true) as
select l.code, l.name, count(*) as left_it,
  percentile_cont(0.5) within group (order by h.duration_ms) as p50_ms,
  percentile_cont(0.95) within group (order by h.duration_ms) as p95_ms,
  max(h.duration_ms) as longest_ms
from public.status_history h
join public.status_lookup l on l.code = h.from_status
where h.changed_at > (select max(n.changed_at) from public.status_history n) - interval '7 days'
group by l.code;
comment on view public.article_state_times is
  'How long articles stood at each code that they left in the last seven days, in milliseconds.';

create view public.article_ready with (security_invoker = true) as
select q.id, q.status_code, l.name, q.title, q.url, q.status_changed_at as ready_since
from public.ingestion_queue q
join public.status_lookup l on l.code = q.status_code
where q.status_step in (11, 12, 21, 22, 23, 33)
  and q.status_code in (110, 120, 210, 220, 230, 330);
comment on view public.article_ready is
  'The articles that a stage can take: no gate (100, 200), no review, nothing published.';

revoke all on public.article_backlog, public.article_state_times, public.article_ready
  from anon, authenticated, service_role;
grant select on public.article_backlog, public.article_state_times, public.article_ready
  to authenticated, service_role;
