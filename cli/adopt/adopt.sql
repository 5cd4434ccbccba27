-- The functions that adopt and begin rows which were there before their pipeline. `npx millrace
-- adopt` writes them into a migration, and `npx millrace adopt --done` one that drops them. Adopted
-- rows that were in work wait where their layer is entered until they are begun.

-- Looks up a pipeline whose rows may be adopted or begun.
-- p_name: the caller's parameter that says how many at once, for the message.
create or replace function millrace.adopting_pipeline(p_pipeline text, p_name text, p_most int)
returns millrace.pipelines
stable
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
begin
  if v_pipeline.projection <> 'status' then
    raise exception 'pipeline % has the projection %, not status', p_pipeline,
      v_pipeline.projection
      using errcode = 'MR002',
        hint = 'Only rows that show their status in one column can be adopted.';
  elsif (p_most between 1 and 100000) is not true then
    raise exception '% is %, but must be from 1 to 100000', p_name, coalesce(p_most::text, 'null')
      using errcode = 'MR002', hint = 'Some hundred take well under a second.';
  end if;
  return v_pipeline;
end
$$;

-- Gives rows that were there before the pipeline a value of its status column, as a function of
-- yours says. The dry run, the default, tells what becomes of each old value. Without it each call
-- adopts a portion and tells of that; repeat it until it returns no row.
create or replace function millrace.adopt(
  p_pipeline text, p_old_column text, p_value_function text, p_dry_run boolean default true,
  p_else text default null, p_portion int default 250
) returns table (
  old_value text, rows bigint, value text, adopted_as text, begins text, lacking bigint, lacks text,
  problem text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_pipeline millrace.pipelines := millrace.adopting_pipeline(p_pipeline, 'p_portion', p_portion);
  v_function regprocedure := to_regprocedure(
    format('%s(%s)', p_value_function, v_pipeline.entity_table));
  v_dry boolean := p_dry_run is distinct from false;
  v_taken record;
begin
  if p_old_column = v_pipeline.status ->> 'column'
      or millrace.column_type(v_pipeline.entity_table, p_old_column) is null then
    raise exception 'p_old_column is %, but must be another column of %',
      coalesce(p_old_column, 'null'), v_pipeline.entity_table
      using errcode = 'MR002', hint = 'Name the column of the old status.';
  elsif v_function is null then
    raise exception 'p_value_function is %, which is no function of a row of %',
      coalesce(p_value_function, 'null'), v_pipeline.entity_table
      using errcode = 'MR002', hint = format('Create one, schema.name(%s), that returns the new '
        'value of a row, and null where it knows none.', v_pipeline.entity_table);
  elsif v_dry then
    execute format('select array_agg(t.key) as keys, array_agg(t.old) as old, '
      'array_agg(t.value) as codes, array_agg(t.rows) as rows from (select %s as key, '
      'e.%I::text as old, coalesce(%s(e.*)::text, $1) as value, count(*) as rows '
      'from %s e where e.%I is null group by 1, 2, 3) t',
      case when v_pipeline.has_given then format('e.%I::text', v_pipeline.entity_key)
        else 'null::text' end, p_old_column, v_function::regproc, v_pipeline.entity_table,
      v_pipeline.status ->> 'column')
    into v_taken
    using p_else;
  else
    v_taken := millrace.adopt_portion(
      v_pipeline, p_old_column, v_function::regproc, p_else, p_portion);
  end if;
  return query
  select t.old, sum(coalesce(t.rows, 1))::bigint, t.value, v.adopted_as, v.begins,
    case when v_dry
      then coalesce(sum(t.rows) filter (where k.lacks is not null), 0)::bigint end,
    string_agg(distinct k.lacks, '; '),
    case
      when v_taken.keys is null then 'somebody holds them: call again'
      when t.value is null then 'it has no value: let the function say one, or name it in p_else'
      when v.adopted_as is null then format('%s is no value of pipeline %s', t.value, p_pipeline)
    end
  from unnest(v_taken.old, v_taken.codes, v_taken.rows, case
    when v_dry and v_pipeline.has_given
      then millrace.given_at_first(v_pipeline, v_taken.keys) end) t(old, value, rows, given)
  left join millrace.status_values v
    on v.pipeline_id = v_pipeline.id and v.value = t.value and not v.retired
  cross join lateral (
    select string_agg(s.name, ', ' order by b.ordinal) as lacks
    from unnest(v.before) with ordinality b(name, ordinal)
    join millrace.stages s on s.pipeline_id = v_pipeline.id and s.name = b.name
    where s.id <> all (t.given::int[])) k
  group by t.old, t.value, v.adopted_as, v.begins
  order by 2 desc, 1;
end
$$;

-- Adopts up to so many free rows; one that has a run shows that instead. Where all are held keys is
-- null, and rows their number.
create or replace function millrace.adopt_portion(
  p_pipeline millrace.pipelines, p_old_column text, p_function regproc, p_else text, p_limit int,
  out keys text[], out old text[], out codes text[], out rows bigint[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_history jsonb := p_pipeline.status -> 'history';
  v_names text[] := array[p_pipeline.entity_table::text, quote_ident(p_pipeline.entity_key),
    quote_ident(p_pipeline.status ->> 'column'), millrace.column_type(
      p_pipeline.entity_table, p_pipeline.status ->> 'column'),
    quote_ident(p_old_column), p_function::text];
  v_begins text[];
  v_runs boolean[];
  v_lost text;
  v_stage record;
begin
  perform set_config('millrace.projecting', pg_trigger_depth()::text, true);
  execute format($q$
    with taken as materialized (
      select e.%2$s as key, e.%5$s::text as old, coalesce(%6$s(e.*)::text, $6) as value, exists (
        select from millrace.runs r
        where r.entity_id = e.%2$s::text and r.pipeline_id = $2) as runs
      from %1$s e
      where e.%3$s is null
      order by e.%2$s
      limit $1
      for no key update skip locked
    ), adopted as materialized (
      select t.*, v.adopted_as, v.begins
      from taken t
      left join millrace.status_values v
        on v.pipeline_id = $2 and v.value = t.value and not v.retired
      order by t.key
    ), written as (
      update %1$s e set %3$s = a.adopted_as::%4$s%7$s
      from adopted a
      where e.%2$s = a.key and not a.runs
    )%8$s
    select array_agg(a.key::text), array_agg(a.old), array_agg(a.value), array_agg(a.begins),
      array_agg(a.runs), (array_agg(a.key::text) filter (where a.adopted_as is null))[1]
    from adopted a$q$, v_names[1], v_names[2], v_names[3], v_names[4], v_names[5], v_names[6],
      case when v_history is not null then format(', %I = $3', v_history ->> 'since') end,
      case when v_history is not null then format($h$, noted as (
      insert into %s (%I, from_status, to_status, changed_at, changed_by, changes)
      select a.key, null, a.adopted_as::%s, $3, $4,
        jsonb_build_object($5, jsonb_build_object('old', a.old, 'new', a.adopted_as))
      from adopted a
      where not a.runs and a.adopted_as is not null
    )$h$, to_regclass(v_history ->> 'table'), v_history ->> 'key', v_names[4]) end)
  into keys, old, codes, v_begins, v_runs, v_lost
  using p_limit, p_pipeline.id, millrace.now(), millrace.actor(p_pipeline.entity_table),
    p_old_column, p_else;
  perform set_config('millrace.projecting', v_outer, true);
  if v_lost is not null then
    raise exception 'row % of pipeline % has no value', v_lost, p_pipeline.name
      using errcode = 'MR005',
        hint = 'Let the function say one, or name it in p_else. The dry run lists such rows.';
  elsif keys is null then
    execute format('select array[count(*)], array[null::text] from %s e where e.%s is null '
      'having count(*) > 0', v_names[1], v_names[3])
    into rows, old;
    return;
  end if;
  perform millrace.show_status(p_pipeline.id, array(
    select t.key from unnest(keys, v_runs) t(key, runs) where t.runs));
  -- All that comes before is taken as done.
  for v_stage in
    select s.id, array_agg(t.key order by t.ordinal) as keys
    from unnest(keys, v_begins, v_runs) with ordinality t(key, begins, runs, ordinal)
    join millrace.stages s on s.pipeline_id = p_pipeline.id and s.name = t.begins
    where not t.runs
    group by s.id
    order by s.id
  loop
    perform millrace.queue_stage(p_pipeline.id, v_stage.id, v_stage.keys, v_stage.keys,
      p_start => 'named', p_done_before => v_stage.id);
    perform millrace.show_status(p_pipeline.id, v_stage.keys);
  end loop;
end
$$;

-- Begins up to so many rows that wait at the value by which a layer is entered, each at its first
-- stage that the row does not bring along, and returns how many.
create or replace function millrace.begin(p_pipeline text, p_value text, p_limit int)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_pipeline millrace.pipelines := millrace.adopting_pipeline(p_pipeline, 'p_limit', p_limit);
  v_stage_id int;
  v_gates text;
  v_keys text[];
begin
  select (array_agg(s.id order by s.ordinal) filter (where s.shows ->> 'enter' = p_value))[1],
    string_agg(distinct s.shows ->> 'enter', ', ')
  into v_stage_id, v_gates
  from millrace.shown_stages s
  where s.version_id = v_pipeline.current_version_id;
  if v_stage_id is null then
    raise exception 'p_value is %, at which no layer of pipeline % is entered',
      coalesce(p_value, 'null'), p_pipeline
      using errcode = 'MR002',
        hint = coalesce('Rows wait at: ' || v_gates || '.', 'It has no layers.');
  end if;
  execute format($q$
    with taken as materialized (
      select e.%1$I as key
      from %2$s e
      where e.%3$I = $1::%4$s
      order by e.%1$I
      limit $2
      for no key update skip locked
    )
    select array(
      select t.key::text
      from taken t
      where not exists (
        select from millrace.runs r
        where r.entity_id = t.key::text and r.pipeline_id = $3 and r.status = 'running')
      order by t.key)$q$,
    v_pipeline.entity_key, v_pipeline.entity_table, v_pipeline.status ->> 'column',
    millrace.column_type(v_pipeline.entity_table, v_pipeline.status ->> 'column'))
  into v_keys
  using p_value, p_limit, v_pipeline.id;
  if cardinality(v_keys) > 0 then
    perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_keys, v_keys,
      p_start => 'due', p_done_before => v_stage_id);
    perform millrace.show_status(v_pipeline.id, v_keys);
  end if;
  return cardinality(v_keys);
end
$$;
