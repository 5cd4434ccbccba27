-- The meaning of values that people write, by the moves of the version that a row's live run has,
-- or else of the current version. The caller is an intake trigger, whose statement has locked the
-- rows.

-- Returns the moves that a person may make from the value p_was.
-- p_live_id: the stage that is live; null without one.
-- p_until: the position of the last stage that may start over.
-- p_began_from: the value from which the live run began, to which alone a question is taken back.
create function millrace.open_moves(
  p_version_id int, p_live_id int, p_until int, p_began_from text, p_was text
) returns table (to_value text, means text, stage_id int, declared boolean, ordinal int)
stable
as $$
select m.to_value, m.means, m.stage_id, m.declared, vs.position
from millrace.version_moves m
left join millrace.version_stages vs
  on vs.version_id = m.version_id and vs.stage_id = m.stage_id
where m.version_id = p_version_id and m.by = 'person' and not m.retired
  and m.from_value is not distinct from p_was
  and (m.at_stage_id is null or m.at_stage_id = p_live_id)
  and (m.means not in ('start', 'enter') or m.declared or vs.position <= p_until)
  and (m.means <> 'discard' or m.to_value = p_began_from)
  and (m.means <> 'give_up' or p_live_id is not null and p_until < 1000000)
$$;

-- Acts on values that people wrote, in groups of rows in the same state. Groups whose move is not
-- legal come first, so that nothing is done before their error.
create function millrace.on_values_written(
  p_pipeline_id int, p_ids text[], p_was text[], p_now text[]
)
set plan = by_index
set enable_nestloop = on
as $$
  v_group record;

for v_group in
  with standing as materialized (
    select v.id as version_id, d.was, d.now, d.run_id is null as fresh,
      case when d.run_status = 'running' or d.phase = 'bypassed' then d.at_id end as live_id,
      case
        when d.run_id is null or d.run_status = 'completed' and d.phase <> 'ended' then 1000000
        else c.position
      end as until, case d.run_status when 'running' then d.began_from end as began_from,
      array_agg(d.id order by d.ordinality) as ids
    from millrace.pipelines p
    cross join rows from (
      unnest(p_was), unnest(p_now), millrace.status_states(p.id, p_ids)
    ) with ordinality d(was, now)
    cross join lateral (
      select case d.run_status when 'running' then d.version_id
        else p.current_version_id end as id) v
    left join millrace.version_stages c on c.version_id = v.id and c.stage_id = d.at_id
    where p.id = p_pipeline_id
    group by 1, 2, 3, 4, 5, 6, 7
  )
  select s.*, m.means, m.stage_id
  from standing s
  left join lateral (
    select o.means, o.stage_id
    from millrace.open_moves(s.version_id, s.live_id, s.until, s.began_from, s.was) o
    where o.to_value = s.now
    order by array_position(
        array['answer', 'interim', 'discard', 'start', 'enter', 'give_up'], o.means),
      o.declared desc, o.ordinal
    limit 1) m on true
  order by m.means is not null, s.ids[1]
loop
  case v_group.means
    when 'interim' then null;
    when 'answer' then
      perform millrace.answer_by_value(
        p_pipeline_id, v_group.stage_id, v_group.now, v_group.ids);
    when 'discard' then
      perform millrace.take_question_back(p_pipeline_id, v_group.stage_id, v_group.ids);
    when 'start', 'enter' then
      perform millrace.start_at_value(p_pipeline_id, v_group.stage_id, v_group.means,
        v_group.fresh, v_group.was, v_group.now, v_group.ids);
    when 'give_up' then
      perform millrace.give_up_by_value(p_pipeline_id, v_group.ids);
    else
      perform millrace.refuse_move(p_pipeline_id, v_group.version_id, v_group.live_id,
        v_group.until, v_group.began_from, v_group.was, v_group.now, v_group.ids);
  end case;
end loop;
$$;

-- Sets the due times that people wrote for retries in backoff. Raises MR005 where no retry waits,
-- or the time is not within a year. A retry that a worker has just claimed stays with the worker.
-- p_was, p_at: the former and the new times of the rows.
create function millrace.on_retries_moved(
  p_pipeline_id int, p_ids text[], p_was timestamptz[], p_at timestamptz[]
)
set plan = by_index
set enable_nestloop = on
as $$
  v_runs bigint[] := (millrace.lock_live_runs(p_pipeline_id, p_ids)).run_ids;
  v_wrong record;
  v_stages int[];

select p.status ->> 'retry_at' as what, p.status ->> 'column' as status,
  array_agg(i.id order by i.id) filter (where i.was is null) as idle,
  array_agg(i.id order by i.id) filter (
    where (i.at <= v_now + interval '1 year' and isfinite(i.at)) is not true) as never
into v_wrong
from millrace.pipelines p
cross join unnest(p_ids, p_was, p_at) i(id, was, at)
where p.id = p_pipeline_id
group by p.id;
if v_wrong.idle is not null then
  raise exception 'MR005: % was written to %, but no retry waits there', v_wrong.what,
    millrace.rows_named(v_wrong.idle)
    using hint = 'Only a retry in backoff can be moved. To begin a stage, '
      'write ' || v_wrong.status || '.';
elsif v_wrong.never is not null then
  raise exception 'MR005: % of % was set to no time within a year', v_wrong.what,
    millrace.rows_named(v_wrong.never)
    using hint = 'Write when it is to be tried again, such as now(). To stop '
      'a run: select millrace.cancel(run).';
end if;
with taken as materialized (
  select a.id, a.run_id
  from millrace.attempts a
  where a.run_id = any (v_runs) and a.state = 'queued'
  order by a.id
  for update
), moved as (
  update millrace.attempts a
  set queue_at = greatest(i.at, v_now)
  from taken t
  join millrace.runs r on r.id = t.run_id
  join unnest(p_ids, p_at) i(id, at) on i.id = r.entity_id
  where a.id = t.id
  returning a.stage_id
)
select array_agg(distinct m.stage_id) into v_stages from moved m;
perform millrace.show_status(p_pipeline_id, p_ids);
perform millrace.wake(v_stages);
$$;
