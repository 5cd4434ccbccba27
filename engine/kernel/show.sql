-- The projection: what the engine writes onto the rows of the user's table

-- Writes transitions onto the rows of a pipeline, under the setting millrace.projecting, by which
-- the intake triggers know the engine's own update. Returns whether it wrote.
-- p_how: `apply`, `started` or `queued`.
-- p_stage: the stage; null for the status column alone.
-- p_changes: the changes to apply; null for the other two.
-- p_ids: the entities for `started` and `queued`. project_guarded() passes both lists.
-- p_dependents: the stages whose columns `queued` clears.
-- attach() writes the function, with a branch for each pipeline:
--   create function millrace.project_entities(p_pipeline_id int, p_how text, p_stage text,
--     p_changes millrace.change[], p_ids text[], p_dependents text[]) returns boolean

-- Builds the change that the projection writes for one stage of one entity, without a result.
create function millrace.change_of(
  p_entity_id text, p_status text, p_job_id text default null, p_error text default null,
  p_retry_count int default 0, p_started_at timestamptz default null,
  p_completed_at timestamptz default null
) returns millrace.change
immutable
as $$
return row(p_entity_id, p_status, p_job_id, null, p_error, p_retry_count, p_started_at,
  p_completed_at, null)::millrace.change;
$$;

-- Writes changes of one stage onto the entities.
create function millrace.project(p_stage_id int, p_changes millrace.change[])
as $$
perform millrace.project_entities(s.pipeline_id, 'apply', s.name, p_changes, null, null)
from millrace.stages s
where s.id = p_stage_id;
$$;

-- Writes the changes of cancel_attempts() onto the entities.
create function millrace.project_cancelled(p_cancelled millrace.cancelled[])
as $$
perform millrace.project(s.id, s.changes)
from (
  select c.stage_id as id, array_agg(c.change) as changes
  from unnest(p_cancelled) c
  group by c.stage_id
  order by c.stage_id) s;
$$;

-- Writes a claim, or attempts that were put back, onto those of the entities that no other
-- transaction has locked. The others are written when the stage completes. An error of a user's
-- trigger goes into millrace.log and does not stop the stage. Returns whether it wrote.
create function millrace.project_guarded(
  p_stage millrace.stages, p_how text, p_changes millrace.change[], p_entity_ids text[]
) returns boolean
set lock_timeout = '200ms'
as $$
return millrace.project_entities(
  p_stage.pipeline_id, p_how, p_stage.name, p_changes, p_entity_ids, null);
exception when anything then
  if not millrace.report_caught(sqlstate, v_context, 'projection_failed',
      'A claim could not be shown on its entities: ' || sqlerrm,
      jsonb_build_object('stage', p_stage.name)) then
    raise;
  end if;
  return false;
$$;

-- Writes one state of a stage onto the entities of runs.
-- p_at: when the stage was started or skipped; null where the state has no time.
create function millrace.show_stage(
  p_stage_id int, p_run_ids bigint[], p_status text, p_at timestamptz default null,
  p_job_id text default null
)
as $$
perform millrace.project(p_stage_id, array(
  select millrace.change_of(r.entity_id, p_status, p_job_id,
    p_started_at => case p_status when 'started' then p_at end,
    p_completed_at => case p_status when 'skipped' then p_at end)
  from millrace.runs r
  where r.id = any (p_run_ids)));
$$;

-- Writes the state of the latest runs of locked entities onto their rows, where the pipeline has
-- one status column.
create function millrace.show_status(p_pipeline_id int, p_entity_ids text[])
as $$
if p_entity_ids <> '{}' and (
    select p.projection = 'status'
    from millrace.pipelines p
    where p.id = p_pipeline_id) then
  perform millrace.project_entities(p_pipeline_id, 'apply', null, array(
    select millrace.change_of(i, 'queued')
    from unnest(p_entity_ids) i), null, null);
end if;
$$;

-- Writes a stage as queued onto the entities, and its dependents as pending with their columns
-- cleared.
-- p_stage_id: null only clears the columns of p_dependents.
create function millrace.project_queued(
  p_pipeline_id int, p_stage_id int, p_dependents int[], p_entity_ids text[]
)
as $$
perform millrace.project_entities(
  p_pipeline_id, 'queued',
  (select s.name from millrace.stages s where s.id = p_stage_id), null, p_entity_ids,
  array(select s.name from millrace.stages s where s.id = any (p_dependents)));
$$;

-- Clears the columns of stages that have not begun in these runs.
create function millrace.clear_pending(p_run_ids bigint[])
as $$
perform millrace.project_queued(g.pipeline_id, null, g.pending, g.entity_ids)
from (
  select r.pipeline_id, array_agg(r.entity_id) as entity_ids, array(
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = r.version_id
      and not exists (
        select from millrace.attempts a
        where a.run_id = r.id and a.stage_id = vs.stage_id and not a.superseded)) as pending
  from millrace.runs r
  join millrace.pipelines p on p.id = r.pipeline_id and p.projection <> 'none'
  where r.id = any (p_run_ids)
    -- A user's trigger may have begun another run of the row.
    and (r.status = 'running' or millrace.is_latest_run(r.id))
  group by 1, 3) g;
$$;
