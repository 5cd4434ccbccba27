-- Creates the __intake function of a pipeline. One pass over the rows of a statement collects what
-- was written to each status column, one form of it for updates and one for inserts. The function
-- is planned without nested loops, since a plan made for a row or two would compare all rows of a
-- bulk update.
create function millrace.write_intake(p_pipeline millrace.pipelines, p_key_type text)
as $write$
  v_passes text[] := array(
    select format(E'    select %s\n    into v_written from %s;',
        string_agg(format('array_agg(row(n.%1$I::text, n.%2$I, %3$s)::millrace.written) '
          'filter (where n.%2$I is distinct from %4$s%5$s) as s%6$s',
          p_pipeline.entity_key, s.name || '_status', (
          select string_agg(millrace.dirty_condition('n', d.name, d.id <> s.id), ' or ')
          from millrace.stages d
          where d.id = s.id or d.id = any (vs.dependents)),
          format(f.was, s.name || '_status'), (
          -- Leaves out a row in which an earlier stage starts over in the same statement.
          select string_agg(format(
            ' and not (n.%1$I = ''queued'' and n.%1$I is distinct from %2$s)',
            a.name || '_status', format(f.was, a.name || '_status')), '' order by a.id)
          from millrace.version_stages av
          join millrace.stages a on a.id = av.stage_id
          where av.version_id = vs.version_id and s.id = any (av.dependents)),
          s.id), E',\n      ' order by vs.position), f.rows)
      || string_agg(format($branch$
  if v_written.s%4$s is not null then
    for v_group in
      select w.status, array_agg(w.entity_id order by w.entity_id::%2$s) as ids,
        array_agg(w.entity_id) filter (where w.dirty) as dirty_ids
      from unnest(v_written.s%4$s) w group by w.status order by w.status
    loop
      perform millrace.on_status_written(
        %3$s, %1$L, v_group.status, v_group.ids, v_group.dirty_ids);
    end loop;
  end if;$branch$, s.name, p_key_type, p_pipeline.id, s.id), '' order by vs.position)
    -- The old statuses of an inserted row count as pending.
    from (values
      (1, format('new_rows n join old_rows o on o.%1$I = n.%1$I', p_pipeline.entity_key), 'o.%I'),
      (2, 'new_rows n', '''pending''')) f(ordinal, rows, was)
    cross join millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = p_pipeline.current_version_id
    group by f.ordinal, f.rows
    order by f.ordinal);

perform millrace.write_function(p_pipeline.name,
  'intake() returns trigger security definer set enable_nestloop = off', format($f$
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
end $f$, v_passes[1], v_passes[2]));
$write$;
