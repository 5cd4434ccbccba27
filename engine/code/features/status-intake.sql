-- The projection `status`: values that people write
--
-- A statement's new values are judged in sets, by the rows of millrace.version_moves: of the
-- version that a row's live run has, else of the current one. What a person wrote stands in the row
-- already; it goes into the history first, so that what follows from it comes after.

-- Creates the __since function of a pipeline with its triggers, or drops them where there is no
-- history: a value that a person writes begins now. The engine's own statements set it themselves.
create or replace function millrace.write_status_since(p_pipeline millrace.pipelines)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_status text := p_pipeline.status ->> 'column';
  v_since text := p_pipeline.status #>> '{history,since}';
  v_name text := p_pipeline.name || '__since';
begin
  execute format('drop trigger if exists %I on %s', 'millrace_' || p_pipeline.name || '_since',
    p_pipeline.entity_table);
  execute format('drop trigger if exists %I on %s', 'millrace_' || p_pipeline.name || '_begun',
    p_pipeline.entity_table);
  if v_since is null then
    execute format('drop function if exists millrace.%I()', v_name);
    return;
  end if;
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' and old.%2$I is not distinct from new.%2$I then
    new.%3$I := old.%3$I;
  else
    new.%3$I := millrace.now();
  end if;
  return new;
end $$;
create or replace trigger %4$I before insert on %6$s
  for each row when (new.%2$I is not null) execute function millrace.%1$I();
create or replace trigger %5$I before update on %6$s
  for each row
  when ((old.%2$I is distinct from new.%2$I or old.%3$I is distinct from new.%3$I)
    and (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
      or not has_schema_privilege('millrace', 'create')))
  execute function millrace.%1$I()$f$,
    v_name, v_status, v_since, 'millrace_' || p_pipeline.name || '_begun',
    'millrace_' || p_pipeline.name || '_since', p_pipeline.entity_table);
end
$write$;

