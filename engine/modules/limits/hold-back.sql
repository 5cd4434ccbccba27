-- Quotas: holding back what a tenant has no room for, until there is room again.

-- Puts attempts back into the queue until their tenant has room, and shows that on their rows. The
-- tenant's next attempts go with them, so that a few claims put back thousands. Starts are spread
-- over the windows to come, so that each is put back about once.
create function millrace.hold_back(
  p_stage millrace.stages, p_payer millrace.payer, p_kind text, p_attempt_ids bigint[]
)
as $$
declare
  v_amount jsonb := p_payer.quota -> p_kind;
  v_seconds int := (v_amount ->> 'per_seconds')::numeric;
  v_unit text := case
    when v_seconds % 3600 = 0 then 'hour'
    when v_seconds % 60 = 0 then 'minute'
    else 'second'
  end;
  v_units int := v_seconds / case v_unit when 'hour' then 3600 when 'minute' then 60 else 1 end;
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
    join millrace.limits l on l.pipeline_id = r.quota_of
    where l.id = p_payer.limit_id
      and r.quota_key = p_payer.key
      and (q.uncounted or p_kind = 'spending'));
  v_ids := p_attempt_ids || array(
    select a.id
    from millrace.attempts a
    where a.id = any (v_ids) and a.state = 'queued' and a.queue_at <= v_now
    order by a.queue_at, a.id
    for update skip locked);
  for v_turn in
    select upper(millrace.window_of(v_amount)) + make_interval(secs => v_seconds
        * case p_kind when 'starts' then (u.place - 1) / (v_amount ->> 'count')::int else 0 end)
        as due_at,
      array_agg(u.id order by u.place) as attempt_ids
    from unnest(v_ids) with ordinality u(id, place)
    group by 1
    order by 1
  loop
    perform millrace.put_back(p_stage, v_turn.attempt_ids, v_turn.due_at,
      jsonb_build_object('code', 'quota_' || p_kind, 'quota', p_payer.quota,
        'message', format('held back until %s UTC: the quota of %s in %s %s%s is used up',
          to_char(v_turn.due_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
          coalesce((v_amount ->> 'count') || ' starts', (v_amount ->> 'usd') || ' US dollars'),
          v_units, v_unit, case when v_units = 1 then '' else 's' end)));
  end loop;
  perform millrace.show_held(p_stage, v_ids);
end
$$;

-- started | queued → queued for attempts that the caller holds, due at a later time. What is held
-- back is not late: its bound moves with it.
create function millrace.put_back(
  p_stage millrace.stages, p_attempt_ids bigint[], p_due_at timestamptz, p_why jsonb default null
)
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

-- Shows attempts as queued, with their error, on the entities that nobody holds; it waits for no
-- row.
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
as $$
begin
  update millrace.attempts a
  set held = false, error = null
  where a.id = any (p_attempt_ids);
  perform millrace.show_held(p_stage, p_attempt_ids);
end
$$;

-- Makes those of held-back attempts due that nobody locks; returns how many.
create function millrace.release_held(p_attempt_ids bigint[]) returns int
as $$
declare
  v_group record;
  v_released int := 0;
begin
  for v_group in
    select s as stage, array_agg(a.id) as attempt_ids
    from unnest(millrace.lock_attempts(p_attempt_ids)) i
    join millrace.attempts a on a.id = i and a.state = 'queued' and a.held
    join millrace.stages s on s.id = a.stage_id
    group by s
  loop
    perform millrace.put_back(v_group.stage, v_group.attempt_ids, millrace.now());
    perform millrace.show_released(v_group.stage, v_group.attempt_ids);
    v_released := v_released + cardinality(v_group.attempt_ids);
  end loop;
  return v_released;
end
$$;

-- Makes attempts due that changed or dropped quotas hold back, up to so many and one page of each
-- pipeline more; returns how many. It passes over what somebody locks.
create function millrace.sweep_quotas(p_limit int) returns int
as $$
declare
  v_pipeline millrace.pipelines;
  v_page bigint[];
  v_any boolean;
  v_released int := 0;
begin
  for v_pipeline in
    select p.*
    from millrace.pipelines p
    where p.quota_changed_at is not null
    order by p.id
  loop
    exit when v_released >= p_limit;
    v_any := false;
    v_page := '{}';
    loop
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
          and r.quota_of = v_pipeline.id
          and a.error -> 'quota' is distinct from v_pipeline.quota
          and a.id > coalesce(v_page[cardinality(v_page)], 0)
        order by a.id
        limit p_limit);
      exit when cardinality(v_page) = 0;
      v_any := true;
      v_released := v_released + millrace.release_held(v_page);
      exit when v_released >= p_limit;
    end loop;
    -- For a minute it looks again: a claim that was under way may hold back by the former
    -- numbers.
    update millrace.pipelines p
    set quota_changed_at = null
    where not v_any
      and v_pipeline.quota_changed_at <= millrace.now() - interval '1 minute'
      and p.id in (
        select o.id
        from millrace.pipelines o
        where o.id = v_pipeline.id and o.quota_changed_at = v_pipeline.quota_changed_at
        for update skip locked);
  end loop;
  return v_released;
end
$$;
