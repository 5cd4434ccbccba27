-- The projection `status`: the triggers through which a pipeline learns of written values
--
-- They are written for each pipeline, with its columns in place. What a person wrote stands in the
-- row already; it goes into the history first, so that what follows from it comes after.

-- Creates the __since function of a pipeline with its triggers, or drops them where there is no
-- history: a value that a person writes begins now. The engine's own statements set it themselves.
create or replace function millrace.write_status_since(p_pipeline millrace.pipelines)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_status text := p_pipeline.status ->> 'column';
  v_since text := p_pipeline.status #>> '{history,since}';
  v_name text := p_pipeline.name || '__since';
begin
  if v_since is null then
    -- With its triggers, if it is there: to look for a trigger locks out whoever reads the table.
    execute format('drop function if exists millrace.%I() cascade', v_name);
    return;
  end if;
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' and old.%2$I is not distinct from new.%2$I then
    new.%3$I := old.%3$I;
  else
    new.%3$I := millrace.now();
  end if;
  return new;
end $$;
create or replace trigger %4$I before insert on %6$s
  for each row when (new.%2$I is not null) execute function millrace.%1$I();
create or replace trigger %5$I before update on %6$s
  for each row
  when ((old.%2$I is distinct from new.%2$I or old.%3$I is distinct from new.%3$I)
    and (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
      or not has_schema_privilege('millrace', 'create')))
  execute function millrace.%1$I()$f$,
    v_name, v_status, v_since, 'millrace_' || p_pipeline.name || '_begun',
    'millrace_' || p_pipeline.name || '_since', p_pipeline.entity_table);
end
$write$;

-- Writes the statements that put what a person wrote into the history, and take what was said of
-- changed fields from the row. p_was is what the old value is read from.
create or replace function millrace.history_of_written(
  p_pipeline millrace.pipelines, p_from text, p_moved text, p_was text, p_began text
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  v_changes text := v_history ->> 'changes';
begin
  if v_history is null then
    return '';
  end if;
  return format($f$
    insert into %1$s (%2$I, from_status, to_status, changed_at, changed_by, changes, duration_ms)
    select n.%3$I, %4$s, n.%5$I, n.%6$I, v_actor, %7$s,
      case when %8$s is not null
        then greatest(0, extract(epoch from n.%6$I - %8$s) * 1000)::bigint end
    from %9$s
    where %10$s
      and n.%5$I::text in (
        select v.value
        from millrace.status_values v
        where v.pipeline_id = %11$s)
    order by n.%3$I;$f$,
      to_regclass(v_history ->> 'table'), v_history ->> 'key', p_pipeline.entity_key, p_was,
      p_pipeline.status ->> 'column', v_history ->> 'since',
      coalesce('n.' || quote_ident(v_changes), 'null'), p_began, p_from, p_moved, p_pipeline.id)
    || case when v_changes is null then '' else format($f$
    v_told := array(
      select n.%5$I::text
      from %3$s
      where %4$s and n.%2$I is not null);
    if cardinality(v_told) > 0 then
      v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
      update %1$s e set %2$I = null
      where e.%5$I = any (v_told::%6$s[]);
      v_said := set_config('millrace.projecting', v_outer, true);
    end if;$f$,
      p_pipeline.entity_table, v_changes, p_from, p_moved, p_pipeline.entity_key,
      millrace.key_type(p_pipeline)) end;
end
$write$;

-- Writes the statements that move retries to the due times that people wrote, at rows whose status
-- stayed; empty where the definition has no column for them. A status that is written too begins
-- its stage at once.
create or replace function millrace.intake_of_retries(
  p_pipeline millrace.pipelines, p_from text
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $write$
begin
  if not p_pipeline.status ? 'retry_at' then
    return '';
  end if;
  return format($f$
    select array_agg(n.%1$I::text order by n.%1$I) as ids,
      array_agg(o.%2$I order by n.%1$I) as was, array_agg(n.%2$I order by n.%1$I) as at
    into v_moved
    from %4$s
    where n.%3$I is not distinct from o.%3$I
      and n.%2$I is distinct from o.%2$I;
    if v_moved.ids is not null then
      perform millrace.on_retries_moved(%5$s, v_moved.ids, v_moved.was, v_moved.at);
    end if;$f$,
    p_pipeline.entity_key, p_pipeline.status ->> 'retry_at', p_pipeline.status ->> 'column',
    p_from, p_pipeline.id);
end
$write$;

-- Creates the __intake function of a pipeline with one status column, and its triggers. Without
-- nested loops over the rows, as for the projection columns. Without sequential scans: a session
-- keeps its plan of a reference's check, too, and the history refers to the rows.
create or replace function millrace.write_status_intake(
  p_pipeline millrace.pipelines, p_key_type text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_key text := quote_ident(p_pipeline.entity_key);
  v_column text := quote_ident(p_pipeline.status ->> 'column');
  v_both text := format('new_rows n join old_rows o on o.%1$s = n.%1$s', v_key);
  v_moved text := format('n.%1$s is distinct from o.%1$s', v_column);
  v_given text := format('n.%s is not null', v_column);
  v_bodies text[] := array[
    millrace.history_of_written(p_pipeline, v_both, v_moved, 'o.' || v_column,
      'o.' || quote_ident(p_pipeline.status #>> '{history,since}')),
    millrace.history_of_written(p_pipeline, 'new_rows n', v_given,
      format('null::%s', millrace.status_type(p_pipeline)), 'null::timestamptz')];
begin
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_nestloop = off set enable_seqscan = off as $$
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_actor text;
  v_said text; v_told text[];
  v_written record; v_moved record;
begin
  if tg_op = 'UPDATE' then
    select array_agg(n.%2$s::text order by n.%2$s) as ids,
      array_agg(o.%3$s::text order by n.%2$s) as was,
      array_agg(n.%3$s::text order by n.%2$s) as now
    into v_written
    from %4$s
    where %5$s;
    if v_written.ids is not null then
      v_actor := millrace.actor(tg_relid);%6$s
    end if;%10$s
  else
    select array_agg(n.%2$s::text order by n.%2$s) as ids,
      array_fill(null::text, array[count(*)::int]) as was,
      array_agg(n.%3$s::text order by n.%2$s) as now
    into v_written
    from new_rows n
    where %7$s;
    if v_written.ids is not null then
      v_actor := millrace.actor(tg_relid);%8$s
    end if;
  end if;
  if v_written.ids is null then
    return null;
  end if;
  perform millrace.on_values_written(%9$s, v_written.ids, v_written.was, v_written.now);
  return null;
end $$;$f$,
    p_pipeline.name || '__intake', v_key, v_column, v_both, v_moved, v_bodies[1], v_given,
    v_bodies[2], p_pipeline.id, millrace.intake_of_retries(p_pipeline, v_both));
  perform millrace.write_status_triggers(p_pipeline);
end
$write$;

-- Creates the triggers of the __intake function of a pipeline with one status column.
create or replace function millrace.write_status_triggers(p_pipeline millrace.pipelines)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace trigger %1$I after insert on %3$s referencing new table as new_rows
  for each statement execute function millrace.%4$I();
create or replace trigger %2$I after update on %3$s
  referencing old table as old_rows new table as new_rows
  for each statement
  when (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
    or not has_schema_privilege('millrace', 'create'))
  execute function millrace.%4$I()$f$,
    'millrace_' || p_pipeline.name || '_inserted', 'millrace_' || p_pipeline.name || '_updated',
    p_pipeline.entity_table, p_pipeline.name || '__intake');
end
$write$;
