-- Editing: a person gives another result of a stage, or other values of the row, and the run goes
-- on from there, or a copy of it. The stage's form has the schemas that check the new values.

-- Saves the form of a stage, {"result": …, "row": …}: the schemas of its result and of the columns
-- that people may edit. The stage's function calls this when it starts.
create function public.millrace_tell_form(p_pipeline text, p_stage text, p_form jsonb)
as $$
update millrace.stages s
set form = p_form
where s.id = (millrace.stage_named(p_pipeline, p_stage)).id and s.form is distinct from p_form;
return '{}';
$$;

-- Returns the columns of a run's row that p_columns names. With p_writes it writes the values of
-- p_columns into them instead, and returns null. A copy keeps these values to itself, in the form
-- that the row would give them.
create function millrace.row_part(
  p_run millrace.runs, p_columns jsonb, p_writes boolean default false
) returns jsonb
as $$
  v_row jsonb;
  v_pipeline millrace.pipelines := (
    select p from millrace.pipelines p where p.id = p_run.pipeline_id);
  v_on_row constant boolean := p_writes and p_run.copy_key is null;

execute format(case
  when v_on_row then 'update %s e set %s from jsonb_populate_record(null::%1$s, $2) r '
    'where e.%3$I = $1::%4$s returning null'
  when p_writes then
    'select to_jsonb(o) from (select %2$s from jsonb_populate_record(null::%1$s, $2) e) o'
  else 'select to_jsonb(o) from (select %2$s from %1$s e where e.%3$I = $1::%4$s) o' end,
  v_pipeline.entity_table, (
    select string_agg(format(case when v_on_row then '%1$I = r.%1$I' else 'e.%I' end, c), ', ')
    from jsonb_object_keys(p_columns) c), v_pipeline.entity_key, millrace.key_type(v_pipeline))
into v_row
using millrace.key_of(p_run), p_columns;
if p_writes then
  update millrace.runs r
  set edited = coalesce(r.edited, '{}') || v_row
  where r.id = p_run.id and not v_on_row;
  return null;
end if;
return (millrace.edited_rows(
  p_run.pipeline_id, array[p_run.entity_id], array[v_row::json]))[1];
$$;

-- Gives a stage of a locked run another result, and starts the stages that depend on it over; or
-- gives the row other values, and starts the stage over, too. Raises MR004 where the edited attempt
-- is no longer the stage's newest, or the run has a newer attempt than the caller saw. Raises MR002
-- where the form refuses the value. With copy, all of that happens to a copy of the run.
-- did: the values before and after, and the run of the copy.
create function millrace.edit_one(
  p_run millrace.runs, p_stage millrace.version_stages, p_do jsonb, out wake int[], out did jsonb
)
as $$
  v_part text := case when p_do ? 'row' then 'row' else 'result' end;
  v_new jsonb := p_do -> v_part;
  v_stage millrace.stages := (
    select s from millrace.stages s where s.id = p_stage.stage_id);
  v_was millrace.attempts := millrace.newest_attempt(p_run.id, p_stage.stage_id);

if v_was.id is distinct from (p_do -> 'attempt')::bigint or exists (
    select from millrace.attempts a
    where a.run_id = p_run.id and a.id > (p_do -> 'last')::bigint) then
  raise exception 'MR004: run % has gone on since: the newest attempt of stage % is %',
    p_run.id, v_stage.name, coalesce(v_was.id::text, 'none')
    using hint = 'Look at the run again; nothing was changed.';
end if;
perform millrace.refuse(coalesce(
  case when p_do ?& '{row,result}' then 'row stands beside result, but one is edited at a time' end,
  millrace.schema_fault(coalesce(v_stage.form -> v_part, case v_part
    when 'row' then '{"additionalProperties": false, "minProperties": 1}'
    else '{}' end::jsonb), v_new, v_part)),
  'Correct it by the form that millrace_attempt() shows.', 'MR002');
did := jsonb_build_object('after', millrace.payload_json(v_new), 'before', millrace.payload_json(
  case v_part when 'row' then millrace.row_part(p_run, v_new) else v_was.output end));
if p_do @> '{"copy": true}' then
  insert into millrace.runs (pipeline_id, version_id, entity_id, metadata_id, quota_of, quota_key,
    given, created_at, copy_key, copy_of, edited)
  values (p_run.pipeline_id, p_run.version_id,
    format('copy %s of %s', left(gen_random_uuid()::text, 8), millrace.key_of(p_run)),
    p_run.metadata_id, p_run.quota_of, p_run.quota_key, p_run.given, v_now, millrace.key_of(p_run),
    p_run.id, p_run.edited)
  returning * into p_run;
  perform millrace.copy_earlier_results(p_stage, array[p_run.id]);
  did := did || jsonb_build_object('copy', p_run.id);
end if;
perform millrace.row_part(p_run, v_new, true) where v_part = 'row';
wake := (millrace.reset_one(p_run, p_stage)).wake;
if v_part = 'result' then
  perform millrace.lock_stage(p_run.id, v_stage.name, 'complete');
  wake := wake || (millrace.end_stage(p_run, p_stage, p_do)).wake;
end if;
$$;
