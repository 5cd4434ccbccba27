-- Quotas: what tenants have used.

-- Says when the present window of an amount of a quota is over.
create or replace function millrace.window_end(p_quota jsonb, p_kind text) returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_seconds numeric := (p_quota #>> array[p_kind, 'per_seconds'])::numeric;
begin
  return to_timestamp((floor(extract(epoch from millrace.now()) / v_seconds) + 1) * v_seconds);
end
$$;

-- Says what a tenant has used of an amount of its quota in the present window.
create or replace function millrace.used_by(p_payer millrace.payer, p_kind text)
returns numeric
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce(sum(u.used), 0)
    from millrace.quota_uses u
    where u.pipeline_id = p_payer.pipeline_id
      and u.key = p_payer.key
      and u.kind = p_kind
      and u.closes_at = millrace.window_end(p_payer.quota, p_kind));
end
$$;

-- Charges tenants with what attempts that have just ended say they cost.
create or replace function millrace.note_spending(p_items millrace.work[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used)
  select p.id, r.quota_key, 'spending', millrace.window_end(p.quota, 'spending'), sum(c.usd)
  from unnest(p_items) i
  cross join lateral (
    select (i.usage ->> 'cost_usd')::numeric as usd
    where jsonb_typeof(i.usage -> 'cost_usd') = 'number') c
  join millrace.runs r on r.id = i.run_id
  join millrace.pipelines p on p.id = r.quota_of
  where p.quota ? 'spending' and c.usd > 0
  group by p.id, r.quota_key;
end
$$;

-- Adds up what came since the last sweep, a row for each tenant, and deletes what is of windows
-- that are over. It deletes and adds in one statement, hence one snapshot: nothing is lost or
-- counted twice.
create or replace function millrace.sum_uses(p_limit int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with fresh as materialized (
    select distinct u.pipeline_id, u.key, u.kind, u.closes_at
    from (
      select o.*
      from millrace.quota_uses o
      where not o.summed
      order by o.id
      limit p_limit) u
  ), found as materialized (
    select u.id
    from fresh f
    join millrace.quota_uses u on u.pipeline_id = f.pipeline_id
      and u.key = f.key
      and u.kind = f.kind
      and u.closes_at = f.closes_at
    for update of u skip locked
  ), gone as (
    delete from millrace.quota_uses u
    using found f
    where u.id = f.id
    returning u.pipeline_id, u.key, u.kind, u.closes_at, u.used
  )
  insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used, summed)
  select g.pipeline_id, g.key, g.kind, g.closes_at, sum(g.used), true
  from gone g
  group by g.pipeline_id, g.key, g.kind, g.closes_at;
  delete from millrace.quota_uses u
  where u.id in (
    select o.id
    from millrace.quota_uses o
    where o.closes_at <= millrace.now()
    order by o.closes_at
    limit p_limit
    for update skip locked);
end
$$;

create or replace view millrace.quotas as
with used as (
  select u.pipeline_id, u.key, u.kind, sum(u.used) as used
  from millrace.quota_uses u
  where u.closes_at > millrace.now()
  group by u.pipeline_id, u.key, u.kind
), held as (
  select r.quota_of as pipeline_id, r.quota_key as key, substr(a.error ->> 'code', 7) as kind,
    count(*) as held, min(a.queue_at) as next_at
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id
  where a.held and a.queue_at is not null and a.state = 'queued'
  group by 1, 2, 3
)
select p.name as pipeline, key, kind,
  coalesce(u.used, 0) as used,
  coalesce(p.quota #>> array[kind, 'count'], p.quota #>> array[kind, 'usd'])::numeric as allowed,
  coalesce(h.held, 0) as held,
  h.next_at
from used u
full join held h using (pipeline_id, key, kind)
join millrace.pipelines p on p.id = pipeline_id
order by p.name, held desc, key, kind;
comment on view millrace.quotas is
  'What each tenant has used of its quota in the present window, of what is allowed, and how many '
  'attempts are held back for it.';
