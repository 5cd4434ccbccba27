-- Quotas: what one tenant may start and spend in a window of time
--
-- What exceeds a quota stays queued until the next window, and its error says so: a user's write
-- must not fail for it. A claim takes attempts by the other limits, and puts back what has no room;
-- so what never begins is charged to nobody, and only what is in work may be overspent.
--
-- A start is what a person queues, by a status or by start(); it is charged when its first attempt
-- is claimed. Spending is noted when attempts end (uses.sql); once it is used up, nothing of the
-- tenant is claimed.

-- Keeps the quota of a definition, and marks the stages that look at quotas from now on.
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

-- Writes whose quota started runs count against: their pipeline's, or that of the row's last run,
-- which may have been a child.
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

-- Marks what a person has just queued, in runs and their new children: the first that is claimed
-- pays.
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

-- Puts back attempts of a claim whose tenants have no room. Returns the others.
create function millrace.keep_to_quotas(
  p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[]
) returns millrace.claimed[]
as $$
declare
  v_tenant record;
  v_kept millrace.claimed[];
  v_back bigint[];
  v_released bigint[];
begin
  for v_tenant in
    select l as quota, r.quota_key as key, array_agg(a.id order by a.queue_at, a.id) as attempt_ids
    from unnest(p_attempt_ids) i
    join millrace.attempts a on a.id = i
    join millrace.runs r on r.id = a.run_id
    join millrace.limits l on l.pipeline_id = r.quota_of
    group by l, r.quota_key
    order by l, r.quota_key
  loop
    if millrace.room_of_tenant(v_tenant.quota, v_tenant.key, 'spending') <= 0 then
      perform millrace.hold_back(
        p_stage, v_tenant.quota, v_tenant.key, 'spending', v_tenant.attempt_ids);
    elsif (v_tenant.quota).limits ? 'starts' then
      perform millrace.charge_starts(
        p_stage, v_tenant.quota, v_tenant.key, v_tenant.attempt_ids);
    end if;
  end loop;
  v_kept := millrace.held_items(p_token, p_attempt_ids);
  v_back := array(
    select i from unnest(p_attempt_ids) i
    except
    select k.attempt_id from unnest(v_kept) k);
  with released as (
    update millrace.attempts a
    set held = false, error = null
    where a.id = any (p_attempt_ids) and a.id <> all (v_back) and a.held
    returning a.id
  )
  select array_agg(r.id) into v_released from released r;
  if v_released is not null then
    perform millrace.show_held(p_stage, v_released);
  end if;
  if p_stage.limits is not null and cardinality(v_back) > 0 then
    perform millrace.give_back_room(p_stage, v_back);
  end if;
  if cardinality(v_kept) = 0 then
    delete from millrace.claims c where c.token = p_token;
  end if;
  return v_kept;
end
$$;

-- Counts what a tenant has left of an amount in the present window; null without a bound.
create function millrace.room_of_tenant(p_quota millrace.limits, p_key text, p_kind text)
returns numeric
as $$
declare
  v_amount jsonb := p_quota.limits -> p_kind;
begin
  return coalesce(v_amount ->> 'count', v_amount ->> 'usd')::numeric - (
    select coalesce(sum(u.used), 0)
    from millrace.limit_uses u
    where u.limit_id = p_quota.id
      and u.key = p_key
      and u.kind = p_kind
      and u.during = millrace.window_of(v_amount));
end
$$;

