-- Returns the next thousand runs of a pipeline that ended over p_days ago, in the order of their
-- ends.
-- p_at, p_id: end and id of the run after which the search begins.
-- p_days: days; null finds no run.
create function millrace.next_ended(p_pipeline_id int, p_at timestamptz, p_id bigint, p_days int)
returns bigint[]
stable
as $$
return array(
  select r.id
  from millrace.runs r
  where r.pipeline_id = p_pipeline_id and r.finished_at is not null
    and (r.finished_at, r.id) > (p_at, p_id)
    and r.finished_at < v_now - make_interval(days => p_days)
  order by r.finished_at, r.id
  limit 1000);
$$;

-- Locks those of the runs that nothing waits for, and returns them. Leaves out runs that are
-- locked, running, a child of a waiting parent, or the parent of a running child.
create function millrace.lock_ended(p_run_ids bigint[]) returns bigint[]
as $$
return array(
  select r.id
  from millrace.runs r
  where r.id = any (p_run_ids) and r.status <> 'running'
    and not exists (
      select from millrace.fan_outs f
      where f.id = r.fan_out_id and f.state = 'open')
    and not exists (
      select from millrace.fan_outs f
      join millrace.runs c on c.fan_out_id = f.id and c.status = 'running'
      where f.run_id = r.id)
  order by r.id
  for update of r skip locked);
$$;

-- Deletes the next thousand runs of a pipeline that are too old, in the order of their ends, and
-- returns how many it deleted. Skips runs that lock_ended() leaves out. A run that cannot be
-- deleted is left to the next round.
-- After the last run, deletes the results, log lines and agents' turns of the next thousand runs
-- that ended over outputs_days ago. The answers of people stay, since status columns show them. A
-- run that lock_ended() leaves out then keeps its results until it is deleted.
create function millrace.prune_batch(p_pipeline millrace.pipelines) returns int
as $$
  v_ids bigint[] := (
    select millrace.next_ended(p_pipeline.id, g.seen_at, g.seen_id, t.days)
    from millrace.prune_progress g
    join millrace.retention t on t.pipeline = p_pipeline.name
    where g.pipeline_id = p_pipeline.id);
  v_more boolean := cardinality(v_ids) = 1000;
  v_last record;
  v_done record;
  v_runs bigint[];

select r.finished_at as at, r.id into v_last
from millrace.runs r
where r.id = v_ids[cardinality(v_ids)];
v_done := millrace.in_halves(millrace.lock_ended(v_ids)::text[],
  'select cardinality($1), millrace.delete_runs($1::bigint[], true)', 'infinity');
perform millrace.report('error', 'run_not_pruned',
  format('Run %s cannot be pruned: %s', f.key, f.why))
from unnest(v_done.refused) f;
if not v_more then
  v_ids := (
    select millrace.next_ended(p_pipeline.id, g.outputs_at, g.outputs_id, p_pipeline.outputs_days)
    from millrace.prune_progress g
    where g.pipeline_id = p_pipeline.id);
  v_more := cardinality(v_ids) = 1000;
  update millrace.prune_progress g
  set outputs_at = r.finished_at, outputs_id = r.id
  from millrace.runs r
  where g.pipeline_id = p_pipeline.id and r.id = v_ids[cardinality(v_ids)];
  v_runs := millrace.lock_ended(v_ids);
  update millrace.attempts a
  set output = case when a.output is not null then 'null'::jsonb end, usage = a.usage - 'log',
    deleted_after = p_pipeline.outputs_days
  from millrace.stages s
  where a.run_id = any (v_runs) and s.id = a.stage_id and s.kind <> 'manual'
    and (a.output <> 'null' or a.usage ? 'log');
  delete from millrace.turns t where t.run_id = any (v_runs);
end if;
update millrace.prune_progress g
set seen_at = coalesce(v_last.at, g.seen_at), seen_id = coalesce(v_last.id, g.seen_id),
  removed = g.removed + v_done.done,
  ended_at = case when not v_more then v_now end
