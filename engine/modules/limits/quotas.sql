-- Quotas: what one tenant may start and spend in a window of time
--
-- What exceeds a quota is not refused, since a user's write must not fail for it: it stays queued
-- until the next window, and its error says so.
--
--   who      a run keeps whose quota it counts against: read when a person starts it, and a child
--            has its parent's
--   window   counted from the epoch; at worst a tenant has twice the amount around its turn
--   where    in the claim, after it has taken attempts by the other limits: it puts back what has
--            no room (hold-back.sql). So what never begins is charged to nobody, and what may be
--            overspent is what is in work
--   starts   charged when the first attempt of a start is claimed. A start is what a person queues,
--            by a status or by start(); retry and reset are none
--   spending noted when attempts end (uses.sql), failed ones too. Once it is used up, nothing of
--            the tenant is claimed

-- Keeps the quota of a definition, and marks the stages whose claims look at quotas. A mark stays:
-- what is held back must still be released.
create function millrace.save_quota(p_pipeline_id int, p_definition jsonb)
as $$
begin
  update millrace.pipelines p
  set quota = nullif(p_definition -> 'quota', 'null'),
    quota_changed_at = case when p.quota is not null then millrace.now() end
  where p.id = p_pipeline_id
    and p.quota is distinct from nullif(p_definition -> 'quota', 'null');
  insert into millrace.limits (pipeline_id, declared)
  select p.id, coalesce(p.quota, '{}')
  from millrace.pipelines p
  where p.id = p_pipeline_id
    and (p.quota is not null
      or exists (select from millrace.limits l where l.pipeline_id = p.id))
  on conflict on constraint limits_pipeline_key do update set declared = excluded.declared;
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
end
$$;

-- Writes on runs that a person starts whose quota they count against. A row that was a child counts
-- against its former parent's, unless its pipeline has one.
create function millrace.name_payers(p_pipeline millrace.pipelines, p_run_ids bigint[])
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

-- Marks attempts that a person has just started for their claim to be charged: all that was queued
-- since p_since, in the runs and in children that began with them. The first that is claimed pays.
create function millrace.note_starts(p_run_ids bigint[], p_since timestamptz)
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

-- Puts back the attempts of a claim whose tenants have no room, with what they took of the stage's
-- limits. Returns the others.
create function millrace.keep_to_quotas(
  p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[]
) returns millrace.claimed[]
as $$
declare
  v_group record;
  v_over bigint[];
  v_kept millrace.claimed[];
begin
  for v_group in
    select row(l.id, r.quota_key, l.limits)::millrace.payer as payer,
      array_agg(a.id order by a.queue_at, a.id) as attempt_ids
    from unnest(p_attempt_ids) i
    join millrace.attempts a on a.id = i
    join millrace.runs r on r.id = a.run_id
    join millrace.limits l on l.pipeline_id = r.quota_of
    group by l.id, r.quota_key
    order by l.id, r.quota_key
  loop
    v_over := '{}';
    if millrace.room_of_payer(v_group.payer, 'spending') <= 0 then
      perform millrace.hold_back(p_stage, v_group.payer, 'spending', v_group.attempt_ids);
      continue;
    elsif (v_group.payer).quota ? 'starts' then
      v_over := millrace.charge_starts(p_stage, v_group.payer, v_group.attempt_ids);
    end if;
    perform millrace.show_released(p_stage, h.ids)
    from (
      select array_agg(a.id) as ids
      from millrace.attempts a
      where a.id = any (v_group.attempt_ids) and a.id <> all (v_over) and a.held) h
    where h.ids is not null;
  end loop;
  v_kept := millrace.held_items(p_token, p_attempt_ids);
  if p_stage.limits is not null and cardinality(v_kept) < cardinality(p_attempt_ids) then
    perform millrace.give_back_room(p_stage, array(
      select i from unnest(p_attempt_ids) i
      except
      select k.attempt_id from unnest(v_kept) k));
  end if;
  if cardinality(v_kept) = 0 then
    delete from millrace.claims c where c.token = p_token;
  end if;
  return v_kept;
end
$$;

-- Counts what a tenant has left of an amount of its quota in the present window; null where the
-- quota says nothing of it.
create function millrace.room_of_payer(p_payer millrace.payer, p_kind text)
returns numeric
as $$
declare
  v_amount jsonb := p_payer.quota -> p_kind;
begin
  return coalesce(v_amount ->> 'count', v_amount ->> 'usd')::numeric - (
    select coalesce(sum(u.used), 0)
    from millrace.limit_uses u
    where u.limit_id = p_payer.limit_id
      and u.key = p_payer.key
      and u.kind = p_kind
      and u.during = millrace.window_of(v_amount));
end
$$;

-- Charges a tenant with the starts among attempts, as far as it has room; puts back and returns the
-- others. Two claims never wait for each other over a tenant: the second puts its starts back.
create function millrace.charge_starts(
  p_stage millrace.stages, p_payer millrace.payer, p_attempt_ids bigint[]
) returns bigint[]
as $$
declare
  v_marked bigint[] := array(
    select a.id
    from unnest(p_attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.uncounted
    order by i.place);
  v_runs bigint[];
  v_over bigint[];
begin
  if cardinality(v_marked) = 0 then
    return '{}';
  elsif not pg_try_advisory_xact_lock(hashtext('millrace.quota'),
      hashtext(p_payer.limit_id || ':' || p_payer.key)) then
    perform millrace.put_back(p_stage, v_marked, millrace.now() + interval '1 second');
    return v_marked;
  end if;
  v_runs := array(
    select a.run_id
    from unnest(v_marked) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    group by a.run_id
    order by min(i.place)
    limit greatest(millrace.room_of_payer(p_payer, 'starts'), 0)::int);
  if cardinality(v_runs) > 0 then
    insert into millrace.limit_uses (limit_id, key, kind, during, used)
    values (p_payer.limit_id, p_payer.key, 'starts',
      millrace.window_of(p_payer.quota -> 'starts'), cardinality(v_runs));
    -- One start, one charge, however many stages it begins with. What another claim is just taking
    -- is its own to charge.
    update millrace.attempts a
    set uncounted = false
    where a.id in (
      select o.id
      from millrace.attempts o
      where o.run_id = any (v_runs) and o.uncounted
      for update skip locked);
  end if;
  v_over := array(
    select a.id
    from unnest(v_marked) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.run_id <> all (v_runs)
    order by i.place);
  if cardinality(v_over) > 0 then
    perform millrace.hold_back(p_stage, p_payer, 'starts', v_over);
  end if;
  return v_over;
end
$$;

-- What each tenant has used of its quota in the present window, of what is allowed, and how many
-- attempts are held back for it.
create view millrace.quotas as
with used as (
  select l.pipeline_id, u.key, u.kind, sum(u.used) as used
  from millrace.limit_uses u
  join millrace.limits l on l.id = u.limit_id and l.pipeline_id is not null
  where upper(u.during) > millrace.now()
  group by l.pipeline_id, u.key, u.kind
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
