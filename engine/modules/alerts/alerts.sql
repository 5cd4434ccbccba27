-- Alerts: a stage that takes longer than it should
--
-- A stage may have a bound (stages.sla) on the time from ready to done, waits and retries included.
-- Attempts carry the time at which they are late (late_at). A retry takes it from the attempt
-- before, so it belongs to the execution, named by the number of its first attempt; a reset, or a
-- person's retry, begins a new one.
--
-- Transitions only carry the time along. The sweep raises one alert an execution, which clears
-- late_at, and resolves it once the execution is over. For that it holds free attempts without
-- their runs, last of all: it never waits.

-- Says an interval as a person would, in its two largest units: 1 hour 5 minutes.
create function millrace.in_words(p_interval interval) returns text
language plpgsql immutable
as $$
declare
  v_seconds bigint := greatest(floor(extract(epoch from p_interval)), 0);
begin
  return coalesce((
    select string_agg(
      format('%s %s%s', u.n, u.unit, case when u.n > 1 then 's' end), ' ' order by u.place)
    from (
      select o.*
      from (values
        (1, 'day', v_seconds / 86400),
        (2, 'hour', v_seconds / 3600 % 24),
        (3, 'minute', v_seconds / 60 % 60),
        (4, 'second', v_seconds % 60)
      ) o(place, unit, n)
      where o.n > 0
      order by o.place
      limit 2
    ) u), '0 seconds');
end
$$;

-- Raises alerts about up to so many attempts that are late; returns how many.
create function millrace.raise_alerts(p_limit int) returns int
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_raised int;
begin
  with due as materialized (
    select a.id, a.run_id, a.stage_id, a.number - a.retry_count as execution
    from millrace.attempts a
    where a.late_at <= v_now
    order by a.late_at
    limit p_limit
    for no key update skip locked
  ), late as materialized (
    select d.*, s.name as stage, p.name as pipeline, r.entity_id, s.sla, f.created_at as began_at
    from due d
    join millrace.attempts f
      on f.run_id = d.run_id and f.stage_id = d.stage_id and f.number = d.execution
    join millrace.runs r on r.id = d.run_id
    join millrace.stages s on s.id = d.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
  ), told as (
    -- Cleared, or put off where the bound is a longer one by now.
    update millrace.attempts a
    set late_at = case when l.began_at + l.sla > v_now then l.began_at + l.sla end
    from late l
    where a.id = l.id
  )
  insert into millrace.alerts (kind, pipeline, stage, run_id, attempt_id, entity_id, message,
    raised_at, stage_id, execution)
  select 'sla', l.pipeline, l.stage, l.run_id, l.id, l.entity_id,
    format('%s of %s %s is %s old, its bound is %s', l.stage, l.pipeline, l.entity_id,
      millrace.in_words(v_now - l.began_at), millrace.in_words(l.sla)),
    v_now, l.stage_id, l.execution
  from late l
  where l.began_at + l.sla <= v_now
  order by l.id
  on conflict do nothing;
  get diagnostics v_raised = row_count;
  return v_raised;
end
$$;

-- Looks at the next open alerts and resolves those whose execution is over or no longer late;
-- returns how many.
create function millrace.resolve_alerts(p_limit int) returns int
language plpgsql
as $$
declare
  v_seen text;
  v_ids bigint[];
  v_resolved int;
begin
  select s.value into v_seen
  from millrace.settings s
  where s.name = 'alerts_seen'
  for update skip locked;
  v_ids := array(
    select l.id
    from millrace.alerts l
    where l.resolved_at is null
      and l.id > v_seen::bigint
    order by l.id
    limit p_limit);
  update millrace.settings s
  set value = v.value
  from (
    select case when cardinality(v_ids) < p_limit then '0' else v_ids[p_limit]::text end as value
  ) v
  where s.name = 'alerts_seen'
    and v_seen <> v.value;
  v_ids := array(
    select i from unnest(v_ids) i
    except
    select i from unnest(millrace.still_late(v_ids)) i);
  update millrace.alerts l
  set resolved_at = millrace.now()
  where l.id in (
    select o.id
    from millrace.alerts o
    where o.id = any (v_ids)
      and o.resolved_at is null
    order by o.id
    for update skip locked);
  get diagnostics v_resolved = row_count;
  return v_resolved;
end
$$;

-- Deletes the alerts of runs that are being deleted, without waiting: one that the sweep is
-- resolving is left to prune_alerts().
create function millrace.forget_alerts(p_run_ids bigint[]) returns void
language plpgsql
as $$
begin
  delete from millrace.alerts l
  where l.id in (
    select o.id
    from millrace.alerts o
    where o.run_id = any (p_run_ids)
    for update skip locked);
end
$$;

-- Removes alerts that were resolved before this time, and those whose run is gone: at most 10,000,
-- and says how many.
create function millrace.prune_alerts(p_before timestamptz) returns int
language plpgsql
as $$
declare
  v_pruned int;
  v_of_rules int;
begin
  delete from millrace.alerts l
  where l.id in (
    select o.id
    from millrace.alerts o
    where o.resolved_at < p_before
      or not exists (select from millrace.runs r where r.id = o.run_id)
    limit 10000
    for update skip locked);
  get diagnostics v_pruned = row_count;
  delete from millrace.alert_messages m
  where m.id in (
    select o.id
    from millrace.alert_messages o
    where o.ended_at < p_before
    limit 10000
    for update skip locked);
  delete from millrace.rule_alerts a
  where a.id in (
    select o.id
    from millrace.rule_alerts o
    where o.resolved_at < p_before
      and o.settled
    limit 10000
    for update skip locked);
  get diagnostics v_of_rules = row_count;
  return greatest(v_pruned, v_of_rules);
end
$$;
