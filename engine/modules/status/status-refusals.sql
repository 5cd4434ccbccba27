-- The projection `status`: why a value is refused, and what to do instead

-- Names rows in an error: how many, and the first.
create function millrace.rows_named(p_ids text[]) returns text
language sql immutable
as $$
  select case
    when cardinality(p_ids) = 1 then format('1 row (%s)', p_ids[1])
    else format('%s rows (%s, …)', cardinality(p_ids), p_ids[1])
  end
$$;

-- Says what to do instead of writing a value, by what the value means.
create function millrace.remedy_of_move(
  p_version_id int, p_live_id int, p_was text, p_now text
) returns text
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  )
  select coalesce(
    coalesce((
        select format('Write one of %s first: %s answers from there.',
          string_agg(f #>> '{}', ', '), p_now)
        from jsonb_array_elements(l.shows #> array['answers', p_now, 'from']) f
        having count(*) > 0), (
        select format('Write one of %s first: %s is written from there.',
          string_agg(m ->> 0, ', '), p_now)
        from jsonb_array_elements(l.shows -> 'step_moves') m
        where m ->> 1 = p_now
        having count(*) > 0)),
    (
      select case
          when s.ready = p_now and s.place <= l.place
            then format('At %s no stage starts over.', p_was)
          when s.ready = p_now then format(
            'Stage %s has no result yet, which %s needs; to go on without it: '
            'select millrace.skip(run, %L).', l.name, s.name, l.name)
          when s.shows ->> 'started' = p_now
            then format('The engine writes %s when a worker takes stage %s.', p_now, s.name)
          when s.shows ->> 'completed' = p_now
            then format('The engine writes %s when stage %s is done.', p_now, s.name)
          else format('%s follows by itself.', p_now)
        end
      from stage s
      where p_now = s.ready
        and not s.demanded
        and p_now not in (
          select jsonb_object_keys(q.shows -> 'answers') from stage q where q.manual)
        and l.id is not null
        or s.ready <> p_now and p_now in (s.shows ->> 'started', s.shows ->> 'completed',
          s.shows ->> 'leave', s.shows ->> 'enter')
      order by p_now = s.ready desc, s.place
      limit 1),
    case when l.id is not null then 'To stop the run: select millrace.cancel(run).' end)
  from (select 1) one
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
  v_column text;
  v_pipeline text;
  v_known text := (
    select string_agg(v.value, ', ' order by v.sort_order)
    from millrace.status_values v
    where v.pipeline_id = p_pipeline_id and not v.retired);
  v_next text := (
    select string_agg(distinct m.to_value, ', ')
    from millrace.open_moves(p_version_id, p_live_id, p_until, p_fresh, p_was) m
    where m.means <> 'discard'
      or millrace.leads_back(p_pipeline_id, p_ids, m.to_value));
begin
  select p.status ->> 'column', p.name
  into v_column, v_pipeline
  from millrace.pipelines p
  where p.id = p_pipeline_id;
  if p_now is null then
    raise exception '% of % was set to null, but a row cannot leave pipeline %',
      v_column, v_rows, v_pipeline
      using errcode = 'MR005', hint = 'To stop a run: select millrace.cancel(run). '
        'Delete the row to end it for good.';
  elsif not exists (
      select
      from millrace.status_values v
      where v.pipeline_id = p_pipeline_id and v.value = p_now and not v.retired) then
    raise exception '% of % was set to %, which is no value of pipeline %',
      v_column, v_rows, p_now, v_pipeline
      using errcode = 'MR005', hint = format('Known: %s.', v_known);
  end if;
  raise exception '% of % cannot go from % to %',
    v_column, v_rows, coalesce(p_was, 'nothing'), p_now
    using errcode = 'MR005', hint = concat_ws(' ',
      case
        when p_was is null then format('A new row begins at one of %s; leave %s out, and the '
          'pipeline begins it when it is started.', v_next, v_column)
        else coalesce((
          select format('Stage %s was answered with %s%s at %s.', s.name,
            millrace.done_value(s.shows, a.output), ' by ' || (a.output ->> 'decided_by'),
            to_char(a.finished_at at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"'))
          from (
            select r.id
            from millrace.runs r
            where r.pipeline_id = p_pipeline_id and r.entity_id = p_ids[1]
            order by r.id desc
            limit 1) r
          join millrace.attempts a
            on a.run_id = r.id and a.state = 'completed' and not a.superseded
          join millrace.stages s
            on s.id = a.stage_id and s.kind = 'manual' and s.shows -> 'answers' ? p_now
          order by a.id desc
          limit 1),
          millrace.remedy_of_move(p_version_id, p_live_id, p_was, p_now))
      end,
      case
        when p_was is null then null
        when v_next is null then concat_ws(' ', format(
          'At %s nobody writes: the engine goes on from there.', p_was), (
          select format('When it is %s, people may write: %s.', s.shows ->> 'completed',
            string_agg(distinct m.to_value, ', '))
          from millrace.stages s
          join millrace.open_moves(
            p_version_id, null, 1000000, false, s.shows ->> 'completed') m on true
          where s.id = p_live_id
          group by s.id
          having count(*) > 0))
        else format('From %s people may write: %s.', p_was, v_next)
      end);
end
$$;
