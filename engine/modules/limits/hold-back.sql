-- Quotas: holding back what a tenant has no room for, until there is room again.

-- Puts attempts back into the queue until their tenant has room, and shows that on their rows. The
-- tenant's next attempts go with them, so that a few claims put back thousands. Starts are spread
-- over the windows to come, so that each is put back about once.
create function millrace.hold_back(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_kind text,
  p_attempt_ids bigint[])
returns void
language plpgsql
as $$
declare
  v_closes_at timestamptz := millrace.window_end(p_payer.quota -> p_kind);
  v_window interval := make_interval(
    secs => (p_payer.quota #>> array[p_kind, 'per_seconds'])::float8);
  v_count int := (p_payer.quota #>> '{starts,count}')::numeric;
  v_now timestamptz := millrace.now();
  v_ids bigint[];
  v_turn record;
begin
  -- The tenant's among the next 500 of the stage: all of them, or the starts alone.
  v_ids := array(
    select q.id
    from (
      select a.id, a.run_id, a.uncounted
      from millrace.attempts a
      where a.stage_id = p_stage.id and a.queue_at <= v_now and a.state = 'queued'
      order by a.queue_at, a.id
      limit 500) q
    join millrace.runs r on r.id = q.run_id
    where r.quota_of = p_payer.pipeline_id
      and r.quota_key = p_payer.key
      and (q.uncounted or p_kind = 'spending'));
  v_ids := p_attempt_ids || array(
    select a.id
    from millrace.attempts a
    where a.id = any (v_ids) and a.state = 'queued' and a.queue_at <= v_now
    order by a.queue_at, a.id
    for update skip locked);
  if p_kind = 'spending' then
    v_count := cardinality(v_ids);
  end if;
  for v_turn in
    select v_closes_at + (u.place - 1) / v_count * v_window as due_at,
      array_agg(u.id order by u.place) as attempt_ids
    from unnest(v_ids) with ordinality u(id, place)
    group by 1
    order by 1
  loop
    perform millrace.put_back(p_stage, v_turn.attempt_ids, v_turn.due_at,
      jsonb_build_object(
        'code', 'quota_' || p_kind,
        'message', millrace.hold_message(p_payer.quota, p_kind, v_turn.due_at),
        'quota', p_payer.quota));
  end loop;
  perform millrace.show_held(p_stage, v_ids);
end
$$;

-- started | queued → queued for attempts that the caller holds, due at a later time. What is held
-- back is not late: its bound moves with it.
create function millrace.put_back(
  p_stage millrace.stages,
  p_attempt_ids bigint[],
  p_due_at timestamptz,
  p_why jsonb default null)
returns void
language plpgsql
as $$
begin
  update millrace.attempts a
  set state = 'queued',
    token = null,
    started_at = null,
    queue_at = p_due_at,
    late_at = a.late_at + (p_due_at - millrace.now()),
    held = p_why is not null or a.held,
    error = coalesce(p_why, a.error)
  where a.id = any (p_attempt_ids);
  if p_stage.limits is not null then
    perform millrace.free_slots(p_attempt_ids);
  end if;
  if p_stage.has_groups then
    perform millrace.assign_groups(p_stage.id, array(
      select a.run_id from millrace.attempts a where a.id = any (p_attempt_ids)));
  end if;
end
$$;

-- Says what a tenant reads on a row that is held back.
create function millrace.hold_message(p_quota jsonb, p_kind text, p_due_at timestamptz)
returns text
language plpgsql stable
as $$
declare
  v_seconds int := (p_quota #>> array[p_kind, 'per_seconds'])::numeric;
  v_unit text := case
    when v_seconds % 3600 = 0 then 'hour'
    when v_seconds % 60 = 0 then 'minute'
    else 'second'
  end;
  v_units int := v_seconds / case v_unit when 'hour' then 3600 when 'minute' then 60 else 1 end;
begin
  return format('held back until %s UTC: the quota of %s in %s %s%s is used up',
    to_char(p_due_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
    case p_kind
      when 'starts' then (p_quota #>> '{starts,count}') || ' starts'
      else (p_quota #>> '{spending,usd}') || ' US dollars'
    end,
    v_units, v_unit, case when v_units = 1 then '' else 's' end);
end
$$;

-- Shows attempts as queued, with their error, on the entities that nobody holds; it waits for no
-- row.
create function millrace.show_held(p_stage millrace.stages, p_attempt_ids bigint[])
returns void
language plpgsql
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
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'projection_failed',
      'What is held back could not be shown on its entities: ' || sqlerrm,
      jsonb_build_object('stage', p_stage.name));
end
$$;

-- Takes the word that they are held back from attempts that go on, and from their entities.
create function millrace.show_released(p_stage millrace.stages, p_attempt_ids bigint[])
returns void
language plpgsql
as $$
begin
  if cardinality(p_attempt_ids) > 0 then
    update millrace.attempts a
    set held = false, error = null
    where a.id = any (p_attempt_ids);
    perform millrace.show_held(p_stage, p_attempt_ids);
  end if;
end
$$;

-- Makes attempts due that a changed or dropped quota holds back, up to so many and one page more.
-- It passes over what somebody locks. any_held: there were some; released: how many are due now.
create function millrace.release_held(
  p_pipeline millrace.pipelines, p_limit int, out any_held boolean, out released int
)
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_page bigint[];
  v_group record;
begin
  any_held := false;
  released := 0;
  while released < p_limit loop
    v_page := array(
      select a.id
      from millrace.stages s
      cross join lateral (
        select o.id, o.run_id, o.error
        from millrace.attempts o
        where o.stage_id = s.id and o.held and o.queue_at is not null and o.state = 'queued'
        order by o.queue_at, o.id) a
      join millrace.runs r on r.id = a.run_id
      where s.counted
        and r.quota_of = p_pipeline.id
        and a.error -> 'quota' is distinct from p_pipeline.quota
        and a.id > coalesce(v_page[cardinality(v_page)], 0)
      order by a.id
      limit p_limit);
    exit when cardinality(v_page) = 0;
    any_held := true;
    for v_group in
      select s as stage, array_agg(a.id) as attempt_ids
      from unnest(millrace.lock_attempts(v_page)) i
      join millrace.attempts a on a.id = i and a.state = 'queued' and a.held
      join millrace.stages s on s.id = a.stage_id
      group by s
    loop
      perform millrace.put_back(v_group.stage, v_group.attempt_ids, v_now);
      perform millrace.show_released(v_group.stage, v_group.attempt_ids);
      released := released + cardinality(v_group.attempt_ids);
    end loop;
  end loop;
end
$$;

-- Adds up the uses of tenants, deletes those of windows that are over, and releases up to so many
-- attempts that a changed quota holds back; returns how many.
create function millrace.sweep_quotas(p_limit int) returns int
language plpgsql
as $$
declare
  v_pipeline millrace.pipelines;
  v_released record;
  v_gone int := 0;
begin
  -- One statement deletes and adds, so nothing is lost or counted twice.
  with fresh as materialized (
    select distinct u.pipeline_id, u.key, u.kind, u.closes_at
    from (
      select o.*
      from millrace.quota_uses o
      where not o.summed
      order by o.id
      limit 10000) u
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
    limit 10000
    for update skip locked);
  for v_pipeline in
    select p.*
    from millrace.pipelines p
    where p.quota_changed_at is not null
    order by p.id
  loop
    exit when v_gone >= p_limit;
    v_released := millrace.release_held(v_pipeline, p_limit - v_gone);
    v_gone := v_gone + v_released.released;
    -- For a minute it looks again: a claim that was under way may hold back by the former
    -- numbers.
    update millrace.pipelines p
    set quota_changed_at = null
    where not v_released.any_held
      and v_pipeline.quota_changed_at <= millrace.now() - interval '1 minute'
      and p.id in (
        select o.id
        from millrace.pipelines o
        where o.id = v_pipeline.id and o.quota_changed_at = v_pipeline.quota_changed_at
        for update skip locked);
  end loop;
  return v_gone;
end
$$;
