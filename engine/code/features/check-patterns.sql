-- What a definition may say about conditions, thresholds, child pipelines and fan-in beyond their
-- shape

-- Raises MR001 unless the conditions of a stage are jsonpath predicates: on its row and its needs
-- whether it runs, on its row whether that brings its result along, and on row and result whether
-- the run ends with it.
create or replace function millrace.check_conditions(p_stage jsonb, p_definition jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_place int;
begin
  if p_stage ? 'otherwise' and not p_stage ? 'when' then
    perform millrace.refuse_value(p_stage, '{otherwise}', 'beside a condition in "when"',
      'Add a condition: skip lets the stages after it go on without its result, skip_dependents '
      'skips them too.');
  end if;
  perform millrace.check_predicate(p_stage, p_definition, '{when}', '{entity,needs}');
  perform millrace.check_predicate(p_stage, p_definition, '{given}', '{entity}');
  for v_place in 0 .. coalesce(jsonb_array_length(p_stage -> 'ends'), 0) - 1 loop
    perform millrace.check_predicate(
      p_stage, p_definition, array['ends', v_place::text, 'when'], '{entity,result}');
  end loop;
end
$$;

-- Raises MR001 unless what a stage says there, if anything, is a condition on these roots.
create or replace function millrace.check_predicate(
  p_stage jsonb, p_definition jsonb, p_path text[], p_roots text[]
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage #> p_path is not null then
    perform millrace.check_condition_path(p_stage, p_path, p_roots);
    perform millrace.check_condition_names(p_stage, p_definition, p_path, p_roots);
  end if;
end
$$;

-- Raises MR001 unless a condition of a stage is a jsonpath predicate.
create or replace function millrace.check_condition_path(
  p_stage jsonb, p_path text[], p_roots text[]
) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted text := 'a jsonpath predicate';
  v_example text := case p_roots[2]
    when 'needs' then '"$.entity.kind == \"scan\"" or "$.needs.count.pages > 20"'
    when 'result' then '"$.result.score < 0.5" or "$.entity.duplicate_of != null"'
    else '"$.entity.summary != null"'
  end;
  v_path jsonpath;
begin
  begin
    v_path := (p_stage #>> p_path)::jsonpath;
  exception when others then
    perform millrace.refuse_value(p_stage, p_path, format('%s (%s)', v_wanted, sqlerrm),
      format('Write for example %s.', v_example));
  end;
  -- In the canonical form without its quoted parts a variable is $"".
  if regexp_replace(v_path::text, '(\$?)"(\\.|[^"\\])*"', '\1""', 'g') ~ '\$""' then
    perform millrace.refuse_value(p_stage, p_path, v_wanted || ' without variables',
      format('Begin each path with $.%s.', array_to_string(p_roots, ' or $.')));
  end if;
  -- What is no predicate, such as $.entity.pages or a filter, would never be true.
  begin
    perform jsonb_path_match('{}', v_path);
  exception when singleton_sql_json_item_required then
    perform millrace.refuse_value(p_stage, p_path, v_wanted || ', which is true or false',
      'Compare it with something: "$.entity.urgent == true", "exists($.entity.tags[*] ? (@ == '
      '\"new\"))".');
  end;
  if regexp_replace(v_path::text, '"(\\.|[^"\\])*"', '""', 'g') ~ '\[""' then
    perform millrace.refuse_value(p_stage, p_path,
      v_wanted || ' without a name in brackets, where only places of a list are',
      format('Write $.%1$s.count, or $.%1$s."count".', p_roots[cardinality(p_roots)]));
  end if;
end
$$;

-- Lists the names that follow each $ of a condition, up to the first that is none. It reads the
-- canonical form, in which each name is quoted and follows a dot, and passes over quoted text
-- without a dot.
create or replace function millrace.paths_of(p_condition jsonpath) returns table (names text[])
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select (n.found[1])::jsonb #>> '{}'
    from regexp_matches(m.found[1], '\.("(?:\\.|[^"\\])*")', 'g') with ordinality n(found, place)
    order by n.place)
  from regexp_matches(p_condition::text, '\$((?:\."(?:\\.|[^"\\])*")+)|"(?:\\.|[^"\\])*"',
    'g') m(found)
  where m.found[1] is not null
$$;

-- Finds the stage, of a definition or of the pipeline as it was so far, for which the engine keeps
-- this column.
create or replace function millrace.stage_with_column(p_definition jsonb, p_column text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.name
  from (
    select s ->> 'name' as name
    from jsonb_array_elements(p_definition -> 'stages') s
    union
    select t.name
    from millrace.stages t
    join millrace.pipelines p on p.id = t.pipeline_id
    where p.name = p_definition ->> 'pipeline') s
  where (p_definition #>> '{entity,projection}' = 'columns'
      and p_column = any (millrace.stage_columns(s.name)))
    or p_column = any (millrace.status_columns(p_definition #> '{entity,status}'))
  limit 1
$$;

-- Raises MR001 when a condition asks for what is neither a column of the user's, nor the result of
-- a need or of the stage itself: a name that is misspelt would never hold, without a word.
create or replace function millrace.check_condition_names(
  p_stage jsonb, p_definition jsonb, p_path text[], p_roots text[]
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_asks text := format('stage %s: %s asks for ', p_stage ->> 'name', array_to_string(p_path, '.'));
  v_root text;
  v_name text;
  v_kept_for text;
begin
  for v_root, v_name in
    select p.names[1], p.names[2]
    from millrace.paths_of((p_stage #>> p_path)::jsonpath) p
  loop
    if v_root <> all (p_roots) then
      raise exception '%$.%, but there %', v_asks, v_root, case cardinality(p_roots)
          when 1 then 'is only $.' || p_roots[1]
          else format('are only $.%s and $.%s', p_roots[1], p_roots[2])
        end
        using errcode = 'MR001', hint = format('Begin each path with $.entity, the row%s.',
          case p_roots[2]
            when 'needs' then ', or $.needs, the results of its needs'
            when 'result' then ', or $.result, what the stage returns'
            else ''
          end);
    elsif v_root = 'needs' and not p_stage -> 'needs' ? v_name then
      raise exception '%the result of %, which it does not need', v_asks, v_name
        using errcode = 'MR001', hint = format('Add %s to its needs.', v_name);
    elsif v_root = 'entity' and v_name is not null
      and not millrace.has_column(p_definition, v_name) then
      raise exception '%$.entity.%, but table % has no such column', v_asks, v_name,
        p_definition #>> '{entity,table}'
        using errcode = 'MR001',
          hint = 'Correct the name, or add the column in an earlier migration.';
    end if;
    v_kept_for := case
      when v_root = 'entity' then millrace.stage_with_column(p_definition, v_name)
    end;
    if v_kept_for is not null then
      raise exception '%$.entity.%, which the engine keeps for stage % and which no condition sees',
        v_asks, v_name, v_kept_for
        using errcode = 'MR001', hint = case p_roots[2]
          when 'needs' then 'Ask for the result of a stage it needs, under $.needs, or for a '
            'column of your own.'
          else 'Ask for a column of your own.'
        end;
    end if;
  end loop;
end
$$;

-- Raises MR001 where a stage that only a person begins says of itself when it begins, and where no
-- stage would begin a run by itself.
create or replace function millrace.check_on_demand(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_beside text := case
    when p_stage ? 'when' then 'when'
    when p_stage ? 'given' then 'given'
  end;
begin
  if p_stage -> 'on_demand' is distinct from 'true' then
    return;
  elsif v_beside is not null then
    perform millrace.refuse_value(p_stage, array[v_beside], 'left out beside "on_demand": true',
      'Only a start by name begins the stage, which overrules its own conditions.');
  elsif not exists (
      select
      from jsonb_array_elements(p_stages) s
      where millrace.edges_to(s) = '{}'
        and s -> 'on_demand' is distinct from 'true') then
    perform millrace.refuse_value(p_stage, '{on_demand}',
      'false for at least one stage without needs',
      'A run would be over as soon as it began: let one of its first stages begin by itself.');
  end if;
end
$$;

-- Raises MR001 where two endings of a stage have one name.
create or replace function millrace.check_ends(p_stage jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_twice text;
begin
  select e ->> 'name'
  into v_twice
  from jsonb_array_elements(p_stage -> 'ends') e
  group by 1
  having count(*) > 1
  limit 1;
  if found then
    raise exception 'stage %: ends has the name % twice', p_stage ->> 'name', v_twice
      using errcode = 'MR001', hint = 'Join its conditions by || into one.';
  end if;
end
$$;

-- Raises MR001 unless the thresholds of a stage name map stages and stages of their children.
create or replace function millrace.check_thresholds(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after jsonb;
  v_map jsonb;
begin
  for v_after in select a from jsonb_array_elements(p_stage -> 'after') a loop
    v_map := (
      select s
      from jsonb_array_elements(p_stages) s
      where s ->> 'name' = v_after ->> 'map');
    if v_map ->> 'kind' is distinct from 'map' then
      raise exception 'stage %: after names the map stage %, which this pipeline does not have',
        p_stage ->> 'name', v_after -> 'map'
        using errcode = 'MR001', hint = 'Name a stage of kind map in "map".';
    elsif not exists (
        select
        from millrace.pipelines p
        join millrace.version_stages vs on vs.version_id = p.current_version_id
        join millrace.stages s on s.id = vs.stage_id
        where p.name = v_map #>> '{child,pipeline}'
          and s.name = v_after ->> 'stage') then
      raise exception 'stage %: after names the stage % of pipeline %, which does not exist',
        p_stage ->> 'name', v_after -> 'stage', v_map #>> '{child,pipeline}'
        using errcode = 'MR001',
          hint = 'Name a stage of the map''s child pipeline in "stage"; define the child pipeline '
            'first.';
    end if;
  end loop;
end
$$;

-- Says whether a pipeline is the one named, or starts runs of it, however deep: pipelines that
-- contain one another would never end.
create or replace function millrace.contains_pipeline(p_pipeline_id int, p_name text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive inside as (
    select p_pipeline_id as id
    union
    select vs.child_pipeline_id
    from inside i
    join millrace.pipelines p on p.id = i.id
    join millrace.version_stages vs on vs.version_id = p.current_version_id
    where vs.child_pipeline_id is not null
  )
  select exists (
    select
    from inside i
    join millrace.pipelines p on p.id = i.id
    where p.name = p_name)
$$;

-- Raises MR001 unless the child pipeline of a map or pipeline stage exists and fits, and so does a
-- map's insert function.
create or replace function millrace.check_child(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{child,pipeline}';
  v_child millrace.pipelines;
begin
  if not p_stage ? 'child' then
    return;
  end if;
  select p.*
  into v_child
  from millrace.pipelines p
  where p.name = p_stage #>> v_path;
  if not found then
    perform millrace.refuse_value(p_stage, v_path, 'the name of a pipeline that is defined already',
      'Define the child pipeline first.');
  elsif millrace.contains_pipeline(v_child.id, p_definition ->> 'pipeline') then
    perform millrace.refuse_value(p_stage, v_path,
      'a pipeline that does not start this one in turn',
      'Pipelines that contain one another would never end.');
  elsif p_stage ->> 'kind' = 'pipeline'
    and (v_child.entity_table, v_child.entity_key)
      <> (to_regclass(p_definition #>> '{entity,table}'), p_definition #>> '{entity,key}') then
    perform millrace.refuse_value(p_stage, v_path,
      format('a pipeline over the same table and key (this one is over %s.%s)',
        v_child.entity_table, v_child.entity_key),
      'A stage of kind pipeline runs over the same row; for rows of another table use the kind '
      'map.');
  end if;
  if p_stage #>> '{child,insert}' is not null
    and millrace.function_named(p_stage #>> '{child,insert}', 'text,jsonb') is null then
    perform millrace.refuse_value(p_stage, '{child,insert}',
      'a function (p_parent text, p_items jsonb) returns table (item_key text, entity_id text)',
      'Create the function in an earlier migration and name it with its schema; without it an '
      'item''s key is the id of a '
      'row that exists.');
  end if;
end
$$;

-- Lists all stages of a definition that come after one, by needs and thresholds.
create or replace function millrace.stages_after(p_stage text, p_stages jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  with recursive reach(name) as (
    select s ->> 'name'
    from jsonb_array_elements(p_stages) s
    where p_stage = any (millrace.edges_to(s))
    union
    select s ->> 'name'
    from reach r
    join jsonb_array_elements(p_stages) s on r.name = any (millrace.edges_to(s))
  )
  select array(select r.name from reach r)
$$;

-- Raises MR001 when two stages side by side would start a run of one pipeline on the same row. Two
-- that each have a condition may be alternatives, of which a run takes one.
create or replace function millrace.check_rival(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := p_stage ->> 'name';
  v_rival text;
begin
  if p_stage ->> 'kind' <> 'pipeline' then
    return;
  end if;
  select s ->> 'name'
  into v_rival
  from jsonb_array_elements(p_stages) s
  where s ->> 'kind' = 'pipeline'
    and s ->> 'name' <> v_name
    and s #> '{child,pipeline}' = p_stage #> '{child,pipeline}'
    and not (s ? 'when' and p_stage ? 'when')
    and s ->> 'name' <> all (millrace.stages_after(v_name, p_stages))
    and v_name <> all (millrace.stages_after(s ->> 'name', p_stages))
  limit 1;
  if found then
    perform millrace.refuse_value(p_stage, '{child,pipeline}',
      format('a pipeline that stage %s beside it does not start too', v_rival),
      format('A row has one live run a pipeline: let one of %s and %s need the other, or give '
        'them child pipelines of '
        'their own.', v_name, v_rival));
  end if;
end
$$;

-- Raises MR001 unless a fan-in rule has the number that belongs to it, and no other.
create or replace function millrace.check_fan_in(p_stage jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_in jsonb := p_stage -> 'fan_in';
begin
  if (v_fan_in ->> 'rule' = 'at_least') <> (v_fan_in ? 'count') then
    perform millrace.refuse_value(p_stage, '{fan_in,count}',
      'given with the rule at_least, and only there',
      'Write {"rule": "at_least", "count": 20}.');
  elsif (v_fan_in ->> 'rule' = 'share') <> (v_fan_in ? 'share') then
    perform millrace.refuse_value(p_stage, '{fan_in,share}',
      'given with the rule share, and only there',
      'Write {"rule": "share", "share": 0.9}.');
  end if;
end
$$;
