-- The projection `status`: what a definition says of its column
--
-- check_status() and what it calls raise MR001, with the field, what was found and the remedy, or
-- do nothing. save_status() writes what the definition says. Values are read with ->>, so that a
-- code may stand there as a number or as a text.

-- Raises MR001 about the status column of a definition.
create or replace function millrace.refuse_status(p_field text, p_found text, p_hint text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'entity.status%: %', p_field, p_found using errcode = 'MR001', hint = p_hint;
end
$$;

-- Lists every value that a definition uses, with its place. Values of failures are one place, since
-- every stage may fail alike, and so is what one stage shows more than once.
create or replace function millrace.values_used(p_definition jsonb)
returns table (value text, place text)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  with status as (
    select p_definition #> '{entity,status}' as said
  ), stage as (
    select s ->> 'name' as name, s -> 'shows' as shows
    from jsonb_array_elements(p_definition -> 'stages') s
  )
  select l, 'stage ' || s.name
  from stage s
  cross join lateral unnest(millrace.live_values(s.shows) || (s.shows ->> 'completed')) l
  where l is not null
  union
  select a, case
      when a in (select e.value from status t, jsonb_each_text(t.said -> 'ends') e) then 'ends'
      else 'stage ' || s.name
    end
  from stage s
  cross join lateral jsonb_object_keys(s.shows -> 'answers') a
  union
  select f.value, 'failures'
  from stage s
  cross join lateral jsonb_each_text(s.shows -> 'failed') f
  union
  select t.said ->> 'failed', 'failures'
  from status t
  union
  select e.value, 'ends'
  from status t
  cross join lateral jsonb_each_text(t.said -> 'ends') e
  union
  select v.value, 'layer ' || l.key
  from status t
  cross join lateral jsonb_each(t.said -> 'layers') l
  cross join lateral (values (l.value ->> 'enter'), (l.value ->> 'leave')) v(value)
  where v.value is not null
$$;

-- Raises MR001 where a column of the entity that the projection writes is missing or mistyped.
create or replace function millrace.check_status_columns(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table text := p_definition #>> '{entity,table}';
  v_wrong record;
begin
  select c.field, c.name, c.types, format_type(a.atttypid, null) as type
  into v_wrong
  from (values
    (1, 'column', array['smallint', 'text', 'character varying']),
    (2, 'history.since', array['timestamp with time zone']),
    (3, 'history.changes', array['jsonb']),
    (4, 'attempts', array['smallint', 'integer', 'bigint']),
    (5, 'retry_at', array['timestamp with time zone']),
    (6, 'error', array['text', 'character varying'])) f(place, field, types)
  cross join lateral (
    select f.field, f.types, p_definition #>> (array['entity', 'status']
      || string_to_array(f.field, '.')) as name) c
  left join pg_attribute a
    on a.attrelid = to_regclass(v_table)
    and a.attnum > 0
    and not a.attisdropped
    and a.attname = c.name
  where c.name is not null
    and (a.attname is null or format_type(a.atttypid, null) <> all (c.types))
  order by f.place
  limit 1;
  if found then
    perform millrace.refuse_status('.' || v_wrong.field, format('%s is %s of %s', v_wrong.name,
      coalesce('a column of type ' || v_wrong.type, 'no column'), v_table),
      format('It must be of type %s: alter table %s %s column %I %s%s;',
        array_to_string(v_wrong.types, ' or '), v_table,
        case when v_wrong.type is null then 'add' else 'alter' end, v_wrong.name,
        case when v_wrong.type is null then '' else 'type ' end, v_wrong.types[1]));
  end if;
end
$$;

-- Raises MR001 unless the tables of lookup and history have the columns that the engine writes.
create or replace function millrace.check_status_tables(p_status jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing record;
begin
  select t.field, t.name, to_regclass(t.name) is null as no_table, c as wanted
  into v_missing
  from (values
    (1, 'lookup', p_status ->> 'lookup',
      array['name', 'description', 'category', 'is_terminal', 'sort_order', 'code']),
    (2, 'history.table', p_status #>> '{history,table}',
      array['id', p_status #>> '{history,key}', 'from_status', 'to_status', 'changed_at',
        'changed_by', 'changes', 'duration_ms'])) t(place, field, name, columns)
  cross join lateral unnest(t.columns) with ordinality u(c, n)
  left join pg_attribute a
    on a.attrelid = to_regclass(t.name)
    and a.attnum > 0
    and not a.attisdropped
    and a.attname = u.c
  where t.name is not null
    and a.attname is null
  order by t.place, u.n
  limit 1;
  if found then
    perform millrace.refuse_status('.' || v_missing.field, case
        when v_missing.no_table then format('%s is no table', v_missing.name)
        else format('table %s has no column %s', v_missing.name, v_missing.wanted)
      end, 'Create it in an earlier migration; docs/patterns/status.md shows both tables.');
  end if;
  if exists (
      select
      from pg_attribute a
      where a.attrelid = to_regclass(p_status #>> '{history,table}')
        and (a.attname = 'id' and format_type(a.atttypid, null) not in ('integer', 'bigint', 'uuid')
          or a.attname = 'duration_ms' and format_type(a.atttypid, null) <> 'bigint')) then
    perform millrace.refuse_status('.history.table', format(
      'in %s the column id must be an integer or uuid that grows, and duration_ms a bigint',
      p_status #>> '{history,table}'),
      'id says which of two values of one transaction came first: let a uuid begin with '
      'nextval() of a sequence. An int of milliseconds ends after 25 days.');
  end if;
end
$$;

-- Raises MR001 unless the stages are a chain and each says what it shows.
create or replace function millrace.check_status_chain(p_definition jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_order text[] := millrace.order_stages(p_definition -> 'stages');
  v_stage jsonb;
  v_before text;
begin
  for v_stage in
    select s
    from jsonb_array_elements(p_definition -> 'stages') s
    order by array_position(v_order, s ->> 'name')
  loop
    if not v_stage ? 'shows' then
      raise exception 'stage %: shows is missing, but the projection is status',
        v_stage ->> 'name'
        using errcode = 'MR001', hint = 'Say which values stand for it: "shows": {"queued": …, '
          '"started": …, "completed": …}; {"asked": …} for a manual stage, {"queued": …, '
          '"completed": …} for a gate.';
    elsif v_before is not null and v_before <> all (millrace.edges_to(v_stage)) then
      raise exception 'the stages are no chain: % and % may be under way at once',
        v_before, v_stage ->> 'name'
        using errcode = 'MR001', hint = format(
          'One column shows one stage. Let %s need %s, or use the projection columns.',
          v_stage ->> 'name', v_before);
    end if;
    v_before := v_stage ->> 'name';
  end loop;
end
$$;

-- Raises MR001 where a value is not listed, not of the column's type, or used in two places.
create or replace function millrace.check_status_values(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
  v_coded boolean := exists (
    select
    from pg_attribute a
    where a.attrelid = to_regclass(p_definition #>> '{entity,table}')
      and a.attname = v_status ->> 'column'
      and format_type(a.atttypid, null) = 'smallint');
  v_listed text[] := array(
    select v
    from jsonb_each(v_status -> 'values') c
    cross join lateral jsonb_object_keys(c.value) v);
  v_wrong record;
begin
  select v, count(*) as times
  into v_wrong
  from unnest(v_listed) v
  group by v
  having count(*) > 1
    or v_coded and not case when v ~ '^(0|-?[1-9]\d{0,4})$'
      then v::int between -32768 and 32767 else false end
  order by 1
  limit 1;
  if found then
    perform millrace.refuse_status('.values', format('%s %s', v_wrong.v, case
        when v_wrong.times > 1 then 'is listed twice'
        else 'is no smallint, which the column is' end),
      'List each value once, as the column shows it.');
  end if;
  select u.value, min(u.place) as place, max(u.place) as other, count(*) as places
  into v_wrong
  from millrace.values_used(p_definition) u
  group by u.value
  having u.value <> all (v_listed)
    or count(*) > 1 and not u.value = any (array(
      select s #>> '{}' from jsonb_array_elements(v_status -> 'shared') s))
  order by u.value = any (v_listed), u.value
  limit 1;
  if found and v_wrong.value = any (v_listed) then
    perform millrace.refuse_status('', format('%s stands for %s and for %s', v_wrong.value,
      v_wrong.place, v_wrong.other),
      'Give each a value of its own, or list it in entity.status.shared where both are meant.');
  elsif found then
    perform millrace.refuse_status('.values', format('%s, which %s shows, is not listed',
      v_wrong.value, v_wrong.place), 'List it with a name and a description under a category.');
  end if;
end
$$;

-- Raises MR001 unless layers are of stages that stand together, each in one layer.
create or replace function millrace.check_layers(p_definition jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_order text[] := millrace.order_stages(p_definition -> 'stages');
  v_layer record;
begin
  for v_layer in
    select l.key as name, array_agg(s order by array_position(v_order, s)) as stages,
      min(array_position(v_order, s)) as first, max(array_position(v_order, s)) as last,
      count(array_position(v_order, s)) as known,
      (select o.key
       from jsonb_each(p_definition #> '{entity,status,layers}') o
       where o.key > l.key
         and exists (
           select
           from jsonb_array_elements_text(l.value -> 'stages') t
           where o.value -> 'stages' ? t)
       limit 1) as other
    from jsonb_each(p_definition #> '{entity,status,layers}') l
    cross join lateral jsonb_array_elements_text(l.value -> 'stages') s
    group by l.key, l.value
  loop
    if v_layer.known < cardinality(v_layer.stages) then
      perform millrace.refuse_status('.layers.' || v_layer.name,
        'it names a stage that this pipeline does not have',
        'Stages are: ' || array_to_string(v_order, ', ') || '.');
    elsif v_layer.other is not null then
      perform millrace.refuse_status('.layers.' || v_layer.name,
        format('it shares a stage with layer %s', v_layer.other), 'Put each stage into one layer.');
    elsif v_layer.last - v_layer.first + 1 > cardinality(v_layer.stages) then
      perform millrace.refuse_status('.layers.' || v_layer.name, format(
        'its stages %s do not stand together', array_to_string(v_layer.stages, ', ')),
        'The chain is ' || array_to_string(v_order, ', ') || '.');
    end if;
  end loop;
end
$$;

-- Raises MR001 where steps, answers, endings or moves name values that cannot be meant.
create or replace function millrace.check_status_names(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
  v_wrong record;
begin
  select s ->> 'name' as stage, v.value
  into v_wrong
  from jsonb_array_elements(p_definition -> 'stages') s
  cross join lateral (
    select f #>> '{}' as value
    from jsonb_each(s #> '{shows,answers}') a, jsonb_array_elements(a.value -> 'from') f
    union all
    select m #>> '{}'
    from jsonb_array_elements(s #> '{shows,step_moves}') p, jsonb_array_elements(p) m) v
  where v.value <> all (millrace.live_values(s -> 'shows'))
  limit 1;
  if found then
    raise exception
      'stage %: shows moves from or to %, which is neither asked nor one of its steps',
      v_wrong.stage, v_wrong.value
      using errcode = 'MR001', hint = 'List it in shows.steps, or correct it.';
  end if;
  select s ->> 'name' as stage, e ->> 'name' as name
  into v_wrong
  from jsonb_array_elements(p_definition -> 'stages') s
  cross join lateral jsonb_array_elements(s -> 'ends') e
  where not v_status -> 'ends' ? (e ->> 'name')
  limit 1;
  if found then
    perform millrace.refuse_status('.ends', format('stage %s ends runs as %s, for which there is '
      'no value', v_wrong.stage, v_wrong.name), 'Say which value stands for it.');
  end if;
  select m #>> '{}' as value, u.place
  into v_wrong
  from jsonb_array_elements(v_status -> 'moves' || jsonb_build_array(v_status -> 'entries')) p
  cross join lateral jsonb_array_elements(p) m
  left join millrace.values_used(p_definition) u on u.value = m #>> '{}'
  where u.value is null
  limit 1;
  if found then
    perform millrace.refuse_status('.moves or entries', format('%s is a value that nothing shows',
      v_wrong.value), 'Name values that stages, layers, failures or endings show.');
  end if;
end
$$;

-- Checks what a definition says of a status column, whether its projection is one or not.
create or replace function millrace.check_status(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
  v_other text;
begin
  if (p_definition #>> '{entity,projection}' = 'status') <> (v_status is not null) then
    raise exception 'entity.status is %, but entity.projection is %',
      case when v_status is null then 'missing' else 'given' end,
      p_definition #>> '{entity,projection}'
      using errcode = 'MR001',
        hint = 'It belongs to the projection status: give it there, and only there.';
  elsif v_status is null then
    return;
  end if;
  v_other := (
    select p.name
    from millrace.pipelines p
    where p.entity_table = to_regclass(p_definition #>> '{entity,table}')
      and p.name <> p_definition ->> 'pipeline'
      and p.status ->> 'column' = v_status ->> 'column'
    limit 1);
  if v_other is not null then
    perform millrace.refuse_status('.column', format('%s shows pipeline %s already',
      v_status ->> 'column', v_other), 'Give each pipeline a column of its own.');
  end if;
  perform millrace.check_status_columns(p_definition);
  perform millrace.check_status_tables(v_status);
  perform millrace.check_status_chain(p_definition);
  perform millrace.check_layers(p_definition);
  perform millrace.check_status_values(p_definition);
  perform millrace.check_status_names(p_definition);
end
$$;

-- Writes what a definition says of its status column: what stages show, with the values of their
-- layers, which values there are, and which may follow which.
create or replace function millrace.save_status(
  p_pipeline_id int, p_version_id int, p_definition jsonb
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
begin
  update millrace.pipelines p
  set status = v_status
  where p.id = p_pipeline_id and p.status is distinct from v_status;
  update millrace.stages t
  set shows = s -> 'shows' || coalesce((
      select jsonb_strip_nulls(jsonb_build_object(
        'layer', l.key, 'enter', l.value -> 'enter', 'leave', l.value -> 'leave'))
      from jsonb_each(v_status -> 'layers') l
      where l.value -> 'stages' ? t.name), '{}')
  from jsonb_array_elements(p_definition -> 'stages') s
  where t.pipeline_id = p_pipeline_id and t.name = s ->> 'name';
  if v_status is null then
    return;
  end if;
  perform millrace.save_values(p_pipeline_id, p_version_id, v_status);
  perform millrace.save_moves(v.id)
  from millrace.versions v
  where v.pipeline_id = p_pipeline_id
    and (v.id = p_version_id or exists (
      select
      from millrace.runs r
      where r.version_id = v.id and r.status = 'running'));
end
$$;

-- Lists the values of a pipeline in the order in which a row of the present version passes them;
-- those beside the chain come last, failures and endings among them.
create or replace function millrace.ordered_values(p_version_id int, p_status jsonb)
returns table (value text, place bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as (
    select vs.position, s.shows,
      s.shows -> 'layer' is distinct from lag(s.shows -> 'layer') over w as opens,
      s.shows -> 'layer' is distinct from lead(s.shows -> 'layer') over w as closes
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = p_version_id
    window w as (order by vs.position)
  ), shown as (
    select s.position, v.place, v.value
    from stage s
    cross join lateral (
      select 1 as place, case when s.opens then s.shows ->> 'enter' end as value
      union all
      select 1 + l.place, l.value
      from unnest(millrace.live_values(s.shows)) with ordinality l(value, place)
      union all
      select 100, a.key
      from jsonb_each(s.shows -> 'answers') a
      where a.key not in (select e.value from jsonb_each_text(p_status -> 'ends') e)
      union all
      select 101, s.shows ->> 'completed'
      union all
      select 102, case when s.closes then s.shows ->> 'leave' end) v
    where v.value is not null
  ), listed as (
    select v as value
    from jsonb_each(p_status -> 'values') c
    cross join lateral jsonb_object_keys(c.value) v
  ), numbered as (
    select l.value, min(s.position * 1000 + s.place) as place
    from listed l
    left join shown s on s.value = l.value
    group by l.value
  )
  select n.value, row_number() over (order by n.place, length(n.value), n.value)
  from numbered n
$$;

-- Writes the values of a pipeline, and the user's own lookup table where there is one; values that
-- the definition lists no more stay, since the history names them.
create or replace function millrace.save_values(
  p_pipeline_id int, p_version_id int, p_status jsonb
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.status_values v
  set retired = true
  where v.pipeline_id = p_pipeline_id;
  insert into millrace.status_values as t
    (pipeline_id, value, name, description, category, is_terminal, sort_order, retired)
  select p_pipeline_id, v.key,
    case when jsonb_array_length(v.value) > 1 then v.value ->> 0 else v.key end,
    v.value ->> -1, c.key,
    v.key = p_status ->> 'failed'
      or v.key in (select e.value from jsonb_each_text(p_status -> 'ends') e)
      or v.key in (
        select f.value
        from millrace.stages s
        cross join lateral jsonb_each_text(s.shows -> 'failed') f
        where s.pipeline_id = p_pipeline_id),
    o.place, false
  from jsonb_each(p_status -> 'values') c
  cross join lateral jsonb_each(c.value) v
  join millrace.ordered_values(p_version_id, p_status) o on o.value = v.key
  on conflict on constraint status_values_pkey do update
  set (name, description, category, is_terminal, sort_order, retired) = (excluded.name,
    excluded.description, excluded.category, excluded.is_terminal, excluded.sort_order, false);
  if p_status ? 'lookup' then
    -- A name may be unique: one that another value has from now on makes way.
    execute format($q$
      update %1$s t
      set name = format('%%s (%%s)', t.name, t.code)
      from millrace.status_values v
      where v.pipeline_id = $1
        and not v.retired
        and v.name = t.name
        and v.value <> t.code::text$q$, to_regclass(p_status ->> 'lookup'))
    using p_pipeline_id;
    execute format($q$
      insert into %1$s as t (code, name, description, category, is_terminal, sort_order)
      select v.value::%2$s, v.name, v.description, v.category, v.is_terminal, v.sort_order
      from millrace.status_values v
      where v.pipeline_id = $1 and not v.retired
      order by v.sort_order
      on conflict (code) do update
      set (name, description, category, is_terminal, sort_order) = (excluded.name,
        excluded.description, excluded.category, excluded.is_terminal, excluded.sort_order)
      where (t.name, t.description, t.category, t.is_terminal, t.sort_order)
        is distinct from (excluded.name, excluded.description, excluded.category,
          excluded.is_terminal, excluded.sort_order)$q$,
      to_regclass(p_status ->> 'lookup'), (
        select format_type(a.atttypid, a.atttypmod)
        from pg_attribute a
        where a.attrelid = to_regclass(p_status ->> 'lookup') and a.attname = 'code'))
    using p_pipeline_id;
  end if;
end
$$;