where g.pipeline_id = p_pipeline.id;
return v_done.done;
$$;

-- Deletes old rows for about a second: finished runs, log lines, alerts, messages about alerts, and
-- rows of cron.job_run_details. The latter are of the engine's jobs, and of jobs whose command ends
-- with the comment "pruned by millrace". While old rows are left, a job of pg_cron calls prune()
-- again every five seconds.
create function millrace.prune() returns jsonb
set plan = by_index
as $$
  v_until timestamptz := v_now + interval '1 second';
  v_before timestamptz :=
    v_now - make_interval(days => millrace.setting('retention_days')::int);
  v_pipeline millrace.pipelines;
  v_runs int := 0;
  v_more boolean;
  v_scheduled boolean;

-- Two calls at the same time would work on the same runs, and add them up twice.
if not pg_try_advisory_xact_lock(hashtext('millrace.prune')) then
  return '{"runs": 0, "more": true}';
end if;
if not exists (select from millrace.prune_progress g where g.ended_at is null) then
  insert into millrace.prune_progress (pipeline_id, began_at)
  select p.id, v_now
  from millrace.pipelines p
  on conflict on constraint prune_progress_pkey do update
  set seen_at = default, seen_id = default, removed = default, began_at = excluded.began_at,
    ended_at = null;
  delete from millrace.log l where l.at < v_before;
  -- The rows are found by command, since an unscheduled job leaves its rows behind. A job of the
  -- project's own asks for pruning by a comment at the end of its command.
  delete from cron.job_run_details d
  where d.command ~ ('^(select|call|do .*) millrace\.(sweep\w*|wake_job_poll|prune)\('
      '|/\* pruned by millrace \*/$')
    and coalesce(d.end_time, d.start_time, '-infinity') < v_now - interval '1 day';
end if;
loop
  select p.* into v_pipeline
  from millrace.prune_progress g
  join millrace.pipelines p on p.id = g.pipeline_id
  where g.ended_at is null
  order by p.id
  limit 1;
  exit when not found;
  v_runs := v_runs + millrace.prune_batch(v_pipeline);
  exit when millrace.now() >= v_until;
end loop;
v_more := exists (select from millrace.prune_progress g where g.ended_at is null);
if not v_more then
  with alert as (
    delete from millrace.alerts a
    where a.id = any (array(
      select o.id
      from millrace.alerts o
      where o.resolved_at < v_before and o.settled
      limit 10000
      for update skip locked))
    returning a.id
  ), message as (
    delete from millrace.alert_messages m
    where m.id = any (array(
      select o.id
      from millrace.alert_messages o
      where o.ended_at < v_before
      limit 10000
      for update skip locked))
    returning m.id
  )
  select 10000 in ((select count(*) from alert), (select count(*) from message))
  into v_more;
end if;
if not v_more then
  -- A question's row outlives its run where a person was answering while the run was deleted.
  delete from public.millrace_decisions d
  where d.attempt_id = any (array(
    select o.attempt_id
    from public.millrace_decisions o
    where not exists (select from millrace.attempts a where a.id = o.attempt_id)
    for update skip locked));
end if;
v_scheduled := exists (select from cron.job j where j.jobname = 'millrace-prune-more');
if v_more and not v_scheduled then
  perform cron.schedule('millrace-prune-more', '5 seconds', 'select millrace.prune()');
elsif v_scheduled and not v_more then
  perform cron.unschedule('millrace-prune-more');
end if;
return jsonb_build_object('runs', v_runs, 'more', v_more);
$$;

-- How many days each pipeline keeps its runs, and how far prune() is.
-- days: days for which runs are kept after their end.
-- outputs_days: days for which results and log lines are kept; null: as long as their runs.
-- removed: how many runs the present or the last round of prune() has deleted.
-- began_at, ended_at: of that round; ended_at is null while the round goes on.
create view millrace.retention as
select p.name as pipeline,
  coalesce(p.retention_days, millrace.setting('retention_days')::int) as days, p.outputs_days,
  g.removed, g.began_at, g.ended_at
