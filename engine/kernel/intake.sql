-- Intake: rows that a user writes or deletes
--
-- The engine's own update is exempt: it sets millrace.projecting to its trigger depth. A user's
-- trigger runs one level deeper and is checked. definitions/attach*.sql writes the triggers of each
-- pipeline.

-- Acts on a status that a user wrote into rows, which the statement has locked. `queued` starts the
-- stage. `pending` is allowed where the row has no live run. Any other value raises MR005.
-- p_dirty_ids: the entities with columns to clear.
create function millrace.on_status_written(
  p_pipeline_id int, p_stage text, p_status text, p_entity_ids text[], p_dirty_ids text[]
)
set plan = by_index
set enable_nestloop = on
as $$
  v_stage_id int := (
    select s.id from millrace.stages s
    where s.pipeline_id = p_pipeline_id and s.name = p_stage);

if p_status = 'queued' then
  perform millrace.queue_stage(
    p_pipeline_id, v_stage_id, p_entity_ids, coalesce(p_dirty_ids, '{}'));
elsif p_status is distinct from 'pending' then
  raise exception 'MR005: %_status was set to % by hand',
    p_stage, coalesce(quote_literal(p_status), 'null')
    using hint = 'Write ''queued'' to (re)start the stage; the engine writes all other states. '
        || case
          when p_status = 'skipped' then
            format('To go on without the stage: select millrace.skip(run, %L).', p_stage)
          else 'To stop a run: select millrace.cancel(run).'
        end;
elsif exists (
    select from millrace.runs r
    where r.pipeline_id = p_pipeline_id and r.entity_id = any (p_entity_ids)
      and r.status = 'running') then
  raise exception 'MR005: %_status was set to ''pending'' by hand while a run is under way', p_stage
    using hint = format('Cancel the run first: select millrace.cancel(id) from millrace.runs '
        'where status = ''running'' and pipeline_id = %s and entity_id = %L.',
        p_pipeline_id, p_entity_ids[1]);
end if;
$$;

-- Finds entities whose rows are gone without the delete trigger: deleted as a replica, or with a
-- table made anew. Deletes their runs as the trigger would have done, and returns the entities.
-- Runs that another transaction has locked are left to a later call. The runs are locked before the
-- rows are looked for, so that a row which is back by then keeps its run.
create function millrace.delete_missing(p_pipeline_id int, p_entity_ids text[]) returns text[]
set plan = by_index
as $$
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    where r.entity_id = any (p_entity_ids) and r.pipeline_id = p_pipeline_id
    for update skip locked);
  v_gone text[] := array(
    select g.id
    from unnest(p_entity_ids, millrace.sizes_of_entities(p_pipeline_id, p_entity_ids)) g(id, size)
    where g.size is null);

if v_gone <> '{}' then
  perform millrace.report('warning', 'row_gone', format(
    'Rows of pipeline %s went without its trigger: %s', p.name, v_gone[:20]))
  from millrace.pipelines p
  where p.id = p_pipeline_id;
  perform millrace.delete_runs(array(
    select r.id
    from millrace.runs r
    where r.id = any (v_runs) and r.entity_id = any (v_gone)));
  perform millrace.hook_rows_gone(p_pipeline_id, v_gone);
end if;
return v_gone;
$$;