-- Charges a tenant with the starts among attempts, and puts back those without room, or all while
-- another claim charges it.
create function millrace.charge_starts(
  p_stage millrace.stages, p_quota millrace.limits, p_key text, p_attempt_ids bigint[]
)
as $$
declare
  v_ids bigint[] := array(
    select a.id
    from unnest(p_attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.uncounted
    order by i.place);
  v_runs bigint[];
begin
  if cardinality(v_ids) = 0 then
    return;
  elsif not pg_try_advisory_xact_lock(
      hashtext('millrace.quota'), hashtext(p_quota.id || ':' || p_key)) then
    perform millrace.put_back(
      p_stage, v_ids, array_fill(millrace.now() + interval '1 second', array[cardinality(v_ids)]));
    return;
  end if;
  v_runs := array(
    select a.run_id
    from unnest(v_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    group by a.run_id
    order by min(i.place)
    limit greatest(millrace.room_of_tenant(p_quota, p_key, 'starts'), 0)::int);
  if cardinality(v_runs) > 0 then
    insert into millrace.limit_uses (limit_id, key, kind, during, used)
    values (p_quota.id, p_key, 'starts', millrace.window_of(p_quota.limits -> 'starts'),
      cardinality(v_runs));
    -- One charge for all stages of a start; what another claim is taking is its own to charge.
    update millrace.attempts a
    set uncounted = false
    where a.id in (
      select o.id
      from millrace.attempts o
      where o.run_id = any (v_runs) and o.uncounted
      for update skip locked);
  end if;
  v_ids := array(
    select a.id
    from unnest(v_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.uncounted
    order by i.place);
  if cardinality(v_ids) > 0 then
    perform millrace.hold_back(p_stage, p_quota, p_key, 'starts', v_ids);
  end if;
end
$$;

-- Puts attempts back until their tenant has room, with its others among the next 500, so that a few
-- claims put back thousands. Starts are spread over the windows to come.
create function millrace.hold_back(
  p_stage millrace.stages, p_quota millrace.limits, p_key text, p_kind text, p_attempt_ids bigint[]
)
as $$
declare
  v_amount jsonb := p_quota.limits -> p_kind;
  v_seconds int := (v_amount ->> 'per_seconds')::numeric;
  v_now timestamptz := millrace.now();
  v_ids bigint[];
begin
  v_ids := p_attempt_ids || array(
    select a.id
    from millrace.attempts a
    where a.id in (
        select q.id
        from (
          select o.id, o.run_id, o.uncounted
          from millrace.attempts o
          where o.stage_id = p_stage.id and o.queue_at <= v_now and o.state = 'queued'
          order by o.queue_at, o.id
          limit 500) q
        join millrace.runs r on r.id = q.run_id
        where r.quota_of = p_quota.pipeline_id
          and r.quota_key = p_key
          and (q.uncounted or p_kind = 'spending'))
      and a.state = 'queued'
      and a.queue_at <= v_now
    order by a.queue_at, a.id
    for update skip locked);
  perform millrace.put_back(p_stage, v_ids, array(
      select upper(millrace.window_of(v_amount)) + make_interval(secs => v_seconds
        * case p_kind when 'starts' then (u.place - 1) / (v_amount ->> 'count')::int else 0 end)
      from unnest(v_ids) with ordinality u(id, place)
      order by u.place),
    jsonb_build_object('code', 'quota_' || p_kind, 'quota', p_quota.limits, 'message', format(
      'the quota of %s in %s is used up',
      coalesce((v_amount ->> 'count') || ' starts', (v_amount ->> 'usd') || ' US dollars'),
      justify_hours(make_interval(secs => v_seconds)))));
  perform millrace.show_held(p_stage, v_ids);
end
$$;

-- started | queued → queued for held attempts, each due at its time, by which its bound moves.
create function millrace.put_back(
  p_stage millrace.stages, p_attempt_ids bigint[], p_due_at timestamptz[],
  p_why jsonb default null
)
as $$
begin
  update millrace.attempts a
  set state = 'queued',
    token = null,
    started_at = null,
    queue_at = u.due_at,
    late_at = a.late_at + (u.due_at - millrace.now()),
    held = p_why is not null or a.held,
    error = coalesce(p_why || jsonb_build_object('message', format('held back until %s UTC: %s',
      to_char(u.due_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'), p_why ->> 'message')), a.error)
  from unnest(p_attempt_ids, p_due_at) u(id, due_at)
  where a.id = u.id;
end
$$;

-- Shows attempts as queued, with their error, on the entities that nobody holds.
create function millrace.show_held(p_stage millrace.stages, p_attempt_ids bigint[])
set lock_timeout = '200ms'
as $$
declare
  v_free text[];
  v_context text;
begin
  if exists (
      select from millrace.pipelines p
      where p.id = p_stage.pipeline_id and p.projection = 'none') then
    return;
  end if;
  v_free := millrace.lock_entities(p_stage.pipeline_id, array(
    select r.entity_id
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (p_attempt_ids)), false);
  perform millrace.project(p_stage.id, array(
    select jsonb_populate_record(null::millrace.change, jsonb_build_object(
      'entity_id', r.entity_id,
      'status', 'queued',
      'error', a.error ->> 'message',
      'retry_count', a.retry_count))
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (p_attempt_ids) and r.entity_id = any (v_free)));
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'projection_failed',
        'What is held back could not be shown on its entities: ' || sqlerrm,
        jsonb_build_object('stage', p_stage.name)) then
      raise;
    end if;
end
$$;

-- Makes attempts due that changed quotas hold back, and returns how many. It looks for a minute,
-- since a claim that was under way may go by the former numbers.
create function millrace.sweep_quotas(p_limit int) returns int
as $$
declare
  v_held record;
  v_released int := 0;
begin
  for v_held in
    select s as stage, array_agg(h.id) as ids
    from (
      select a.id, a.stage_id
      from millrace.stages n
      join millrace.attempts a
        on a.stage_id = n.id and a.held and a.queue_at is not null and a.state = 'queued'
      join millrace.runs r on r.id = a.run_id
      join millrace.pipelines p on p.id = r.quota_of and p.quota_changed_at is not null
      where n.counted and a.error -> 'quota' is distinct from p.quota
      order by a.queue_at, a.id
      limit p_limit
      for update of a skip locked) h
    join millrace.stages s on s.id = h.stage_id
    group by s
  loop
    perform millrace.put_back(
      v_held.stage, v_held.ids, array_fill(millrace.now(), array[cardinality(v_held.ids)]));
    update millrace.attempts a set held = false, error = null where a.id = any (v_held.ids);
    perform millrace.show_held(v_held.stage, v_held.ids);
    v_released := v_released + cardinality(v_held.ids);
  end loop;
  if v_released = 0 then
    update millrace.pipelines p
    set quota_changed_at = null
    where p.id in (
      select o.id
      from millrace.pipelines o
      where o.quota_changed_at <= millrace.now() - interval '1 minute'
      for update skip locked);
  end if;
  return v_released;
end
$$;

-- What each tenant used of its quota in the present window, and what is held back for it.
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
