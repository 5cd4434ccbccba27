-- Chapter 7: what a definition may say about patterns
--
-- Conditions, thresholds, child pipelines, fan-in, agents, decisions and limits. As in the chapter on checks, each function raises MR001
-- with the field, what was found and the remedy.

-- An option that nothing reads for this kind of stage is a mistake, and one that its kind cannot do without must be there.
create or replace function millrace.check_kind(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_option text;
  v_kinds text[];
begin
  if not millrace.is_kind(p_stage, array['function', 'external', 'manual', 'pipeline', 'map', 'agent']) then
    perform millrace.refuse_value(p_stage, '{kind}', 'function, external, manual, pipeline, map or agent',
      'A function does its work itself, an external stage hands it to a job service, a manual one waits for a person, a pipeline one for a run of another pipeline, a map one for many; an agent takes many turns with a model.');
  end if;
  for v_option, v_kinds in values
    ('function', array['function', 'external', 'map', 'agent']), ('batch_size', array['function', 'external', 'map', 'agent']),
    ('max_workers', array['function', 'external', 'map', 'agent']), ('lease_seconds', array['function', 'external', 'map', 'agent']),
    ('timeout_seconds', array['function', 'external', 'map', 'agent']), ('limits', array['function', 'external', 'map', 'agent']),
    ('completion', array['function', 'external']), ('child', array['map', 'pipeline']), ('fan_in', array['map']),
    ('decision', array['manual']), ('agent', array['agent'])
  loop
    if p_stage ? v_option and jsonb_typeof(p_stage -> v_option) <> 'null' and not millrace.is_kind(p_stage, v_kinds) then
      raise exception 'stage %: % has no meaning for a stage of kind %', p_stage ->> 'name', v_option, coalesce(p_stage ->> 'kind', 'function')
        using errcode = 'MR001', hint = format('It belongs to the kinds %s: leave it out, or change the kind.', array_to_string(v_kinds, ', '));
    end if;
  end loop;
end
$$;
comment on function millrace.check_kind(jsonb) is 'Raises MR001 unless the kind of a stage is known and its options belong to it.';

create or replace function millrace.check_condition_path(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
begin
  if p_stage ->> 'otherwise' is not null and (p_stage ->> 'otherwise' not in ('skip', 'skip_dependents') or p_stage ->> 'when' is null) then
    perform millrace.refuse_value(p_stage, '{otherwise}', 'skip or skip_dependents, beside a condition in "when"', 'skip lets the stages after it go on without its result, skip_dependents skips them too.');
  end if;
  perform millrace.check_type(p_stage, '{when}', 'string');
  if p_stage ->> 'when' is null then
    return;
  end if;
  begin
    perform (p_stage ->> 'when')::jsonpath;
  exception when others then
    perform millrace.refuse_value(p_stage, '{when}', format('a jsonpath predicate (%s)', sqlerrm), 'Write for example "$.entity.kind == \"scan\"" or "$.needs.count.pages > 20".');
  end;
  -- In the canonical form without its quoted parts a variable is $"".
  v_name := substring(regexp_replace((p_stage ->> 'when')::jsonpath::text, '(\$?)"(\\.|[^"\\])*"', '\1""', 'g') from '\$""');
  if v_name is not null then
    perform millrace.refuse_value(p_stage, '{when}', 'a jsonpath predicate without variables', 'Begin each path with $.entity or $.needs.');
  end if;
  -- What is no predicate, such as $.entity.pages or a filter, would never be true.
  begin
    perform jsonb_path_match('{}', (p_stage ->> 'when')::jsonpath);
  exception when singleton_sql_json_item_required then
    perform millrace.refuse_value(p_stage, '{when}', 'a jsonpath predicate, which is true or false', 'Compare it with something: "$.entity.urgent == true", "exists($.entity.tags[*] ? (@ == \"new\"))".');
  end;
  if regexp_replace((p_stage ->> 'when')::jsonpath::text, '"(\\.|[^"\\])*"', '""', 'g') ~ '\[""' then
    perform millrace.refuse_value(p_stage, '{when}', 'a jsonpath predicate without a name in brackets, where only places of a list are', 'Write $.needs.count, or $.needs."count".');
  end if;
end
$$;
comment on function millrace.check_condition_path(jsonb) is 'Raises MR001 unless the condition of a stage is a jsonpath predicate.';

-- By the canonical form, in which each name is quoted and follows a dot. Text in quotes without a dot is passed over.
create or replace function millrace.paths_of(p_condition jsonpath) returns table (names text[])
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select array(select (n.found[1])::jsonb #>> '{}' from regexp_matches(m.found[1], '\.("(?:\\.|[^"\\])*")', 'g') with ordinality n(found, place) order by n.place)
  from regexp_matches(p_condition::text, '\$((?:\."(?:\\.|[^"\\])*")+)|"(?:\\.|[^"\\])*"', 'g') m(found) where m.found[1] is not null
$$;
comment on function millrace.paths_of(jsonpath) is 'The names that follow each $ of a condition, up to the first that is none.';

-- A name that is misspelt would skip the stage without a word.
create or replace function millrace.check_condition_names(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_table text := p_definition #>> '{entity,table}';
  v_names text[];
  v_kept_for text;
begin
  for v_names in select p.names from millrace.paths_of((p_stage ->> 'when')::jsonpath) p loop
    if v_names[1] not in ('entity', 'needs') then
      raise exception 'stage %: when asks for $.%, but there are only $.entity and $.needs', p_stage ->> 'name', v_names[1]
        using errcode = 'MR001', hint = 'Begin each path with $.entity, the row, or $.needs, the results of its needs.';
    elsif v_names[1] = 'needs' and not coalesce(p_stage -> 'needs', '[]') ? v_names[2] then
      raise exception 'stage %: when asks for the result of %, which it does not need', p_stage ->> 'name', v_names[2]
        using errcode = 'MR001', hint = format('Add %s to its needs.', v_names[2]);
    elsif v_names[1] = 'entity' and v_names[2] is not null and not exists (
      select from pg_attribute a where a.attrelid = to_regclass(v_table) and a.attnum > 0 and not a.attisdropped and a.attname = v_names[2]) then
      raise exception 'stage %: when asks for $.entity.%, but table % has no such column', p_stage ->> 'name', v_names[2], v_table
        using errcode = 'MR001', hint = 'Correct the name, or add the column in an earlier migration.';
    end if;
    select s.name into v_kept_for from (
      select s ->> 'name' as name from jsonb_array_elements(p_definition -> 'stages') s
      union select t.name from millrace.stages t join millrace.pipelines p on p.id = t.pipeline_id where p.name = p_definition ->> 'pipeline') s
    where v_names[1] = 'entity' and coalesce(p_definition #>> '{entity,projection}', 'columns') = 'columns' and v_names[2] = any (millrace.stage_columns(s.name)) limit 1;
    if found then
      raise exception 'stage %: when asks for $.entity.%, which the engine keeps for stage % and which no condition sees', p_stage ->> 'name', v_names[2], v_kept_for
        using errcode = 'MR001', hint = 'Ask for the result of a stage it needs, under $.needs, or for a column of your own.';
    end if;
  end loop;
end
$$;
comment on function millrace.check_condition_names(jsonb, jsonb) is 'Raises MR001 when a condition asks for what is neither a column of the entity nor the result of a need.';

create or replace function millrace.check_threshold(p_stage jsonb, p_after jsonb, p_stages jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_map jsonb := (select s from jsonb_array_elements(p_stages) s where s ->> 'name' = p_after ->> 'map');
  v_child text := v_map #>> '{child,pipeline}';
  v_rules int := (select count(*) from unnest(array['count', 'consecutive', 'all']) k where p_after ? k);
begin
  perform millrace.check_keys(jsonb_build_object('name', p_stage ->> 'name', 'after', p_after), '{after}', array['map', 'stage', 'count', 'consecutive', 'all']);
  if v_map is null or not millrace.is_kind(v_map, array['map']) then
    raise exception 'stage %: after names the map stage %, which this pipeline does not have', p_stage ->> 'name', coalesce(p_after -> 'map', 'null')
      using errcode = 'MR001', hint = 'Name a stage of kind map in "map".';
  elsif v_rules <> 1 or (p_after ? 'all' and p_after -> 'all' <> 'true') then
    raise exception 'stage %: after must have one of count, consecutive and all (true), this has %', p_stage ->> 'name', p_after
      using errcode = 'MR001', hint = 'Write {"map": "split", "stage": "blend", "count": 20}, or "consecutive": 10, or "all": true.';
  elsif not exists (
    select from millrace.pipelines p join millrace.version_stages vs on vs.version_id = p.current_version_id join millrace.stages s on s.id = vs.stage_id
    where p.name = v_child and s.name = p_after ->> 'stage') then
    raise exception 'stage %: after names the stage % of pipeline %, which does not exist', p_stage ->> 'name', coalesce(p_after -> 'stage', 'null'), v_child
      using errcode = 'MR001', hint = 'Name a stage of the map''s child pipeline in "stage"; define the child pipeline first.';
  end if;
  perform millrace.check_number(jsonb_build_object('name', p_stage ->> 'name', 'after', p_after), '{after,count}', 1, 100000, true);
  perform millrace.check_number(jsonb_build_object('name', p_stage ->> 'name', 'after', p_after), '{after,consecutive}', 1, 100000, true);
end
$$;
comment on function millrace.check_threshold(jsonb, jsonb, jsonb) is 'Raises MR001 unless a threshold names a map stage, a stage of its children and one rule.';

create or replace function millrace.check_after(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_after jsonb;
begin
  if p_stage -> 'after' is not null and (jsonb_typeof(p_stage -> 'after') <> 'array' or jsonb_path_exists(p_stage, '$.after[*] ? (@.type() != "object")')) then
    perform millrace.refuse_value(p_stage, '{after}', 'a list of thresholds', 'Write "after": [{"map": "split", "stage": "blend", "count": 20}].');
  end if;
  for v_after in select a from jsonb_array_elements(p_stage -> 'after') a loop
    perform millrace.check_threshold(p_stage, v_after, p_stages);
  end loop;
end
$$;
comment on function millrace.check_after(jsonb, jsonb) is 'Raises MR001 unless the thresholds of a stage are well formed.';

-- Pipelines that contain one another would never end.
create or replace function millrace.contains_pipeline(p_pipeline_id int, p_name text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with recursive inside as (
    select p_pipeline_id as id
    union
    select vs.child_pipeline_id from inside i join millrace.pipelines p on p.id = i.id
    join millrace.version_stages vs on vs.version_id = p.current_version_id where vs.child_pipeline_id is not null
  )
  select exists (select from inside i join millrace.pipelines p on p.id = i.id where p.name = p_name)
$$;
comment on function millrace.contains_pipeline(int, text) is 'Whether a pipeline is the one named, or starts runs of it, however deep.';

create or replace function millrace.check_child(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_child millrace.pipelines;
begin
  if not millrace.is_kind(p_stage, array['map', 'pipeline']) then
    return;
  end if;
  perform millrace.check_keys(p_stage, '{child}', case when millrace.is_kind(p_stage, array['map']) then array['pipeline', 'insert'] else array['pipeline'] end);
  select p.* into v_child from millrace.pipelines p where p.name = p_stage #>> '{child,pipeline}';
  if not found then
    perform millrace.refuse_value(p_stage, '{child,pipeline}', 'the name of a pipeline that is defined already', 'Define the child pipeline first.');
  elsif cardinality(millrace.ways_of(v_child.id)) > 1 then
    perform millrace.refuse_value(p_stage, '{child,pipeline}', 'a pipeline that neither replaces another nor is replaced', 'Only what is started by itself can go either way: end the cut-over first.');
  elsif millrace.contains_pipeline(v_child.id, p_definition ->> 'pipeline') then
    perform millrace.refuse_value(p_stage, '{child,pipeline}', 'a pipeline that does not start this one in turn', 'Pipelines that contain one another would never end.');
  elsif millrace.is_kind(p_stage, array['pipeline'])
        and (v_child.entity_table <> to_regclass(p_definition #>> '{entity,table}') or v_child.entity_key <> coalesce(p_definition #>> '{entity,key}', 'id')) then
    perform millrace.refuse_value(p_stage, '{child,pipeline}', format('a pipeline over the same table and key (this one is over %s.%s)', v_child.entity_table, v_child.entity_key),
      'A stage of kind pipeline runs over the same row; for rows of another table use the kind map.');
  end if;
  if p_stage #>> '{child,insert}' is not null and millrace.function_named(p_stage #>> '{child,insert}', 'text,jsonb') is null then
    perform millrace.refuse_value(p_stage, '{child,insert}', 'a function (p_parent text, p_items jsonb) returns table (item_key text, entity_id text)',
      'Create the function in an earlier migration and name it with its schema; without it an item''s key is the id of a row that exists.');
  end if;
end
$$;
comment on function millrace.check_child(jsonb, jsonb) is 'Raises MR001 unless the child pipeline of a map or pipeline stage exists and fits.';

create or replace function millrace.stages_after(p_stage text, p_stages jsonb) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  with recursive reach(name) as (
    select s ->> 'name' from jsonb_array_elements(p_stages) s where p_stage = any (millrace.edges_to(s))
    union select s ->> 'name' from reach r join jsonb_array_elements(p_stages) s on r.name = any (millrace.edges_to(s)))
  select array(select r.name from reach r)
$$;
comment on function millrace.stages_after(text, jsonb) is 'All stages of a definition that come after one, by needs and thresholds.';

-- Two that each have a condition may be alternatives, of which a run takes one.
create or replace function millrace.check_rival(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_rival text;
begin
  select s ->> 'name' into v_rival from jsonb_array_elements(p_stages) s
  where millrace.is_kind(p_stage, array['pipeline']) and millrace.is_kind(s, array['pipeline']) and s ->> 'name' <> p_stage ->> 'name'
    and s #>> '{child,pipeline}' = p_stage #>> '{child,pipeline}' and (s ->> 'when' is null or p_stage ->> 'when' is null)
    and s ->> 'name' <> all (millrace.stages_after(p_stage ->> 'name', p_stages)) and p_stage ->> 'name' <> all (millrace.stages_after(s ->> 'name', p_stages)) limit 1;
  if found then
    perform millrace.refuse_value(p_stage, '{child,pipeline}', format('a pipeline that stage %s beside it does not start too', v_rival),
      format('A row has one live run a pipeline: let one of %s and %s need the other, or give them child pipelines of their own.', p_stage ->> 'name', v_rival));
  end if;
end
$$;
comment on function millrace.check_rival(jsonb, jsonb) is 'Raises MR001 when two stages side by side would start a run of one pipeline on the same row.';

create or replace function millrace.check_fan_in(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_rule text := coalesce(p_stage #>> '{fan_in,rule}', 'all');
begin
  perform millrace.check_type(p_stage, '{fan_in}', 'object');
  perform millrace.check_keys(p_stage, '{fan_in}', array['rule', 'count', 'share', 'failed_children', 'late_children', 'deadline_seconds', 'at_deadline']);
  if v_rule not in ('all', 'at_least', 'share') then
    perform millrace.refuse_value(p_stage, '{fan_in,rule}', 'all, at_least or share', 'all waits for every child, at_least for "count" of them, share for that share of them.');
  elsif (v_rule = 'at_least') <> (p_stage #> '{fan_in,count}' is not null) then
    perform millrace.refuse_value(p_stage, '{fan_in,count}', 'given with the rule at_least, and only there', 'Write {"rule": "at_least", "count": 20}.');
  elsif (v_rule = 'share') <> (p_stage #> '{fan_in,share}' is not null) then
    perform millrace.refuse_value(p_stage, '{fan_in,share}', 'given with the rule share, and only there', 'Write {"rule": "share", "share": 0.9}.');
  elsif coalesce(p_stage #>> '{fan_in,failed_children}', 'fail') not in ('fail', 'ignore') then
    perform millrace.refuse_value(p_stage, '{fan_in,failed_children}', 'fail or ignore', 'fail ends the stage with the first child that fails, ignore goes on with the others.');
  elsif coalesce(p_stage #>> '{fan_in,late_children}', 'continue') not in ('continue', 'cancel') then
    perform millrace.refuse_value(p_stage, '{fan_in,late_children}', 'continue or cancel', 'continue lets children that still run when the stage is done go on, cancel ends them.');
  elsif coalesce(p_stage #>> '{fan_in,at_deadline}', 'fail') not in ('fail', 'finish') then
    perform millrace.refuse_value(p_stage, '{fan_in,at_deadline}', 'fail or finish', 'finish goes on with what there is at the deadline.');
  end if;
  perform millrace.check_number(p_stage, '{fan_in,count}', 1, 100000, true);
  perform millrace.check_number(p_stage, '{fan_in,share}', 0, 1);
  perform millrace.check_number(p_stage, '{fan_in,deadline_seconds}', 1, 31536000);
end
$$;
comment on function millrace.check_fan_in(jsonb) is 'Raises MR001 unless the fan-in rule of a map stage is well formed.';

create or replace function millrace.check_agent(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.check_type(p_stage, '{agent}', 'object');
  perform millrace.check_keys(p_stage, '{agent}', array['max_turns', 'max_tokens', 'max_cost_usd', 'max_seconds', 'debug']);
  perform millrace.check_number(p_stage, '{agent,max_turns}', 1, 1000, true);
  perform millrace.check_number(p_stage, '{agent,max_tokens}', 1, 100000000, true);
  perform millrace.check_number(p_stage, '{agent,max_cost_usd}', 0, 10000);
  perform millrace.check_number(p_stage, '{agent,max_seconds}', 1, 604800);
  perform millrace.check_type(p_stage, '{agent,debug}', 'boolean');
end
$$;
comment on function millrace.check_agent(jsonb) is 'Raises MR001 unless the limits of an agent stage are well formed.';

create or replace function millrace.check_decision(p_stage jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.check_type(p_stage, '{decision}', 'object');
  perform millrace.check_keys(p_stage, '{decision}', array['schema', 'deadline_seconds']);
  perform millrace.check_number(p_stage, '{decision,deadline_seconds}', 1, 31536000);
  if p_stage #> '{decision,schema}' is not null then
    perform millrace.check_json_schema(p_stage #> '{decision,schema}', format('stage %s: decision.schema', p_stage ->> 'name'));
  end if;
end
$$;
comment on function millrace.check_decision(jsonb) is 'Raises MR001 unless the decision of a manual stage is well formed.';

create or replace function millrace.check_patterns(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.check_kind(p_stage);
  perform millrace.check_condition_path(p_stage);
  perform millrace.check_condition_names(p_stage, p_definition);
  if coalesce(p_stage ->> 'on_failure', 'fail_run') not in ('fail_run', 'continue') then
    perform millrace.refuse_value(p_stage, '{on_failure}', 'fail_run or continue', 'fail_run ends the run, continue goes on without the stage''s result.');
  end if;
  perform millrace.check_after(p_stage, p_definition -> 'stages');
  perform millrace.check_child(p_stage, p_definition);
  perform millrace.check_rival(p_stage, p_definition -> 'stages');
  perform millrace.check_fan_in(p_stage);
  perform millrace.check_agent(p_stage);
  perform millrace.check_decision(p_stage);
  if p_stage ? 'limits' then
    perform millrace.check_limits(p_stage, p_definition);
  end if;
end
$$;
comment on function millrace.check_patterns(jsonb, jsonb) is 'Raises MR001 unless what a stage says about patterns is well formed.';
