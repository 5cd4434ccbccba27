-- Quotas: what one tenant may start and spend in a window of time
--
-- What exceeds a quota is not refused, since a user's write must not fail for it: it stays queued
-- until the next window, and its error says so.
--
--   who      a run keeps whose quota it counts against: read when a person starts it, and a child
--            has its parent's
--   window   counted from the epoch, so that two numbers a tenant are all that is kept; at worst a
--            tenant has twice the amount around the turn of a window
--   where    in the claim, after it has taken attempts by the other limits: it puts back what has
--            no room (keep-to-quotas.sql, hold-back.sql). So what never begins is charged to
--            nobody, and what may be overspent is what is in work
--   starts   charged when the first attempt of a start is claimed. A start is what a person queues,
--            by a status or by start(); retry, replay and reset are none
--   spending noted when attempts end, failed ones too. Once it is used up, nothing of the tenant is
--            claimed
--
-- Uses are insert-only, one row a batch and tenant; the sweep adds them up, and deletes those of
-- windows that are over.

-- define() keeps the quota of a definition, and marks the stages whose claims look at quotas. A
-- mark stays: what is held back must still be released.
create function millrace.save_quota(p_pipeline_id int, p_definition jsonb)
returns void
language sql
as $$
  update millrace.pipelines p
  set quota = nullif(p_definition -> 'quota', 'null'),
    quota_changed_at = case when p.quota is not null then millrace.now() end
  where p.id = p_pipeline_id
    and p.quota is distinct from nullif(p_definition -> 'quota', 'null');
  with recursive family(id) as (
    select p.id
    from millrace.pipelines p
    where p.quota is not null
    union
    select vs.child_pipeline_id
    from family f
    join millrace.versions v on v.pipeline_id = f.id
    join millrace.version_stages vs on vs.version_id = v.id
    where vs.child_pipeline_id is not null
  )
  update millrace.stages s
  set counted = true
  from family f
  where s.pipeline_id = f.id and not s.counted;
$$;

-- Writes on runs that a person starts whose quota they count against. A row that was a child counts
-- against the quota of its former parent, unless its pipeline has one.
create function millrace.name_payers(p_pipeline millrace.pipelines, p_run_ids bigint[])
returns void
language plpgsql
as $$
declare
  v_runs bigint[];
  v_entities text[];
begin
  if cardinality(p_run_ids) = 0 then
    return;
  elsif p_pipeline.quota is null then
    update millrace.runs r
    set quota_of = f.quota_of, quota_key = f.quota_key
    from unnest(p_run_ids) i
    join millrace.runs n on n.id = i
    cross join lateral (
      select o.quota_of, o.quota_key
      from millrace.runs o
      where o.entity_id = n.entity_id and o.pipeline_id = n.pipeline_id and o.id < n.id
      order by o.id desc
      limit 1) f
    where r.id = i and r.quota_of is null and f.quota_of is not null;
    return;
  end if;
  select array_agg(r.id), array_agg(r.entity_id)
  into v_runs, v_entities
  from millrace.runs r
  where r.id = any (p_run_ids);
  update millrace.runs r
  set quota_of = p_pipeline.id, quota_key = k.key
  from (
    select u.id, coalesce(u.key, '') as key
    from unnest(v_runs, (
      millrace.values_of_entities(p_pipeline.id, v_entities, true, null)).payers) u(id, key)) k
  where r.id = k.id
    and (r.quota_of is distinct from p_pipeline.id or r.quota_key is distinct from k.key);
end
$$;

-- Lets new children count against the quota of their parents.
create function millrace.inherit_quotas(p_run_ids bigint[]) returns void
language plpgsql
as $$
begin
  update millrace.runs c
  set quota_of = p.quota_of,
    quota_key = p.quota_key
  from millrace.fan_outs f
  join millrace.runs p on p.id = f.run_id
  where c.id = any (p_run_ids)
    and f.id = c.fan_out_id
    and p.quota_of is not null;
end
$$;

-- Marks attempts that a person has just started, so that their claim is charged to the tenant: all
-- that was queued since p_since, in the runs and in children that began with them. The first that
-- is claimed pays.
create function millrace.note_starts(p_run_ids bigint[], p_since timestamptz)
returns void
language plpgsql
as $$
declare
  v_ids bigint[];
begin
  with recursive family as (
    select r.id
    from unnest(p_run_ids) r(id)
    union all
    select c.id
    from family m
    join millrace.fan_outs f on f.run_id = m.id and f.state = 'open' and f.created_at >= p_since
    join millrace.runs c on c.fan_out_id = f.id
  )
  select array_agg(q.id)
  into v_ids
  from family m
  cross join lateral (
    -- "offset 0" keeps it a look-up for each run, however the planner counts them.
    select a.id
    from millrace.attempts a
    where a.run_id = m.id
      and a.state = 'queued'
      and a.created_at >= p_since
      and not a.uncounted
    offset 0) q;
  update millrace.attempts a set uncounted = true where a.id = any (v_ids);
end
$$;

-- Says what a tenant has used of an amount of its quota in the present window.
create function millrace.used_by(p_payer millrace.payer, p_kind text)
returns numeric
language plpgsql
as $$
begin
  return (
    select coalesce(sum(u.used), 0)
    from millrace.quota_uses u
    where u.pipeline_id = p_payer.pipeline_id
      and u.key = p_payer.key
      and u.kind = p_kind
      and u.closes_at = millrace.window_end(p_payer.quota -> p_kind));
end
$$;

-- Charges tenants with what attempts that have just ended say they cost.
create function millrace.note_spending(p_items millrace.work[]) returns void
language plpgsql
as $$
begin
  insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used)
  select p.id, r.quota_key, 'spending', millrace.window_end(p.quota -> 'spending'), sum(c.usd)
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

-- What each tenant has used of its quota in the present window, of what is allowed, and how many
-- attempts are held back for it.
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
