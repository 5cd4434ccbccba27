-- Shared limits: one limit over stages of any pipelines
--
-- A limit is defined by its name, before the pipelines whose stages name it. Its parts are those of
-- a stage's own limits, and spending:
--
--   max_in_flight   counted over all its stages in in_flight
--   rate            one token bucket, in the limit's row (shared-room.sql)
--   key_rate        one for each key of its stages (limit-keys.sql)
--   spending        dollars and tokens in a window of time (budgets.sql)
--   adaptive        its rate, or that of the key, is halved when a service refuses (adaptive.sql)
--
-- Claims under one shared limit go one at a time, whatever their stage: each locks the limits of
-- its stage after the stage's own limiter, by their ids. Whoever ends attempts only inserts what
-- they used and how a service refused them, and waits for nobody. A stage under a shared limit is
-- counted in in_flight in any case, so that a limit that changes finds its places counted.

-- Raises unless what a shared limit is to be is of the right form. What a throttle may say is less:
-- it neither learns nor ends.
create or replace function millrace.check_shared_limit(
  p_name text,
  p_limits jsonb,
  p_is_throttle boolean)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schema jsonb := millrace.shared_limit_schema();
  v_fault jsonb;
begin
  if p_is_throttle then
    v_schema := v_schema #- '{properties,adaptive}';
  end if;
  v_fault := millrace.find_fault(v_schema, v_schema, coalesce(p_limits, 'null'), 'limits', true);
  if v_fault is not null then
    raise exception 'shared limit %: %', p_name, v_fault ->> 'sentence'
      using errcode = case when p_is_throttle then 'MR002' else 'MR001' end,
        hint = coalesce(nullif(concat_ws(' ',
          v_fault ->> 'hint', 'Known here: ' || (v_fault ->> 'known') || '.',
          v_fault ->> 'remedy'), ''),
          'Correct it, or leave it out. To let nothing through, pause the stages.');
  elsif p_limits -> 'adaptive' = 'true' and not p_limits ?| array['rate', 'key_rate'] then
    raise exception 'shared limit %: limits.adaptive is true, but there is no rate', p_name
      using errcode = 'MR001', hint = 'It is the rate that learns: set it, or leave adaptive out.';
  elsif not p_limits ?| array['max_in_flight', 'rate', 'key_rate', 'spending'] then
    raise exception 'shared limit %: limits is %, which limits nothing', p_name, p_limits
      using errcode = 'MR001', hint = 'Set max_in_flight, rate, key_rate or spending.';
  end if;
  perform millrace.check_key_rate(p_name, p_limits);
end
$$;

-- Makes the caller the only one who claims under a shared limit, or changes it, until it commits.
create or replace function millrace.lock_shared_limit(p_limit_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtext('millrace.shared_limit'), p_limit_id);
end
$$;

-- Finds the shared limit of this name and locks it against claims and other changes; raises MR003
-- when there is none.
create or replace function millrace.shared_limit_named(p_name text) returns millrace.shared_limits
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits;
begin
  perform millrace.lock_shared_limit(l.id)
  from millrace.shared_limits l
  where l.name = p_name;
  -- In a statement after the lock: somebody may just have changed or dropped it.
  select l.* into v_limit from millrace.shared_limits l where l.name = p_name;
  if not found then
    raise exception 'there is no shared limit %', coalesce(p_name, 'null')
      using errcode = 'MR003', hint = 'Known: ' || coalesce(
        (select string_agg(l.name, ', ' order by l.name) from millrace.shared_limits l),
        'none, define it with millrace.define_limit()') || '.';
  end if;
  return v_limit;
end
$$;

