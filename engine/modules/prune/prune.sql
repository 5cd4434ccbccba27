-- Pruning: pg_cron calls prune() every night, and every five seconds until that round is done. A
-- call is one short transaction. A round goes through the runs of each pipeline by their ends, and
-- comes back to nothing that it passed over.

-- Reads how many days the runs of a pipeline are kept.
create function millrace.retention_days(p_pipeline millrace.pipelines) returns int
stable
as $$
begin
  return coalesce(p_pipeline.retention_days, millrace.setting('retention_days')::int);
end
$$;

-- Deletes locked runs, in halves until the guilty run stands alone: what a user's trigger on
-- public.millrace_decisions refuses is left to the next night. Returns how many.
create function millrace.prune_runs(p_run_ids bigint[]) returns int
set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_run_ids) / 2;
  v_context text;
begin
  begin
    perform millrace.hook_before_pruning(p_run_ids);
    perform millrace.delete_runs(p_run_ids);
    return cardinality(p_run_ids);
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    if v_half = 0 then
      perform millrace.report('error', 'run_not_pruned',
        format('Run %s cannot be pruned: %s', p_run_ids[1], sqlerrm));
      return 0;
    end if;
  end;
  return millrace.prune_runs(p_run_ids[:v_half]) + millrace.prune_runs(p_run_ids[v_half + 1:]);
end
$$;

-- Prunes the runs of a pipeline from where its round stands, until the time is up or the round
-- done. Returns how many it deleted.
create function millrace.prune_pipeline(
  p_pipeline millrace.pipelines, p_until timestamptz
) returns int
as $$
declare
  v_before timestamptz :=
    millrace.now() - make_interval(days => millrace.retention_days(p_pipeline));
  v_progress millrace.prune_progress;
  v_batch bigint[];
  v_done int := 0;
begin
  select g.* into v_progress
  from millrace.prune_progress g
  where g.pipeline_id = p_pipeline.id;
  loop
    v_batch := array(
      select r.id
      from millrace.runs r
      where r.pipeline_id = p_pipeline.id
        and r.finished_at is not null
        and (r.finished_at, r.id) > (v_progress.seen_at, v_progress.seen_id)
        and r.finished_at < v_before
      order by r.finished_at, r.id
      limit 1000);
    exit when cardinality(v_batch) = 0;
    select r.finished_at, r.id into v_progress.seen_at, v_progress.seen_id
    from millrace.runs r
    where r.id = v_batch[cardinality(v_batch)];
    v_done := v_done + millrace.prune_runs(array(
      select r.id
      from millrace.runs r
      where r.id = any (v_batch)
        and r.status <> 'running'
        and not exists (
          select
          from millrace.fan_outs f
          where f.id = r.fan_out_id
            and f.state = 'open')
        and not exists (
          select
          from millrace.fan_outs f
          join millrace.runs c on c.fan_out_id = f.id and c.status = 'running'
          where f.run_id = r.id)
      order by r.id
      for update of r skip locked));
    exit when cardinality(v_batch) < 1000 or millrace.now() >= p_until;
  end loop;
  update millrace.prune_progress g
  set seen_at = v_progress.seen_at, seen_id = v_progress.seen_id, removed = g.removed + v_done,
    ended_at = case when cardinality(v_batch) < 1000 then millrace.now() end
  where g.pipeline_id = p_pipeline.id;
  return v_done;
end
$$;

-- Deletes finished runs that are older than their pipeline keeps them, old log lines and alerts,
-- and the engine's own rows of cron.job_run_details. A call takes two seconds at most, or half a
-- second while workers are at work; pg_cron goes on until it is done. What is still due:
-- millrace.retention.
create function millrace.prune() returns jsonb
set millrace.plan = by_index
as $$
declare
  v_until timestamptz;
  v_before timestamptz :=
    millrace.now() - make_interval(days => millrace.setting('retention_days')::int);
  v_target record;
  v_runs int := 0;
  v_more boolean;
  v_scheduled boolean;
