-- Chapter 34: quotas: what one tenant may start and spend in a while
--
-- A definition may name a column that tells tenants apart, and how many starts and how many US
-- dollars each of them has in a window of time. What exceeds that is not refused, since a
-- user's write must not fail for it: it stays queued until the next window, and its error says
-- so. A pipeline without a quota pays nothing but the look at a flag.
--
--   who      a run keeps whose quota it counts against: read when a person starts it, and a child
--            has its parent's
--   window   fixed, counted from the epoch: an hour begins on the hour, a day at midnight UTC. So
--            two numbers a tenant are all that is kept, and it can be said when there is room
--            again. At worst a tenant has twice the amount around the turn of a window.
--   where    in the claim, after it has taken attempts by whatever limits: it puts back those
--            whose tenant has no room. So what is queued and never begins is charged to nobody,
--            and what may be overspent is what is in work.
--   starts   charged when the first attempt of a start is claimed. A start is what a person
--            queues, by a status or by start(). Claims charge one tenant's starts by turns: one
--            that finds another doing so puts them back for a second, and waits for nobody. What
--            operators do (retry, replay, reset) is no start.
--   spending noted when attempts end, failed ones too, by what they say they cost. Once it is
--            used up, nothing of the tenant is claimed, whoever started it.
--
-- Uses are insert-only, one row a batch and tenant; the sweep adds them up, and deletes those
-- of windows that are over.

-- Called by define(). A flag is never taken back: what is held back must still be let go.
create or replace function millrace.save_quota(p_pipeline_id int, p_definition jsonb) returns void
language sql set search_path = pg_catalog, pg_temp
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
comment on function millrace.save_quota(int, jsonb) is
  'Keeps the quota of a definition, and marks the stages whose claims are to look at quotas.';