-- Writes what a shared limit is today. What its bucket holds by the former rate stays, as far as
-- there is room by the new one; and what it learned, while it goes on learning. The caller has
-- locked it. Wakes its stages, of which it may let more through than before.
create or replace function millrace.set_shared_limit(p_limit millrace.shared_limits, p_limits jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_learns boolean := coalesce((p_limits ->> 'adaptive')::boolean, false);
begin
  update millrace.shared_limits l
  set limits = p_limits,
    tokens = millrace.bucket_of(p_limit),
    refilled_at = greatest(millrace.now(), p_limit.refused_until),
    share = case when v_learns then p_limit.share else 1 end,
    lowered_at = case when v_learns then p_limit.lowered_at end,
    lowered_since = case when v_learns then p_limit.lowered_since end,
    heed_from = case when v_learns then p_limit.heed_from end,
    refused_until = case when v_learns then p_limit.refused_until end,
    refused_by = case when v_learns then p_limit.refused_by end
  where l.id = p_limit.id;
  if not v_learns or not p_limits ? 'key_rate' then
    delete from millrace.limit_keys k where k.limit_id = p_limit.id;
  end if;
  perform millrace.wake_keys(p_limit.id, null);
  perform millrace.wake(array(
    select m.stage_id
    from millrace.limited_stages m
    join millrace.stages s on s.id = m.stage_id
    where m.limit_id = p_limit.id
      and s.enabled
      and millrace.has_ready_work(m.stage_id)
    order by m.stage_id));
end
$$;

create or replace function millrace.define_limit(p_name text, p_limits jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits;
begin
  if coalesce(p_name !~ '^[a-z][a-z0-9_]{0,40}$', true) then
    raise exception 'the name of a shared limit is %, but must be a lower-case name of letters, '
      'digits and _', coalesce(quote_literal(p_name), 'null')
      using errcode = 'MR001',
        hint = 'Use letters, digits and underscores, beginning with a letter, at most 41.';
  end if;
  perform millrace.check_shared_limit(p_name, p_limits, false);
  insert into millrace.shared_limits (name, declared, limits)
  values (p_name, p_limits, p_limits)
  on conflict on constraint shared_limits_name_key do nothing;
  if not found then
    v_limit := millrace.shared_limit_named(p_name);
    update millrace.shared_limits l set declared = p_limits where l.id = v_limit.id;
    perform millrace.set_shared_limit(v_limit, millrace.throttled(p_limits, coalesce(
      v_limit.throttle, '{}')));
  end if;
end
$$;
comment on function millrace.define_limit(text, jsonb) is
  'Defines a limit that stages of any pipeline may share, or changes it: {"rate": {"count": 60, '
  '"per_seconds": 60}, "adaptive": true, "max_in_flight": 20, "spending": {"usd": 5, "tokens": '
  '1000000, "per_seconds": 86400}}, each of them or several. key_rate is a rate for each key of '
  'its stages, such as each host; with it an adaptive limit learns of each key by itself.';

create or replace function millrace.drop_limit(p_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits := millrace.shared_limit_named(p_name);
  v_named_by text;
begin
  -- A definition that names it has locked it until its transaction ends.
  perform from millrace.shared_limits l where l.id = v_limit.id for update;
  v_named_by := (
    select string_agg(p.name || '.' || s.name, ', ' order by s.id)
    from millrace.limited_stages m
    join millrace.stages s on s.id = m.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where m.limit_id = v_limit.id);
  if v_named_by is not null then
    raise exception 'shared limit % cannot be dropped: % names it', p_name, v_named_by
      using errcode = 'MR004', hint = 'Take it from limits.shared of each of them first.';
  end if;
  delete from millrace.limit_uses u where u.limit_id = v_limit.id;
  delete from millrace.limit_refusals r where r.limit_id = v_limit.id;
  delete from millrace.shared_limits l where l.id = v_limit.id;
end
$$;
comment on function millrace.drop_limit(text) is
  'Drops a shared limit that no stage names any more.';

-- Raises MR001 unless the shared limits that a stage names are defined, each named once. It holds
-- on to them, so that none is dropped before the definition is written.
create or replace function millrace.check_shared_names(p_stage jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{limits,shared}';
  v_names text[] := array(select jsonb_array_elements_text(p_stage #> v_path));
  v_known text[];
  v_name text;
begin
  perform
  from millrace.shared_limits l
  where l.name = any (v_names)
  order by l.id
  for key share;
  v_known := array(select l.name from millrace.shared_limits l order by l.name);
  select n
  into v_name
  from unnest(v_names) n
  group by n
  having n <> all (v_known) or count(*) > 1
  order by n
  limit 1;
  if found and v_name = any (v_known) then
    raise exception 'stage %: limits.shared names % twice', p_stage ->> 'name', v_name
      using errcode = 'MR001', hint = 'Name each shared limit once.';
  elsif found then
    raise exception 'stage %: limits.shared names %, which is no shared limit',
      p_stage ->> 'name', v_name
      using errcode = 'MR001', hint = case
        when cardinality(v_known) = 0
          then 'There is none: define it with millrace.define_limit() before the pipeline.'
        else 'Known: ' || array_to_string(v_known, ', ') || '.'
      end;
  end if;
  v_name := (
    select l.name
    from millrace.shared_limits l
    where l.name = any (v_names)
      and l.limits ? 'key_rate'
      and p_stage #> '{limits,concurrency}' is null
    order by l.name
    limit 1);
  if v_name is not null then
    raise exception 'stage %: limits.shared names %, which has a rate for each key, but '
      'limits.concurrency is missing', p_stage ->> 'name', v_name
      using errcode = 'MR001', hint = 'Set limits.concurrency: its column is the key.';
  end if;
end
$$;

-- define() writes which shared limits the stages of a pipeline name.
create or replace function millrace.save_shared_names(p_pipeline_id int) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from millrace.limited_stages m
  using millrace.stages s, millrace.shared_limits l
  where s.id = m.stage_id
    and s.pipeline_id = p_pipeline_id
    and l.id = m.limit_id
    and not coalesce(s.limits -> 'shared' ? l.name, false);
  insert into millrace.limited_stages (limit_id, stage_id)
  select l.id, s.id
  from millrace.stages s
  cross join lateral jsonb_array_elements_text(s.limits -> 'shared') n
  join millrace.shared_limits l on l.name = n
  where s.pipeline_id = p_pipeline_id
  on conflict on constraint limited_stages_pkey do nothing;
$$;
