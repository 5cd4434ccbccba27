-- What attach() writes to show a pipeline's runs on its entities

-- Writes one branch of a pipeline's __apply_outcomes function. By "= any (array[…])" each change
-- looks its row up; "=" would let Postgres join by statistics, which are wrong where the table has
-- just been filled: each row with each change.
create function millrace.projection_branch(
  p_pipeline millrace.pipelines, p_stage_id int, p_stage text
) returns text
stable
as $$
declare
  c_fields constant text[] := array['status', 'job_id', 'result', 'error', 'retry_count',
    'started_at', 'completed_at'];
  v_key_type text := millrace.key_type(p_pipeline);
  v_own text;
  v_followers text;
begin
  v_own := (
    select string_agg(format('%I = c.%I', u.name, u.field), ', ' order by u.place)
    from unnest(millrace.stage_columns(p_stage), c_fields) with ordinality u(name, field, place));
  v_followers := (
    select string_agg(distinct format(
      ', %1$I = case when %2$L = any (c.queued) then ''queued'' else e.%1$I end',
      n.name || '_status', n.name), '')
    from millrace.version_stages vs
    join millrace.stages n on n.id = vs.stage_id
    where n.pipeline_id = p_pipeline.id
      and p_stage_id = any (vs.needs)
      and millrace.has_columns(p_pipeline, n.name));
  return format($branch$
  when %L then
    update %s e set %s%s
    from unnest(p_changes) c where e.%I = any (array[c.entity_id::%s]);$branch$,
    p_stage, p_pipeline.entity_table, v_own, coalesce(v_followers, ''),
    p_pipeline.entity_key, v_key_type);
end
$$;

-- Writes the condition that some column of a stage, which a fresh start must clear, is not clear.
create function millrace.dirty_condition(
  p_row text, p_stage text, p_with_status boolean
) returns text
immutable
as $$
begin
  return (
    select string_agg(format(
      case
        when c = p_stage || '_retry_count' then '%I.%I <> 0'
        when c = p_stage || '_status' then '%I.%I <> ''pending'''
        else '%I.%I is not null'
      end, p_row, c), ' or ' order by place)
    from unnest(millrace.stage_columns(p_stage)) with ordinality u(c, place)
    where p_with_status or c <> p_stage || '_status');
end
$$;

-- Creates a function that takes the branch of one stage, and does nothing for any other. It finds
-- rows by their keys, also in a plan of a time when there were few.
create function millrace.write_by_stage(
  p_function text, p_arguments text, p_branches text
)
as $write$
begin
  perform millrace.write_function(
    format('%I(p_stage text, %s) returns boolean set enable_seqscan = off',
      p_function, p_arguments), format($f$
#variable_conflict use_variable
begin
  case p_stage%s
  else return false;
  end case;
  return true;
end $f$, p_branches));
end
$write$;

-- Creates the __apply_outcomes, __started and __queued functions of a pipeline.
create function millrace.write_projection(
  p_pipeline millrace.pipelines, p_key_type text
)
as $write$
declare
  v_stages millrace.stages[] := array(
    select s from millrace.stages s
    where s.pipeline_id = p_pipeline.id and millrace.has_columns(p_pipeline, s.name)
    order by s.id);
begin
  perform millrace.write_by_stage(p_pipeline.name || '__apply_outcomes',
    'p_changes millrace.change[]', (
      select string_agg(millrace.projection_branch(p_pipeline, s.id, s.name), '' order by s.id)
      from unnest(v_stages) s));
  perform millrace.write_by_stage(p_pipeline.name || '__started',
    'p_now timestamptz, p_ids text[]', (
      select string_agg(format($b$
  when %1$L then
    with free as (
      select e.ctid from %3$s e
      where e.%2$I = any (p_ids::%4$s[])
      order by e.%2$I for no key update skip locked)
    update %3$s e set %5$I = 'started', %6$I = p_now
    from free
    where e.ctid = free.ctid;$b$,
        s.name, p_pipeline.entity_key, p_pipeline.entity_table, p_key_type,
        s.name || '_status', s.name || '_started_at'), '' order by s.id)
      from unnest(v_stages) s));
  perform millrace.write_function(format(
    '%I(p_stage text, p_dependents text[], p_ids text[]) returns boolean',
    p_pipeline.name || '__queued'), format($f$
#variable_conflict use_variable
begin
  -- Without a stage it only clears, and leaves rows alone that are clear.
  update %s e set %s
  where e.%I = any (p_ids::%s[]) and (p_stage is not null or %s);
  return true;
end $f$, p_pipeline.entity_table,
    (select string_agg(format('%1$I = case when p_stage = %2$L then ''queued'' '
        'when %2$L = any (p_dependents) then ''pending'' else e.%1$I end, ',
        s.name || '_status', s.name) || (
          select string_agg(format(
            '%1$I = case when %2$L = any (p_stage || p_dependents) then %3$s else e.%1$I end',
            c, s.name, case when c = s.name || '_retry_count' then '0' else 'null' end), ', ')
          from unnest((millrace.stage_columns(s.name))[2:]) c), E',\n    ' order by s.id)
     from unnest(v_stages) s),
    p_pipeline.entity_key, p_key_type,
    (select string_agg(millrace.dirty_condition('e', s.name, true), ' or ' order by s.id)
     from unnest(v_stages) s)));
end
$write$;
