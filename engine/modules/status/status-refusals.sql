-- Names rows in an error: how many, and the first.
create function millrace.rows_named(p_ids text[]) returns text
language sql immutable
as $$
  select case
    when cardinality(p_ids) = 1 then format('1 row (%s)', p_ids[1])
    else format('%s rows (%s, …)', cardinality(p_ids), p_ids[1])
  end
$$;

-- Says what to do instead of writing a value; null where nothing is under way.
create function millrace.remedy_of_move(
  p_version_id int, p_live_id int, p_was text, p_now text
) returns text
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  )
  select coalesce((
      select format('Write one of %s first.', string_agg(f.value, ', '))
      from (
        select a.value
        from jsonb_array_elements_text(l.shows #> array['answers', p_now, 'from']) a(value)
        union all
        select m.value ->> 0
        from jsonb_array_elements(l.shows -> 'step_moves') m(value)
        where m.value ->> 1 = p_now) f
      having count(*) > 0), (
      select case
          when p_now in (s.shows ->> 'leave', s.shows ->> 'enter')
            then format('%s follows by itself.', p_now)
          when s.ready <> p_now and p_now = s.shows ->> 'started'
            then format('The engine writes %s when a worker takes stage %s.', p_now, s.name)
          when s.ready <> p_now
            then format('The engine writes %s when stage %s is done.', p_now, s.name)
          when s.place <= l.place then format('At %s no stage starts over.', p_was)
          else format('Stage %s has no result yet, which %s needs; to go on without it: '
            'select millrace.skip(run, %L).', l.name, s.name, l.name)
        end
      from stage s
      where p_now = s.ready
        and not s.demanded
        and l.id is not null
        and not exists (select from stage q where q.manual and q.shows -> 'answers' ? p_now)
        or s.ready <> p_now and p_now in (s.shows ->> 'started', s.shows ->> 'completed',
          s.shows ->> 'leave', s.shows ->> 'enter')
      order by p_now = s.ready desc, s.place
      limit 1),
    case when l.id is not null then 'To stop the run: select millrace.cancel(run).' end)
  from (select) one
  left join stage l on l.id = p_live_id
$$;

-- Raises MR005 about a value that may not follow the one which rows have.
create function millrace.refuse_move(
  p_pipeline_id int, p_version_id int, p_live_id int, p_until int, p_fresh boolean, p_was text,
  p_now text, p_ids text[]
)
stable
as $$
declare
  v_rows text := millrace.rows_named(p_ids);
  v_pipeline millrace.pipelines;
  v_known text[] := array(
    select v.value
    from millrace.status_values v
    where v.pipeline_id = p_pipeline_id and not v.retired
    order by v.sort_order);
  v_next text := (
    select string_agg(distinct m.to_value, ', ')
    from millrace.open_moves(p_version_id, p_live_id, p_until, p_fresh, p_was, p_ids) m);
  v_hint text;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  if p_now is null then
    raise exception '% of % was set to null, but a row cannot leave pipeline %',
      v_pipeline.status ->> 'column', v_rows, v_pipeline.name
      using errcode = 'MR005', hint = 'To stop a run: select millrace.cancel(run). '
        'Delete the row to end it for good.';
  elsif p_now <> all (v_known) then
    raise exception '% of % was set to %, which is no value of pipeline %',
      v_pipeline.status ->> 'column', v_rows, p_now, v_pipeline.name
      using errcode = 'MR005', hint = format('Known: %s.', array_to_string(v_known, ', '));
  elsif p_was is null then
    v_hint := format('A new row begins at one of %s; leave %s out, and the pipeline begins it when '
      'it is started.', v_next, v_pipeline.status ->> 'column');
  else
    v_hint := concat_ws(' ', coalesce((
        select format('Stage %s was answered with %s%s at %s.', s.name,
          millrace.done_value(s.shows, a.output), ' by ' || (a.output ->> 'decided_by'),
          to_char(a.finished_at at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"'))
        from millrace.attempts a
        join millrace.stages s
          on s.id = a.stage_id and s.kind = 'manual' and s.shows -> 'answers' ? p_now
        where a.state = 'completed'
          and not a.superseded
          and a.run_id = (
            select max(r.id)
            from millrace.runs r
            where r.pipeline_id = p_pipeline_id and r.entity_id = p_ids[1])
        order by a.id desc
        limit 1),
        millrace.remedy_of_move(p_version_id, p_live_id, p_was, p_now)),
      case
        when v_next is not null then format('From %s people may write: %s.', p_was, v_next)
        else format('At %s nobody writes: the engine goes on from there.', p_was)
      end, (
        select format('When it is %s, people may write: %s.', s.shows ->> 'completed',
          string_agg(distinct m.to_value, ', '))
        from millrace.stages s
        join millrace.open_moves(
          p_version_id, null, 1000000, false, s.shows ->> 'completed', null) m on true
        where s.id = p_live_id and v_next is null
        group by s.id));
  end if;
  raise exception '% of % cannot go from % to %', v_pipeline.status ->> 'column', v_rows,
    coalesce(p_was, 'nothing'), p_now
    using errcode = 'MR005', hint = v_hint;
end
$$;
