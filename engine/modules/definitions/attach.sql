-- The functions and triggers that attach() writes for each pipeline, under its name and one of
-- these endings:
--
--   __lock             locks entities in key order
--   __rows, __sizes    the rows as handlers get them; their bytes in storage
--   __asked            the rows as conditions on the row read them
--   __values           metadata, trace, tenant and concurrency key of the rows
--   __started, __queued, __apply_outcomes    the projection's updates of the rows
--   __intake, __since  triggers' functions: the status that a user writes, and when it began

-- Returns the body of project_entities(). The function sets the depth of triggers, by which the
-- intake triggers know the engine's update, and leaves copies out: none shows on a row.
create function millrace.projecting_body() returns text
immutable
as $$
return $f$
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_said text;
  v_written boolean;
begin
  if p_how = 'apply' and (p_changes is null
    or current_setting('millrace.projection_off', true) is not distinct from 'on') then
    return false;
  elsif exists (
      select from millrace.runs r
      where r.pipeline_id = p_pipeline_id and r.copy_key is not null) then
    p_changes := array(select c from unnest(p_changes) c
      where millrace.row_key(p_pipeline_id, c.entity_id) = c.entity_id);
    p_ids := nullif(array(select i from unnest(p_ids) i
      where millrace.row_key(p_pipeline_id, i) = i), '{}');
  end if;
  v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
  case p_pipeline_id
%s  end case;
  v_said := set_config('millrace.projecting', v_outer, true);
  perform millrace.hook_entities_changed(p_pipeline_id, p_ids, p_changes);
  return v_written;
end $f$;
$$;

-- Writes lock_entities(), rows_of_entities(), values_of_entities(), sizes_of_entities() and
-- project_entities(). Each has a branch for every pipeline that calls the pipeline's own function.
-- A call by a name in a variable would be planned anew each time, which took 6 % of a row's way
-- through a stage.
create function millrace.write_calls()
as $$
  c_body constant text := $f$
declare
  v_ids text[] := p_ids;
begin
  if array_to_string(p_ids, ' ') like '%%copy %%' then
    p_ids := array(select millrace.row_key(p_pipeline_id, i) from unnest(p_ids) i);
  end if;
  case p_pipeline_id
%s    else null;
  end case;
end $f$;
begin
  -- The snapshot of such a transaction lacks pipelines that others have defined since it began.
  if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    raise exception 'MR004: a pipeline cannot be attached in a transaction that is %',
      current_setting('transaction_isolation')
      using hint = 'Begin it with: begin isolation level read committed;';
  end if;
  perform pg_advisory_xact_lock(hashtext('millrace.calls'));
  perform millrace.write_function(null, c.head, format(c.body,
    string_agg(format(E'    when %s then %s %s;\n', p.id, c.gives, case
        when c.gives <> 'return' and p.projection = 'none' then 'false'
        else format(c.branch, p.name)
      end), '' order by p.id)))
  from (values
    ('lock_entities(p_pipeline_id int, p_ids text[], p_wait boolean) returns text[]', 'return',
      'millrace.%s__lock(p_ids, p_wait)', c_body),
    ('rows_of_entities(p_pipeline_id int, p_ids text[], p_each bigint) returns json[]', 'return',
      'case when p_ids = v_ids then millrace.%1$s__rows(p_ids, p_each) else millrace.edited_rows('
      'p_pipeline_id, v_ids, millrace.%1$s__rows(p_ids, p_each)) end', c_body),
    ('values_of_entities(p_pipeline_id int, p_ids text[], p_new boolean, p_stage text) '
      'returns millrace.row_values', 'return',
      'millrace.%s__values(p_ids, p_new, p_stage)', c_body),
    ('sizes_of_entities(p_pipeline_id int, p_ids text[]) returns bigint[]', 'return',
      'millrace.%s__sizes(p_ids)', c_body),
    ('project_entities(p_pipeline_id int, p_how text, p_stage text, p_changes millrace.change[], '
      'p_ids text[], p_dependents text[]) returns boolean', 'v_written :=',
      'case p_how when ''apply'' then millrace.%1$s__apply_outcomes(p_stage, p_changes) '
      'when ''started'' then millrace.%1$s__started(p_stage, millrace.now(), p_ids) '
      'else millrace.%1$s__queued(p_stage, p_dependents, p_ids) end',
      millrace.projecting_body())) c(head, gives, branch, body)
  cross join millrace.pipelines p
  group by c.head, c.body;
end
$$;

-- Writes the functions and triggers that tie a pipeline to its entity table. Call it again after
-- you add columns to the table; define() calls it, too.
create function millrace.attach(p_pipeline text)
-- attachment_fault() searches the functions for the names of columns as they are quoted here.
set quote_all_identifiers = off
as $$
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_key_type text := millrace.key_type(v_pipeline);
  v_statement text;

if not exists (select from pg_class where oid = v_pipeline.entity_table) then
  raise exception 'pipeline %: %', p_pipeline, millrace.attachment_fault(v_pipeline)
    using errcode = 'MR004';
end if;
perform millrace.check_columns(v_pipeline);
for v_statement in
  select format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass)
  from unnest('{inserted,updated,begun,since,deleted,truncated,key}'::text[]) k(kind)
  join pg_trigger t on t.tgname = format('millrace_%s_%s', v_pipeline.name, k.kind)::name
  join pg_proc f on f.oid = t.tgfoid and f.pronamespace = 'millrace'::regnamespace
  where t.tgrelid <> v_pipeline.entity_table
    or k.kind in ('inserted', 'updated') and v_pipeline.projection = 'none'
    or k.kind in ('begun', 'since') and v_pipeline.status #> '{history,since}' is null
loop
  execute v_statement;
end loop;
perform millrace.write_function(v_pipeline.name,
  'lock(p_ids text[], p_wait boolean default false) returns text[]', format($f$
begin
  if p_wait then
    return array(%1$s);
  end if;
  return array(%1$s skip locked);
end $f$, format('select e.%1$I::text from %2$s e where e.%1$I = any (p_ids::%3$s[]) '
  'order by e.%1$I for no key update', v_pipeline.entity_key, v_pipeline.entity_table,
  v_key_type)));
perform millrace.write_rows(v_pipeline, v_key_type);
perform millrace.write_values(v_pipeline);
if v_pipeline.projection = 'columns' then
  perform millrace.write_projection(v_pipeline, v_key_type);
  perform millrace.write_intake(v_pipeline, v_key_type);
elsif v_pipeline.projection = 'status' then
  perform millrace.write_status(v_pipeline, v_key_type);
  perform millrace.write_status_intake(v_pipeline);
end if;
perform millrace.write_triggers(v_pipeline);
perform millrace.write_calls();
perform millrace.sort_ungrouped(v_pipeline.id, null);
v_statement := (
  select format('revoke all on function %s from public',
    string_agg(p.oid::regprocedure::text, ', '))
  from pg_proc p
  where p.pronamespace = 'millrace'::regnamespace
    and case when p.proname ^@ (v_pipeline.name || '__')
        or p.proname ~ '^(lock|rows_of|sizes_of|values_of|project)_entities$'
      then has_function_privilege('public', p.oid, 'execute') end
  having count(*) > 0);
if v_statement is not null then
  execute v_statement;
end if;
$$;
