-- Adopting rows that were there before the pipeline
--
-- A table had a status of its own. adopt() gives each of its rows a value of the new status column,
-- as a function of the user's says; a dry run tells first what that comes to. It works in portions,
-- each a call of its own, so that no row is locked for longer than one takes. A row without a value
-- has not been adopted; so a portion that was lost is done again.
--
-- Nobody holds what was in work. So a value of work in progress becomes the value at which its
-- layer is entered, where rows wait until begin() or a person begins them. A question is asked, and
-- a stage without a layer begins, when its row is adopted: the dry run says how many.

-- Says of each value of a pipeline where a row that is adopted with it comes to stand, and which
-- stage begins there, if any.
create function millrace.landings(p_pipeline_id int)
returns table (value text, lands text, stage_id int)
language sql stable
as $$
  with version as (
    select p.current_version_id as id
    from millrace.pipelines p
    where p.id = p_pipeline_id
  ), stage as materialized (
    select s.*
    from version v
    cross join lateral millrace.stages_of_version(v.id) s
  ), rest as materialized (
    select r.value
    from version v
    cross join lateral millrace.resting_values(v.id) r
    where r.live_id is null
      -- What a question's answer readies begins, where a run might also end with the answer.
      and not exists (
        select
        from stage s
        where s.ready = r.value
          and s.shows ->> 'completed' <> r.value)
    union
    select s.shows ->> 'enter' from stage s
  ), place as (
    select s.place, s.id, s.ready, s.shows ->> 'enter' as gate, l.value, l.value = s.ready as first
    from stage s
    cross join lateral unnest(
      millrace.live_values(s.shows) || array[s.shows ->> 'completed', s.shows ->> 'leave']
    ) l(value)
    where l.value is not null
  )
  select v.value, coalesce(l.gate, l.ready, v.value), case when l.gate is null then l.id end
  from millrace.status_values v
  left join lateral (
    select p.*
    from place p
    where p.value = v.value
      and v.value not in (select r.value from rest r where r.value is not null)
    order by p.gate is null, p.first desc, p.place
    limit 1) l on true
  where v.pipeline_id = p_pipeline_id
    and not v.retired
$$;

-- Finds the user's function that says which value a row has, and writes the call of it on a row
-- named so: it takes the row, or the old value alone. Raises MR002 where there is none.
create function millrace.value_call(
  p_pipeline millrace.pipelines, p_old_column text, p_function text, p_row text
) returns text
language plpgsql stable
as $$
declare
  v_type text := (
    select format_type(a.atttypid, a.atttypmod)
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table
      and a.attname = p_old_column
      and a.attnum > 0
      and not a.attisdropped);
begin
  if v_type is null then
    raise exception 'p_old_column is %, which is no column of %',
      coalesce(p_old_column, 'null'), p_pipeline.entity_table
      using errcode = 'MR002', hint = 'Name the column of the old status.';
  elsif p_old_column = p_pipeline.status ->> 'column' then
    raise exception 'p_old_column is %, which is the status column itself', p_old_column
      using errcode = 'MR002', hint = 'Name the column of the old status.';
  elsif millrace.function_named(p_function, p_pipeline.entity_table::text) is not null then
    return format('%s(%s)', millrace.function_named(
      p_function, p_pipeline.entity_table::text)::regproc, p_row);
  elsif millrace.function_named(p_function, v_type) is not null then
    return format('%s(%s.%s)', millrace.function_named(p_function, v_type)::regproc,
      p_row, millrace.quote_field(p_old_column));
  end if;
  raise exception 'p_value_function is %, which is no function of a row of % or of one %',
    coalesce(p_function, 'null'), p_pipeline.entity_table, v_type
    using errcode = 'MR002', hint = format(
      'Create one, schema.name(%s), that returns the new value of a row, and null where it knows '
      'none.', p_pipeline.entity_table);
end
$$;

-- Writes what the conditions of given stages read of a row e, as expressions to count rows by, and
-- the jsonb document that they make, over rows c that have them. Of a column that is only compared
-- with null that much is told: a text need not be fetched, and rows that are alike in this are
-- counted together.
create function millrace.given_expressions(
  p_pipeline millrace.pipelines, out counted text, out document text
)
language sql stable
as $$
  select coalesce(string_agg(', ' || case
      when c.name is null then 'to_jsonb(e)'
      when c.only_null then format('case when e.%I is not null then true end', c.name)
      else format('to_jsonb(e.%I)', c.name)
    end || ' as given_' || c.place, '' order by c.place), ''),
    format('jsonb_build_object(%s)', string_agg(
      format('%L, c.given_%s', coalesce(c.name, '*'), c.place), ', ' order by c.place))
  from (
    select n.names[2] as name, row_number() over (order by n.names[2]) as place,
      bool_and(regexp_count(vs.given_path::text, '\."' || n.names[2] || '"')
        = regexp_count(vs.given_path::text, '\."' || n.names[2] || '" [!=]= null')) as only_null
    from millrace.version_stages vs
    cross join lateral millrace.paths_of(vs.given_path) n
    where vs.version_id = p_pipeline.current_version_id
      and vs.given_path is not null
    group by 1) c
$$;

