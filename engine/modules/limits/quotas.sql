-- Quotas: what one tenant may start and spend in a window of time
--
-- Attempts without room in a quota are put back after the claim, so that no tenant is charged with
-- an attempt that does not begin.

-- Saves the quota of a definition, makes attempts that the former quota blocked due now, and marks
-- the stages whose claims check quotas: those of pipelines with a quota and of their children.
create function millrace.save_quota(p_pipeline_id int, p_definition jsonb)
as $$
  v_quota jsonb := nullif(p_definition -> 'quota', 'null');

update millrace.pipelines p
set quota = v_quota
where p.id = p_pipeline_id and p.quota is distinct from v_quota;
if found then
  insert into millrace.limits (pipeline_id, declared)
  values (p_pipeline_id, coalesce(v_quota, '{}'))
  on conflict on constraint limits_pipeline_key do update set declared = excluded.declared;
  update millrace.attempts a
  set queue_at = v_now
  from (
    select h.id
    from millrace.stages n
    join millrace.attempts h
      on h.stage_id = n.id and h.quota_blocked and h.queue_at is not null and h.state = 'queued'
    join millrace.runs r on r.id = h.run_id and r.quota_of = p_pipeline_id
    where n.has_quota
    order by h.id
    for update of h skip locked) h
  where a.id = h.id;
end if;
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
set has_quota = true
from family f
where s.pipeline_id = f.id and not s.has_quota;
$$;

-- Charges the starts of a claim to their tenants, each start once for all its stages. Returns the
-- attempts without room.
-- whys: for each of them starts, spending or busy. Busy: another transaction charges the tenant, or
-- changes the quota and has made due only attempts that were blocked by then.
create function millrace.charge_starts(
  p_attempt_ids bigint[], out attempt_ids bigint[], out whys text[]
)
as $$
  v_busy text[] := array(
    select t.name
    from (
      select l.id || ':' || r.quota_key as name, l.pipeline_id,
        l.limits ? 'starts' and bool_or(a.uncounted) as starts
      from millrace.attempts a
      -- by key
      cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
      join millrace.limits l on l.pipeline_id = r.quota_of
      where a.id = any (p_attempt_ids)
      group by l.id, r.quota_key
      order by 1
      offset 0) t
    where not pg_try_advisory_xact_lock_shared(hashtext('millrace.quotas'), t.pipeline_id)
      or t.starts
        and not pg_try_advisory_xact_lock(hashtext('millrace.quota'), hashtext(t.name)));

