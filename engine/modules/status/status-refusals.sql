-- Returns how an error names rows: how many, and the first key.
create function millrace.rows_named(p_ids text[]) returns text
immutable
as $$
select case
  when cardinality(p_ids) = 1 then format('1 row (%s)', p_ids[1])
  else format('%s rows (%s, …)', cardinality(p_ids), p_ids[1])
end
$$;

-- Raises MR005 about a value that may not follow the rows' value. The hint says what may be
-- written.
-- p_live_id: the stage that is live; null without one.
-- p_until: the position of the last stage that may start over.
-- p_began_from: the value from which the live run began; null without one.
-- p_was, p_now: the value of the rows, and the value that a person wrote.
create function millrace.refuse_move(
  p_pipeline_id int, p_version_id int, p_live_id int, p_until int, p_began_from text, p_was text,
  p_now text, p_ids text[]
)
stable
as $$
  v_pipeline millrace.pipelines := (
    select p from millrace.pipelines p where p.id = p_pipeline_id);
  v_known text := (
    select string_agg(v.value, ', ' order by v.sort_order)
    from millrace.status_values v
    where v.pipeline_id = p_pipeline_id and not v.retired
    having not bool_or(v.value = p_now));
  v_next text := (
    select string_agg(distinct m.to_value, ', ')
    from millrace.open_moves(p_version_id, p_live_id, p_until, p_began_from, p_was) m);
  v_remedy text;

with stage as materialized (
  select s.*, s.id = p_live_id as live
  from millrace.shown_stages s
  where s.version_id = p_version_id
)
select concat_ws(' ', coalesce((
    select format('Stage %s was answered with %s%s at %s.', s.name,
      millrace.done_value(s.shows, a.output), ' by ' || (a.output ->> 'decided_by'),
      to_char(a.finished_at at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"'))
    from millrace.attempts a
    join millrace.stages s on s.id = a.stage_id and s.shows -> 'answers' ? p_now
    where a.state = 'completed' and not a.superseded
      and a.run_id = (
        select max(r.id + 0)
        from millrace.runs r
        where r.pipeline_id = p_pipeline_id and r.entity_id = p_ids[1])
    order by a.id + 0 desc
    limit 1), (
    select format('Write one of %s first.', string_agg(distinct m.from_value, ', '))
    from millrace.version_moves m
    where m.version_id = p_version_id and m.at_stage_id = p_live_id
      and m.to_value = p_now
      and m.means in ('answer', 'interim')
      and not m.retired
    having count(*) > 0), (
    select case
        when s.ordinal <= l.ordinal then format('At %s no stage starts over.', p_was)
        else format('Stage %s has no result yet, which %s needs; to go on without it: '
          'select millrace.skip(run, %L).', l.name, s.name, l.name)
      end
    from stage s
    join stage l on l.live
    where s.ready = p_now and not s.demanded
      and not exists (select from stage q where q.shows -> 'answers' ? p_now)
    order by s.ordinal
    limit 1), (
    select format('The engine writes %s by itself, as stage %s goes on.', p_now, s.name)
    from stage s
    where s.ready <> p_now
      and p_now in (s.shows ->> 'started', s.shows ->> 'completed', s.shows ->> 'leave',
        s.shows ->> 'enter')
    order by s.ordinal
    limit 1),
    case when p_live_id is not null then 'To stop the run: select millrace.cancel(run).' end),
  case when v_next is null then format('At %s nobody writes: the engine goes on from there.',
    p_was) else format('From %s people may write: %s.', p_was, v_next) end, (
    select format('When it is %s, people may write: %s.', s.shows ->> 'completed',
      string_agg(distinct m.to_value, ', '))
    from stage s
    cross join millrace.open_moves(
      p_version_id, null, 1000000, null, s.shows ->> 'completed') m
    where s.live and v_next is null
    group by s.shows))
into v_remedy;
raise exception 'MR005: % of % %', v_pipeline.status ->> 'column', millrace.rows_named(p_ids), case
    when p_now is null then
      'was set to null, but a row cannot leave pipeline ' || v_pipeline.name
    when v_known is not null then
      format('was set to %s, which is no value of pipeline %s', p_now, v_pipeline.name)
    else format('cannot go from %s to %s', coalesce(p_was, 'nothing'), p_now)
  end
  using hint = case
    when p_now is null then 'Cancel its run, or delete the row to end it for good.'
    when v_known is not null then 'Known: ' || v_known || '.'
    when p_was is null then format('A new row begins at one of %s; leave %s out, and the '
      'pipeline begins it when it is started.', v_next, v_pipeline.status ->> 'column')
    else v_remedy
  end;
$$;