-- Called by attach(). A column that was renamed since must not make a user's own write fail.
create or replace function millrace.attach_quota(p_pipeline millrace.pipelines, p_key_type text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $write$
declare
  v_function text := p_pipeline.name || '__quota_keys';
  v_ids int[];
  v_names text[];
begin
  execute case when p_pipeline.quota is null then
    format('drop function if exists millrace.%I(text[])', v_function)
  else format($f$
create or replace function millrace.%1$I(p_ids text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  return array(
    select millrace.group_key((select e.%5$I::text from %3$s e where e.%2$I = i.id::%4$s), 'value')
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    perform millrace.report('error', 'quota_key_failed', %6$L || sqlerrm);
    return array_fill(''::text, array[cardinality(p_ids)]);
end $$$f$,
    v_function, p_pipeline.entity_key, p_pipeline.entity_table, p_key_type,
    p_pipeline.quota ->> 'column',
    format('The tenants of pipeline %s cannot be read, so that its runs share one quota: ',
      p_pipeline.name)) end;
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where p.quota is not null;
  perform millrace.write_way('quota_keys', '(p_pipeline_id int, p_ids text[]) returns text[]',
    v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__quota_keys') from unnest(v_names) n),
    'the tenants that a pipeline''s entities belong to, in the order of their keys.');
end
$write$;
comment on function millrace.attach_quota(millrace.pipelines, text) is
  'Writes a pipeline''s __quota_keys function, and quota_keys(), which leads to those of all.';

-- A row that was a child once counts against the quota of its former parent when a person
-- starts it by itself, unless its own pipeline has a quota.
create or replace function millrace.name_payers(p_pipeline_id int, p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs bigint[];
  v_entities text[];
begin
  if cardinality(p_run_ids) = 0 then
    return;
  elsif (select p.quota is null from millrace.pipelines p where p.id = p_pipeline_id) then
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
  set quota_of = p_pipeline_id, quota_key = k.key
  from unnest(v_runs, millrace.quota_keys(p_pipeline_id, v_entities)) k(id, key)
  where r.id = k.id
    and (r.quota_of is distinct from p_pipeline_id or r.quota_key is distinct from k.key);
end
$$;
comment on function millrace.name_payers(int, bigint[]) is
  'Writes on runs that a person starts whose quota they count against.';

create or replace function millrace.inherit_quotas(p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.runs c
  set quota_of = p.quota_of, quota_key = p.quota_key
  from millrace.fan_outs f, millrace.runs p
  where c.id = any (p_run_ids)
    and f.id = c.fan_out_id
    and p.id = f.run_id
    and p.quota_of is not null;
end
$$;
comment on function millrace.inherit_quotas(bigint[]) is
  'Lets new children count against the quota of their parents.';

-- All that was queued since p_since, in the runs and in child runs that began with it:
-- whichever is claimed first pays.
create or replace function millrace.note_starts(p_run_ids bigint[], p_since timestamptz) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
    where a.run_id = m.id and a.state = 'queued' and a.created_at >= p_since
    offset 0) q;
  update millrace.attempts a set uncounted = true where a.id = any (v_ids);
end
$$;
comment on function millrace.note_starts(bigint[], timestamptz) is
  'Marks what a person has just started, so that the claim of it is charged to its tenant.';

create or replace function millrace.note_spending(p_items millrace.work[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
comment on function millrace.note_spending(millrace.work[]) is
  'Charges tenants with what attempts that have just ended say they cost.';

create or replace function millrace.window_end(p_quota jsonb, p_kind text) returns timestamptz
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_seconds numeric := (p_quota #>> array[p_kind, 'per_seconds'])::numeric;
begin
  return to_timestamp((floor(extract(epoch from millrace.now()) / v_seconds) + 1) * v_seconds);
end
$$;
comment on function millrace.window_end(jsonb, text) is
  'When the present window of an amount of a quota is over.';

create or replace function millrace.used_by(p_payer millrace.payer, p_kind text) returns numeric
language plpgsql volatile set search_path = pg_catalog, pg_temp
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
comment on function millrace.used_by(millrace.payer, text) is
  'What a tenant has used of an amount of its quota in the present window.';

-- Called by claim_next() for what a claim has just taken, where the stage is counted.
create or replace function millrace.keep_to_quotas(
  p_stage millrace.stages,
  p_token uuid,
  p_attempt_ids bigint[])
returns millrace.claimed[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_kept millrace.claimed[];
begin
  for v_group in
    select row(p.id, r.quota_key, p.quota)::millrace.payer as payer,
      array_agg(a.id order by a.queue_at, a.id) as attempt_ids
    from unnest(p_attempt_ids) i
    join millrace.attempts a on a.id = i
    join millrace.runs r on r.id = a.run_id
    join millrace.pipelines p on p.id = r.quota_of
    group by p.id, r.quota_key
    order by p.id, r.quota_key
  loop
    perform millrace.keep_to_quota(p_stage, v_group.payer, v_group.attempt_ids);
  end loop;
  v_kept := millrace.held_items(p_token, p_attempt_ids);
  -- The claim has passed the stage's gate, so that nobody else writes this row.
  update millrace.limiters g
  set tokens = g.tokens + cardinality(p_attempt_ids) - cardinality(v_kept)
  where g.stage_id = p_stage.id and p_stage.limits ? 'rate';
  if cardinality(v_kept) = 0 then
    delete from millrace.claims c where c.token = p_token;
  end if;
  return v_kept;
end
$$;
comment on function millrace.keep_to_quotas(millrace.stages, uuid, bigint[]) is
  'Puts back those of the attempts just claimed whose tenants have no room, with the tokens they '
  'took; returns the others.';

create or replace function millrace.keep_to_quota(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_attempt_ids bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_over bigint[] := '{}';
begin
  if p_payer.quota ? 'spending'
    and millrace.used_by(p_payer, 'spending') >= (p_payer.quota #>> '{spending,usd}')::numeric then
    perform millrace.hold_back(p_stage, p_payer, 'spending', p_attempt_ids);
    return;
  elsif p_payer.quota ? 'starts' then
    v_over := millrace.charge_starts(p_stage, p_payer, p_attempt_ids);
  end if;
  perform millrace.show_going(p_stage, array(
    select a.id
    from millrace.attempts a
    where a.id = any (p_attempt_ids) and a.id <> all (v_over) and a.held));
end
$$;
comment on function millrace.keep_to_quota(millrace.stages, millrace.payer, bigint[]) is
  'Charges a tenant with what was claimed of it, and puts back what it has no room for.';

-- Whoever finds another claim charging the same tenant does not wait for it, and cannot know
-- what it leaves.
create or replace function millrace.charge_starts(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_attempt_ids bigint[])
returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_marked bigint[] := array(
    select a.id
    from unnest(p_attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.uncounted
    order by i.place);
  v_runs bigint[];
  v_room int;
  v_over bigint[];
begin
  if cardinality(v_marked) = 0 then
    return '{}';
  elsif not pg_try_advisory_xact_lock(hashtext('millrace.quota'),
      hashtext(p_payer.pipeline_id || ':' || p_payer.key)) then
    perform millrace.put_back(p_stage, v_marked, millrace.now() + interval '1 second');
    return v_marked;
  end if;
  v_room := greatest(
    (p_payer.quota #>> '{starts,count}')::numeric - millrace.used_by(p_payer, 'starts'), 0);
  v_runs := array(
    select a.run_id
    from unnest(v_marked) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    group by a.run_id
    order by min(i.place)
    limit v_room);
  if cardinality(v_runs) > 0 then
    insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used)
    values (p_payer.pipeline_id, p_payer.key, 'starts',
      millrace.window_end(p_payer.quota, 'starts'), cardinality(v_runs));
    -- One start, one charge, however many stages it begins with. What another claim is
    -- just taking is its own to charge.
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
comment on function millrace.charge_starts(millrace.stages, millrace.payer, bigint[]) is
  'Charges a tenant with the starts among these attempts, as far as it has room, and puts back '
  'and returns the others.';

-- With them goes what the next claims would come upon, so that a tenant's thousands are put
-- back by a few claims. Starts are spread over the windows to come, so that each is put back
-- about once, however many there are.
create or replace function millrace.hold_back(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_kind text,
  p_attempt_ids bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_closes_at timestamptz := millrace.window_end(p_payer.quota, p_kind);
  v_window interval := make_interval(
    secs => (p_payer.quota #>> array[p_kind, 'per_seconds'])::float8);
  v_count int := (p_payer.quota #>> '{starts,count}')::numeric;
  v_ids bigint[] := p_attempt_ids || millrace.due_of_payer(p_stage, p_payer, p_kind = 'starts');
  v_turn record;
begin
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
comment on function millrace.hold_back(millrace.stages, millrace.payer, text, bigint[]) is
  'Puts attempts back into the queue until their tenant has room, and says so on their rows.';

create or replace function millrace.due_of_payer(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_uncounted boolean)
returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_ids bigint[];
begin
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
      and (q.uncounted or not p_uncounted));
  return array(
    select a.id
    from millrace.attempts a
    where a.id = any (v_ids) and a.state = 'queued' and a.queue_at <= v_now
    order by a.queue_at, a.id
    for update skip locked);
end
$$;
comment on function millrace.due_of_payer(millrace.stages, millrace.payer, boolean) is
  'Locks and returns what is due of a tenant among the next 500 of a stage: all of it, or only '
  'starts.';

-- What is held back is not late: its bound moves with it.
create or replace function millrace.put_back(
  p_stage millrace.stages,
  p_attempt_ids bigint[],
  p_due_at timestamptz,
  p_why jsonb default null)
returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
comment on function millrace.put_back(millrace.stages, bigint[], timestamptz, jsonb) is
  'started | queued → queued for attempts that the caller holds, due at a later time.';

create or replace function millrace.hold_message(p_quota jsonb, p_kind text, p_due_at timestamptz) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
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
comment on function millrace.hold_message(jsonb, text, timestamptz) is
  'What a tenant reads on a row that is held back.';

create or replace function millrace.show_held(p_stage millrace.stages, p_attempt_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
  v_free text[];
  v_context text;
begin
  if (select p.projection = 'none' from millrace.pipelines p where p.id = p_stage.pipeline_id) then
    return;
  end if;
  -- Who holds a row does not wait for this, nor this for him.
  v_free := millrace.lock_entities(p_stage.pipeline_id, array(
    select r.entity_id
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (p_attempt_ids)), false);
  perform millrace.project(p_stage.id, array(
    select row(r.entity_id, 'queued', null, null, a.error ->> 'message', a.retry_count,
      null, null, null)::millrace.change
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
comment on function millrace.show_held(millrace.stages, bigint[]) is
  'Shows attempts as queued, with their error, on those of their entities that nobody holds.';

create or replace function millrace.show_going(p_stage millrace.stages, p_attempt_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
comment on function millrace.show_going(millrace.stages, bigint[]) is
  'Takes the word that they are held back from attempts that go on, and from their entities.';

-- What was held back under numbers that are no longer those of the definition; the next claims
-- ask the new ones.
create or replace function millrace.let_go(p_pipeline millrace.pipelines, p_limit int) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_found bigint[];
  v_group record;
begin
  v_found := array(
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
    limit p_limit);
  for v_group in
    select s as stage, array_agg(a.id) as attempt_ids
    from unnest(millrace.lock_attempts(v_found)) i
    join millrace.attempts a on a.id = i and a.state = 'queued' and a.held
    join millrace.stages s on s.id = a.stage_id
    group by s
  loop
    perform millrace.put_back(v_group.stage, v_group.attempt_ids, v_now);
    perform millrace.show_going(v_group.stage, v_group.attempt_ids);
  end loop;
  return cardinality(v_found);
end
$$;
comment on function millrace.let_go(millrace.pipelines, int) is
  'Makes due what is held back by a quota that was changed or dropped, so many at a time; returns '
  'how many it found.';

-- Deleted and added in one statement, hence one snapshot: nothing is lost or counted twice.
create or replace function millrace.sum_uses(p_limit int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
comment on function millrace.sum_uses(int) is
  'Adds up what came since the last sweep, a row for each tenant, and deletes what is of windows '
  'that are over.';

create or replace function millrace.sweep_quotas() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
begin
  perform millrace.sum_uses(10000);
  for v_pipeline in
    select p.* from millrace.pipelines p where p.quota_changed_at is not null order by p.id
  loop
    -- For a minute it looks again: a claim that was under way may hold back by the former
    -- numbers.
    if millrace.let_go(v_pipeline, 5000) = 0
      and v_pipeline.quota_changed_at <= millrace.now() - interval '1 minute' then
      update millrace.pipelines p
      set quota_changed_at = null
      where p.id in (
        select o.id
        from millrace.pipelines o
        where o.id = v_pipeline.id and o.quota_changed_at = v_pipeline.quota_changed_at
        for update skip locked);
    end if;
  end loop;
exception
  when others then
    if millrace.error_kind(sqlstate) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'sweep_failed', 'The sweep of quotas failed: ' || sqlerrm);
end
$$;
comment on function millrace.sweep_quotas() is
  'Adds up what tenants have used, and lets go what a changed definition no longer holds back.';

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
