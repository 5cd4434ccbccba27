-- Adopting rows: the portions

-- Begins the adoption of a pipeline's rows, or finds the one that is under way. Raises MR004 where
-- that goes by another column or function, and MR005 where a row has no value: before anything is
-- written.
create function millrace.begin_adoption(
  p_pipeline millrace.pipelines, p_old_column text, p_function text, p_else text
) returns void
language plpgsql
as $$
declare
  v_adoption millrace.adoptions;
  v_faulty record;
begin
  -- One at a time, also the first. Not by the pipeline's row: define() holds the table before it.
  lock table millrace.adoptions in share row exclusive mode;
  select a.* into v_adoption
  from millrace.adoptions a
  where a.pipeline_id = p_pipeline.id;
  if v_adoption.ended_at is null and (v_adoption.old_column, v_adoption.value_function)
      <> (p_old_column, p_function) then
    raise exception 'rows of pipeline % are being adopted by % and %', p_pipeline.name,
      v_adoption.old_column, v_adoption.value_function
      using errcode = 'MR004', hint = 'Go on by the same, or call adopt() until it returns no row.';
  elsif v_adoption.pipeline_id is not null
      and (v_adoption.old_column, v_adoption.value_function) = (p_old_column, p_function) then
    update millrace.adoptions a
    set otherwise = p_else
    where a.pipeline_id = p_pipeline.id
      and a.otherwise is distinct from p_else;
    return;
  end if;
  -- By another function, what old values have meant is still what the old column follows.
  delete from millrace.adopted_values v
  where v.pipeline_id = p_pipeline.id
    and v_adoption.old_column <> p_old_column;
  delete from millrace.adoptions a where a.pipeline_id = p_pipeline.id;
  insert into millrace.adopted_values (pipeline_id, old_value, value, rows)
  select p_pipeline.id, coalesce(c.old_value, ''), coalesce(c.lands, ''), sum(c.rows)
  from millrace.count_unadopted(p_pipeline, p_old_column,
    millrace.value_call(p_pipeline, p_old_column, p_function, 'e'), p_else) c
  group by 2, 3
  on conflict on constraint adopted_values_pkey do update
  set rows = adopted_values.rows + excluded.rows;
  select count(*) as old_values, sum(v.rows) as rows, min(v.old_value) as old_value into v_faulty
  from millrace.adopted_values v
  where v.pipeline_id = p_pipeline.id
    and v.value = '';
  if v_faulty.old_values > 0 then
    raise exception '% old values of % rows have no value in pipeline %: %, …',
      v_faulty.old_values, v_faulty.rows, p_pipeline.name, quote_literal(v_faulty.old_value)
      using errcode = 'MR005', hint = 'Let the function say one, or name it in p_else; nothing was '
        'written. The dry run lists them.';
  end if;
  insert into millrace.adoptions (pipeline_id, old_column, value_function, otherwise)
  values (p_pipeline.id, p_old_column, p_function, p_else);
  perform millrace.write_follower(p_pipeline, p_old_column, p_function);
end
$$;

-- Takes the next rows that have no value yet, in the order of their keys: their keys, old values,
-- values, and where they come to stand. A row that somebody holds is left to the next lap.
create function millrace.take_unadopted(
  p_pipeline millrace.pipelines, p_call text, p_adoption millrace.adoptions, p_limit int
) returns table (key text, old_value text, value text, lands text, stage_id int)
language plpgsql
as $$
begin
  return query execute format($q$
    with taken as materialized (
      select e.%1$I::text as key, e.%2$I::text as old_value, coalesce(%3$s::text, $1) as value
      from %4$s e
      where e.%5$I is null%6$s
      order by e.%1$I
      limit $3
      for no key update skip locked
    ), landing as materialized (
      select l.value, l.lands, l.stage_id from millrace.landings($4) l
    )
    select t.key, t.old_value, t.value, l.lands, l.stage_id
    from taken t
    left join landing l on l.value = t.value$q$,
    p_pipeline.entity_key, p_adoption.old_column, p_call, p_pipeline.entity_table,
    p_pipeline.status ->> 'column',
    case
      when p_adoption.last_key is null then ''
      else format(' and e.%I > $2::%s', p_pipeline.entity_key, millrace.key_type(p_pipeline))
    end)
  using p_adoption.otherwise, p_adoption.last_key, p_limit, p_pipeline.id;
end
$$;

-- Writes the values of rows that the caller has taken, and the first rows of their histories.
create function millrace.write_adopted(
  p_pipeline millrace.pipelines, p_old_column text, p_keys text[], p_old text[], p_lands text[]
) returns void
language plpgsql
as $$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_said text;
begin
  -- Old values that came since the adoption began.
  insert into millrace.adopted_values (pipeline_id, old_value, value, rows)
  select distinct p_pipeline.id, t.old, t.value, 0
  from unnest(p_old, p_lands) t(old, value)
  where t.old is not null
  on conflict on constraint adopted_values_pkey do nothing;
  v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
  execute format(
    'update %1$s e set %2$I = t.value::%3$s%4$s '
    'from unnest($1, $2) t(key, value) where e.%5$I = t.key::%6$s',
    p_pipeline.entity_table, p_pipeline.status ->> 'column', millrace.status_type(p_pipeline),
    case when v_history is not null then format(', %I = $3', v_history ->> 'since') else '' end,
    p_pipeline.entity_key, millrace.key_type(p_pipeline))
  using p_keys, p_lands, millrace.now();
  v_said := set_config('millrace.projecting', v_outer, true);
  if v_history is not null then
    execute format(
      'insert into %1$s (%2$I, from_status, to_status, changed_at, changed_by, changes) '
      'select t.key::%3$s, null, t.value::%4$s, $4, $5, '
      'jsonb_build_object($6, jsonb_build_object(''old'', t.old, ''new'', t.value)) '
      'from unnest($1, $2, $3) t(key, old, value) order by t.key::%3$s',
      to_regclass(v_history ->> 'table'), v_history ->> 'key', millrace.key_type(p_pipeline),
      millrace.status_type(p_pipeline))
    using p_keys, p_old, p_lands, millrace.now(), millrace.actor(p_pipeline.entity_table),
      p_old_column;
  end if;
