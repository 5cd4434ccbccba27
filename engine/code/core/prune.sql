-- Pruning
--
-- pg_cron calls prune() every night, and every five seconds while there is more to delete than one
-- call can do.

-- Locks and returns the next so many runs, by id, that ended before this time and that nobody
-- needs: a parent that still waits counts its children, and one that is over may have late ones.
create or replace function millrace.lock_prunable(
  p_before timestamptz, p_after bigint, p_limit int
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    where r.id > coalesce(p_after, 0)
      and r.status <> 'running'
      and r.finished_at < p_before
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
    limit p_limit
    for update of r skip locked);
end
$$;

-- Deletes locked runs, but for those that cannot be; returns how many. It halves a batch until the
-- guilty run stands alone: what a user's trigger on public.millrace_decisions refuses is left to
-- the next night, and the others go.
create or replace function millrace.prune_runs(p_run_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_run_ids) / 2;
  v_context text;
begin
  begin
    perform millrace.remember_begun(p_run_ids);
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

-- Deletes what is older than retention_days.
create or replace function millrace.prune() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_before timestamptz :=
    millrace.now() - make_interval(days => millrace.setting('retention_days')::int);
  v_ends timestamptz := millrace.now() + interval '2 seconds';
  v_batch bigint[];
  v_runs int := 0;
  v_more boolean;
  v_scheduled boolean;
begin
  loop
    v_batch := millrace.lock_prunable(v_before, v_batch[cardinality(v_batch)], 1000);
    v_more := cardinality(v_batch) = 1000;
    exit when cardinality(v_batch) = 0;
    v_runs := v_runs + millrace.prune_runs(v_batch);
    exit when not v_more or millrace.now() >= v_ends;
  end loop;
  perform millrace.prune_decisions();
  v_more := millrace.prune_alerts(v_before) = 10000 or v_more;
  delete from millrace.log l where l.at < v_before;
  -- By command: a job that was unscheduled has left its history behind.
  delete from cron.job_run_details d
  where d.command ~ '^select millrace\.(sweep|wake_job_poll|prune)\(\)$'
    and d.end_time < millrace.now() - interval '1 day';
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
comment on function millrace.prune() is
  'Deletes finished runs older than retention_days, for about two seconds a call, old log lines '
  'and alerts, and the engine''s own rows of cron.job_run_details. When there is more, pg_cron '
  'goes on until it is done.';