with item as materialized (
  select a.id, a.run_id, a.uncounted, l.id as limit_id, l.limits, r.quota_key as key,
    row_number() over (
      partition by l.id, r.quota_key, a.uncounted order by a.queue_at, a.id) as turn
  from millrace.attempts a
  cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
  join millrace.limits l on l.pipeline_id = r.quota_of
  where a.id = any (p_attempt_ids)
), tenant as materialized (
  select t.limit_id, t.key, t.limit_id || ':' || t.key = any (v_busy) as is_busy,
    (t.limits #>> '{spending,usd}')::numeric
      - coalesce(sum(u.used) filter (where u.kind = 'spending'), 0) as money,
    (t.limits #>> '{starts,count}')::numeric
      - coalesce(sum(u.used) filter (where u.kind = 'starts'), 0) as starts
  from (select distinct i.limit_id, i.key, i.limits from item i) t
  left join lateral (
    select o.kind, o.used
    from millrace.limit_uses o
    where o.limit_id = t.limit_id and o.key = t.key
      and o.during = millrace.window_of(t.limits -> o.kind)
    offset 0) u on true
  group by t.limit_id, t.key, t.limits
), judged as materialized (
  select i.*, case
      when t.is_busy and (i.uncounted or t.money <= 0) then 'busy'
      when t.money <= 0 then 'spending'
      when not i.uncounted or t.starts is null then 'free'
      when i.turn > t.starts then 'starts'
      else 'charged'
    end as why
  from item i
  join tenant t using (limit_id, key)
), charged as (
  insert into millrace.limit_uses (limit_id, key, kind, during, used)
  select j.limit_id, j.key, 'starts', millrace.window_of(j.limits -> 'starts'), count(*)
  from judged j
  where j.why = 'charged'
  group by j.limit_id, j.key, j.limits
), paid as (
  update millrace.attempts a
  set uncounted = false
  where a.id = any (array(
    select o.id
    from millrace.attempts o
    where o.uncounted
      and o.run_id = any (array(select j.run_id from judged j where j.why = 'charged'))
    -- An attempt that another claim is taking is charged by that claim.
    for update skip locked))
)
select array_agg(j.id), array_agg(j.why)
into attempt_ids, whys
from judged j
where j.why in ('spending', 'starts', 'busy');
$$;

-- started → queued for attempts of a claim whose tenants have no room. Blocks other due attempts of
-- these tenants, too, among the next 500 of the stage, so that few claims block thousands. Their
-- due times are spread over the coming windows. A busy attempt is due in a second.
create function millrace.block_by_quota(
  p_stage millrace.stages, p_attempt_ids bigint[], p_whys text[]
)
as $$
  v_blocked bigint[];

with claimed as materialized (
  select a.id, a.queue_at, i.why, r.quota_of, r.quota_key
  from unnest(p_attempt_ids, p_whys) i(id, why)
  cross join lateral (select o.* from millrace.attempts o where o.id = i.id offset 0) a
  cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
), other as materialized (
  select a.id, q.queue_at, t.why, t.quota_of, t.quota_key
  from (
    select o.id, o.run_id, o.queue_at, o.uncounted
    from millrace.attempts o
    where o.stage_id = p_stage.id and o.queue_at <= v_now and o.state = 'queued'
    order by o.queue_at, o.id
    limit 500) q
  cross join lateral (select o.* from millrace.runs o where o.id = q.run_id offset 0) r
  join (
    select distinct c.why, c.quota_of, c.quota_key
    from claimed c
    where c.why <> 'busy') t on t.quota_of = r.quota_of
    and t.quota_key = r.quota_key
    and (q.uncounted or t.why = 'spending')
  cross join lateral (
    select o.id
    from millrace.attempts o
    where o.id = q.id and o.queue_at <= v_now and o.state = 'queued'
    for update skip locked) a
), due as (
  select u.id, u.why, x.amount,
    coalesce(upper(millrace.window_of(x.amount)) + make_interval(secs =>
      (x.amount ->> 'per_seconds')::float8
        * coalesce((u.turn - 1) / (x.amount ->> 'count')::int, 0)), v_now + interval '1 second')
      as at
  from (
    select o.*, row_number() over (
      partition by o.quota_of, o.quota_key, o.why order by o.queue_at, o.id) as turn
    from (table claimed union all table other) o) u
  join millrace.limits l on l.pipeline_id = u.quota_of
  cross join lateral (select l.limits -> u.why as amount) x
), put as (
  update millrace.attempts a
  set state = 'queued', token = null, started_at = null, queue_at = d.at,
    late_at = a.late_at + (d.at - v_now),
    quota_blocked = a.quota_blocked or d.why <> 'busy',
    error = case when d.why = 'busy' then a.error else jsonb_build_object(
      'code', 'quota_' || d.why, 'message', format(
        'held back until %s UTC: the quota of %s in %s is used up',
        to_char(d.at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
        coalesce((d.amount ->> 'count') || ' starts', (d.amount ->> 'usd') || ' US dollars'),
        justify_hours(make_interval(secs => (d.amount ->> 'per_seconds')::float8)))) end
  from due d
  where a.id = d.id
    and a.id = any (array(select o.id from due o))
  returning a.id, d.why
)
select array_agg(p.id) filter (where p.why <> 'busy') into v_blocked from put p;
perform millrace.show_quota_blocked(p_stage, v_blocked);
$$;

-- Puts back the attempts of a claim whose tenants have no room, and returns the others as claimed.
-- Attempts that were blocked before and have room now lose that mark and its error.
create function millrace.keep_to_quotas(
  p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[]
) returns millrace.claimed[]
as $$
  v_back record := millrace.charge_starts(p_attempt_ids);
  v_released bigint[];

if v_back.attempt_ids is not null then
  perform millrace.block_by_quota(p_stage, v_back.attempt_ids, v_back.whys);
  perform millrace.take_tokens(p_stage.id, v_back.attempt_ids, -1);
  delete from millrace.claims c
  where c.token = p_token and c.attempt_ids <@ v_back.attempt_ids;
end if;
with released as (
  update millrace.attempts a
  set quota_blocked = false, error = null
  where a.id = any (p_attempt_ids) and a.token = p_token and a.quota_blocked
  returning a.id
)
select array_agg(r.id) into v_released from released r;
perform millrace.show_quota_blocked(p_stage, v_released);
return millrace.claimed_items(p_token, p_attempt_ids);
$$;

-- Writes onto entities that their attempts are queued, with the quota's message as error. Skips
-- locked entities.
create function millrace.show_quota_blocked(p_stage millrace.stages, p_attempt_ids bigint[])
as $$
  v_free text[];

if p_attempt_ids is null then
  return;
end if;
v_free := millrace.lock_entities(p_stage.pipeline_id, array(
  select r.entity_id
  from millrace.attempts a
  cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
  where a.id = any (p_attempt_ids)), false);
perform millrace.project_guarded(p_stage, 'apply', array(
  select millrace.change_of(r.entity_id, 'queued', p_error => a.error ->> 'message',
    p_retry_count => a.retry_count)
  from millrace.attempts a
  cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
  where a.id = any (p_attempt_ids) and millrace.key_of(r) = any (v_free)), null);
$$;

-- Lists what each tenant has used of its pipeline's quota in the present window, and its blocked
-- attempts.
-- key: the tenant. kind: starts or spending.
-- used, allowed: starts, or US dollars, in the window.
-- quota_blocked: attempts that wait for room. next_at: when the first of them is due.
create view millrace.quotas as
with used as (
  select l.pipeline_id, u.key, u.kind, sum(u.used) as used
  from millrace.limit_uses u
  join millrace.limits l on l.id = u.limit_id and l.pipeline_id is not null
  where upper(u.during) > v_now
  group by 1, 2, 3
), quota_blocked as (
  select r.quota_of as pipeline_id, r.quota_key as key, substr(a.error ->> 'code', 7) as kind,
    count(*) as quota_blocked, min(a.queue_at) as next_at
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id
  where a.quota_blocked and a.queue_at is not null and a.state = 'queued'
  group by 1, 2, 3
)
select p.name as pipeline, key, kind,
  coalesce(u.used, 0) as used,
  coalesce(p.quota #>> array[kind, 'count'], p.quota #>> array[kind, 'usd'])::numeric as allowed,
  coalesce(h.quota_blocked, 0) as quota_blocked,
  h.next_at
from used u
full join quota_blocked h using (pipeline_id, key, kind)
join millrace.pipelines p on p.id = pipeline_id
order by p.name, quota_blocked desc, key, kind;
