-- Starts a stage by a value that a person wrote, or starts it over. A row with a value but without
-- a run was adopted, or its runs were pruned. Such a row counts as past all earlier stages, except
-- those of a layer that it has not entered.
-- p_means: `start`, or `enter` where the value enters a layer.
-- p_fresh: the rows have no run.
create function millrace.start_at_value(
  p_pipeline_id int, p_stage_id int, p_means text, p_fresh boolean, p_was text, p_value text,
  p_ids text[]
)
as $$
  v_at record;
  v_why text;
  v_hint text;

select p.current_version_id as version_id, p.status ?| '{attempts,retry_at,error}'
    as figured,
  count(*) filter (where s.ready in (t.shows ->> 'queued', t.shows ->> 'asked')) > 1 as shared,
  (array_agg(s.id order by s.ordinal) filter (
    where s.id = t.id or s.shows ->> 'enter' = p_was))[1] as done_before,
  p_was is null or p_was in (
    select e from jsonb_array_elements_text(p.status -> 'entries') e) as entered
into v_at
from millrace.pipelines p
join millrace.shown_stages s on s.version_id = p.current_version_id
join millrace.stages t on t.id = p_stage_id
where p.id = p_pipeline_id
group by p.id;
begin
  -- The value is in the row already; the columns beside it have to be written. Where several stages
  -- are ready at one value, the first begins, and conditions decide which of them run.
  perform millrace.queue_stage(p_pipeline_id, p_stage_id, p_ids,
    case when p_fresh and p_means = 'start' and not v_at.figured then '{}' else p_ids end,
    p_start => case
      when v_at.shared or p_fresh and p_means <> 'start' then 'due'
      when p_fresh then 'written'
      else 'named'
    end,
    p_done_before => case when p_fresh and not v_at.entered then v_at.done_before end);
exception when sqlstate 'MR005' then
  get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
  raise exception 'MR005: % cannot be written to %: %', p_value,
    concat_ws(' at ', millrace.rows_named(p_ids), p_was), v_why
    using hint = coalesce((
      select format('Write %s instead; the stages after it follow by themselves.', s.ready)
      from millrace.shown_stages s
      where s.version_id = v_at.version_id
        and s.name = substring(v_hint from '^Queue (\w+) instead')), v_hint);
end;
-- Saves the value to which a question leads back when it is taken back.
update millrace.runs r
set began_from = p_was
where r.pipeline_id = p_pipeline_id and r.entity_id = any (p_ids)
  and r.status = 'running'
  and (select s.shows -> 'discard' = 'true' from millrace.stages s where s.id = p_stage_id);
$$;
