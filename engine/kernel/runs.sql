-- Runs: how they are made, ended and deleted

-- Returns the values of the columns that a definition names: metadata, trace, tenant and
-- concurrency key. Each list is in the order of p_ids; null where the definition names no such
-- column.
-- p_new: reads metadata, trace and tenant, which a new run takes.
-- p_stage: reads the concurrency key of this stage; null reads none.
-- attach() writes the function, with a branch for each pipeline:
--   create function millrace.values_of_entities(
--     p_pipeline_id int, p_ids text[], p_new boolean, p_stage text) returns millrace.row_values

-- Names the row that a run reads.
create function millrace.key_of(p_run millrace.runs) returns text
immutable
as $$
select coalesce(p_run.copy_key, p_run.entity_id)
$$;

-- Names the row that an entity reads: the row of this key, or that of a copy. Returns null for a
-- copy that another transaction may just have deleted with its row. Where keys are texts, a row's
-- own key may have the form of a copy's entity.
create function millrace.row_key(p_pipeline_id int, p_id text) returns text
as $$
if not p_id ^@ 'copy ' then
  return p_id;
end if;
return coalesce((
  select r.copy_key
  from millrace.runs r
  where r.entity_id = p_id and r.pipeline_id = p_pipeline_id and r.copy_key is not null), (
  select p_id
  from millrace.pipelines p
  -- Texts have a collation.
  join pg_attribute a on a.attrelid = p.entity_table and a.attname = p.entity_key
    and a.attcollation <> 0
  where p.id = p_pipeline_id));
$$;

-- Inserts runs of the current version for locked entities that have no live run.
-- ids: the runs, in the order of p_entity_ids.
-- keys: the concurrency keys of their rows at p_stage; null where the stage has none.
create function millrace.new_runs(
  p_pipeline millrace.pipelines, p_entity_ids text[], p_stage text,
  out ids bigint[], out keys text[]
)
as $$
  v_values millrace.row_values := millrace.values_of_entities(
    p_pipeline.id, p_entity_ids, true, p_stage);
  v_brought record;
  v_metadata bigint[];
  v_given text[];
  -- All runs of a call share the first 24 characters. A random number for each costs a bulk 6 %.
  v_trace text := left(gen_random_uuid()::text, 24);

if v_values.metadata is not null or p_pipeline.has_given then
  v_brought := millrace.hook_before_runs(p_pipeline, p_entity_ids, v_values);
  v_metadata := v_brought.metadata_ids;
  v_given := v_brought.given;
end if;
with added as (
  insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, metadata_id, given,
    quota_of, quota_key, created_at)
  select p_pipeline.id, p_pipeline.current_version_id, e.id,
    coalesce(e.trace_id, (v_trace || 100000000000 + e.ordinal)::uuid), e.metadata_id,
    e.given::int[],
    case when p_pipeline.quota is not null then p_pipeline.id end,
    case when p_pipeline.quota is not null then coalesce(e.payer, '') end, v_now
  from unnest(p_entity_ids, v_values.traces, v_metadata, v_given, v_values.payers)
    with ordinality e(id, trace_id, metadata_id, given, payer, ordinal)
  returning id
)
select coalesce(array_agg(a.id), '{}') into ids from added a;
keys := v_values.keys;
$$;

-- Tells whether a run's entity has no later run of the pipeline.
create function millrace.is_latest_run(p_run_id bigint) returns boolean
as $$
-- by key
return not exists (
  select from millrace.runs r
  cross join lateral (
    select o.id
    from millrace.runs o
    where o.entity_id = any (array[r.entity_id])
      and o.pipeline_id = r.pipeline_id
    order by o.entity_id desc, o.id desc
    limit 1) l
  where r.id = p_run_id and l.id > r.id);
$$;

-- Returns those of the runs that are running.
create function millrace.running_of(p_run_ids bigint[]) returns bigint[]
as $$
return array(
  select r.id
  from millrace.runs r
  where r.id = any (p_run_ids)
    and (r.status = 'running') is true
  order by r.id);
$$;

-- Returns those of the runs that are running and have no attempt of the stage that counts. Where a
-- user's trigger has ended a run meanwhile, writes the stage onto its row as failed with the error
-- `cancelled`.
create function millrace.runs_to_begin(p_stage_id int, p_run_ids bigint[])
returns bigint[]
as $$
  v_unbegun record;

select array_agg(r.id order by r.id) filter (where r.status = 'running') as runs,
  array_agg(millrace.change_of(r.entity_id, 'failed', p_error => 'cancelled'))
    filter (where r.status <> 'running' and millrace.is_latest_run(r.id)) as over
into v_unbegun
from millrace.runs r
where r.id = any (p_run_ids)
  and (
    select a.id
    from millrace.attempts a
    where a.run_id = r.id and a.stage_id = p_stage_id and not a.superseded
    limit 1) is null;
perform millrace.project(p_stage_id, v_unbegun.over);
return coalesce(v_unbegun.runs, '{}');
$$;

-- Completes the runs in which this stage is a sink and all other sinks are done.
create function millrace.finish_runs(p_stage_id int, p_run_ids bigint[])
as $$
  v_done bigint[] := array(
    select r.id
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id and vs.stage_id = p_stage_id and vs.is_sink
    where r.id = any (p_run_ids)
      -- by key
      and (r.status = 'running') is true
      and not exists (
        select from millrace.version_stages o
        where o.version_id = r.version_id and o.is_sink and o.stage_id <> p_stage_id
          and not exists (
            select from millrace.done_attempts a
            where a.run_id = r.id and a.stage_id = o.stage_id)));

