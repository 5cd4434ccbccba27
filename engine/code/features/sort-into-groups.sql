-- Concurrency groups: how the queue of a stage is sorted.
--
-- A stage with the limits concurrency or priority has its queue sorted into groups, one for each
-- key and class of priority. Whoever enqueues writes an attempt's group and inserts an arrival,
-- which the next claim reads (claim-by-groups.sql), and waits for nobody.

-- Says which key a column's value stands for: the value itself or, for the part host, the host of a
-- URL in lower case, without port and user. What is no URL counts as a whole, and null as ''.
create or replace function millrace.group_key(p_value text, p_part text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  -- An index entry must fit into a page, so what is very long is cut, with its hash to tell it
  -- from others.
  select case when octet_length(k) > 400 then left(k, 80) || md5(k) else k end
  from (
    select coalesce(
      case when p_part = 'host' then
        rtrim(lower((regexp_match(
          btrim(p_value),
          '^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\s]+)(?::\d*)?(?:[/?#]|$)',
          'i'))[1]), '.')
      end, p_value, '') as k) v
$$;

-- Builds the expression that reads which keys the entities p_ids have in a column, in their order.
-- A call for each row costs more than all the rest, so what is short and taken whole needs none.
create or replace function millrace.keys_expression(
  p_pipeline millrace.pipelines,
  p_key_type text,
  p_column text,
  p_part text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    'array('
    'select %s from unnest(p_ids) with ordinality i(id, place) '
    'cross join lateral ('
    'select (select e.%I::text from %s e where e.%I = i.id::%s) as key offset 0) k '
    'order by i.place)',
    case when p_part is distinct from 'host'
      then 'case when octet_length(k.key) > 400 then millrace.group_key(k.key, null) '
        'else coalesce(k.key, '''') end'
      else format('millrace.group_key(k.key, %L)', p_part)
    end,
    p_column, p_pipeline.entity_table, p_pipeline.entity_key, p_key_type)
$$;

-- Reads the keys of entities at a stage, in their order. A column that was renamed since must not
-- make a user's own write fail, so then all have the key ''.
create or replace function millrace.group_keys(p_stage millrace.stages, p_entity_ids text[])
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage.limits ? 'concurrency' then
    return millrace.keys_of_entities(p_stage.pipeline_id, p_stage.name, p_entity_ids);
  end if;
  return array_fill(''::text, array[cardinality(p_entity_ids)]);
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    perform millrace.report('error', 'group_key_failed',
      format('The keys of stage %s cannot be read, so that its rows wait under one key: %s',
        p_stage.name, sqlerrm),
      jsonb_build_object('column', p_stage.limits #>> '{concurrency,column}'));
    return array_fill(''::text, array[cardinality(p_entity_ids)]);
end
$$;

-- Gives live attempts their group, from their entity as it is now, and announces those that are
-- queued.
create or replace function millrace.place_attempts(
  p_stage millrace.stages,
  p_attempt_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_by_priority boolean := coalesce((p_stage.limits ->> 'priority')::boolean, false);
  v_found record;
begin
  select array_agg(a.id) as ids,
    array_agg(r.entity_id) as entity_ids,
    array_agg(case when v_by_priority then r.priority else 0 end) as priorities
  into v_found
  from unnest(p_attempt_ids) i
  join millrace.attempts a on a.id = i
  join millrace.runs r on r.id = a.run_id;
  if v_found.ids is null then
    return;
  end if;
  with placed as (
    update millrace.attempts a
    set concurrency_group = u.priority || u.key
    from unnest(
      v_found.ids,
      v_found.priorities,
      millrace.group_keys(p_stage, v_found.entity_ids)) u(id, priority, key)
    where a.id = u.id and a.state in ('queued', 'started', 'waiting')
    returning a.concurrency_group, a.queue_at, a.state
  )
  insert into millrace.arrivals (stage_id, concurrency_group, due_at)
  select p_stage.id, p.concurrency_group, min(p.queue_at)
  from placed p
  where p.state = 'queued'
  group by p.concurrency_group;
end
$$;

-- Sorts what was just queued at a stage for these runs into its groups. An attempt keeps its group
-- until it is queued again, whatever becomes of the column.
create or replace function millrace.assign_groups(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.has_groups then
    perform millrace.place_attempts(v_stage, array(
      select a.id
      from unnest(p_run_ids) r
      join millrace.attempts a on a.run_id = r and a.stage_id = p_stage_id and a.state = 'queued'));
  end if;
end
$$;

-- Sorts attempts that have no group, since they were queued before the stage had groups, or by a
-- transaction that did not know of them: the p_limit oldest in the queue, or all that are live
-- where p_limit is null.
create or replace function millrace.adopt_attempts(p_stage millrace.stages, p_limit int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.place_attempts(p_stage, array(
    select a.id
    from (
      select t.id
      from millrace.runs r
      join millrace.attempts t on t.run_id = r.id
        and t.stage_id = p_stage.id
        and t.state in ('queued', 'started', 'waiting')
      where p_limit is null and r.pipeline_id = p_stage.pipeline_id and r.status = 'running'
      union all
      (select t.id
       from millrace.attempts t
       where p_limit is not null and t.stage_id = p_stage.id and t.queue_at is not null
       order by t.queue_at, t.id
       limit p_limit)) q
    join millrace.attempts a on a.id = q.id
    where a.concurrency_group is null
    for update of a skip locked));
end
$$;

-- Says what a stage with these limits sorts its queue by.
create or replace function millrace.groups_sorted_by(p_limits jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_array(
    p_limits #> '{concurrency,column}',
    case
      when p_limits ? 'concurrency' then coalesce(p_limits #>> '{concurrency,part}', 'value')
    end,
    coalesce((p_limits ->> 'priority')::boolean, false))
$$;

-- Before define() saves the stages, it forgets the groups of those that the definition no longer
-- sorts, or sorts by something else, and the slots of those that it no longer counts. What somebody
-- holds at this moment is left out: it is about to end.
create or replace function millrace.forget_groups(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  for v_stage in
    select t.id,
      millrace.groups_sorted_by(t.limits) <> millrace.groups_sorted_by(s -> 'limits')
        as sorted_anew,
      millrace.counts_in_flight(millrace.limits_of(s)) as counted
    from millrace.stages t
    join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
    where t.pipeline_id = p_pipeline_id and t.limits is not null
    order by t.id
  loop
    if v_stage.sorted_anew or not v_stage.counted then
      perform millrace.forget_in_flight(v_stage.id);
    end if;
    if v_stage.sorted_anew then
      delete from millrace.concurrency_groups g where g.stage_id = v_stage.id;
      delete from millrace.arrivals a where a.stage_id = v_stage.id;
      update millrace.attempts a
      set concurrency_group = null
      from (
        select t.id
        from millrace.runs r
        join millrace.attempts t on t.run_id = r.id
          and t.stage_id = v_stage.id
          and t.state in ('queued', 'started', 'waiting')
          and t.concurrency_group is not null
        where r.pipeline_id = p_pipeline_id and r.status = 'running'
        for update of t skip locked) t
      where a.id = t.id;
    end if;
  end loop;
end
$$;

-- attach() writes a pipeline's __keys function, which reads the keys of its entities at each stage
-- with concurrency, and keys_of_entities(), which leads to those of all pipelines.
create or replace function millrace.write_group_keys(
  p_pipeline millrace.pipelines,
  p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_function text := p_pipeline.name || '__keys';
  v_branches text;
  v_ids int[];
  v_names text[];
begin
  select string_agg(format(E'\n  when %L then return %s;', s.name, millrace.keys_expression(
    p_pipeline, p_key_type, s.limits #>> '{concurrency,column}',
    coalesce(s.limits #>> '{concurrency,part}', 'value'))), '' order by s.id)
  into v_branches
  from millrace.stages s
  where s.pipeline_id = p_pipeline.id and s.limits ? 'concurrency';
  if v_branches is null then
    execute format('drop function if exists millrace.%I(text, text[])', v_function);
  else
    perform millrace.write_function(
      format('%I(p_stage text, p_ids text[]) returns text[]', v_function), format($f$
#variable_conflict use_variable
begin
  case p_stage%s
  end case;
end $f$, v_branches));
  end if;
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where exists (
    select from millrace.stages s
    where s.pipeline_id = p.id and s.limits ? 'concurrency');
  perform millrace.write_way('keys_of_entities',
    '(p_pipeline_id int, p_stage text, p_ids text[]) returns text[]',
    v_ids,
    array(
      select format('return millrace.%I(p_stage, p_ids);', n || '__keys') from unnest(v_names) n),
    'the keys of entities at a stage with concurrency, in their order.');
end
$write$;

-- attach() writes the way from a pipeline's entities to their keys, sorts what is queued at its
-- stages with groups, and counts what is in work at those with limits. Every group is looked at
-- anew, since a limit may have been raised.
create or replace function millrace.attach_groups(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  perform millrace.write_group_keys(p_pipeline, p_key_type);
  for v_stage in
    select s.*
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id
    order by s.id
  loop
    if v_stage.has_groups then
      perform millrace.adopt_attempts(v_stage, null);
      insert into millrace.arrivals (stage_id, concurrency_group, due_at)
      select v_stage.id, a.concurrency_group, min(a.queue_at)
      from millrace.attempts a
      where a.stage_id = v_stage.id
        and a.concurrency_group is not null
        and a.queue_at is not null
        and a.state = 'queued'
      group by a.concurrency_group;
    end if;
    perform millrace.count_attempts(v_stage, null);
  end loop;
end
$$;
