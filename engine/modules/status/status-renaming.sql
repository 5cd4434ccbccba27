-- The projection `status`: values that a definition changes
--
-- The values of stages hold at once, so define() changes the rows: by value where it became another
-- at all its places; by the run's state where at some, or where a failure has its own value now.

-- Lists the values that a definition changes, with what their places show from now on; null among
-- it where that depends on the run. New and dropped stages change no row.
create function millrace.changed_values(p_definition jsonb)
returns table (was text, now text[])
stable
as $$
begin
  return query
    with before as materialized (
      select b.key as place, b.value
      from millrace.pipelines p
      cross join jsonb_each_text(p.status -> 'places') b
      where p.name = p_definition ->> 'pipeline'
        and p.status ->> 'column' = p_definition #>> '{entity,status,column}'
    ), after as materialized (
      select a.key as place, a.value
      from jsonb_each_text(p_definition -> 'places') a
    ), change as (
      select b.value as was, a.value as now
      from before b
      left join after a on a.place = b.place
      where a.place is not null
        or p_definition -> 'graph' ? split_part(b.place, ' ', 1)
      union all
      -- A value for a failure, or for the time until a retry, that had none.
      select v.value, null
      from after a
      join before v on v.place in ('failed', split_part(a.place, ' ', 1) || ' queued')
      where split_part(a.place, ' ', 2) in ('failed', 'backoff')
        and not exists (select from before b where b.place = a.place)
    )
    select c.was, array_agg(distinct c.now)
    from change c
    group by c.was
    having bool_or(c.now is distinct from c.was);
end
$$;

-- Shows anew what stands at values that the definition has changed, by value as changed_values()
-- says.
create function millrace.show_changed(p_pipeline_id int, p_changed jsonb)
as $$
declare
  v_pipeline millrace.pipelines;
  v_renamed record;
  v_ids text[];
  v_history jsonb;
  v_outer text;
  v_type text;
  v_said text;
begin
  if p_changed is null then
    return;
  end if;
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  select array_agg(c.key) as was, array_agg(c.value ->> 0) as now
  into v_renamed
  from jsonb_each(p_changed) c
  where jsonb_array_length(c.value) = 1 and c.value ->> 0 is not null;
  if v_renamed.was is not null then
    v_history := v_pipeline.status -> 'history';
    v_outer := coalesce(current_setting('millrace.projecting', true), '');
    v_type := millrace.status_type(v_pipeline);
    insert into millrace.version_moves
      (version_id, from_value, to_value, by, means, retired)
    select v_pipeline.current_version_id, m.was, m.now, 'engine', 'rename', true
    from unnest(v_renamed.was, v_renamed.now) m(was, now)
    on conflict do nothing;
    -- In versions of live runs, of which the definition says nothing.
    insert into millrace.version_moves
      (version_id, from_value, to_value, by, means, at_stage_id, stage_id, declared)
    select m.version_id, coalesce(f.now, m.from_value), coalesce(t.now, m.to_value), m.by, m.means,
      m.at_stage_id, m.stage_id, m.declared
    from millrace.versions v
    join millrace.version_moves m on m.version_id = v.id and not m.retired
    left join unnest(v_renamed.was, v_renamed.now) f(was, now) on f.was = m.from_value
    left join unnest(v_renamed.was, v_renamed.now) t(was, now) on t.was = m.to_value
    where v.pipeline_id = v_pipeline.id
      and v.id <> v_pipeline.current_version_id
      and (f.now is not null or t.now is not null)
    on conflict do nothing;
    update millrace.runs r
    set began_from = m.now
    from unnest(v_renamed.was, v_renamed.now) m(was, now)
    where r.pipeline_id = v_pipeline.id and r.began_from = m.was;
    v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
    execute format($q$
      with renamed as (
        update %1$s e set %2$I = m.now::%3$s%4$s
        from (
          select o.%5$I as key, m.was, m.now%6$s
          from %1$s o
          join unnest($1, $2) m(was, now) on o.%2$I::text = m.was) m
        where e.%5$I = m.key
        returning m.*)
      %7$s$q$,
      v_pipeline.entity_table, v_pipeline.status ->> 'column', v_type,
      case when v_history is null then '' else format(', %I = $3', v_history ->> 'since') end,
      v_pipeline.entity_key,
      case when v_history is null then '' else format(', o.%I as began', v_history ->> 'since') end,
      case when v_history is null then 'select count(*) from renamed' else format($q$
      insert into %1$s (%2$I, from_status, to_status, changed_at, changed_by, duration_ms)
      select r.key, r.was::%3$s, r.now::%3$s, $3, 'system:auto',
        greatest(0, extract(epoch from $3 - r.began) * 1000)::bigint
      from renamed r
      order by r.key$q$,
        to_regclass(v_history ->> 'table'), v_history ->> 'key', v_type) end)
    using v_renamed.was, v_renamed.now, millrace.now();
    v_said := set_config('millrace.projecting', v_outer, true);
  end if;
  for v_ids in
    select array_agg(w.id)
    from (
      select f.id, row_number() over (order by f.id) / 1000 as portion
      from millrace.rows_shown_wrong(v_pipeline, array(
        select k
        from jsonb_object_keys(p_changed) k
        where k <> all (coalesce(v_renamed.was, '{}')))) f) w
    group by w.portion
  loop
    perform millrace.show_status(p_pipeline_id, v_ids);
  end loop;
end
$$;
