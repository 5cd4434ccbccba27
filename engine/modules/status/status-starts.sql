-- The projection `status`: values that start a stage, or start it over

-- Raises MR005 about a value that would start a stage which cannot start, for the reason given, and
-- names the value to write instead of the stage to queue.
create function millrace.refuse_start(
  p_pipeline_id int, p_was text, p_value text, p_ids text[], p_why text, p_hint text
) returns void
language plpgsql stable
as $$
begin
  raise exception '% cannot be written to %: %', p_value,
    concat_ws(' at ', millrace.rows_named(p_ids), p_was), p_why
    using errcode = 'MR005', hint = coalesce((
      select format('Write %s instead; the stages after it follow by themselves.', s.ready)
      from millrace.pipelines p
      cross join lateral millrace.stages_of_version(p.current_version_id) s
      where p.id = p_pipeline_id
        and s.name = substring(p_hint from '^Queue (\w+) instead')), p_hint);
end
$$;

-- Says whether a written value names the one stage that it starts. A value at which several stages
-- are ready names none: it begins the first of them, and their conditions decide which one runs.
create function millrace.names_stage(p_pipeline_id int, p_stage_id int)
returns boolean
language sql stable
as $$
  select not exists (
    select
    from millrace.pipelines p
    join millrace.version_stages vs on vs.version_id = p.current_version_id
    join millrace.stages o on o.id = vs.stage_id
    join millrace.stages s on s.id = p_stage_id
    where p.id = p_pipeline_id
      and o.id <> s.id
      and coalesce(o.shows ->> 'queued', o.shows ->> 'asked')
        = coalesce(s.shows ->> 'queued', s.shows ->> 'asked'))
$$;

-- Keeps the value at which entities were when a question was begun that may be taken back.
create function millrace.note_beginning(
  p_pipeline_id int, p_stage_id int, p_was text, p_ids text[]
) returns void
language plpgsql
as $$
begin
  if (
      select s.shows -> 'discard' = 'true'
      from millrace.stages s
      where s.id = p_stage_id) then
    update millrace.runs r
    set began_from = p_was
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and (r.status = 'running') is true;
  end if;
end
$$;

-- Starts a stage, or starts it over, for entities that had a run and whose row says so.
create function millrace.start_at_value(
  p_pipeline_id int, p_stage_id int, p_was text, p_value text, p_ids text[]
) returns void
language plpgsql
as $$
declare
  v_why text;
  v_hint text;
begin
  begin
    perform millrace.queue_stage(p_pipeline_id, p_stage_id, p_ids, p_ids,
      p_by_name => millrace.names_stage(p_pipeline_id, p_stage_id));
  exception when sqlstate 'MR005' then
    get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
    perform millrace.refuse_start(p_pipeline_id, p_was, p_value, p_ids, v_why, v_hint);
  end;
  perform millrace.note_beginning(p_pipeline_id, p_stage_id, p_was, p_ids);
end
$$;

-- Finds the stage before which entities that show a value, and of which no run is known, have been
-- through all: the stage that is to begin, or the first of the layer at whose gate they wait; none
-- where they are new, or only entered.
create function millrace.done_until(p_pipeline_id int, p_stage_id int, p_was text)
returns int
language sql stable
as $$
  select s.id
  from millrace.pipelines p
  cross join lateral millrace.stages_of_version(p.current_version_id) s
  where p.id = p_pipeline_id
    and p_was is not null
    and p_was not in (select e #>> '{}' from jsonb_array_elements(p.status -> 'entries') e)
    and (s.id = p_stage_id or s.shows ->> 'enter' = p_was)
  order by s.place
  limit 1
$$;

-- Begins entities of which no run is known. Stages before the one that was written are left out
-- where the row brings their output along; where one has work to do, the value is refused. From the
-- gate of a layer a new row goes by all stages, and must come to that layer or behind it. A row
-- that had a value was there before: it was adopted, or its runs have been pruned. It has been
-- through the stages before, but not through those of a layer at whose gate it waits; and where it
-- only entered, through none.
create function millrace.begin_at_value(
  p_pipeline_id int, p_stage_id int, p_means text, p_was text, p_value text, p_ids text[]
) returns void
language plpgsql
as $$
declare
  v_stage_id int := case
    when p_means = 'start' or p_was is not null then p_stage_id
    else millrace.first_stage(p_pipeline_id)
  end;
  -- Written is the value itself, but not what may stand beside it.
  v_shown boolean := p_means = 'start' and (
    select not p.status ?| array['attempts', 'retry_at', 'error']
    from millrace.pipelines p
    where p.id = p_pipeline_id);
  v_why text;
  v_hint text;
  v_early record;
begin
  begin
    perform millrace.queue_stage(p_pipeline_id, v_stage_id, p_ids,
      case when v_shown then '{}' else p_ids end,
      p_by_name => p_means = 'start' and not millrace.begins_runs(p_pipeline_id, v_stage_id)
        and millrace.names_stage(p_pipeline_id, v_stage_id),
      p_done_before => millrace.done_until(p_pipeline_id, v_stage_id, p_was));
  exception when sqlstate 'MR005' then
    get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
    perform millrace.refuse_start(p_pipeline_id, p_was, p_value, p_ids, v_why, v_hint);
  end;
  if p_means = 'start' then
    perform millrace.note_beginning(p_pipeline_id, p_stage_id, p_was, p_ids);
    return;
  end if;
  select min(s.name) as stage, min(s.shows ->> 'queued') as ready,
    array_agg(st.id order by st.place) as ids
  into v_early
  from millrace.standings(p_pipeline_id, p_ids) st
  join millrace.stages s on s.id = st.live_id
  join millrace.version_stages vs on vs.version_id = st.version_id and vs.stage_id = p_stage_id
  where st.until < vs.position;
  if v_early.ids is not null then
    raise exception '% cannot be written to %: stage % comes first, and the row does not bring '
      'its output along',
      p_value, millrace.rows_named(v_early.ids), v_early.stage
      using errcode = 'MR005',
        hint = format('Write %s instead, or give the row its output.', v_early.ready);
  end if;
end
$$;