end
$$;

-- Adopts the next portion of rows, and begins what their values begin; tells of each old value how
-- many it were. A row that has a run already shows that instead. Rows are found by their keys,
-- also with plans of a time when there were no runs.
create function millrace.adopt_portion(
  p_pipeline millrace.pipelines, p_call text, p_limit int
) returns table (
  old_value text, rows bigint, value text, lands text, begins text, problem text
)
language plpgsql
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_taken record := millrace.next_unadopted(p_pipeline, p_call, p_limit);
  v_stage record;
  v_stray text;
begin
  if v_taken.keys is null then
    return query select * from millrace.end_adoption(p_pipeline);
    return;
  end if;
  v_stray := (
    select min(t.key)
    from unnest(v_taken.keys, v_taken.lands) t(key, lands)
    where t.lands is null);
  if v_stray is not null then
    raise exception 'row % of pipeline % has no value', v_stray, p_pipeline.name
      using errcode = 'MR005',
        hint = 'Let the function say one, or name it in p_else. The dry run lists such rows.';
  end if;
  perform millrace.write_adopted(p_pipeline, v_taken.old_column, array_agg(t.key),
    array_agg(t.old), array_agg(t.lands))
  from unnest(v_taken.keys, v_taken.old, v_taken.lands, v_taken.has_run) t(key, old, lands, has_run)
  where not t.has_run
  having count(*) > 0;
  perform millrace.show_status(p_pipeline.id, array(
    select t.key from unnest(v_taken.keys, v_taken.has_run) t(key, has_run) where t.has_run));
  -- All that comes before is taken as done.
  for v_stage in
    select t.stage_id, array_agg(t.key order by t.place) as keys
    from unnest(v_taken.keys, v_taken.stage_ids, v_taken.has_run)
      with ordinality t(key, stage_id, has_run, place)
    where t.stage_id is not null
      and not t.has_run
    group by t.stage_id
    order by t.stage_id
  loop
    perform millrace.queue_stage(p_pipeline.id, v_stage.stage_id, v_stage.keys, v_stage.keys,
      p_by_name => true, p_done_before => v_stage.stage_id);
    perform millrace.show_status(p_pipeline.id, v_stage.keys);
  end loop;
  update millrace.adoptions a
  set last_key = v_taken.keys[cardinality(v_taken.keys)],
    adopted = a.adopted + cardinality(v_taken.keys),
    ended_at = null
  where a.pipeline_id = p_pipeline.id;
  return query
    select t.old, count(*), t.value, t.lands, s.name, null::text
    from unnest(v_taken.keys, v_taken.old, v_taken.codes, v_taken.lands, v_taken.stage_ids)
      t(key, old, value, lands, stage_id)
    left join millrace.stages s on s.id = t.stage_id
    group by 1, 3, 4, 5
    order by 2 desc, 1;
end
$$;

-- Takes the next portion of rows without a value; behind the last key once more from the first one,
-- for rows that somebody held or added. keys is null when it finds none.
create function millrace.next_unadopted(
  p_pipeline millrace.pipelines, p_call text, p_limit int, out old_column text, out keys text[],
  out old text[], out codes text[], out lands text[], out stage_ids int[], out has_run boolean[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_adoption millrace.adoptions;
begin
  select a.* into v_adoption
  from millrace.adoptions a
  where a.pipeline_id = p_pipeline.id;
  for v_lap in 1 .. 2 loop
    select v_adoption.old_column, array_agg(t.key order by t.place),
      array_agg(t.old_value order by t.place), array_agg(t.value order by t.place),
      array_agg(t.lands order by t.place), array_agg(t.stage_id order by t.place),
      array_agg(exists (
        select
        from millrace.runs r
        where r.entity_id = t.key and r.pipeline_id = p_pipeline.id) order by t.place)
    into old_column, keys, old, codes, lands, stage_ids, has_run
    from (
      select k.*, row_number() over () as place
      from millrace.take_unadopted(p_pipeline, p_call, v_adoption, p_limit) k) t;
    exit when keys is not null or v_adoption.last_key is null;
    v_adoption.last_key := null;
  end loop;
end
$$;

-- Ends the adoption of a pipeline's rows once each has a value; tells of those that are left since
-- somebody holds them.
create function millrace.end_adoption(p_pipeline millrace.pipelines)
returns table (
  old_value text, rows bigint, value text, lands text, begins text, problem text
)
language plpgsql
as $$
begin
  execute format('select count(*) from %s e where e.%I is null', p_pipeline.entity_table,
    p_pipeline.status ->> 'column')
  into rows;
  if rows > 0 then
    problem := 'somebody holds them: call again';
    return next;
    return;
  end if;
  update millrace.adoptions a
  set ended_at = millrace.now()
  where a.pipeline_id = p_pipeline.id
    and a.ended_at is null;
end
$$;
