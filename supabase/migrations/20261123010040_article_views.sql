-- Articles: where they stand, for whoever watches the queue

create view public.article_backlog with (security_invoker = true) as
select l.code, l.name, l.category, q.articles, q.oldest_since, min(o.id::text)::uuid as oldest_id
from (
  select i.status_code, count(*) as articles, min(i.status_changed_at) as oldest_since
  from public.ingestion_queue i
  group by i.status_code) q
join public.status_lookup l on l.code = q.status_code
join public.ingestion_queue o
  on o.status_code = q.status_code and o.status_changed_at = q.oldest_since
group by l.code, q.articles, q.oldest_since;
comment on view public.article_backlog is
  'Where articles pile up: how many stand at each code, and since when the oldest does.';

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
where q.status_code in (110, 120, 210, 220, 230, 330);
comment on view public.article_ready is
  'The articles that a stage can take: no gate (100, 200), no review, nothing published.';

revoke all on public.article_backlog, public.article_state_times, public.article_ready
  from anon, authenticated, service_role;
grant select on public.article_backlog, public.article_state_times, public.article_ready
  to authenticated, service_role;
