-- Documents: evidence and summary
--
-- pipeline_phase has a row for each attempt at a phase, pipeline_job one for each document. Both are views over the engine's
-- own rows, so that there is one source of truth: an attempt, its run and the document's columns change in one transaction,
-- evidence and summary together. Whoever sees a document sees its job and its phases.
--
-- The engine's schema stays closed. Two functions in the schema `millrace_evidence`, in which nobody but the service may name anything, read
-- it for one document with their owner's rights; the views call them for those documents alone that row-level security shows.

create function millrace_evidence.document_job(p_document_id uuid)
returns table (run_id bigint, trace_id uuid, pipeline text, current_phase text, status text, metadata jsonb, created_at timestamptz, started_at timestamptz, completed_at timestamptz, updated_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select r.id, r.trace_id, p.name,
    case r.status when 'completed' then 'completed' else (
      select s.name from millrace.version_stages vs join millrace.stages s on s.id = vs.stage_id
      where vs.version_id = r.version_id and not millrace.is_done(r.id, vs.stage_id) order by vs.position limit 1) end,
    case r.status when 'running' then 'processing' when 'completed' then 'completed' else 'failed' end,
    coalesce(millrace.metadata_of(r.id), '{}') || c.costs,
    r.created_at, a.started_at, r.finished_at, a.updated_at
  from millrace.runs r
  join millrace.pipelines p on p.id = r.pipeline_id and p.name in ('documents', 'document_monolith')
  cross join lateral (
    select min(t.started_at) as started_at, max(greatest(t.created_at, t.started_at, t.finished_at)) as updated_at from millrace.attempts t where t.run_id = r.id) a
  cross join lateral (
    select jsonb_build_object('cost_usd', coalesce(jsonb_object_agg(t.phase, t.cost_usd) filter (where t.cost_usd is not null), '{}'), 'total_cost_usd', sum(t.cost_usd)) as costs
    from (
      select s.name as phase, sum(t.cost_usd) as cost_usd
      from millrace.attempt_costs(array(
        select o.id from millrace.runs o join millrace.pipelines w on w.id = o.pipeline_id and w.name in ('documents', 'document_monolith') where o.entity_id = r.entity_id)) t
      join millrace.stages s on s.id = t.stage_id group by s.name) t) c
  where r.entity_id = p_document_id::text
  order by r.id desc limit 1
$$;
comment on function millrace_evidence.document_job(uuid) is 'A document''s latest run. Its metadata is what the document had when it started, with what all of its runs have cost, by phase and in total.';

create function millrace_evidence.document_phases(p_document_id uuid)
returns table (id bigint, run_id bigint, pipeline text, phase text, status text, output jsonb, error jsonb, retry_count int, parent_phase_id bigint, metadata jsonb, queued_at timestamptz, started_at timestamptz, completed_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select a.id, r.id, p.name, s.name,
    case a.state when 'queued' then 'queued' when 'started' then 'processing' when 'waiting' then 'processing'
      when 'completed' then 'completed' when 'skipped' then 'skipped' else 'failed' end,
    a.output, case when a.state = 'cancelled' then '{"code": "cancelled", "message": "cancelled"}' 
      else a.error - 'detail' || jsonb_build_object('message', millrace.owner_message(a.error, a.id)) end,
    a.retry_count, a.parent_id,
    coalesce(a.usage, '{}') || jsonb_build_object('cost', c.costs -> a.id::text),
    a.created_at, a.started_at, a.finished_at
  from millrace.runs r
  join millrace.pipelines p on p.id = r.pipeline_id and p.name in ('documents', 'document_monolith')
  cross join lateral (
    select jsonb_object_agg(t.attempt_id, t.cost_usd) as costs
    from (select t.attempt_id, sum(t.cost_usd) as cost_usd from millrace.attempt_costs(array[r.id]) t group by t.attempt_id) t) c
  join millrace.attempts a on a.run_id = r.id
  join millrace.stages s on s.id = a.stage_id
  where r.entity_id = p_document_id::text
    -- A result that a run took over from the one before is no attempt of its own.
    and not exists (select from millrace.attempts f where f.id = a.parent_id and f.run_id <> a.run_id)
$$;
comment on function millrace_evidence.document_phases(uuid) is 'Every attempt at a document''s phases, of all its runs. The metadata is what the attempt used up; cost counts that of its chunks.';

revoke all on function millrace_evidence.document_job(uuid), millrace_evidence.document_phases(uuid) from public;
grant execute on function millrace_evidence.document_job(uuid), millrace_evidence.document_phases(uuid) to authenticated, service_role;

create view public.pipeline_job with (security_invoker = true) as
select d.id, d.id as document_id, j.current_phase, j.status, j.metadata, j.created_at, j.started_at, j.completed_at, j.updated_at, j.run_id, j.trace_id, j.pipeline
from public.document d cross join lateral millrace_evidence.document_job(d.id) j;
comment on view public.pipeline_job is 'One row a document: its latest run, whichever way it goes. The id is the document''s, since it has one job.';
comment on column public.pipeline_job.current_phase is 'The first phase that is not done, or completed. The old way has the one phase monolith.';
comment on column public.pipeline_job.metadata is 'source_name, source_platform, clerk_org_id and what else the document had when the run started; cost_usd by phase and total_cost_usd, of all its runs.';

create view public.pipeline_phase with (security_invoker = true) as
select f.id, d.id as pipeline_job_id, f.phase, f.status, l.input_location, case when f.status = 'completed' then l.output_location end as output_location,
  f.error ->> 'message' as error_message, f.error ->> 'code' as error_type, f.retry_count, f.parent_phase_id, f.metadata, f.queued_at, f.started_at, f.completed_at, f.run_id, f.pipeline
from public.document d
cross join lateral millrace_evidence.document_phases(d.id) f
cross join lateral (
  select case
      when f.phase in ('extraction', 'monolith') then 'documents/' || d.source_path
      when f.phase = 'chunking' then 'extracted_text/' || d.id || '.txt'
      when f.phase = 'kg_ingest' then 'chunk?document_id=eq.' || d.id end as input_location,
    case
      when f.phase = 'extraction' then f.output ->> 'text_location'
      when f.phase = 'chunking' then f.output ->> 'output_location'
      when f.phase in ('kg_ingest', 'monolith') then 'kg_edge?select=*,chunk!inner(document_id)&chunk.document_id=eq.' || d.id end as output_location
) l;
comment on view public.pipeline_phase is 'One row for each attempt at a phase, of all runs of a document; a retry names its parent. started and waiting show as processing, cancelled as failed.';
comment on column public.pipeline_phase.input_location is 'A bucket of Storage and the name in it, or rows as the Data API serves them; null for phases that this view does not know.';

create view public.document_costs with (security_invoker = true) as
select j.metadata ->> 'clerk_org_id' as clerk_org_id, j.metadata ->> 'source_platform' as source_platform, count(*) as documents,
  count(*) filter (where j.status = 'completed') as completed, sum((j.metadata ->> 'total_cost_usd')::numeric) as cost_usd
from public.pipeline_job j group by 1, 2;
comment on view public.document_costs is 'What documents have cost, all their runs together, for each organisation and platform.';

create view public.document_ways with (security_invoker = true) as
select p.name as pipeline, count(*) as runs, count(*) filter (where r.status = 'completed') as completed,
  count(*) filter (where r.status = 'failed') as failed,
  percentile_cont(0.5) within group (order by r.finished_at - r.created_at) filter (where r.status = 'completed') as median_time,
  sum(millrace.cost_of(r.id)) as cost_usd
from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
where p.name in ('documents', 'document_monolith')
group by p.name;
comment on view public.document_ways is 'Both ways of the cut-over side by side, over all runs that are kept: how they ended, how long they took, what they cost. For the owner alone.';

revoke all on public.document_ways from anon, authenticated, service_role;
revoke all on public.pipeline_job, public.pipeline_phase, public.document_costs
  from anon, authenticated, service_role;
grant select on public.pipeline_job, public.pipeline_phase, public.document_costs to authenticated, service_role;
