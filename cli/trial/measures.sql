-- The functions that a trial calls in the database. Their migration comes after those of the engine
-- and the pipeline.

-- Queues so many new rows. p_burns: they use up their function. p_lose: their wake-up is lost, as
-- pg_net's queue loses all when its server dies. Returns the first and the last row.
create function public.trial_queue(
  p_rows int, p_burns boolean default false, p_lose boolean default false
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_known bigint := (select coalesce(max(q.id), 0) from net.http_request_queue q);
  v_ids bigint[];
begin
  with fresh as (
    insert into public.trial_rows (burns)
    select p_burns
    from generate_series(1, p_rows)
    returning id)
  select array_agg(f.id order by f.id) into v_ids
  from fresh f;
  update public.trial_rows t
  set read_status = 'queued'
  where t.id = any (v_ids);
  if p_lose then
    delete from net.http_request_queue q
    where q.id > v_known;
  end if;
  return jsonb_build_object('first', v_ids[1], 'last', v_ids[p_rows]);
end
$$;

-- The figures of rows p_first to p_last: how many are where, and by the database's clock how long
-- they took.
create function public.trial_figures(p_first bigint, p_last bigint) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
with run as (
  select r.id, r.status, r.created_at, r.finished_at,
    extract(epoch from r.finished_at - r.created_at) * 1000 as ms
  from millrace.runs r
  join millrace.pipelines p on p.id = r.pipeline_id
  where p.name = 'trial'
    and r.entity_id = any (array(select n::text from generate_series(p_first, p_last) n))
), attempt as (
  select a.*, s.name as stage
  from millrace.attempts a
  join run r on r.id = a.run_id
  join millrace.stages s on s.id = a.stage_id
), hop as (
  select extract(epoch from n.started_at - b.finished_at) * 1000 as ms
  from attempt b
  join attempt n on n.run_id = b.run_id
  where b.stage = 'read' and b.state = 'completed'
    and n.stage = 'render' and n.number = 1
), begun as (
  select extract(epoch from min(a.started_at) - min(a.created_at)) * 1000 as ms
  from attempt a
  where a.stage = 'read'
), retried as (
  select extract(epoch from max(n.started_at) - min(b.started_at)) * 1000 as ms
  from attempt b
  join attempt n on n.run_id = b.run_id
  where b.stage = 'read' and b.number = 1
    and n.stage = 'read' and n.number > 1
)
select jsonb_build_object(
  'rows', (select count(*) from run),
  'completed', (select count(*) from run r where r.status = 'completed'),
  'failed', (select count(*) from run r where r.status = 'failed'),
  'codes', (select array_agg(distinct a.error ->> 'code') from attempt a),
  'seconds', (select extract(epoch from max(r.finished_at) - min(r.created_at)) from run r),
  'begun_ms', (select b.ms from begun b),
  'retried_ms', (select t.ms from retried t),
  'row_ms', (select percentile_cont(array[0.5, 0.95]) within group (order by r.ms) from run r),
  'hop_ms', (select percentile_cont(array[0.5, 0.95]) within group (order by h.ms) from hop h))
$$;

-- Where the counters stand: calls of functions, runs of pg_cron's jobs, bytes of the log.
create function public.trial_counters() returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
with calls as (
  select t.function_name as name, count(*) as calls
  from public.trial_calls t
  group by 1
)
select jsonb_build_object(
  'at', extract(epoch from clock_timestamp()),
  'calls', (select coalesce(json_object_agg(c.name, c.calls)::jsonb, '{}') from calls c),
  'jobs', (select count(*) from cron.job_run_details),
  'log_bytes', pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'))
$$;

revoke execute on function
  public.trial_queue(int, boolean, boolean),
  public.trial_figures(bigint, bigint),
  public.trial_counters()
from public, anon, authenticated;
grant execute on function
  public.trial_queue(int, boolean, boolean),
  public.trial_figures(bigint, bigint),
  public.trial_counters()
to service_role;

notify pgrst, 'reload schema';
