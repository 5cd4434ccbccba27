-- What attach() writes to take in statuses that users write

-- Writes the column of a pipeline's __intake function that collects what was written to one stage's
-- status. p_was: where the old status is read from.
create function millrace.written_rows(
  p_pipeline millrace.pipelines, p_stage text, p_ancestors text[], p_dependents text[], p_was text
) returns text
immutable
as $$
declare
  v_status text := p_stage || '_status';
  v_dirty text;
  v_covered text;
begin
  v_dirty := (
    select string_agg(millrace.dirty_condition('n', d, d <> p_stage), ' or ')
    from unnest(p_stage || p_dependents) d);
  -- An earlier stage of the same row starts over in the same statement.
  v_covered := (
    select string_agg(format(
      ' and not (n.%1$I = ''queued'' and n.%1$I is distinct from %2$s)',
      a || '_status', format(p_was, a || '_status')), '')
    from unnest(p_ancestors) a);
  return format('array_agg(row(n.%1$I::text, n.%2$I, %3$s)::millrace.written) '
    'filter (where n.%2$I is distinct from %4$s%5$s) as %6$I',
    p_pipeline.entity_key, v_status, v_dirty, format(p_was, v_status),
    coalesce(v_covered, ''), p_stage);
end
$$;

-- Writes the body of a pipeline's __intake function for one kind of statement: one pass over the
-- rows, since a bulk update mostly writes one stage.
create function millrace.intake_body(
  p_pipeline millrace.pipelines, p_key_type text, p_from text, p_was text
) returns text
stable
as $$
begin
  return (
    select format(E'    select %s\n    into v_written from %s;',
        string_agg(millrace.written_rows(p_pipeline, s.name,
          array(
            select a.name
            from millrace.version_stages av
            join millrace.stages a on a.id = av.stage_id
            where av.version_id = vs.version_id and s.id = any (av.dependents)
            order by a.id),
          array(
            select d.name from millrace.stages d
            where d.id = any (vs.dependents) order by d.id),
          p_was), E',\n      ' order by vs.position), p_from)
      || string_agg(format($branch$
    if v_written.%4$s is not null then
      for v_group in
        select w.status, array_agg(w.entity_id order by w.entity_id::%2$s) as ids,
          array_agg(w.entity_id) filter (where w.dirty) as dirty_ids
        from unnest(v_written.%4$s) w group by w.status order by w.status
      loop
        perform millrace.on_status_written(
          %3$s, %1$L, v_group.status, v_group.ids, v_group.dirty_ids);
      end loop;
    end if;$branch$, s.name, p_key_type, p_pipeline.id,
        millrace.quote_field(s.name)), '' order by vs.position)
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = p_pipeline.current_version_id);
end
$$;

-- Creates the __intake function of a pipeline and its triggers. Without nested loops: a session
-- keeps its plan, and one made for a row or two would compare all rows of a bulk update.
create function millrace.write_intake(p_pipeline millrace.pipelines, p_key_type text)
as $write$
begin
  perform millrace.write_function(format(
    '%I() returns trigger security definer set enable_nestloop = off',
    p_pipeline.name || '__intake'), format($f$
declare
  v_written record;
  v_group record;
begin
  if tg_op = 'UPDATE' then
%s
  else
%s
  end if;
  return null;
end $f$,
    millrace.intake_body(p_pipeline, p_key_type, format(
      'new_rows n join old_rows o on o.%1$I = n.%1$I', p_pipeline.entity_key), 'o.%I'),
    -- A fresh row has no old statuses: they count as pending.
    millrace.intake_body(p_pipeline, p_key_type, 'new_rows n', '''pending''')));
  execute format($f$
create or replace trigger %2$I after insert on %3$s referencing new table as new_rows
  for each statement execute function millrace.%1$I();
create or replace trigger %4$I after update on %3$s
  referencing old table as old_rows new table as new_rows
  for each statement
  -- Any session can make the announcement, so it counts from the schema's owner alone: whoever may
  -- read all data has usage.
  when (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
    or not has_schema_privilege('millrace', 'create'))
  execute function millrace.%1$I()$f$,
    p_pipeline.name || '__intake', 'millrace_' || p_pipeline.name || '_inserted',
    p_pipeline.entity_table,
    'millrace_' || p_pipeline.name || '_updated');
end
$write$;
