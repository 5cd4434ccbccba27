-- Writes the pass over a statement's rows that finds what was written to their status, with its
-- lines of the history, which come before what follows from it.
create function millrace.pass_over_written(
  p_pipeline millrace.pipelines, p_from text, p_moved text, p_was text, p_began text
) returns text
stable
as $write$
declare
  v_history jsonb := p_pipeline.status -> 'history';
begin
  return format($f$
    with moved as materialized (
      select n.%1$I as id, %2$s as was, n.%3$I as now%4$s
      from %5$s
      where %6$s
    )%7$s
    select array_agg(m.id::text order by m.id) as ids, array_agg(m.was::text order by m.id) as was,
      array_agg(m.now::text order by m.id) as now, %8$s as told
    into v_written
    from moved m;$f$,
    p_pipeline.entity_key, p_was, p_pipeline.status ->> 'column',
    case when v_history is not null then
      format(', n.%I as since, %s as began, %s as changes', v_history ->> 'since', p_began,
        coalesce('n.' || quote_ident(v_history ->> 'changes'), 'null::jsonb')) end,
    p_from, p_moved,
    case when v_history is not null then format($f$,
    noted as (
      insert into %s (%I, from_status, to_status, changed_at, changed_by, changes, duration_ms)
      select m.id, m.was, m.now, m.since, (select millrace.actor(tg_relid)), m.changes,
        case when m.began is not null
          then greatest(0, extract(epoch from m.since - m.began) * 1000)::bigint end
      from moved m
      where m.now::text in (
        select v.value
        from millrace.status_values v
        where v.pipeline_id = %s)
      order by m.id
    )$f$, to_regclass(v_history ->> 'table'), v_history ->> 'key', p_pipeline.id) end,
    case when v_history ? 'changes'
      then 'array_agg(m.id) filter (where m.changes is not null)' else 'null' end);
end
$write$;

-- Creates the __intake function of a pipeline with one status column, and __since, which keeps when
-- a value began. Without nested loops over the rows, or sequential scans by the history's foreign
-- key; with memory to sort a bulk write.
create function millrace.write_status_intake(p_pipeline millrace.pipelines)
as $write$
declare
  v_column text := quote_ident(p_pipeline.status ->> 'column');
  v_since text := p_pipeline.status #>> '{history,since}';
  v_both text := format('new_rows n join old_rows o on o.%1$I = n.%1$I', p_pipeline.entity_key);
begin
  perform millrace.write_function(format(
    '%I() returns trigger security definer '
    'set enable_nestloop = off set enable_seqscan = off set work_mem = ''32MB''',
    p_pipeline.name || '__intake'), format($f$
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_said text;
  v_written record; v_moved record;
  v_tried text[]; v_tries bigint[];
begin
  if tg_op = 'UPDATE' then%s%s%s
  else%s
  end if;%s
  if v_written.ids is not null then
    perform millrace.on_values_written(%s, v_written.ids, v_written.was, v_written.now);%s
  end if;
  return null;
end $f$,
    millrace.pass_over_written(p_pipeline, v_both,
      format('n.%1$s is distinct from o.%1$s', v_column), 'o.' || v_column,
      'o.' || quote_ident(v_since)),
    -- Due times were moved at rows whose status stayed.
    case when p_pipeline.status ? 'retry_at' then format($f$
    select array_agg(n.%1$I::text order by n.%1$I) as ids,
      array_agg(o.%2$I order by n.%1$I) as was, array_agg(n.%2$I order by n.%1$I) as at
    into v_moved
    from %4$s
    where n.%3$s is not distinct from o.%3$s
      and n.%2$I is distinct from o.%2$I;
    if v_moved.ids is not null then
      perform millrace.on_retries_moved(%5$s, v_moved.ids, v_moved.was, v_moved.at);
    end if;$f$, p_pipeline.entity_key, p_pipeline.status ->> 'retry_at', v_column, v_both,
      p_pipeline.id) end,
    case when p_pipeline.status ? 'attempts' then format($f$
    select array_agg(n.%1$I::text order by n.%1$I), array_agg(n.%2$I::bigint order by n.%1$I)
    into v_tried, v_tries
    from %4$s
    where n.%3$s is distinct from o.%3$s
      and n.%2$I > o.%2$I;$f$, p_pipeline.entity_key, p_pipeline.status ->> 'attempts', v_column,
      v_both) end,
    millrace.pass_over_written(p_pipeline, 'new_rows n', format('n.%s is not null', v_column),
      'null::' || millrace.column_type(p_pipeline.entity_table,
        p_pipeline.status ->> 'column'), 'null::timestamptz'),
    -- Changed fields that were named for the history leave the row.
    case when p_pipeline.status #> '{history,changes}' is not null then format($f$
  if v_written.told is not null then
    v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
    update %1$s e set %2$I = null
    where e.%3$I = any (v_written.told);
    v_said := set_config('millrace.projecting', v_outer, true);
  end if;$f$, p_pipeline.entity_table, p_pipeline.status #>> '{history,changes}',
      p_pipeline.entity_key) end,
    p_pipeline.id,
    case when p_pipeline.status ? 'attempts' then format($f$
    if v_tried is not null then
      perform millrace.count_tries(%s, v_tried, v_tries);
    end if;$f$, p_pipeline.id) end));
  if v_since is not null then
    -- Quoted always: PL/pgSQL takes no field with one of its words for a name, such as loop.
    perform millrace.write_function(
      format('%I() returns trigger security definer', p_pipeline.name || '__since'), format($f$
begin
  if tg_op = 'UPDATE' and old."%1$s" is not distinct from new."%1$s" then
    new."%2$s" := old."%2$s";
  else
    new."%2$s" := millrace.now();
  end if;
  return new;
end $f$, replace(p_pipeline.status ->> 'column', '"', '""'), replace(v_since, '"', '""')));
  end if;
end
$write$;
