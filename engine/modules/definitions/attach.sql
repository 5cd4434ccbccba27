-- Attaching: what is written for each pipeline, such as `leads`
--   leads__lock(ids, wait)                   locks entities, in key order
--   leads__rows(ids, each), __sizes, __asked their rows, how large they are, what conditions read
--   leads__values(ids, new, stage)           what columns hold that the definition names
--   leads__started, __apply_outcomes         show a claim, a transition
--   leads__queued(stage, dependents, ids)    shows starting over
--   leads__intake, __deleted, __key, __since triggers

-- Writes the SQL that finds a pipeline's branch by halving the ids. One that has none comes to the
-- end of the function, which is an error, and never to another's table.
create function millrace.branches_sql(p_ids int[], p_branches text[]) returns text
immutable
as $$
declare
  v_half int := cardinality(p_ids) / 2;
begin
  if v_half = 0 then
    return format(E'if p_pipeline_id = %s then\n%s\nend if;', p_ids[1], p_branches[1]);
  end if;
  return format(E'if p_pipeline_id <= %s then\n%s\nelse\n%s\nend if;', p_ids[v_half],
    millrace.branches_sql(p_ids[:v_half], p_branches[:v_half]),
    millrace.branches_sql(p_ids[v_half + 1:], p_branches[v_half + 1:]));
end
$$;

-- Writes the functions that lead from every batch to what is written for its pipeline. Calls by
-- name would be planned at each call: one row's way through a stage costs 6 % more by them.
create function millrace.write_calls()
as $$
declare
  v_call record;
begin
  -- An older snapshot lacks pipelines that others have defined meanwhile, and would lead their
  -- batches to another's table.
  if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    raise exception 'a pipeline cannot be attached in a transaction that is %',
      current_setting('transaction_isolation')
      using errcode = 'MR004', hint = 'Begin it with: begin isolation level read committed;';
  end if;
  perform pg_advisory_xact_lock(hashtext('millrace.calls'));
  for v_call in
    select c.head, array_agg(p.id order by p.id) as ids,
      array_agg(case
        when c.shows and p.projection = 'none' then 'return false;'
        else format(c.branch, p.name)
      end order by p.id) as branches
    from (values
      ('lock_entities(p_pipeline_id int, p_ids text[], p_wait boolean) returns text[]', false,
        'return millrace.%s__lock(p_ids, p_wait);'),
      ('rows_of_entities(p_pipeline_id int, p_ids text[], p_each bigint) returns json[]', false,
        'return millrace.%s__rows(p_ids, p_each);'),
      ('show_entities(p_pipeline_id int, p_how text, p_stage text, p_changes millrace.change[], '
        'p_ids text[], p_dependents text[]) returns boolean', true,
        'return case p_how when ''settle'' then millrace.%1$s__apply_outcomes(p_stage, p_changes) '
        'when ''started'' then millrace.%1$s__started(p_stage, millrace.now(), p_ids) '
        'else millrace.%1$s__queued(p_stage, p_dependents, p_ids) end;')
    ) c(head, shows, branch)
    cross join millrace.pipelines p
    group by c.head
  loop
    perform millrace.write_function(v_call.head, format(E'begin\n%s\nend',
      millrace.branches_sql(v_call.ids, v_call.branches)));
    execute format('revoke all on function millrace.%s from public',
      regexp_replace(v_call.head, '\(.*', ''));
  end loop;
end
$$;

-- Writes the functions and triggers that tie a pipeline to its entity table. Call it again after
-- adding columns to the table; define() does.
create function millrace.attach(p_pipeline text)
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_stages text[];
  v_columns name[];
  v_key_type text;
  v_functions text;
  v_trigger record;
begin
  v_stages := array(
    select s.name
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = v_pipeline.current_version_id
    order by vs.position);
  perform millrace.check_columns(v_pipeline, v_stages);
  for v_trigger in
    select t.tgname, t.tgrelid::regclass as relation
    from pg_trigger t
    join pg_proc f on f.oid = t.tgfoid
    where f.pronamespace = 'millrace'::regnamespace
      and f.proname = any (array[v_pipeline.name || '__intake',
        v_pipeline.name || '__deleted', v_pipeline.name || '__key',
        v_pipeline.name || '__since'])
      and (t.tgrelid <> v_pipeline.entity_table
        or v_pipeline.projection = 'none' and f.proname = v_pipeline.name || '__intake'
        or v_pipeline.projection <> 'status' and f.proname = v_pipeline.name || '__since')
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger.relation);
  end loop;
  v_key_type := millrace.key_type(v_pipeline);
  perform millrace.write_function(format(
    '%I(p_ids text[], p_wait boolean default false) returns text[]',
    v_pipeline.name || '__lock'), format($f$
#variable_conflict use_variable
begin
  if p_wait then
    return array(%1$s);
  end if;
  return array(%1$s skip locked);
end $f$, format('select e.%1$I::text from %2$s e where e.%1$I = any (p_ids::%3$s[]) '
    'order by e.%1$I for no key update', v_pipeline.entity_key, v_pipeline.entity_table,
    v_key_type)));
  v_columns := array(
    select a.attname
    from pg_attribute a
    where a.attrelid = v_pipeline.entity_table
      and a.attnum > 0
      and not a.attisdropped
      and a.attname <> all (millrace.status_columns(v_pipeline.status))
      and not exists (
        select
        from millrace.stages s
        where s.pipeline_id = v_pipeline.id
          and v_pipeline.projection = 'columns'
          and a.attname = any (millrace.stage_columns(s.name)))
    order by a.attnum);
  perform millrace.write_rows(v_pipeline, v_key_type, v_columns);
  perform millrace.write_values(v_pipeline);
  perform millrace.write_row_triggers(v_pipeline);
  if v_pipeline.projection = 'columns' then
    perform millrace.write_projection(v_pipeline, v_key_type);
    perform millrace.write_intake(v_pipeline, v_key_type);
  elsif v_pipeline.projection = 'status' then
    perform millrace.write_status(v_pipeline, v_key_type);
    perform millrace.write_status_since(v_pipeline);
    perform millrace.write_status_intake(v_pipeline);
  end if;
  perform millrace.sort_ungrouped(v_pipeline.id, null);
  v_functions := (
    select string_agg(p.oid::regprocedure::text, ', ')
    from pg_proc p
    where p.pronamespace = 'millrace'::regnamespace
      -- All that begin with its name and two underscores, as a range of the index.
      and p.proname >= (v_pipeline.name || '__')::name
      and p.proname < (v_pipeline.name || '_`')::name
      and has_function_privilege('public', p.oid, 'execute'));
  if v_functions is not null then
    execute format('revoke all on function %s from public', v_functions);
  end if;
  perform millrace.write_calls();
end
$$;
