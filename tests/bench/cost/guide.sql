-- Supabase's guide to a queue that pg_cron drains by Edge Functions ("Automatic embeddings",
-- November 2026), with its numbers: every ten seconds at most ten requests of ten jobs each, hidden
-- for five minutes. guide_read() and guide_done() stand for read() and delete() of pgmq.
create table public.guide_queue (
  msg_id bigint generated always as identity primary key,
  vt timestamptz not null default clock_timestamp(),
  message jsonb not null
);

create function public.guide_read(p_vt int, p_qty int) returns setof public.guide_queue
language sql as $$
with next as (
  select q.msg_id from public.guide_queue q
  where q.vt <= clock_timestamp() order by q.msg_id limit p_qty for update skip locked
)
update public.guide_queue q set vt = clock_timestamp() + make_interval(secs => p_vt)
from next n where n.msg_id = q.msg_id returning q.*
$$;

create function public.guide_done(p_job bigint) returns void
language sql as $$
delete from public.guide_queue q where q.msg_id = p_job
$$;
grant delete, select on public.guide_queue to service_role;
grant execute on function public.guide_done(bigint) to service_role;

create function public.guide_process(
  p_url text, p_batch int default 10, p_requests int default 10) returns void
language sql as $$
with numbered as (
  select r.message || jsonb_build_object('job_id', r.msg_id) as job,
    (row_number() over (order by r.msg_id) - 1) / p_batch as part
  from public.guide_read(300, p_batch * p_requests) r
), parts as (
  select jsonb_agg(n.job) as jobs from numbered n group by n.part
)
select net.http_post(
  p_url || '/functions/v1/cost-guide', p.jobs, timeout_milliseconds => 300000)
from parts p
$$;

notify pgrst, 'reload schema';