-- Writes the statements that put what a person wrote into the history, and take what was said of
-- changed fields from the row. p_was is what the old value is read from.
create or replace function millrace.history_of_written(
  p_pipeline millrace.pipelines, p_from text, p_moved text, p_was text, p_began text
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  v_changes text := v_history ->> 'changes';
begin
  if v_history is null then
    return '';
  end if;
  return format($f$
    insert into %1$s (%2$I, from_status, to_status, changed_at, changed_by, changes, duration_ms)
    select n.%3$I, %4$s, n.%5$I, n.%6$I, v_actor, %7$s,
      case when %8$s is not null
        then greatest(0, extract(epoch from n.%6$I - %8$s) * 1000)::bigint end
    from %9$s
    where %10$s
      and n.%5$I::text in (
        select v.value
        from millrace.status_values v
        where v.pipeline_id = %11$s)
    order by n.%3$I;$f$,
      to_regclass(v_history ->> 'table'), v_history ->> 'key', p_pipeline.entity_key, p_was,
      p_pipeline.status ->> 'column', v_history ->> 'since',
      coalesce('n.' || quote_ident(v_changes), 'null'), p_began, p_from, p_moved, p_pipeline.id)
    || case when v_changes is null then '' else format($f$
    v_told := array(
      select n.%5$I::text
      from %3$s
      where %4$s and n.%2$I is not null);
    if cardinality(v_told) > 0 then
      v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
      update %1$s e set %2$I = null
      where e.%5$I = any (v_told::%6$s[]);
      v_said := set_config('millrace.projecting', v_outer, true);
    end if;$f$,
      p_pipeline.entity_table, v_changes, p_from, p_moved, p_pipeline.entity_key,
      millrace.key_type(p_pipeline)) end;
end
$write$;

-- Creates the __intake function of a pipeline with one status column, and its triggers.
create or replace function millrace.write_status_intake(
  p_pipeline millrace.pipelines, p_key_type text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_key text := quote_ident(p_pipeline.entity_key);
  v_column text := quote_ident(p_pipeline.status ->> 'column');
  v_both text := format('new_rows n join old_rows o on o.%1$s = n.%1$s', v_key);
  v_moved text := format('n.%1$s is distinct from o.%1$s', v_column);
  v_given text := format('n.%s is not null', v_column);
  v_bodies text[] := array[
    millrace.history_of_written(p_pipeline, v_both, v_moved, 'o.' || v_column,
      'o.' || quote_ident(p_pipeline.status #>> '{history,since}')),
    millrace.history_of_written(p_pipeline, 'new_rows n', v_given,
      format('null::%s', millrace.status_type(p_pipeline)), 'null::timestamptz')];
begin
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_actor text;
  v_said text; v_told text[];
  v_written record;
begin
  if tg_op = 'UPDATE' then
    select array_agg(n.%2$s::text order by n.%2$s) as ids,
      array_agg(o.%3$s::text order by n.%2$s) as was,
      array_agg(n.%3$s::text order by n.%2$s) as now
    into v_written
    from %4$s
    where %5$s;
    if v_written.ids is not null then
      v_actor := millrace.actor(tg_relid);%6$s
    end if;
  else
    select array_agg(n.%2$s::text order by n.%2$s) as ids,
      array_fill(null::text, array[count(*)::int]) as was,
      array_agg(n.%3$s::text order by n.%2$s) as now
    into v_written
    from new_rows n
    where %7$s;
    if v_written.ids is not null then
      v_actor := millrace.actor(tg_relid);%8$s
    end if;
  end if;
  if v_written.ids is null then
    return null;
  end if;
  perform millrace.on_values_written(%9$s, v_written.ids, v_written.was, v_written.now);
  return null;
end $$;$f$,
    p_pipeline.name || '__intake', v_key, v_column, v_both, v_moved, v_bodies[1], v_given,
    v_bodies[2], p_pipeline.id);
  perform millrace.write_status_triggers(p_pipeline);
end
$write$;

-- Creates the triggers of the __intake function of a pipeline with one status column.
create or replace function millrace.write_status_triggers(p_pipeline millrace.pipelines)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace trigger %1$I after insert on %3$s referencing new table as new_rows
  for each statement execute function millrace.%4$I();
create or replace trigger %2$I after update on %3$s
  referencing old table as old_rows new table as new_rows
  for each statement
  when (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
    or not has_schema_privilege('millrace', 'create'))
  execute function millrace.%4$I()$f$,
    'millrace_' || p_pipeline.name || '_inserted', 'millrace_' || p_pipeline.name || '_updated',
    p_pipeline.entity_table, p_pipeline.name || '__intake');
end
$write$;

-- Says of entities, with the values that were written, where their latest runs stand: the version
-- to judge by, the stage that is live, and the last stage that may be started over, null where
-- there was no run.
create or replace function millrace.standings(
  p_pipeline_id int, p_ids text[], p_was text[] default null, p_now text[] default null
) returns table (
  id text, was text, now text, place bigint, run_id bigint, status millrace.run_status,
  version_id int, live_id int, until int
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select i.id, i.was, i.now, i.place, r.id, r.status,
      case when r.status = 'running' then r.version_id else p.current_version_id end,
      case when r.status = 'running' then f.stage_id end,
      case
        when r.status = 'completed' and r.ended_as is null then 1000000
        else (
          select c.position
          from millrace.version_stages c
          where c.version_id
              = case when r.status = 'running' then r.version_id else p.current_version_id end
            and c.stage_id = f.stage_id)
      end
    from millrace.pipelines p
    cross join unnest(p_ids, p_was, p_now) with ordinality i(id, was, now, place)
    left join lateral (
      select o.*
      from millrace.runs o
      where o.entity_id = i.id
        and o.pipeline_id = p.id
      order by o.id desc
      limit 1) r on true
    left join lateral (
      select a.stage_id
      from millrace.attempts a
      join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
      where a.run_id = r.id
        and not a.superseded
        and case r.status
          when 'running' then a.state in ('queued', 'started', 'waiting')
          when 'completed' then a.state = 'completed'
          else a.state in ('failed', 'cancelled')
        end
      order by vs.position desc, a.number desc
      limit 1) f on true
    where p.id = p_pipeline_id;
end
$$;

-- Judges values that people wrote, in groups that are alike: what each group's write means, null
-- where it is not allowed.
create or replace function millrace.judged_values(
  p_pipeline_id int, p_ids text[], p_was text[], p_now text[]
) returns table (
  version_id int, live_id int, fresh boolean, was text, now text, ids text[], means text,
  stage_id int
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    with standing as materialized (
      select s.version_id, s.live_id, s.until, s.run_id is null as fresh, s.was, s.now,
        array_agg(s.id order by s.place) as ids
      from millrace.standings(p_pipeline_id, p_ids, p_was, p_now) s
      group by 1, 2, 3, 4, 5, 6
    )
    select s.version_id, s.live_id, s.fresh, s.was, s.now, s.ids, m.means, m.stage_id
    from standing s
    left join lateral (
      select v.means, v.stage_id
      from millrace.version_moves v
      left join millrace.version_stages vs
        on vs.version_id = v.version_id and vs.stage_id = v.stage_id
      where v.version_id = s.version_id
        and v.by = 'person'
        and not v.retired
        and v.from_value is not distinct from s.was
        and v.to_value = s.now
        and (v.at_stage_id is null or v.at_stage_id = s.live_id)
        and (v.means not in ('start', 'enter') or v.declared or s.fresh or vs.position <= s.until)
        and (v.means <> 'discard' or (
          select bool_and(r.began_from = s.now)
          from millrace.runs r
          where r.pipeline_id = p_pipeline_id
            and r.entity_id = any (s.ids)
            and r.status = 'running'))
      order by array_position(array['answer', 'step', 'discard', 'start', 'enter'], v.means),
        v.declared desc, vs.position
      limit 1) m on true;
end
$$;

-- Acts on values that people wrote: judges them all, then does what each means. The caller, an
-- intake trigger, holds the entities.
create or replace function millrace.on_values_written(
  p_pipeline_id int, p_ids text[], p_was text[], p_now text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_group record;
begin
  for v_group in
    select j.*
    from millrace.judged_values(p_pipeline_id, p_ids, p_was, p_now) j
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
        if v_group.fresh then
          perform millrace.begin_at_value(p_pipeline_id, v_group.stage_id, v_group.means,
            v_group.was, v_group.now, v_group.ids);
        else
          perform millrace.start_at_value(
            p_pipeline_id, v_group.stage_id, v_group.was, v_group.ids);
        end if;
      else
        perform millrace.refuse_move(p_pipeline_id, v_group.version_id, v_group.live_id,
          v_group.was, v_group.now, v_group.ids);
    end case;
  end loop;
end
$$;

-- Starts a stage, or starts it over, for entities that had a run and whose row says so. The value
-- at which it was is kept where the question that follows may be taken back.
create or replace function millrace.start_at_value(
  p_pipeline_id int, p_stage_id int, p_was text, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.queue_stage(p_pipeline_id, p_stage_id, p_ids, p_ids);
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

-- Begins entities of which no run is known. Stages before the one that was written are left out
-- where the row brings their output along; where one has work to do, the value is refused. From the
-- gate of a layer a new row goes by all stages, and must come to that layer or behind it. A row
-- that had a value was there before: it was adopted, or its runs have been pruned. It has been
-- through the stages before.
create or replace function millrace.begin_at_value(
  p_pipeline_id int, p_stage_id int, p_means text, p_was text, p_value text, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage_id int := case
    when p_means = 'start' or p_was is not null then p_stage_id
    else millrace.first_stage(p_pipeline_id)
  end;
  v_why text;
  v_hint text;
  v_early record;
begin
  begin
    perform millrace.queue_stage(p_pipeline_id, v_stage_id, p_ids,
      case when p_means = 'enter' then p_ids else '{}' end,
      p_by_name => p_means = 'start' and not millrace.begins_runs(p_pipeline_id, v_stage_id),
      p_done_before => p_was is not null);
  exception when sqlstate 'MR005' then
    get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
    raise exception '% cannot be written to %: %', p_value, millrace.rows_named(p_ids), v_why
      using errcode = 'MR005', hint = v_hint;
  end;
  if p_means = 'start' then
    return;
  end if;
  select min(s.name) as stage, array_agg(st.id order by st.place) as ids
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
        hint = format('Queue %s instead, or give the row its output.', v_early.stage);
  end if;
end
$$;

-- Names rows in an error: how many, and the first.
create or replace function millrace.rows_named(p_ids text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when cardinality(p_ids) = 1 then format('1 row (%s)', p_ids[1])
    else format('%s rows (%s, …)', cardinality(p_ids), p_ids[1])
  end
$$;

-- Answers the question of a manual stage as a value means it. Its row in public.millrace_decisions
-- takes the decision, and completes the attempt; one that somebody holds, who may be answering and
-- waiting for this row, is left to the sweep, and its attempt is completed here. So nobody who
-- writes a row waits for a decision.
create or replace function millrace.answer_by_value(
  p_pipeline_id int, p_stage_id int, p_value text, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_decision jsonb := (
    select s.shows #> array['answers', p_value, 'decision']
    from millrace.stages s
    where s.id = p_stage_id);
  v_asked bigint[];
  v_free bigint[];
  v_items millrace.work[];
  v_done record;
begin
  v_asked := array(
    select a.id
    from millrace.runs r
    join millrace.attempts a on a.run_id = r.id and a.stage_id = p_stage_id
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running'
      and a.state = 'waiting'
    order by a.id);
  v_free := array(
    select d.attempt_id
    from public.millrace_decisions d
    where d.attempt_id = any (v_asked) and d.closed_at is null
    order by d.attempt_id
    for update skip locked);
  update public.millrace_decisions d
  set decision = v_decision
  where d.attempt_id = any (v_free);
  if cardinality(v_free) = cardinality(v_asked) then
    return;
  end if;
  perform millrace.hold_runs(array(
    select a.run_id from millrace.attempts a
    where a.id = any (v_asked) and a.id <> all (v_free)));
  v_items := array(
    select millrace.work_on(a, r.entity_id, 'completed',
      jsonb_build_object('decision', v_decision, 'decided_by', null),
      p_ord => (row_number() over (order by a.id))::int)
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (v_asked) and a.id <> all (v_free) and a.state = 'waiting');
  v_done := millrace.apply_outcomes(v_items);
  perform millrace.wake(v_done.ready);
end
$$;

-- Takes back the question of a manual stage: it and what comes after it are skipped, and the run is
-- over, at the value from which it began.
create or replace function millrace.take_question_back(
  p_pipeline_id int, p_stage_id int, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_error constant jsonb := jsonb_build_object(
    'code', 'discarded', 'message', 'the question was taken back', 'on_demand', true);
  v_runs bigint[];
  v_asked bigint[];
  v_skipped int[];
begin
  v_runs := array(
    select r.id
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running'
    order by r.id
    for no key update);
  with closed as (
    update millrace.attempts a
    set state = 'skipped', finished_at = v_now, deadline_at = null, poll_at = null,
      late_at = null, error = v_error
    where a.run_id = any (v_runs)
      and a.stage_id = p_stage_id and a.state = 'waiting'
    returning a.id, a.stage_id
  ), rest as (
    insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
    select r.id, d, coalesce((
        select max(a.number)
        from millrace.attempts a
        where a.run_id = r.id and a.stage_id = d), 0) + 1,
      'skipped', v_now, v_now, v_error
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    cross join lateral unnest(vs.dependents) d
    where r.id = any (v_runs)
    order by r.id
    returning null::bigint as id, stage_id
  )
  select array_remove(array_agg(s.id), null), array_agg(s.stage_id) into v_asked, v_skipped
  from (table closed union all table rest) s;
  perform millrace.note_pulses('skipped', v_skipped);
  perform millrace.finish_runs(vs.stage_id, array_agg(r.id))
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.is_sink
  where r.id = any (v_runs)
  group by vs.stage_id;
  perform millrace.close_held(array(
    select d.attempt_id
    from public.millrace_decisions d
    where d.attempt_id = any (v_asked) and d.closed_at is null
    order by d.attempt_id
    for update skip locked));
  perform millrace.show_status(p_pipeline_id, p_ids);
end
$$;

-- Says what to do instead of writing a value, by what the value means.
create or replace function millrace.remedy_of_move(
  p_version_id int, p_live_id int, p_was text, p_now text
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
      select format('Write one of %s first: %s answers from there.',
        string_agg(f #>> '{}', ', '), p_now)
      from jsonb_array_elements(l.shows #> array['answers', p_now, 'from']) f
      having count(*) > 0),
    (
      select case
          when s.shows ->> 'started' = p_now
            then format('The engine writes %s when a worker takes stage %s.', p_now, s.name)
          when s.shows ->> 'completed' = p_now
            then format('The engine writes %s when stage %s is done.', p_now, s.name)
          when s.ready = p_now and l.place < s.place then format(
            'Stage %s has no result yet, which %s needs; to go on without it: '
            'select millrace.skip(run, %L).', l.name, s.name, l.name)
          when s.shows ->> 'leave' = p_now or s.shows ->> 'enter' = p_now
            then format('%s follows by itself.', p_now)
        end
      from millrace.shown_stages(p_version_id) s
      where p_now = s.ready and l.place < s.place
        or p_now in (s.shows ->> 'started', s.shows ->> 'completed', s.shows ->> 'leave',
          s.shows ->> 'enter')
      order by p_now = s.ready desc, s.place
      limit 1),
    case when l.id is not null then 'To stop the run: select millrace.cancel(run).' end)
  from (select 1) one
  left join millrace.shown_stages(p_version_id) l on l.id = p_live_id
$$;

-- Raises MR005 about a value that may not follow the one which rows have.
create or replace function millrace.refuse_move(
  p_pipeline_id int, p_version_id int, p_live_id int, p_was text, p_now text, p_ids text[]
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
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
    from millrace.version_moves m
    where m.version_id = p_version_id
      and m.by = 'person'
      and not m.retired
      and m.means <> 'discard'
      and m.from_value is not distinct from p_was
      and (m.at_stage_id is null or m.at_stage_id = p_live_id));
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
        else millrace.remedy_of_move(p_version_id, p_live_id, p_was, p_now)
      end,
      case
        when p_was is null then null
        when v_next is null
          then format('At %s nobody writes: the engine goes on from there.', p_was)
        else format('From %s people may write: %s.', p_was, v_next)
      end);
end
$$;