-- Names the stages before a value of which a row has not the output, as far as they say what that
-- is. asked: the row as given_expression() tells of it.
create function millrace.stages_lacking(
  p_pipeline millrace.pipelines, p_value text, p_asked jsonb
) returns text[]
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_pipeline.current_version_id)
  ), reached as (
    -- Of what a stage shows: those before it; of what stands after the last of a layer: all of it.
    select min(case
      when p_value in (s.ready, s.shows ->> 'enter')
        or p_value = any (millrace.live_values(s.shows)) then s.place
      when p_value in (s.shows ->> 'completed', s.shows ->> 'leave') then s.place + 1
    end) as place
    from stage s
  )
  select array(
    select s.name
    from stage s
    join millrace.version_stages vs
      on vs.version_id = p_pipeline.current_version_id and vs.stage_id = s.id
    cross join reached r
    where s.place < r.place
      and vs.given_path is not null
      and not coalesce(jsonb_path_match_tz(
        jsonb_build_object('entity', coalesce(p_asked -> '*', p_asked)), vs.given_path, '{}', true),
        false)
    order by s.place)
$$;

-- Counts the rows that have no value yet, by old value and what becomes of them.
create function millrace.count_unadopted(
  p_pipeline millrace.pipelines, p_old_column text, p_call text, p_else text
) returns table (
  old_value text, rows bigint, value text, lands text, begins text, lacking bigint, lacks text,
  problem text
)
language plpgsql stable
as $$
declare
  v_given record := millrace.given_expressions(p_pipeline);
begin
  return query execute format($q$
    with alike as materialized (
      select e.%1$I as old, %2$s as new%3$s, count(*) as rows
      from %4$s e
      where e.%5$I is null
      group by %7$s
    ), counted as materialized (
      select c.old::text as old_value, coalesce(c.new::text, $1) as value, %6$s as asked, c.rows
      from alike c
    ), landing as materialized (
      select l.value, l.lands, l.stage_id from millrace.landings($3) l
    ), told as (
      select c.*, millrace.stages_lacking($2, l.lands, c.asked) as lacking, l.lands, l.stage_id
      from counted c
      left join landing l on l.value = c.value
    )
    select t.old_value, sum(t.rows)::bigint, t.value, t.lands, s.name,
      coalesce(sum(t.rows) filter (where t.lacking <> '{}'), 0)::bigint,
      string_agg(distinct nullif(array_to_string(t.lacking, ', '), ''), '; '),
      case
        when t.value is null then 'it has no value: let the function say one, or name it in p_else'
        when t.lands is null then format('%%s is no value of pipeline %%s', t.value, $4)
      end
    from told t
    left join millrace.stages s on s.id = t.stage_id
    group by t.old_value, t.value, t.lands, s.name
    order by 2 desc, 1$q$,
    p_old_column, p_call, v_given.counted, p_pipeline.entity_table,
    p_pipeline.status ->> 'column', v_given.document, (
      select string_agg(n::text, ', ')
      from generate_series(1, 2 + regexp_count(v_given.counted, ' as given_')) n))
  using p_else, p_pipeline, p_pipeline.id, p_pipeline.name;
end
$$;

-- Looks up a pipeline whose rows may be adopted. Raises MR002 or MR003.
create function millrace.adopting_pipeline(p_pipeline text) returns millrace.pipelines
language plpgsql stable
as $$
declare
  v_pipeline millrace.pipelines;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = millrace.known_pipelines();
  elsif v_pipeline.projection <> 'status' then
    raise exception 'pipeline % has the projection %, not status', p_pipeline,
      v_pipeline.projection
      using errcode = 'MR002',
        hint = 'Only rows that show their status in one column can be adopted.';
  end if;
  return v_pipeline;
end
$$;

create function millrace.adopt(
  p_pipeline text,
  p_old_column text,
  p_value_function text,
  p_dry_run boolean default true,
  p_else text default null,
  p_portion int default 250
) returns table (
  old_value text, rows bigint, value text, lands text, begins text, lacking bigint, lacks text,
  problem text
)
language plpgsql
as $$
declare
  v_pipeline millrace.pipelines := millrace.adopting_pipeline(p_pipeline);
  v_call text := millrace.value_call(v_pipeline, p_old_column, p_value_function, 'e');
begin
  if p_else is not null and not exists (
      select from millrace.landings(v_pipeline.id) l where l.value = p_else) then
    raise exception 'p_else is %, which is no value of pipeline %', p_else, p_pipeline
      using errcode = 'MR002', hint = 'Name one of millrace.status_values, or leave it out.';
  elsif p_dry_run is not false then
    return query
      select c.*
      from millrace.count_unadopted(v_pipeline, p_old_column, v_call, p_else) c;
    return;
  end if;
  if p_portion is null or p_portion not between 1 and 100000 then
    raise exception 'p_portion is %, but must be from 1 to 100000',
      coalesce(p_portion::text, 'null')
      using errcode = 'MR002', hint = 'Some hundred rows take well under a second.';
  end if;
  perform millrace.begin_adoption(v_pipeline, p_old_column, p_value_function, p_else);
  return query
    select a.old_value, a.rows, a.value, a.lands, a.begins, null::bigint, null::text, a.problem
    from millrace.adopt_portion(v_pipeline, v_call, p_portion) a;
end
$$;
comment on function millrace.adopt(text, text, text, boolean, text, int) is
  'Gives rows that were there before the pipeline a value of its status column, as a function of '
  'yours says. The dry run, the default, tells for each old value how many rows there are, where '
  'they come to stand, which stage begins, and which lack what a stage before that makes. Without '
  'it each call adopts a portion and tells of that; repeat it until it returns no row.';
