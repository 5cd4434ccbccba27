-- Returns the SQL condition that some column of a stage is not clear.
-- p_row: the alias of the row.
-- p_with_status: a status other than pending is not clear either.
create function millrace.dirty_condition(
  p_row text, p_stage text, p_with_status boolean
) returns text
immutable
as $$
return (
  select format('num_nonnulls(%s) > 0 or %s.%I <> 0',
    string_agg(format('%s.%I', p_row, c), ', ') filter (where c !~ '_(status|retry_count)$'),
    p_row, p_stage || '_retry_count')
  from unnest(millrace.stage_columns(p_stage)) c)
  || case when p_with_status
    then format(' or %s.%I <> ''pending''', p_row, p_stage || '_status') else '' end;
$$;

-- Creates the __apply_outcomes, __started and __queued functions of a pipeline. They find each row
-- by its key.
create function millrace.write_projection(
  p_pipeline millrace.pipelines, p_key_type text
)
as $write$
  c_fields constant text[] := array['status', 'job_id', 'result', 'error', 'retry_count',
    'started_at', 'completed_at'];
  c_by_stage constant text := $f$
begin
  case p_stage%s
  else return false;
  end case;
  return true;
end $f$;
  v_names text[] := array[p_pipeline.entity_table::text, quote_ident(p_pipeline.entity_key),
    p_key_type];
  v_stages millrace.stages[] := array(
    select s from millrace.stages s
    where s.pipeline_id = p_pipeline.id and millrace.has_columns(p_pipeline, s.name)
    order by s.id);
begin
  perform millrace.write_function(p_pipeline.name, 'apply_outcomes(p_stage text, '
    'p_changes millrace.change[]) returns boolean set enable_seqscan = off', format(c_by_stage, (
      select string_agg(format($b$
  when %4$L then
    update %1$s e set %5$s%6$s
    from unnest(p_changes) c where e.%2$s = any (array[c.entity_id::%3$s]);$b$,
        v_names[1], v_names[2], v_names[3], s.name, (
          select string_agg(format('%I = c.%I', u.name, u.field), ', ' order by u.ordinal)
          from unnest(millrace.stage_columns(s.name), c_fields)
            with ordinality u(name, field, ordinal)), (
          select string_agg(distinct format(
            ', %1$I = case when %2$L = any (c.queued) then ''queued'' else e.%1$I end',
            n.name || '_status', n.name), '')
          from unnest(v_stages) n
          join millrace.version_stages vs on vs.stage_id = n.id and s.id = any (vs.needs))),
        '' order by s.id)
      from unnest(v_stages) s)));
  perform millrace.write_function(p_pipeline.name, 'started(p_stage text, p_now timestamptz, '
    'p_ids text[]) returns boolean set enable_seqscan = off', format(c_by_stage, (
      select string_agg(format($b$
  when %4$L then
    with free as (
      select e.ctid from %1$s e
      where e.%2$s = any (p_ids::%3$s[])
      order by e.%2$s for no key update skip locked)
    update %1$s e set %5$I = 'started', %6$I = p_now
    from free
    where e.ctid = free.ctid;$b$, v_names[1], v_names[2], v_names[3], s.name,
        s.name || '_status', s.name || '_started_at'), '' order by s.id)
      from unnest(v_stages) s)));
  perform millrace.write_function(p_pipeline.name, 'queued(p_stage text, p_dependents text[], '
    'p_ids text[]) returns boolean', format($f$
begin
  -- Without a stage the update only clears columns, and leaves out rows whose columns are clear.
  update %1$s e set %4$s
  where e.%2$s = any (p_ids::%3$s[]) and (p_stage is not null or %5$s);
  return true;
end $f$, v_names[1], v_names[2], v_names[3], (
      select string_agg(format(case u.ordinal
          when 1 then '%1$I = case when p_stage = %2$L then ''queued'' '
            'when %2$L = any (p_dependents) then ''pending'' else e.%1$I end'
          else '%1$I = case when %2$L = any (p_stage || p_dependents) then %3$s else e.%1$I end'
        end, u.name, s.name, case u.ordinal when 5 then '0' else 'null' end), ', '
        order by s.id, u.ordinal)
      from unnest(v_stages) s
      cross join unnest(millrace.stage_columns(s.name)) with ordinality u(name, ordinal)), (
      select string_agg(format('%L = any (p_dependents) and (%s)', s.name,
        millrace.dirty_condition('e', s.name, true)), ' or ' order by s.id)
      from unnest(v_stages) s)));
end
$write$;
