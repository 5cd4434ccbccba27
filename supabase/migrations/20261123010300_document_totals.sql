-- Documents: what is left of their evidence once their runs are pruned
--
-- A document keeps the one row of its job, with what all of its runs have cost; its phases go with
-- the runs.

-- Sums up what all runs of a document have cost, those that were pruned too, as the metadata of its
-- job have it.
create function millrace_evidence.document_costs(p_document_id uuid) returns jsonb
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with way as (
    select p.id
    from millrace.pipelines p
    where p.name in ('documents', 'document_monolith')
  ), cost as (
    select s.name as phase, t.cost_usd
    from millrace.attempt_costs(array(
      select r.id
      from millrace.runs r
      join way w on w.id = r.pipeline_id
      where r.entity_id = p_document_id::text)) t
    join millrace.stages s on s.id = t.stage_id
    union all
    select k.key, k.value::numeric
    from millrace.former_runs f
    join way w on w.id = f.pipeline_id
    cross join lateral jsonb_each_text(f.costs) k
    where f.entity_id = p_document_id::text
  ), total as (
    select c.phase, sum(c.cost_usd) as cost_usd
    from cost c
    where c.cost_usd is not null
    group by c.phase
  )
  select jsonb_build_object(
    'cost_usd', coalesce(jsonb_object_agg(t.phase, t.cost_usd), '{}'),
    'total_cost_usd', sum(t.cost_usd))
  from total t
$$;
comment on function millrace_evidence.document_costs(uuid) is
  'What all runs of a document have cost, by phase and in total; null where nobody named a price.';

-- Reads a document's latest run, or what is left of it. Which phase a former run had come to that
-- failed is not.
create or replace function millrace_evidence.document_job(p_document_id uuid)
returns table (
  run_id bigint, trace_id uuid, pipeline text, current_phase text, status text, metadata jsonb,
  created_at timestamptz, started_at timestamptz, completed_at timestamptz, updated_at timestamptz
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select j.id, j.trace_id, p.name,
    case j.status
      when 'completed' then 'completed'
      else (
        select s.name
        from millrace.version_stages vs
        join millrace.stages s on s.id = vs.stage_id
        where vs.version_id = j.version_id and not millrace.is_done(j.id, vs.stage_id)
        order by vs.position
        limit 1)
    end,
    case j.status
      when 'running' then 'processing'
      when 'completed' then 'completed'
      else 'failed'
    end,
    coalesce(j.metadata, '{}') || millrace_evidence.document_costs(p_document_id),
    j.created_at, j.started_at, j.finished_at, j.updated_at
  from (
    select r.id, r.pipeline_id, r.version_id, r.trace_id, r.status,
      millrace.metadata_of(r.id) as metadata, r.created_at, a.started_at, r.finished_at,
      a.updated_at
    from millrace.runs r
    cross join lateral (
      select min(t.started_at) as started_at,
        max(greatest(t.created_at, t.started_at, t.finished_at)) as updated_at
      from millrace.attempts t
      where t.run_id = r.id) a
    where r.entity_id = p_document_id::text
    union all
    select f.run_id, f.pipeline_id, null, f.trace_id, f.status, f.metadata, f.created_at,
      f.started_at, f.finished_at, f.finished_at
    from millrace.former_runs f
    where f.entity_id = p_document_id::text) j
  join millrace.pipelines p on p.id = j.pipeline_id
    and p.name in ('documents', 'document_monolith')
  order by j.id desc
  limit 1
$$;
comment on function millrace_evidence.document_job(uuid) is
  'A document''s latest run, which stays when it is pruned. Its metadata is what the document had '
  'when it started, with what all of its runs have cost, by phase and in total.';

comment on view public.pipeline_job is
  'One row a document: its latest run, whichever way it goes, pruned or not. The id is the '
  'document''s, since it has one job.';
comment on view public.pipeline_phase is
  'One row for each attempt at a phase, of those runs of a document that are kept; a retry names '
  'its parent. started and waiting show as processing, cancelled as failed.';

revoke all on function millrace_evidence.document_costs(uuid) from public;