from millrace.pipelines p
left join millrace.prune_progress g on g.pipeline_id = p.id
order by p.name;

-- Estimates the size of the history by the time that prune() deletes it: the attempts of the last
-- day, times the days for which their pipelines keep runs, times the mean size of an attempt now.
create view millrace.history_findings (what, ok, detail) as
select 'history stays below history_gb', greatest(h.size, h.later) <= h.most,
  format('%s now; a day brings %s, which comes to %s by the time it is pruned%s',
    pg_size_pretty(h.size), pg_size_pretty(h.daily), pg_size_pretty(h.later),
    case when greatest(h.size, h.later) > h.most then ': keep runs or their results for fewer '
      'days (retention), return smaller results, or raise the setting history_gb' end)
from (
  select s.size, trunc(s.each * d.n) as daily, trunc(s.each * d.kept) as later,
    (select s.value::int * 1e9 from millrace.settings s where s.name = 'history_gb') as most
  from (
    select sum(t) as size,
      -- Below 10,000 attempts, or without statistics, an attempt counts as 1.2 kB. The first pages
      -- of all tables and indexes would make the mean of few attempts far too large.
      coalesce(sum(t) / max(c.reltuples) filter (
        where c.relname = 'attempts' and c.reltuples >= 10000)::numeric, 1200) as each
    from pg_class c
    cross join pg_total_relation_size(c.oid) t
    where c.relnamespace = 'millrace'::regnamespace
      and c.relkind = 'r'
      -- The total size of a table costs a look at some twenty files. Empty tables are left out.
      and pg_relation_size(c.oid) > 0) s
  cross join (
    select coalesce(sum(m.n), 0) as n,
      -- The setting is read only where there are sums: setting() raises where Vault cannot decrypt.
      coalesce(sum(m.n * coalesce(p.retention_days, millrace.setting('retention_days')::int)), 0)
        as kept
    from millrace.pipelines p
    join millrace.stages s on s.pipeline_id = p.id
    join millrace.sums m on m.unit = 'hour' and (m.pipeline_id, m.stage_id) = (p.id, s.id)
      and m.at > v_now - interval '1 day'
      and m.outcome in ('completed', 'failed', 'retried', 'skipped')) d) h;

-- Deletes wake-ups older than a minute, expired claims without a started attempt, workers without a
-- heartbeat for an hour, and all but the newest thousand posts. Wakes each process whose address
-- would be forgotten within a day.
create function millrace.forget_leftovers()
as $$
  v_oldest_post timestamptz := (
    select p.posted_at from millrace.posts p order by p.posted_at desc offset 999 limit 1);

delete from millrace.wake_ups r
where r.id in (
  select o.id
  from millrace.wake_ups o
  where o.woken_at < v_now - interval '1 minute'
  for update skip locked);
delete from millrace.claims c
where c.token in (
  select o.token
  from millrace.claims o
  where o.expires_at <= v_now - interval '1 minute'
    and not exists (
      select from millrace.attempts a
      where a.id = any (o.attempt_ids) and a.token = o.token and a.state = 'started')
  for update skip locked);
delete from millrace.workers w
where w.id in (
  select o.id
  from millrace.workers o
  where o.heartbeat_at < v_now - interval '1 hour'
  for update skip locked);
delete from millrace.posts p
where p.ctid = any (array(
  select o.ctid
  from millrace.posts o
  where o.posted_at < v_oldest_post
  for update skip locked));
-- A process that is scaled to zero asks for no work, and stages_to_wake() skips a process that has
-- not asked for seven days. A wake-up on the last of these days makes the process ask, which renews
-- its address.
perform millrace.stages_to_wake(array(
  select s.id
  from millrace.stages s
  where (s.seen ->> 'woken_at')::timestamptz between v_now - interval '7 days'
    and v_now - interval '6 days'));
$$;
