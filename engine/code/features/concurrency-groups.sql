-- Chapter 20: groups
--
-- A stage with the limits concurrency or priority has its queue sorted into groups, one for each key and class of priority. A
-- claim takes from the groups by turns: the higher class first, in a class one round after the other. A group with nothing due
-- sleeps, one whose key is at its limit is parked until a slot is freed. Only claims write groups, one at a time (they have
-- passed the stage's gate); who enqueues inserts arrivals, which the next claim reads, and waits for nobody.

create or replace function millrace.group_key(p_value text, p_part text) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  -- An index entry must fit into a page, so what is very long is cut, with its hash to tell it from others.
  select case when octet_length(k) > 400 then left(k, 80) || md5(k) else k end
  from (select coalesce(case when p_part = 'host' then
    rtrim(lower((regexp_match(btrim(p_value), '^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\s]+)(?::\d*)?(?:[/?#]|$)', 'i'))[1]), '.') end, p_value, '') as k) v
$$;
comment on function millrace.group_key(text, text) is 'The key that a column''s value stands for: itself, or the host of a URL (lower case, without port and user; what is no URL as a whole); '''' for null.';

-- A column that was renamed since must not make a user's own write fail.
create or replace function millrace.group_keys(p_stage millrace.stages, p_entity_ids text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage.limits ? 'concurrency' then
    return millrace.keys_of_entities(p_stage.pipeline_id, p_stage.name, p_entity_ids);
  end if;
  return array_fill(''::text, array[cardinality(p_entity_ids)]);
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    perform millrace.report('error', 'lane_key_failed', format('The keys of stage %s cannot be read, so that its rows wait under one key: %s', p_stage.name, sqlerrm),
      jsonb_build_object('column', p_stage.limits #>> '{concurrency,column}'));
    return array_fill(''::text, array[cardinality(p_entity_ids)]);
end
$$;
comment on function millrace.group_keys(millrace.stages, text[]) is 'The keys of entities at a stage, in their order.';

create or replace function millrace.place_attempts(p_stage millrace.stages, p_attempt_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_found record;
begin
  select array_agg(a.id) as ids, array_agg(r.entity_id) as entity_ids, array_agg(case when coalesce((p_stage.limits -> 'priority')::boolean, false) then r.priority else 0 end) as priorities
  into v_found from unnest(p_attempt_ids) i join millrace.attempts a on a.id = i join millrace.runs r on r.id = a.run_id;
  if v_found.ids is null then
    return;
  end if;
  with placed as (
    update millrace.attempts a set concurrency_group = u.priority || u.key
    from unnest(v_found.ids, v_found.priorities, millrace.group_keys(p_stage, v_found.entity_ids)) u(id, priority, key)
    where a.id = u.id and a.state in ('queued', 'started', 'waiting')
    returning a.concurrency_group, a.queue_at, a.state
  )
  insert into millrace.arrivals (stage_id, concurrency_group, due_at)
  select p_stage.id, p.concurrency_group, min(p.queue_at) from placed p where p.state = 'queued' group by p.concurrency_group;
end
$$;
comment on function millrace.place_attempts(millrace.stages, bigint[]) is 'Gives live attempts their group, from their entity as it is now, and announces those that are queued.';

create or replace function millrace.assign_groups(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.has_groups then
    perform millrace.place_attempts(v_stage, array(
      select a.id from unnest(p_run_ids) r join millrace.attempts a on a.run_id = r and a.stage_id = p_stage_id and a.state = 'queued'));
  end if;
end
$$;
comment on function millrace.assign_groups(int, bigint[]) is 'Sorts what was just queued at a stage for these runs into its groups. The group stays until it is queued again, whatever becomes of the column.';

-- Attempts that were queued before the stage had groups, or by a transaction that did not know yet.
create or replace function millrace.adopt_attempts(p_stage millrace.stages, p_limit int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  v_ids := array(
    select a.id from (
      (select a.id from millrace.runs r join millrace.attempts a on a.run_id = r.id and a.stage_id = p_stage.id and a.state in ('queued', 'started', 'waiting')
       where p_limit is null and r.pipeline_id = p_stage.pipeline_id and r.status = 'running')
      union all
      (select q.id from millrace.attempts q where p_limit is not null and q.stage_id = p_stage.id and q.queue_at is not null order by q.queue_at, q.id limit p_limit)) q
    join millrace.attempts a on a.id = q.id
    where a.concurrency_group is null for update of a skip locked);
  if cardinality(v_ids) > 0 then
    perform millrace.place_attempts(p_stage, v_ids);
  end if;
end
$$;
comment on function millrace.adopt_attempts(millrace.stages, int) is 'Sorts those attempts of a stage that have no group into groups: so many of the oldest in its queue, or all that are live.';

create or replace function millrace.groups_sorted_by(p_limits jsonb) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_array(p_limits #> '{concurrency,column}', case when p_limits ? 'concurrency' then coalesce(p_limits #>> '{concurrency,part}', 'value') end, coalesce((p_limits ->> 'priority')::boolean, false))
$$;
comment on function millrace.groups_sorted_by(jsonb) is 'What a stage with these limits sorts its queue by.';

-- Called by define() before it saves the stages. What is left out here, since somebody holds it, is about to end.
create or replace function millrace.forget_groups(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  for v_stage in
    select t.id, millrace.groups_sorted_by(t.limits) <> millrace.groups_sorted_by(s -> 'limits') as sorted_anew,
      coalesce(millrace.limits_of(s) ?| array['max_in_flight', 'concurrency'], false) as counted
    from millrace.stages t join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
    where t.pipeline_id = p_pipeline_id and t.limits is not null order by t.id
  loop
    if v_stage.sorted_anew or not v_stage.counted then
      delete from millrace.in_flight f using (select o.attempt_id, o.token from millrace.in_flight o where o.stage_id = v_stage.id for update skip locked) o
      where f.attempt_id = o.attempt_id and f.token = o.token;
    end if;
    if v_stage.sorted_anew then
      delete from millrace.concurrency_groups l where l.stage_id = v_stage.id;
      delete from millrace.arrivals a where a.stage_id = v_stage.id;
      update millrace.attempts a set concurrency_group = null from (
        select t.id from millrace.runs r join millrace.attempts t on t.run_id = r.id and t.stage_id = v_stage.id and t.state in ('queued', 'started', 'waiting') and t.concurrency_group is not null
        where r.pipeline_id = p_pipeline_id and r.status = 'running' for update of t skip locked) t
      where a.id = t.id;
    end if;
  end loop;
end
$$;
comment on function millrace.forget_groups(int, jsonb) is 'Forgets the groups of stages that a definition no longer sorts, or sorts by something else, and what it no longer counts.';

-- Called by attach(): the static way from entities to their keys, and what is queued already.
create or replace function millrace.attach_groups(p_pipeline millrace.pipelines, p_key_type text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $write$
declare
  v_branches text;
  v_stage millrace.stages;
begin
  select string_agg(format($b$
  when %L then
    return array(
      select millrace.group_key((select e.%I::text from %s e where e.%I = i.id::%s), %L)
      from unnest(p_ids) with ordinality i(id, place) order by i.place);$b$,
    s.name, s.limits #>> '{concurrency,column}', p_pipeline.entity_table, p_pipeline.entity_key, p_key_type, coalesce(s.limits #>> '{concurrency,part}', 'value')), '' order by s.id)
  into v_branches from millrace.stages s where s.pipeline_id = p_pipeline.id and s.limits ? 'concurrency';
  if v_branches is null then
    execute format('drop function if exists millrace.%I(text, text[])', p_pipeline.name || '__keys');
  else
    execute format($f$
create or replace function millrace.%1$I(p_stage text, p_ids text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  case p_stage%2$s
  end case;
end $$$f$, p_pipeline.name || '__keys', v_branches);
  end if;
  execute format($f$
create or replace function millrace.keys_of_entities(p_pipeline_id int, p_stage text, p_ids text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  case p_pipeline_id
  when 0 then null;%s
  end case;
end $$;
comment on function millrace.keys_of_entities(int, text, text[]) is 'Written by attach(): the keys of entities at a stage with concurrency, in their order.'$f$,
    (select string_agg(distinct format(E'\n  when %s then return millrace.%I(p_stage, p_ids);', p.id, p.name || '__keys'), '')
     from millrace.pipelines p join millrace.stages s on s.pipeline_id = p.id where s.limits ? 'concurrency'));
  revoke all on function millrace.keys_of_entities(int, text, text[]) from public;
  for v_stage in select s.* from millrace.stages s where s.pipeline_id = p_pipeline.id order by s.id loop
    if v_stage.has_groups then
      perform millrace.adopt_attempts(v_stage, null);
      -- Every group is looked at anew, since a limit may have been raised.
      insert into millrace.arrivals (stage_id, concurrency_group, due_at)
      select v_stage.id, a.concurrency_group, min(a.queue_at) from millrace.attempts a
      where a.stage_id = v_stage.id and a.concurrency_group is not null and a.queue_at is not null and a.state = 'queued' group by a.concurrency_group;
    end if;
    perform millrace.count_attempts(millrace.uncounted_attempts(v_stage, null));
  end loop;
end
$write$;
comment on function millrace.attach_groups(millrace.pipelines, text) is 'Writes a pipeline''s __keys function, sorts what is queued at its stages with groups, and counts what is in work at those with limits.';

-- The groups that have news, each once however many there are, by a loose scan from one group to the next.
create or replace function millrace.groups_with_arrivals(p_stage_id int, p_after text, p_limit int) returns text[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    with recursive seen(concurrency_group) as (
      (select a.concurrency_group from millrace.arrivals a where a.stage_id = p_stage_id and a.concurrency_group > p_after order by a.concurrency_group limit 1)
      union all
      select (select a.concurrency_group from millrace.arrivals a where a.stage_id = p_stage_id and a.concurrency_group > s.concurrency_group order by a.concurrency_group limit 1) from seen s where s.concurrency_group is not null
    )
    select s.concurrency_group from seen s where s.concurrency_group is not null limit p_limit);
end
$$;
comment on function millrace.groups_with_arrivals(int, text, int) is 'Up to so many groups with arrivals, in order, behind the one named.';

-- A claim reads at least as many groups and arrivals as it can take attempts, so that none waits here for longer than a round.
create or replace function millrace.admit_arrivals(p_stage_id int, p_limiter millrace.limiters, p_room int) returns millrace.limiters
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_many int := 100 + 2 * p_room;
  v_groups text[] := millrace.groups_with_arrivals(p_stage_id, p_limiter.arrivals_to, v_many);
  v_freed text[];
begin
  if cardinality(v_groups) < v_many and p_limiter.arrivals_to <> '' then
    v_groups := array(select distinct l from unnest(v_groups || millrace.groups_with_arrivals(p_stage_id, '', v_many - cardinality(v_groups))) l);
    p_limiter.arrivals_to := '';
  else
    p_limiter.arrivals_to := case when cardinality(v_groups) < v_many then '' else v_groups[v_many] end;
  end if;
  if cardinality(v_groups) > 0 then
    with gone as (
      delete from millrace.arrivals a using (
        select b.concurrency_group, b.id from unnest(v_groups) u(concurrency_group) cross join lateral (
          select n.concurrency_group, n.id from millrace.arrivals n where n.stage_id = p_stage_id and n.concurrency_group = u.concurrency_group order by n.id limit 1 + 10 * v_many / cardinality(v_groups)) b) d
      where a.stage_id = p_stage_id and a.concurrency_group = d.concurrency_group and a.id = d.id
      returning a.concurrency_group, a.due_at
    ), news as (
      select g.concurrency_group, min(g.due_at) as due_at, row_number() over (order by g.concurrency_group) as place from gone g where g.concurrency_group not like '*%' group by g.concurrency_group
    ), admitted as (
      insert into millrace.concurrency_groups as t (stage_id, concurrency_group, priority, turn, due_at)
      select p_stage_id, n.concurrency_group, left(n.concurrency_group, 1)::smallint, case when n.due_at <= v_now then p_limiter.last_turn + n.place end, case when n.due_at > v_now then n.due_at end from news n
      on conflict on constraint concurrency_groups_pkey do update set turn = coalesce(t.turn, excluded.turn),
        due_at = case when coalesce(t.turn, excluded.turn) is null and t.due_at < 'infinity' then least(t.due_at, excluded.due_at) when coalesce(t.turn, excluded.turn) is null then t.due_at end
    )
    select array_agg(distinct substr(g.concurrency_group, 2)) into v_freed from gone g where g.concurrency_group like '*%';
  end if;
  p_limiter.last_turn := p_limiter.last_turn + v_many;
  -- Those that are due, and the parked ones of freed keys, queue up behind the others.
  with woken as (
    select w.concurrency_group, row_number() over () as place from (
      (select l.concurrency_group from millrace.concurrency_groups l where l.stage_id = p_stage_id and l.due_at <= v_now order by l.due_at limit v_many)
      union all
      select l.concurrency_group from unnest(v_freed) k cross join generate_series(0, 9) c join millrace.concurrency_groups l on l.stage_id = p_stage_id and l.concurrency_group = c || k and l.due_at = 'infinity') w
  )
  update millrace.concurrency_groups l set turn = p_limiter.last_turn + w.place, due_at = null from woken w where l.stage_id = p_stage_id and l.concurrency_group = w.concurrency_group;
  p_limiter.last_turn := p_limiter.last_turn + 11 * v_many;
  return p_limiter;
end
$$;
comment on function millrace.admit_arrivals(int, millrace.limiters, int) is 'Reads what has arrived and wakes the groups that are due or freed; returns the gate as it is then.';

create or replace function millrace.free_of_key(p_stage millrace.stages, p_group text) returns int
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit int := (p_stage.limits #>> '{concurrency,limit}')::int;
begin
  return v_limit - (select count(*) from (
    select from millrace.in_flight f where f.stage_id = p_stage.id and f.key = substr(p_group, 2) limit v_limit) f);
end
$$;
comment on function millrace.free_of_key(millrace.stages, text) is 'How many more attempts of a group''s key may be in work; null without a limit.';

create or replace function millrace.take_from_groups(p_stage millrace.stages, p_groups text[], p_share int, p_token uuid, p_now timestamptz, out attempt_ids bigint[], out groups text[])
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit int := (p_stage.limits #>> '{concurrency,limit}')::int;
begin
  with visited as materialized (
    select u.concurrency_group, case when v_limit is null then p_share else least(p_share, v_limit - (
      select count(*) from (select from millrace.in_flight f where f.stage_id = p_stage.id and f.key = substr(u.concurrency_group, 2) limit v_limit) f)) end as share
    from unnest(p_groups) u(concurrency_group)
  ), picked as materialized (
    select a.id, v.concurrency_group from visited v cross join lateral (
      select q.id from millrace.attempts q
      where q.stage_id = p_stage.id and q.concurrency_group = v.concurrency_group and q.queue_at <= p_now and q.state = 'queued' and not q.isolated
      order by q.queue_at, q.id limit v.share for update skip locked) a
  ), taken as (
    update millrace.attempts a set state = 'started', token = p_token, started_at = p_now from picked p where a.id = p.id returning a.id, p.concurrency_group
  )
  select coalesce(array_agg(t.id), '{}'), coalesce(array_agg(t.concurrency_group), '{}') into attempt_ids, groups from taken t;
end
$$;
comment on function millrace.take_from_groups(millrace.stages, text[], int, uuid, timestamptz) is 'queued → started for up to p_share due attempts of each group, as far as its key has slots; returns them, each with its group.';

-- Each group goes to the end, to sleep until something of it is due, or into its parking place; one with nothing queued is gone.
create or replace function millrace.end_turns(p_stage millrace.stages, p_groups text[], p_served text[], p_last_turn bigint, p_now timestamptz) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit int := (p_stage.limits #>> '{concurrency,limit}')::int;
begin
  with looked as materialized (
    select u.concurrency_group, u.place, n.queue_at, u.concurrency_group = any (p_served) as served, v_limit is not null and v_limit <= (
      select count(*) from (select from millrace.in_flight f where f.stage_id = p_stage.id and f.key = substr(u.concurrency_group, 2) limit v_limit) f) as full
    from unnest(p_groups) with ordinality u(concurrency_group, place)
    left join lateral (
      select a.queue_at from millrace.attempts a
      where a.stage_id = p_stage.id and a.concurrency_group = u.concurrency_group and a.queue_at is not null and a.state = 'queued' order by a.queue_at, a.id limit 1) n on true
  ), gone as (
    delete from millrace.concurrency_groups l using looked k where l.stage_id = p_stage.id and l.concurrency_group = k.concurrency_group and k.queue_at is null
  )
  update millrace.concurrency_groups l set
    turn = case when not k.full and k.queue_at <= p_now and k.served then p_last_turn + k.place end,
    -- What is due and could not be got is locked by somebody, or must be alone: it is left for a moment.
    due_at = case when k.full then 'infinity' when k.queue_at > p_now then k.queue_at when not k.served then p_now + interval '1 second' end
  from looked k where l.stage_id = p_stage.id and l.concurrency_group = k.concurrency_group and k.queue_at is not null;
end
$$;
comment on function millrace.end_turns(millrace.stages, text[], text[], bigint, timestamptz) is 'Sends groups that had their turn to the end, to sleep, or to be parked.';

-- What follows a lost lease is claimed alone, by a host that has nothing else in work (chapter claims).
create or replace function millrace.take_isolated(p_stage millrace.stages, p_busy boolean, p_token uuid, p_now timestamptz, out is_due boolean, out attempt_id bigint, out concurrency_group text)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  select a.id, a.concurrency_group into attempt_id, concurrency_group from millrace.attempts a
  where a.stage_id = p_stage.id and a.isolated and a.queue_at <= p_now and a.state = 'queued' and coalesce(millrace.free_of_key(p_stage, a.concurrency_group) > 0, true)
  order by a.queue_at, a.id limit 1 for update skip locked;
  is_due := attempt_id is not null;
  if p_busy then
    attempt_id := null;
  end if;
  update millrace.attempts a set state = 'started', token = p_token, started_at = p_now where a.id = attempt_id;
end
$$;
comment on function millrace.take_isolated(millrace.stages, boolean, uuid, timestamptz) is 'queued → started for the oldest attempt that must be alone, if the host is idle; is_due tells whether there is one.';

create or replace function millrace.claim_groups(p_stage millrace.stages, p_worker_id uuid, p_host uuid, p_room int, inout limiter millrace.limiters, out token uuid, out attempt_ids bigint[], out entity_ids text[], out wait_ms int)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_token uuid := gen_random_uuid();
  v_host record;
  v_loner record;
  v_got record;
  v_groups text[];
  v_taken bigint[] := '{}';
begin
  select count(*) > 0 as busy, bool_or(c.isolated) as isolated into v_host
  from millrace.claims c where c.host = p_host and c.expires_at > v_now;
  if v_host.isolated then
    return;
  end if;
  limiter := millrace.admit_arrivals(p_stage.id, limiter, p_room);
  v_loner := millrace.take_isolated(p_stage, v_host.busy, v_token, v_now);
  if v_loner.attempt_id is not null then
    v_taken := array[v_loner.attempt_id];
    perform millrace.note_in_flight(p_stage, v_taken, array[v_loner.concurrency_group], v_token, p_worker_id);
  end if;
  -- The number of rounds is for groups that turn out to be empty; where it ends, the worker asks again.
  for v_round in 1 .. case when v_loner.is_due then 0 else 50 end loop
    v_groups := array(
      select l.concurrency_group from millrace.concurrency_groups l
      where l.stage_id = p_stage.id and l.turn is not null and l.priority = (
        select t.priority from millrace.concurrency_groups t where t.stage_id = p_stage.id and t.turn is not null order by t.priority desc, t.turn limit 1)
      order by l.turn limit p_room - cardinality(v_taken));
    exit when cardinality(v_groups) = 0;
    v_got := millrace.take_from_groups(p_stage, v_groups, greatest((p_room - cardinality(v_taken)) / cardinality(v_groups), 1), v_token, v_now);
    perform millrace.note_in_flight(p_stage, v_got.attempt_ids, v_got.groups, v_token, p_worker_id);
    perform millrace.end_turns(p_stage, v_groups, v_got.groups, limiter.last_turn, v_now);
    limiter.last_turn := limiter.last_turn + cardinality(v_groups);
    v_taken := v_taken || v_got.attempt_ids;
    exit when cardinality(v_taken) >= p_room;
  end loop;
  if cardinality(v_taken) = 0 then
    wait_ms := case
      when v_loner.is_due then null
      when cardinality(v_groups) > 0 or exists (select from millrace.arrivals a where a.stage_id = p_stage.id) then 0
      when exists (select from millrace.concurrency_groups l where l.stage_id = p_stage.id and l.due_at = 'infinity') then 1000 end;
    return;
  end if;
  token := v_token;
  select array_agg(a.id order by i.place), array_agg(r.entity_id order by i.place) into attempt_ids, entity_ids
  from unnest(v_taken) with ordinality i(id, place)
  join millrace.attempts a on a.id = i.id
  join millrace.runs r on r.id = a.run_id;
  insert into millrace.claims (token, worker_id, host, expires_at, isolated, attempt_ids)
  values (v_token, p_worker_id, p_host, v_now + p_stage.lease, v_loner.is_due, attempt_ids);
end
$$;
comment on function millrace.claim_groups(millrace.stages, uuid, uuid, int, millrace.limiters) is 'The claim of a stage with groups: by turns, the higher class of priority first.';

-- A group that got nothing after all goes to the front, so that one with large rows cannot be served before it for ever. One
-- that got less than it might have has had its turn, and is announced like any group in which something arrives.
create or replace function millrace.give_back_turns(p_stage millrace.stages, p_kept bigint[], p_back bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_first bigint := coalesce((
    select min(l.turn) from millrace.concurrency_groups l where l.stage_id = p_stage.id and l.turn is not null), 0);
begin
  with back as materialized (
    select a.concurrency_group, min(a.queue_at) as due_at, min(u.place) as place,
      a.concurrency_group in (select k.concurrency_group from millrace.attempts k where k.id = any (p_kept)) as served
    from unnest(p_back) with ordinality u(id, place)
    join millrace.attempts a on a.id = u.id
    where a.concurrency_group is not null
    group by a.concurrency_group
  ), announced as (
    insert into millrace.arrivals (stage_id, concurrency_group, due_at)
    select p_stage.id, b.concurrency_group, b.due_at
    from back b
    where b.served
  )
  insert into millrace.concurrency_groups as l (stage_id, concurrency_group, priority, turn)
  select p_stage.id, b.concurrency_group, left(b.concurrency_group, 1)::smallint, v_first - row_number() over (order by b.place desc)
  from back b
  where not b.served
  on conflict on constraint concurrency_groups_pkey do update
  set turn = excluded.turn, due_at = null;
end
$$;
comment on function millrace.give_back_turns(millrace.stages, bigint[], bigint[]) is
  'Puts the groups of attempts that a claim does not keep back in turn.';

create or replace function millrace.limit_faults() returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select 'a queued attempt''s concurrency_group is known to its stage', a.run_id, a.id, a.concurrency_group
  from millrace.attempts a join millrace.stages s on s.id = a.stage_id and s.has_groups
  where a.queue_at is not null and a.state = 'queued' and a.concurrency_group is not null
    and not exists (select from millrace.concurrency_groups l where l.stage_id = a.stage_id and l.concurrency_group = a.concurrency_group)
    and not exists (select from millrace.arrivals n where n.stage_id = a.stage_id and n.concurrency_group = a.concurrency_group)
  union all
  select 'a parked concurrency_group''s key has something in flight, or was freed', null, null, l.concurrency_group
  from millrace.concurrency_groups l join millrace.stages s on s.id = l.stage_id and s.has_groups
  where l.due_at = 'infinity'
    and not exists (select from millrace.in_flight f where f.stage_id = l.stage_id and f.key = substr(l.concurrency_group, 2))
    and not exists (select from millrace.arrivals n where n.stage_id = l.stage_id and n.concurrency_group = '*' || substr(l.concurrency_group, 2))
$$;
comment on function millrace.limit_faults() is 'What millrace.check_invariants() finds in groups: nothing queued is out of reach.';
