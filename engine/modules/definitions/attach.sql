-- Attaching: what is written for each pipeline
--
-- millrace.attach() writes static functions and triggers for a pipeline's entity table, so that
-- nothing is planned from text while a user's statement runs. For a pipeline `leads` over
-- public.leads it makes, all in schema millrace:
--   leads__lock(ids, wait)                   locks entities, in key order
--   leads__rows(ids, each)                   their rows, without engine columns
--   leads__sizes(ids)                        how large the rows are
--   leads__asked(ids, each)                  what conditions of given stages read
--   leads__values(ids, new, stage)           what columns hold that the definition names
--   leads__deleted()                         the trigger on delete
--   leads__key()                             refuses a changed key
--   leads__intake()                          the trigger on insert and update
--   leads__started(stage, now, ids)          shows a claim
--   leads__apply_outcomes(stage, changes)    shows a transition
--   leads__queued(stage, dependents, ids)    shows starting over
--   leads__since()                           when a status began, where there is a history

-- Creates lock_entities, rows_of_entities, sizes_of_entities, asked_of_entities and
-- project_entities, which lead from the engine to the functions of each pipeline; static, with one
-- branch a pipeline.
create function millrace.write_dispatch() returns void
language plpgsql
as $write$
declare
  v_ids int[];
  v_names text[];
begin
  select array_agg(p.id order by p.id), array_agg(p.name order by p.id) into v_ids, v_names
  from millrace.pipelines p;
  perform millrace.write_way('lock_entities',
    '(p_pipeline_id int, p_ids text[], p_wait boolean) returns text[]', v_ids,
    array(select format('return millrace.%I(p_ids, p_wait);', n || '__lock')
      from unnest(v_names) n),
    'locks entities of a pipeline, skipping or waiting for those that somebody holds; '
    'returns the keys got.');
  perform millrace.write_way('rows_of_entities',
    '(p_pipeline_id int, p_ids text[], p_each bigint) returns json[]', v_ids,
    array(select format('return millrace.%I(p_ids, p_each);', n || '__rows')
      from unnest(v_names) n),
    'rows of a pipeline''s entities in the order of their keys, without the engine''s columns; '
    'null for one that may have more than p_each bytes.');
  perform millrace.write_way('sizes_of_entities',
    '(p_pipeline_id int, p_ids text[]) returns bigint[]', v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__sizes') from unnest(v_names) n),
    'the bytes of what rows_of_entities() would build of each entity, as they are stored.');
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where to_regprocedure(
    format('millrace.%I(text[], bigint)', p.name || '__asked')) is not null;
  perform millrace.write_way('asked_of_entities',
    '(p_pipeline_id int, p_ids text[], p_each bigint) returns jsonb[]', v_ids,
    array(select format('return millrace.%I(p_ids, p_each);', n || '__asked')
      from unnest(v_names) n),
    'what the conditions of given stages read of a pipeline''s entities in the order of their '
    'keys; null where all of a row is to be built.');
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where p.projection <> 'none';
  perform millrace.write_project_entities(v_ids, v_names);
end
$write$;

-- Creates project_entities(), which shows transitions (settle), claims (started) and starts over
-- (queued) of all pipelines, and announces them to the intake triggers by the depth of triggers.
create function millrace.write_project_entities(p_ids int[], p_names text[])
returns void
language plpgsql
as $write$
declare
  v_branches text[] := array(
    select format($f$v_written := case p_how
  when 'settle' then millrace.%I(p_stage, p_changes)
  when 'started' then millrace.%I(p_stage, millrace.now(), p_ids)
  else millrace.%I(p_stage, p_dependents, p_ids) end;$f$,
      n.name || '__apply_outcomes', n.name || '__started', n.name || '__queued')
    from unnest(p_names) with ordinality n(name, place)
    order by n.place);
begin
  perform millrace.write_function(
    'project_entities(p_pipeline_id int, p_how text, p_stage text, p_changes millrace.change[], '
    'p_ids text[], p_dependents text[]) returns boolean', format($f$
#variable_conflict use_variable
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_said text;
  v_written boolean := false;
begin
  if p_how = 'settle' and (p_changes is null
    or current_setting('millrace.projection_off', true) is not distinct from 'on') then
    return false;
  end if;
  v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
%s
  v_said := set_config('millrace.projecting', v_outer, true);
  return v_written;
end $f$, case when cardinality(p_ids) > 0 then millrace.branches(p_ids, v_branches) else '' end));
  comment on function millrace.project_entities is
    'Written by attach(): the projecting statements of all pipelines.';
  revoke all on function millrace.project_entities from public;
end
$write$;

-- Writes the functions and triggers that tie a pipeline to its entity table. Call it again after
-- adding columns to the table; define() does.
create function millrace.attach(p_pipeline text) returns void
language plpgsql
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_stages text[];
  v_columns text[];
  v_key_type text;
  v_function regprocedure;
  v_trigger record;
begin
  v_stages := array(
    select s.name
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = v_pipeline.current_version_id
    order by vs.position);
  perform millrace.check_columns(v_pipeline, v_stages);
  if v_pipeline.projection = 'columns' then
    perform millrace.check_status_words(v_pipeline.entity_table, v_stages);
  end if;
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
    select c
    from millrace.stages s, unnest(millrace.stage_columns(s.name)) c
    where s.pipeline_id = v_pipeline.id and v_pipeline.projection = 'columns'
    union all
    select unnest(millrace.status_columns(v_pipeline.status)));
  perform millrace.write_rows(v_pipeline, v_key_type, v_columns);
  perform millrace.write_asked(v_pipeline, v_key_type, v_columns);
  perform millrace.write_values(v_pipeline);
  perform millrace.write_row_triggers(v_pipeline);
  if v_pipeline.projection = 'columns' then
    perform millrace.write_projection(v_pipeline, v_key_type);
    perform millrace.write_intake(v_pipeline, v_key_type);
  elsif v_pipeline.projection = 'status' then
    perform millrace.write_status(v_pipeline, v_key_type);
  end if;
  perform millrace.write_dispatch();
  perform millrace.attach_groups(v_pipeline);
  for v_function in
    select p.oid
    from pg_proc p
    where p.pronamespace = 'millrace'::regnamespace
      and p.proname like replace(v_pipeline.name, '_', '\_') || '\_\_%'
  loop
    execute format('revoke all on function %s from public', v_function);
    execute format('comment on function %s is %L', v_function, format(
      'Written by millrace.attach(%L); see modules/definitions/attach.sql.', v_pipeline.name));
  end loop;
end
$$;
