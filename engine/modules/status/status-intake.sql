-- What values mean that people write, by the moves of the version that a row's live run has, else
-- of the current one. The caller, an intake trigger, holds the entities.

-- Lists the values that people may write at a value, by where the rows' runs stand; fresh: no run
-- is known. A question is taken back by the value from which it began.
create function millrace.open_moves(
  p_version_id int, p_live_id int, p_until int, p_fresh boolean, p_was text, p_ids text[]
) returns table (to_value text, means text, stage_id int, declared boolean, place int)
stable
as $$
#variable_conflict use_column
begin
  return query
    select v.to_value, v.means, v.stage_id, v.declared, vs.position
    from millrace.version_moves v
    left join millrace.version_stages vs
      on vs.version_id = v.version_id and vs.stage_id = v.stage_id
    where v.version_id = p_version_id
      and v.by = 'person'
      and not v.retired
      and v.from_value is not distinct from p_was
      and (v.at_stage_id is null or v.at_stage_id = p_live_id)
      and (v.means not in ('start', 'enter') or v.declared or p_fresh or vs.position <= p_until)
      and (v.means <> 'discard' or (
        select bool_and(r.began_from = v.to_value)
        from millrace.versions o
        join millrace.runs r on r.pipeline_id = o.pipeline_id and r.status = 'running'
        where o.id = p_version_id and r.entity_id = any (p_ids)));
end
$$;

-- Finds the meaning of values that people wrote, in groups; null where a value is not allowed.
-- live_id: the live stage, or the bypassed one of a run that is over; until: the place of the last
-- stage that may start over.
create function millrace.meanings_of_values(
  p_pipeline_id int, p_ids text[], p_was text[], p_now text[]
) returns table (
  version_id int, live_id int, until int, fresh boolean, was text, now text, ids text[],
  means text, stage_id int
)
stable
as $$
#variable_conflict use_column
begin
  return query
    with standing as materialized (
      select v.version_id,
        case when d.run_status = 'running' or d.at_state = 'skipped' then d.at_id end as live_id,
        case
          when d.run_status = 'completed' and d.phase <> 'ended' then 1000000
          else (
            select c.position
            from millrace.version_stages c
            where c.version_id = v.version_id and c.stage_id = d.at_id)
        end as until, d.run_id is null as fresh, d.was, d.now,
        array_agg(d.id order by d.ordinality) as ids
      from millrace.pipelines p
      cross join lateral rows from (
        unnest(p_was), unnest(p_now), millrace.status_states(p.id, p_ids)
      ) with ordinality d(was, now)
      cross join lateral (
        select case d.run_status when 'running' then d.version_id
          else p.current_version_id end as version_id) v
      where p.id = p_pipeline_id
      group by 1, 2, 3, 4, 5, 6
    )
    select s.version_id, s.live_id, s.until, s.fresh, s.was, s.now, s.ids, m.means, m.stage_id
    from standing s
    left join lateral (
      select o.means, o.stage_id
      from millrace.open_moves(s.version_id, s.live_id, s.until, s.fresh, s.was, s.ids) o
      where o.to_value = s.now
      order by array_position(
          array['answer', 'step', 'discard', 'start', 'enter', 'give_up'], o.means),
        o.declared desc, o.place
      limit 1) m on true;
end
$$;

-- Acts on values that people wrote by their meanings.
create function millrace.on_values_written(
  p_pipeline_id int, p_ids text[], p_was text[], p_now text[]
)
set millrace.plan = by_index
set enable_nestloop = on
as $$
declare
  v_group record;
begin
  for v_group in
    select j.*
    from millrace.meanings_of_values(p_pipeline_id, p_ids, p_was, p_now) j
    order by j.means is not null, j.ids[1]
  loop
    case v_group.means
      when 'step' then null;
      when 'answer' then
        perform millrace.answer_by_value(
          p_pipeline_id, v_group.stage_id, v_group.now, v_group.ids);
      when 'discard' then
        perform millrace.take_question_back(p_pipeline_id, v_group.stage_id, v_group.ids);
      when 'start', 'enter' then
        perform millrace.start_at_value(p_pipeline_id, v_group.stage_id, v_group.means,
          v_group.fresh, v_group.was, v_group.now, v_group.ids);
      when 'give_up' then
        perform millrace.give_up_by_value(
          p_pipeline_id, v_group.was, v_group.now, v_group.ids);
      else
        perform millrace.refuse_move(p_pipeline_id, v_group.version_id, v_group.live_id,
          v_group.until, v_group.fresh, v_group.was, v_group.now, v_group.ids);
    end case;
  end loop;
end
$$;

-- Moves retries to the due times that people wrote. One that a worker has just taken stays its own.
create function millrace.on_retries_moved(
  p_pipeline_id int, p_ids text[], p_was timestamptz[], p_at timestamptz[]
)
set millrace.plan = by_index
set enable_nestloop = on
as $$
declare
  v_now timestamptz := millrace.now();
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running'
    order by r.id + 0
    for no key update);
  v_held bigint[] := array(
    select a.run_id
    from millrace.attempts a
    where a.run_id = any (v_runs) and a.state = 'queued' and a.held);
  v_fault record;
  v_stages int[];
begin
  select format(f.what, p.status ->> 'retry_at', millrace.rows_named(array_agg(i.id order by i.id)))
    as what, f.remedy
  into v_fault
  from millrace.pipelines p
  cross join unnest(p_ids, p_was, p_at) i(id, was, at)
  cross join lateral (values
    (1, i.was is null, '%s was written to %s, but no retry waits there',
      'Only a retry in backoff can be moved. To begin a stage, write ' || (p.status ->> 'column')),
    (2, (i.at <= v_now + interval '1 year' and isfinite(i.at)) is not true,
      '%s of %s was set to no time within a year', 'Write when it is to be tried again, such as '
      'now(). To stop a run: select millrace.cancel(run)'),
    (3, exists (select from millrace.runs r where r.id = any (v_held) and r.entity_id = i.id),
      '%s was written to %s, whose quota holds them back',
      'They go on when its window is over, or once it is raised')) f(place, wrong, what, remedy)
  where p.id = p_pipeline_id and f.wrong
  group by p.id, f.place, f.what, f.remedy
  order by f.place
  limit 1;
  if found then
    raise exception '%', v_fault.what using errcode = 'MR005', hint = v_fault.remedy || '.';
  end if;
  with taken as materialized (
    select a.id
    from millrace.attempts a
    where a.run_id = any (v_runs) and a.state = 'queued'
    order by a.id
    for update
  ), moved as (
    update millrace.attempts a
    set queue_at = greatest(i.at, v_now)
    from taken t, millrace.runs r, unnest(p_ids, p_at) i(id, at)
    where a.id = t.id
      and r.id = a.run_id
      and i.id = r.entity_id
    returning a.stage_id
  )
  select array_agg(distinct m.stage_id) into v_stages from moved m;
  perform millrace.show_status(p_pipeline_id, p_ids);
  perform millrace.wake(v_stages);
end
$$;

-- Counts what a person starts over, with a raised count of tries, as another try.
create function millrace.count_tries(p_pipeline_id int, p_ids text[], p_tries bigint[])
as $$
begin
  update millrace.attempts a
  set retry_count = least(i.tries, a.number - 1)
  from unnest(p_ids, p_tries) i(id, tries)
  join millrace.runs r on r.entity_id = i.id
  where r.pipeline_id = p_pipeline_id
    and r.status = 'running'
    and a.run_id = r.id
    and a.state = 'queued';
  perform millrace.show_status(p_pipeline_id, p_ids);
end
$$;
