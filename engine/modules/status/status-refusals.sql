-- Names rows in an error: how many, and the first.
create function millrace.rows_named(p_ids text[]) returns text
language sql immutable
as $$
  select case
    when cardinality(p_ids) = 1 then format('1 row (%s)', p_ids[1])
    else format('%s rows (%s, …)', cardinality(p_ids), p_ids[1])
  end
$$;

-- Raises MR005 about a value that may not follow the one which rows have, with what to do instead.
create function millrace.refuse_move(
  p_pipeline_id int, p_version_id int, p_live_id int, p_until int, p_fresh boolean, p_was text,
  p_now text, p_ids text[]
)
stable
as $$
declare
  v_next text := (
    select string_agg(distinct m.to_value, ', ')
    from millrace.open_moves(p_version_id, p_live_id, p_until, p_fresh, p_was, p_ids) m);
  v_why text;
  v_hint text;
begin
  with stage as materialized (
    select s.*, s.id = p_live_id as live, l.name as live_name, l.place as live_place
    from millrace.stages_of_version(p_version_id) s
    left join millrace.stages_of_version(p_version_id) l on l.id = p_live_id
  ), remedy as (
    select 1 as rank, -a.id as place, format('Stage %s was answered with %s%s at %s.', s.name,
      millrace.done_value(s.shows, a.output), ' by ' || (a.output ->> 'decided_by'),
      to_char(a.finished_at at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"')) as says
    from millrace.attempts a
    join millrace.stages s
      on s.id = a.stage_id and s.kind = 'manual' and s.shows -> 'answers' ? p_now
    where a.state = 'completed'
      and not a.superseded
      and a.run_id = (
        select max(r.id)
        from millrace.runs r
        where r.pipeline_id = p_pipeline_id and r.entity_id = p_ids[1])
    union all
    select 2, 0, format('Write one of %s first.', string_agg(f.value, ', '))
    from stage s
    cross join lateral (
      select a.value
      from jsonb_array_elements_text(s.shows #> array['answers', p_now, 'from']) a(value)
      union all
      select m.value ->> 0
      from jsonb_array_elements(s.shows -> 'step_moves') m(value)
      where m.value ->> 1 = p_now) f
    where s.live
    having count(*) > 0
    union all
    select case when s.ready = p_now then 3 else 4 end, s.place, case
        when p_now in (s.shows ->> 'leave', s.shows ->> 'enter')
          then format('%s follows by itself.', p_now)
        when s.ready <> p_now and p_now = s.shows ->> 'started'
          then format('The engine writes %s when a worker takes stage %s.', p_now, s.name)
        when s.ready <> p_now
          then format('The engine writes %s when stage %s is done.', p_now, s.name)
        when s.place <= s.live_place then format('At %s no stage starts over.', p_was)
        else format('Stage %s has no result yet, which %s needs; to go on without it: '
          'select millrace.skip(run, %L).', s.live_name, s.name, s.live_name)
      end
    from stage s
    where case
        when s.ready <> p_now then p_now in (s.shows ->> 'started', s.shows ->> 'completed',
          s.shows ->> 'leave', s.shows ->> 'enter')
        else not s.demanded and p_live_id is not null
          and not exists (select from stage q where q.manual and q.shows -> 'answers' ? p_now)
      end
    union all
    select 5, 0, 'To stop the run: select millrace.cancel(run).'
    where p_live_id is not null
  )
  select format('%s of %s %s', p.status ->> 'column', millrace.rows_named(p_ids), case
      when p_now is null
        then format('was set to null, but a row cannot leave pipeline %s', p.name)
      when k.known is not null
        then format('was set to %s, which is no value of pipeline %s', p_now, p.name)
      else format('cannot go from %s to %s', coalesce(p_was, 'nothing'), p_now)
    end), case
      when p_now is null then 'To stop a run: select millrace.cancel(run). Delete the row to end '
        'it for good.'
      when k.known is not null then format('Known: %s.', k.known)
      when p_was is null then format('A new row begins at one of %s; leave %s out, and the '
        'pipeline begins it when it is started.', v_next, p.status ->> 'column')
      else concat_ws(' ', (select r.says from remedy r order by r.rank, r.place limit 1), case
        when v_next is not null then format('From %s people may write: %s.', p_was, v_next)
        else format('At %s nobody writes: the engine goes on from there.', p_was)
      end, (
        select format('When it is %s, people may write: %s.', s.shows ->> 'completed',
          string_agg(distinct m.to_value, ', '))
        from stage s
        cross join lateral millrace.open_moves(
          p_version_id, null, 1000000, false, s.shows ->> 'completed', null) m
        where s.live and v_next is null
        group by s.shows))
    end
  into v_why, v_hint
  from millrace.pipelines p
  cross join lateral (
    select case when not bool_or(v.value = p_now)
        then string_agg(v.value, ', ' order by v.sort_order) end as known
    from millrace.status_values v
    where v.pipeline_id = p.id and not v.retired) k
  where p.id = p_pipeline_id;
  raise exception '%', v_why using errcode = 'MR005', hint = v_hint;
end
$$;
