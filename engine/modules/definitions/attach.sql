-- Attaching: the functions and triggers that are written for each pipeline, such as `leads`
--   leads__lock(ids, wait)                   locks entities, in key order
--   leads__rows(ids, each)                   their rows, without engine columns
--   leads__sizes(ids)                        how large the rows are
--   leads__asked(ids, each)                  what conditions of given stages read
--   leads__values(ids, new, stage)           what columns hold that the definition names
--   leads__deleted(), leads__key()           the triggers on delete, and on a changed key
--   leads__intake()                          the trigger on insert and update
--   leads__started(stage, now, ids)          shows a claim
--   leads__apply_outcomes(stage, changes)    shows a transition
--   leads__queued(stage, dependents, ids)    shows starting over
--   leads__since()                           when a status began, where there is a history

-- Writes the functions and triggers that tie a pipeline to its entity table. Call it again after
-- adding columns to the table; define() does.
create function millrace.attach(p_pipeline text)
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_stages text[];
  v_columns name[];
  v_key_type text;
  v_functions text;
  v_trigger record;
begin
  v_stages := array(
    select s.name
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = v_pipeline.current_version_id
    order by vs.position);
  perform millrace.check_columns(v_pipeline, v_stages);
  for v_trigger in
    select t.tgname, t.tgrelid::regclass as relation
    from pg_trigger t
    join pg_proc f on f.oid = t.tgfoid
    where f.pronamespace = 'millrace'::regnamespace
      and f.proname = any (array[v_pipeline.name || '__intake',
        v_pipeline.name || '__deleted', v_pipeline.name || '__key',
        v_pipeline.name || '__since'])
      and (t.tgrelid <> v_pipeline.entity_table
        or v_pipeline.projection = 'none' and f.proname = v_pipeline.name || '__intake'
        or v_pipeline.projection <> 'status' and f.proname = v_pipeline.name || '__since')
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger.relation);
  end loop;
  v_key_type := millrace.key_type(v_pipeline);
  perform millrace.write_function(format(
    '%I(p_ids text[], p_wait boolean default false) returns text[]',
    v_pipeline.name || '__lock'), format($f$
#variable_conflict use_variable
begin
  if p_wait then
    return array(
      select e.%1$I::text from %2$s e where e.%1$I = any (p_ids::%3$s[])
      order by e.%1$I for no key update);
  end if;
  return array(
    select e.%1$I::text from %2$s e where e.%1$I = any (p_ids::%3$s[])
    order by e.%1$I for no key update skip locked);
end $f$, v_pipeline.entity_key, v_pipeline.entity_table, v_key_type));
  v_columns := array(
    select a.attname
    from pg_attribute a
    where a.attrelid = v_pipeline.entity_table
      and a.attnum > 0
      and not a.attisdropped
      and a.attname <> all (millrace.status_columns(v_pipeline.status))
      and not exists (
        select
        from millrace.stages s
        where s.pipeline_id = v_pipeline.id
          and v_pipeline.projection = 'columns'
          and a.attname = any (millrace.stage_columns(s.name)))
    order by a.attnum);
  perform millrace.write_rows(v_pipeline, v_key_type, v_columns);
  perform millrace.write_values(v_pipeline);
  perform millrace.write_row_triggers(v_pipeline);
  if v_pipeline.projection = 'columns' then
    perform millrace.write_projection(v_pipeline, v_key_type);
    perform millrace.write_intake(v_pipeline, v_key_type);
  elsif v_pipeline.projection = 'status' then
    perform millrace.write_status(v_pipeline, v_key_type);
    perform millrace.write_status_since(v_pipeline);
    perform millrace.write_status_intake(v_pipeline);
  end if;
  perform millrace.attach_groups(v_pipeline);
  v_functions := (
    select string_agg(p.oid::regprocedure::text, ', ')
    from pg_proc p
    where p.pronamespace = 'millrace'::regnamespace
      -- All that begin with its name and two underscores, as a range of the index.
      and p.proname >= (v_pipeline.name || '__')::name
      and p.proname < (v_pipeline.name || '_`')::name
      and has_function_privilege('public', p.oid, 'execute'));
  if v_functions is not null then
    execute format('revoke all on function %s from public', v_functions);
  end if;
end
$$;