if v_done <> '{}' then
  perform millrace.end_runs(v_done, 'completed');
end if;
$$;

-- Ends locked runs that are running: running → completed | failed | cancelled. Inserts their pulse,
-- and for child runs a child tally.
-- p_failed_stage_id: the stage whose failure ends the runs; null for another end.
-- p_ended_as: the name of the ending; null for none.
create function millrace.end_runs(
  p_run_ids bigint[], p_status millrace.run_status, p_failed_stage_id int default null,
  p_ended_as text default null
)
as $$
with ended as (
  update millrace.runs r
  set status = p_status, finished_at = v_now, failed_stage_id = p_failed_stage_id,
    ended_as = p_ended_as,
    error_code = case when p_failed_stage_id is not null then coalesce((
      select left(a.error ->> 'code', 200)
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = p_failed_stage_id
      order by a.number desc
      limit 1), 'unknown') end
  where r.id = any (p_run_ids)
    and (r.status = 'running') is true
  returning r.id, r.fan_out_id, r.pipeline_id, r.created_at
), incomplete as materialized (
  select millrace.hook_incomplete(array_agg(e.id)) as ids
  from ended e
  where p_status = 'completed'
), pulse as (
  insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n, run_ms)
  -- A run that left a stage out is faster than others, so its time is not part of the figures.
  select v_now, e.pipeline_id, 0,
    case when p_ended_as is null then p_status::text else 'ended' end, count(*),
    array_agg(date_part('epoch', v_now - e.created_at) * 1000) filter (
      where p_status = 'completed' and e.id <> all ((select i.ids from incomplete i)::bigint[]))
  from ended e
  group by e.pipeline_id
)
insert into millrace.child_tallies (fan_out_id, completed, failed, cancelled)
select e.fan_out_id,
  count(*) filter (where p_status = 'completed'),
  count(*) filter (where p_status = 'failed'),
  count(*) filter (where p_status = 'cancelled')
from ended e
where e.fan_out_id is not null
group by e.fan_out_id;
$$;

-- Cancels attempts of locked runs: queued | started | waiting → cancelled. Returns the changes,
-- which the caller projects last.
-- p_stage_ids: the stages; null for all.
create function millrace.cancel_attempts(p_run_ids bigint[], p_stage_ids int[])
returns millrace.cancelled[]
as $$
  v_cancelled millrace.cancelled[];

perform from millrace.attempts a
where a.run_id = any (p_run_ids)
  and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
  and a.state = 'queued'
order by a.id + 0
for update;
with cancelled as (
  update millrace.attempts a
  set state = 'cancelled', finished_at = v_now, queue_at = null, poll_at = null,
    deadline_at = null, late_at = null,
    error = '{"code": "cancelled", "message": "cancelled"}'
  from millrace.runs r
  where a.run_id = any (p_run_ids) and r.id = a.run_id
    and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
    and a.state < 'completed'
  returning a.stage_id, millrace.change_of(r.entity_id, 'failed', a.job_id,
    p_error => 'cancelled', p_retry_count => a.retry_count,
    p_started_at => a.started_at) as change
)
select coalesce(array_agg(row(c.stage_id, c.change)::millrace.cancelled), '{}') into v_cancelled
from cancelled c;
perform millrace.note_pulses('cancelled', array(select c.stage_id from unnest(v_cancelled) c));
perform millrace.note_pulses('unstarted', array(
  select c.stage_id from unnest(v_cancelled) c where (c.change).started_at is null));
perform millrace.hook_stages_left(p_run_ids, p_stage_ids, 'cancelled');
return v_cancelled;
$$;

-- Has the parents of child runs count their children anew. Called where a child changes without
-- ending.
create function millrace.recount_parents(p_run_ids bigint[])
as $$
insert into millrace.child_tallies (fan_out_id, recount)
select distinct r.fan_out_id, true
from millrace.runs r
where r.id = any (p_run_ids)
  and (r.fan_out_id is not null) is true;
$$;

-- Cancels those of locked runs that are running. Returns how many.
-- p_is_projected: writes the cancellation onto the rows.
create function millrace.cancel_runs(p_run_ids bigint[], p_is_projected boolean) returns int
as $$
  -- A user's trigger on a row that was cancelled before may have ended some of the runs.
  v_runs bigint[] := millrace.running_of(p_run_ids);
  v_cancelled millrace.cancelled[];

if v_runs <> '{}' then
  perform millrace.end_runs(v_runs, 'cancelled');
  v_cancelled := millrace.cancel_attempts(v_runs, null);
  perform millrace.project_cancelled(v_cancelled) where p_is_projected;
end if;
return cardinality(v_runs);
$$;

-- Deletes locked runs, their attempts, and what modules keep about them.
-- p_too_old: pruning deletes the runs, whose rows still exist.
create function millrace.delete_runs(p_run_ids bigint[], p_too_old boolean default false)
as $$
  v_finished int[];

-- by key
perform from millrace.attempts a
where a.run_id = any (p_run_ids)
order by a.id + 0
for update;
perform millrace.hook_before_deletion(p_run_ids, p_too_old);
with gone as (
  delete from millrace.attempts a
  where a.run_id = any (p_run_ids)
  returning a.stage_id, a.state
)
select array_agg(g.stage_id) into v_finished
from gone g
where g.state in ('completed', 'failed', 'cancelled', 'skipped');
perform millrace.note_pulses('removed', v_finished);
delete from millrace.runs r where r.id = any (p_run_ids);
$$;
