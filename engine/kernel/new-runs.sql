-- New runs, and the stages that begin with them

-- Copies the results of these stages from the previous run of each entity into its new run, as
-- finished attempts, but for what that run only left out.
create function millrace.copy_earlier_results(p_run_ids bigint[], p_keep int[])
returns void
language plpgsql
as $$
declare
  v_copied int[];
begin
  if cardinality(p_keep) = 0 or cardinality(p_run_ids) = 0 then
    return;
  end if;
  with copied as (
    insert into millrace.attempts (run_id, stage_id, number, parent_id, state, error, retry_count,
      created_at, started_at, finished_at, output, input_hash)
    select r.id, d.stage_id, 1, d.id, d.state, d.error, d.retry_count,
      d.created_at, d.started_at, d.finished_at, d.output, d.input_hash
    from millrace.runs r
    cross join lateral (
      select o.id
      from millrace.runs o
      where o.entity_id = r.entity_id
        and o.pipeline_id = r.pipeline_id
        and o.id < r.id
      order by o.id desc
      limit 1) o
    join millrace.done_attempts d
      on d.run_id = o.id and d.stage_id = any (p_keep) and not millrace.was_left_out(d.error)
    where r.id = any (p_run_ids)
    order by r.id, d.id
    returning stage_id
  )
  select array_agg(c.stage_id) into v_copied from copied c;
  perform millrace.note_pulses('copied', v_copied);
end
$$;

-- Makes new runs of a pipeline's current version for entities that the caller holds and that have
-- no live run, each with what its row's columns say of it. p_done_before: a row without any run has
-- been through the stages before that one all the same. Returns the runs, and the keys of their
-- rows at the stage that is to begin.
create function millrace.new_runs(
  p_pipeline millrace.pipelines, p_entity_ids text[], p_stage text, p_done_before int,
  p_priority int, out ids bigint[], out keys text[]
)
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_values millrace.row_values := millrace.values_of_entities(
    p_pipeline.id, p_entity_ids, true, p_stage);
  v_brought record;
  v_metadata bigint[];
  v_given text[];
begin
  if v_values.metadata is not null or p_pipeline.has_given then
    v_brought := millrace.hook_before_runs(p_pipeline, p_entity_ids, v_values);
    v_metadata := v_brought.metadata_ids;
    v_given := v_brought.given;
  end if;
  if v_values.traces is null then
    -- Sorted, or each would go to another page of the index.
    v_values.traces := array(select gen_random_uuid() from unnest(p_entity_ids) order by 1);
  end if;
  with added as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, metadata_id, given,
      priority, quota_of, quota_key, created_at)
    select p_pipeline.id, p_pipeline.current_version_id, e.id,
      coalesce(e.trace_id, gen_random_uuid()), e.metadata_id, e.given::int[], p_priority,
      case when p_pipeline.quota is not null then p_pipeline.id end,
      case when p_pipeline.quota is not null then coalesce(e.payer, '') end, v_now
    from unnest(p_entity_ids, v_values.traces, v_metadata, v_given, v_values.payers)
      e(id, trace_id, metadata_id, given, payer)
    returning id
  )
  select coalesce(array_agg(a.id), '{}') into ids from added a;
  if p_pipeline.is_child or p_pipeline.sla is not null or p_done_before is not null then
    perform millrace.hook_runs_made(p_pipeline, ids, p_done_before);
  end if;
  keys := v_values.keys;
end
$$;

-- Raises MR005 where one of these runs lacks the result of a need of a stage, and names the stage
-- to queue instead: the need may lack a need of its own.
create function millrace.refuse_missing_needs(p_run_ids bigint[], p_stage_id int)
returns void
language plpgsql
as $$
declare
  v_lacking record;
begin
  select count(distinct r.id) as runs, min(r.id) as run_id, min(r.entity_id) as entity_id,
    min(s.name) as need into v_lacking
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  cross join lateral unnest(vs.needs) n
  join millrace.stages s on s.id = n
  where r.id = any (p_run_ids)
    and (
      select d.id
      from millrace.done_attempts d
      where d.run_id = r.id
        and d.stage_id = n
      limit 1) is null;
  if v_lacking.runs = 0 then
    return;
  end if;
  raise exception 'stage % cannot start for % entities (%, …): its need % has no result',
    (select s.name from millrace.stages s where s.id = p_stage_id),
    v_lacking.runs, v_lacking.entity_id, v_lacking.need
    using errcode = 'MR005',
      hint = format('Queue %s instead; the stages after it follow by themselves.', (
        select s.name
        from millrace.runs r
        join millrace.version_stages vs
          on vs.version_id = r.version_id and p_stage_id = any (vs.dependents)
        join millrace.stages s on s.id = vs.stage_id
        where r.id = v_lacking.run_id
          and not exists (
            select
            from millrace.done_attempts d
            where d.run_id = r.id
              and d.stage_id = vs.stage_id)
        order by vs.position
        limit 1));
end
$$;

-- Begins a stage of locked runs, whatever its thresholds say; MR005 when a need has no result.
-- Returns the stages with work.
create function millrace.enqueue_stage(
  p_run_ids bigint[], p_stage_id int, p_by_name boolean default false
) returns int[]
language plpgsql
as $$
begin
  perform millrace.refuse_missing_needs(p_run_ids, p_stage_id);
  if (
      select bool_and(vs.unconditional)
      from millrace.runs r
      join millrace.version_stages vs
        on vs.version_id = r.version_id and vs.stage_id = p_stage_id
      where r.id = any (p_run_ids)) then
    perform millrace.queue_attempts(p_stage_id, p_run_ids);
    return array[p_stage_id];
  end if;
  return millrace.hook_begin(p_stage_id, p_run_ids, p_by_name, false);
end
$$;

-- Picks the runs that are running.
create function millrace.running_of(p_run_ids bigint[]) returns bigint[]
language plpgsql volatile
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
    order by r.id);
end
$$;

-- Picks the runs that are running and have no attempt of the stage that counts. A user's trigger on
-- what was shown last may have ended a run, deleted it, or begun the stage by itself. Where the run
-- has ended, nothing but this shows its stage as cancelled, since the stage has no attempt.
create function millrace.runs_to_begin(p_stage_id int, p_run_ids bigint[])
returns bigint[]
language plpgsql
as $$
declare
  v_unbegun record;
begin
  select array_agg(r.id order by r.id) filter (where r.status = 'running') as runs,
    array_agg(millrace.change_of(r.entity_id, 'failed', p_error => 'cancelled'))
      filter (where r.status <> 'running' and millrace.is_latest_run(r.id)) as over
  into v_unbegun
  from millrace.runs r
  where r.id = any (p_run_ids)
    and (
      select a.id
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = p_stage_id
        and not a.superseded
      limit 1) is null;
  perform millrace.project(p_stage_id, v_unbegun.over);
  return coalesce(v_unbegun.runs, '{}');
end
$$;

-- Returns the stage at which a pipeline starts unless another is named.
create function millrace.first_stage(p_pipeline_id int) returns int
language plpgsql stable
as $$
begin
  return (
    select vs.stage_id
    from millrace.pipelines p
    join millrace.version_stages vs
      on vs.version_id = p.current_version_id and vs.needs = '{}' and vs.after = '[]'
    where p.id = p_pipeline_id
    order by vs.on_demand, vs.position
    limit 1);
end
$$;
