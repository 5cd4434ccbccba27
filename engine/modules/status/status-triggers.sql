-- Creates the __intake function of a pipeline with one status column, and __since, which writes
-- since when the row has its value. One pass over a statement's rows finds the values that were
-- written and inserts their history entries, before those of what follows. The settings avoid
-- nested loops over the rows and sequential scans by the history's foreign key, and give a bulk
-- write memory to sort.
create function millrace.write_status_intake(p_pipeline millrace.pipelines)
as $write$
  v_status jsonb := p_pipeline.status;
  v_history jsonb := v_status -> 'history';
  v_column text := quote_ident(v_status ->> 'column');
  v_key text := quote_ident(p_pipeline.entity_key);
  v_tries text := quote_ident(v_status ->> 'attempts');
  v_updated text := format('new_rows n join old_rows o on o.%1$s = n.%1$s', v_key);
  v_passes text[];
begin
  v_passes := array(
    select format($f$
    with moved as materialized (
      select n.%1$s as id, o.%2$s as was, n.%2$s as now, %3$s as tries%4$s
      from %5$s
      where n.%2$s is distinct from o.%2$s
    )%6$s
    select array_agg(m.id::text order by m.id) as ids, array_agg(m.was::text order by m.id) as was,
      array_agg(m.now::text order by m.id) as now, array_agg(m.tries order by m.id) as tries,
      max(m.tries) as most, %7$s as told
    into v_written
    from moved m;$f$, v_key, v_column,
      coalesce('case when n.' || v_tries || ' > o.' || v_tries || ' then n.' || v_tries || ' end',
        'null') || '::bigint',
      case when v_history is not null then
        format(', n.%1$I as since, o.%1$I as began, %2$s as changes', v_history ->> 'since',
          coalesce('n.' || quote_ident(v_history ->> 'changes'), 'null::jsonb')) end, f.rows,
      case when v_history is not null then format($f$,
    noted as (
      insert into %s (%I, from_status, to_status, changed_at, changed_by, changes, duration_ms)
      select m.id, m.was, m.now, m.since, (select millrace.actor(tg_relid)), m.changes,
        case when m.began is not null
          then greatest(0, extract(epoch from m.since - m.began) * 1000)::bigint end
      from moved m
      where m.now::text in (
        select v.value from millrace.status_values v where v.pipeline_id = %s)
      order by m.id
    )$f$, to_regclass(v_history ->> 'table'), v_history ->> 'key', p_pipeline.id) end,
      case when v_history ? 'changes'
        then 'array_agg(m.id) filter (where m.changes is not null)' else 'null' end)
    from unnest(array[v_updated, format('new_rows n cross join (select (null::%s).*) o',
      p_pipeline.entity_table)]) with ordinality f(rows, ordinal)
    order by f.ordinal);
  perform millrace.write_function(p_pipeline.name, 'intake() returns trigger security definer '
    'set enable_nestloop = off set enable_seqscan = off set work_mem = ''32MB''', format($f$
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_written record; v_moved record;
begin
  if tg_op = 'UPDATE' then%s%s
  else%s
  end if;%s
  if v_written.ids is not null then
    perform millrace.on_values_written(%5$s, v_written.ids, v_written.was, v_written.now);
    -- Where a person starts a stage over with a higher count of tries, the attempt gets it.
    update millrace.attempts a
    set retry_count = least(i.tries, a.number - 1)
    from unnest(v_written.ids, v_written.tries) i(id, tries)
    join millrace.runs r on r.entity_id = i.id
    where v_written.most is not null
      and i.tries > 0 and r.pipeline_id = %5$s and r.status = 'running'
      and a.run_id = r.id and a.state = 'queued';
    perform millrace.show_status(%5$s, v_written.ids)
    where v_written.most is not null;
  end if;
  return null;
end $f$, v_passes[1],
    -- Due times count as moved at rows whose status stayed the same.
    case when v_status ? 'retry_at' then format($f$
    select array_agg(n.%1$s::text order by n.%1$s) as ids,
      array_agg(o.%2$I order by n.%1$s) as was, array_agg(n.%2$I order by n.%1$s) as at
    into v_moved
    from %4$s
    where n.%3$s is not distinct from o.%3$s
      and n.%2$I is distinct from o.%2$I;
    perform millrace.on_retries_moved(%5$s, v_moved.ids, v_moved.was, v_moved.at)
    where v_moved.ids is not null;$f$, v_key, v_status ->> 'retry_at', v_column, v_updated,
      p_pipeline.id) end,
    v_passes[2],
    -- The column with the changed fields is cleared, since the history has them now.
    case when v_history ? 'changes' then format($f$
  if v_written.told is not null then
    perform set_config('millrace.projecting', pg_trigger_depth()::text, true);
    update %1$s e set %2$I = null
    where e.%3$s = any (v_written.told);
    perform set_config('millrace.projecting', v_outer, true);
  end if;$f$, p_pipeline.entity_table, v_history ->> 'changes', v_key) end, p_pipeline.id));
  if v_history is not null then
    -- The names are quoted, since PL/pgSQL takes a field such as loop for a keyword.
    perform millrace.write_function(p_pipeline.name,
      'since() returns trigger security definer', format($f$
begin
  new."%2$s" := case when old."%1$s" is not distinct from new."%1$s" then old."%2$s"
    else millrace.now() end;
  return new;
end $f$, replace(v_status ->> 'column', '"', '""'), replace(v_history ->> 'since', '"', '""')));
  end if;
end
$write$;