begin
  -- Two at once would count the same rows twice; whoever comes second leaves it to the first.
  if not pg_try_advisory_xact_lock(hashtext('millrace.prune')) then
    return '{"runs": 0, "more": true}';
  end if;
  -- A new round deletes what there is little of: lines of the log, decisions without their
  -- attempts, and the engine's own rows of pg_cron's history.
  if not exists (select from millrace.prune_progress g where g.ended_at is null) then
    insert into millrace.prune_progress (pipeline_id, began_at)
    select p.id, millrace.now()
    from millrace.pipelines p
    on conflict on constraint prune_progress_pkey do update
    set seen_at = default, seen_id = default, removed = default, began_at = excluded.began_at,
      ended_at = null;
    perform millrace.hook_begin_pruning();
    delete from millrace.log l where l.at < v_before;
    -- By command: a job that was unscheduled has left its history behind. A run that found no
    -- session, or that a crash ended, tells no time, or only when it began.
    delete from cron.job_run_details d
    where d.command
        ~ '^(select|call) millrace\.(sweep|sweep_all|wake_job_poll|prune)\(\)$'
      and case
        when d.end_time is null and d.start_time is null then d.runid < (
          select max(o.runid) - 10000 from cron.job_run_details o)
        else coalesce(d.end_time, d.start_time) < millrace.now() - interval '1 day'
      end;
  end if;
  -- Where workers are at work there is something to yield to.
  v_until := millrace.now() + case when exists (
      select
      from millrace.workers w
      where w.left_at is null
        and w.heartbeat_at > millrace.alive_since())
    then interval '500 milliseconds' else interval '2 seconds' end;
  for v_target in
    select p as pipeline
    from millrace.prune_progress g
    join millrace.pipelines p on p.id = g.pipeline_id
    where g.ended_at is null
    order by g.pipeline_id
  loop
    v_runs := v_runs + millrace.prune_pipeline(v_target.pipeline, v_until);
    exit when millrace.now() >= v_until;
  end loop;
  v_more := exists (select from millrace.prune_progress g where g.ended_at is null)
    or millrace.hook_prune(v_before);
  v_scheduled := exists (
    select from cron.job j where j.jobname = 'millrace-prune-more');
  if v_more and not v_scheduled then
    perform cron.schedule('millrace-prune-more', '5 seconds', 'select millrace.prune()');
  elsif v_scheduled and not v_more then
    perform cron.unschedule('millrace-prune-more');
  end if;
  return jsonb_build_object('runs', v_runs, 'more', v_more);
end
$$;

-- How many days each pipeline keeps its runs. due: how many are older and still to be looked at,
-- counted to 10,000; removed: how many the present round of prune() has deleted, or the last one,
-- if ended_at is not null.
create view millrace.retention as
select p.name as pipeline, millrace.retention_days(p) as days, d.due, d.oldest as oldest_due,
  g.removed, g.began_at, g.ended_at
from millrace.pipelines p
left join millrace.prune_progress g on g.pipeline_id = p.id
cross join lateral (
  select count(*) as due, min(o.finished_at) as oldest
  from (
    select r.finished_at
    from millrace.runs r
    where r.pipeline_id = p.id
      and r.finished_at >= case
        when g.ended_at is null then coalesce(g.seen_at, '-infinity') else '-infinity' end
      and r.finished_at < millrace.now() - make_interval(days => millrace.retention_days(p))
    order by r.finished_at
    limit 10000) o) d
order by p.name;

-- Looks for a round of pruning that falls behind.
create function millrace.retention_findings() returns setof millrace.finding
language sql stable
as $$
  select 'pruning keeps up', count(*) = 0,
    coalesce(string_agg(format('the runs of %s: a round began at %s and is not done', p.name,
        to_char(g.began_at, 'YYYY-MM-DD HH24:MI:SS')), ', ' order by p.name)
      || ': look at cron.job and cron.job_run_details for millrace-prune-more, and at '
      || 'millrace.retention for what is due', 'no round takes longer than a day')
  from millrace.prune_progress g
  join millrace.pipelines p on p.id = g.pipeline_id
  where g.ended_at is null
    and g.began_at < millrace.now() - interval '1 day'
$$;
