-- Endings: a stage's result, or the row as it is by then, ends the run under a name
--
-- The run is completed, with no dead letter and no alert. A stage is asked in the completing
-- transaction, after its apply function.

-- Completes attempts of one stage: those whose runs it ends, and the others. The first condition
-- that holds names the ending; none of a row that is larger than a worker takes.
create function millrace.complete_or_end(p_stage_id int, p_items millrace.work[])
returns int[]
as $$
declare
  v_asked record;
  v_rows json[];
  v_ended record;
  v_rest millrace.work[];
begin
  select array_agg(i order by i.ord) as items, array_agg(i.entity_id order by i.ord) as entity_ids,
    min(r.pipeline_id) as pipeline_id, string_agg(distinct vs.ends::text, '') as conditions
  into v_asked
  from unnest(p_items) i
  join millrace.runs r on r.id = i.run_id
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  where vs.ends is not null
    and (select s.has_ends from millrace.stages s where s.id = p_stage_id);
  if v_asked.items is null then
    return millrace.complete(p_stage_id, p_items);
  end if;
  v_rows := millrace.rows_asked(v_asked.pipeline_id, v_asked.entity_ids, v_asked.conditions);
  select coalesce(array_agg(r.id order by r.id), '{}') as run_ids,
    array_agg(e.name order by r.id) as names
  into v_ended
  from unnest(v_asked.items) with ordinality i
  join millrace.runs r on r.id = i.run_id
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  cross join lateral (
    select jsonb_build_object(
      'entity', v_rows[i.ordinality]::jsonb, 'result', i.result) as value
    offset 0) asked
  cross join lateral (
    select c.value ->> 'name' as name
    from jsonb_array_elements(vs.ends) with ordinality c
    where coalesce(jsonb_path_match_tz(
      asked.value, (c.value ->> 'when')::jsonpath, '{}', true), false)
    order by c.ordinality
    limit 1) e
  where v_rows[i.ordinality] is not null;
  v_rest := p_items;
  if cardinality(v_ended.run_ids) > 0 then
    perform millrace.complete_and_end(p_stage_id, array(
      select i from unnest(p_items) i where i.run_id = any (v_ended.run_ids) order by i.ord),
      v_ended.run_ids, v_ended.names);
    v_rest := array(
      select i from unnest(p_items) i where i.run_id <> all (v_ended.run_ids) order by i.ord);
    -- A user's trigger on what was shown may have ended what else the batch is about.
    v_rest := array(
      select i from unnest(v_rest) i
      where i.attempt_id <> all (millrace.late_attempts(v_rest)));
  end if;
  return case when cardinality(v_rest) > 0 then millrace.complete(p_stage_id, v_rest)
    else '{}' end;
end
$$;

-- started | waiting | queued → completed for the last attempts of runs that end under a name; what
-- is not done is skipped, before the first projection: a user's trigger may queue a stage anew.
create function millrace.complete_and_end(
  p_stage_id int, p_items millrace.work[], p_run_ids bigint[], p_names text[]
)
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
  v_skipped int[];
  v_stage_id int;
begin
  v_changes := millrace.close_completed(p_items, v_now, false, '{}', null);
  -- Not at the stage itself, whose late children go on.
  perform millrace.cancel_attempts(p_run_ids, array(
    select distinct vs.stage_id
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = any (p_run_ids)
      and vs.stage_id <> p_stage_id));
  with ended as (
    update millrace.runs r
    set status = 'completed', finished_at = v_now, ended_as = e.name
    from unnest(p_run_ids, p_names) e(id, name)
    where r.id = e.id
      and (r.status = 'running') is true
    returning r.fan_out_id, r.pipeline_id, r.created_at
  ), pulse as (
    insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n, run_ms)
    select v_now, e.pipeline_id, 0, 'ended', count(*),
      array_agg(date_part('epoch', v_now - e.created_at) * 1000)
    from ended e
    group by e.pipeline_id
  )
  insert into millrace.child_tallies (fan_out_id, completed)
  select e.fan_out_id, count(*)
  from ended e
  where e.fan_out_id is not null
  group by e.fan_out_id;
  with skipped as (
    insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
    select r.id, vs.stage_id,
      coalesce((
        select max(a.number)
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = vs.stage_id), 0) + 1,
      'skipped', v_now, v_now, jsonb_build_object(
        'code', 'skipped', 'message', 'the run ended as ' || r.ended_as, 'ended', r.ended_as)
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = any (p_run_ids)
      and not millrace.is_done(r.id, vs.stage_id)
    order by r.id, vs.position
    returning stage_id
  )
  select coalesce(array_agg(k.stage_id order by k.stage_id), '{}') into v_skipped from skipped k;
  perform millrace.note_pulses('skipped', v_skipped);
  v_skipped := array(select distinct s from unnest(v_skipped) s order by s);
  -- For thresholds of their parents.
  insert into millrace.child_tallies (fan_out_id, stage_id, done)
  select r.fan_out_id, s.id, count(*)
  from millrace.runs r
  join millrace.stages s on s.pipeline_id = r.pipeline_id
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = s.id
  join millrace.done_attempts d on d.run_id = r.id and d.stage_id = s.id
  where r.id = any (p_run_ids)
    and r.fan_out_id is not null
    and s.id = any (v_skipped || p_stage_id)
    and s.counted_by_parent
    and d.finished_at = r.finished_at
  group by r.fan_out_id, s.id;
  perform millrace.project(p_stage_id, v_changes);
  foreach v_stage_id in array v_skipped loop
    -- Unless a user's trigger has started them anew since.
    perform millrace.show_stage(v_stage_id, array(
      select r.id
      from millrace.runs r
      join millrace.done_attempts d on d.run_id = r.id and d.stage_id = v_stage_id
      where r.id = any (p_run_ids)
        and r.ended_as is not null
        and d.error ? 'ended'
        and millrace.is_latest_run(r.id)
      order by r.id), 'skipped', millrace.now());
  end loop;
  perform millrace.hook_spent(s, p_items)
  from millrace.stages s
  where s.id = p_stage_id and (s.counted or s.limits ? 'shared');
end
$$;

-- Finds runs that say of their ending what cannot be.
create view millrace.ending_faults (rule, run_id, attempt_id, detail) as
select 'a run that ended under a name is completed', r.id, null::bigint,
  format('%s, but it is %s', r.ended_as, r.status)
from millrace.runs r
where r.ended_as is not null
  and r.status <> 'completed'
union all
select 'a stage is skipped for the ending of its own run', a.run_id, a.id, 'stage ' || a.stage_id
from millrace.attempts a
join millrace.runs r on r.id = a.run_id
where a.state = 'skipped'
  and not a.superseded
  and a.error ? 'ended'
  and a.error ->> 'ended' is distinct from r.ended_as
union all
select 'what the row brought along is known of its first run alone', r.id, null, r.entity_id
from millrace.runs r
where r.given is not null
  and exists (
    select
    from millrace.runs o
    where o.pipeline_id = r.pipeline_id
      and o.entity_id = r.entity_id
      and o.id < r.id);
