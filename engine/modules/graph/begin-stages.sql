-- Beginning stages: what advance() does not queue by itself. Callers hold entities and runs; what
-- is done is shown on the entities, and the stages with work are returned.

-- Begins a stage whose needs are done. p_by_name overrules its conditions; p_shown: the entities
-- show it as queued; p_anew: it works even on its former input.
create function millrace.begin_stage(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean default false,
  p_shown boolean default false, p_anew boolean default false
) returns int[]
as $$
declare
  v_skipped record;
  v_kind text;
  v_wake int[] := '{}';
  v_begun int[];
begin
  for v_skipped in
    select k.run_ids, k.why from millrace.runs_to_skip(p_stage_id, p_run_ids, p_by_name) k
  loop
    v_wake := v_wake || millrace.skip_stage(p_stage_id, v_skipped.run_ids, v_skipped.why);
    p_run_ids := array(
      select unnest(p_run_ids) except select unnest(v_skipped.run_ids) order by 1);
  end loop;
  if cardinality(p_run_ids) = 0 then
    return v_wake;
  end if;
  select case when s.has_unchanged and not p_by_name and not p_anew then 'unchanged'
    else s.kind end
  into v_kind
  from millrace.stages s
  where s.id = p_stage_id;
  v_begun := millrace.hook_begin_kind(v_kind, p_stage_id, p_run_ids, p_shown);
  if v_begun is not null then
    return v_wake || v_begun;
  end if;
  perform millrace.queue_attempts(p_stage_id, p_run_ids);
  if not p_shown then
    perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
  end if;
  return v_wake || p_stage_id;
end
$$;

-- Picks the runs in which a stage is not to begin, and says why.
create function millrace.runs_to_skip(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean
) returns table (run_ids bigint[], why jsonb)
volatile
as $$
begin
  return query
    select array_agg(c.run_id), '{"code": "skipped"}' || c.why
    from (
      select r.id as run_id, case
          when n.on_demand or vs.on_demand and not p_by_name then
            '{"message": "nobody asked for it", "dependents": true, "on_demand": true}'::jsonb
          when n.on_demand is not null then
            '{"message": "a stage it depends on was skipped", "dependents": true}'
          when p_by_name then null
          when p_stage_id = any (r.given) then
            '{"message": "the row brought its result along"}'
          when r.id in (select unnest(millrace.unmet_runs(p_stage_id, p_run_ids))) then
            '{"message": "its condition does not hold"}'
        end as why
      from millrace.runs r
      join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
      cross join lateral (
        select bool_or(a.error ? 'on_demand') as on_demand
        from millrace.attempts a
        where a.run_id = r.id
          and a.state = 'skipped'
          and not a.superseded
          and a.error -> 'dependents' = 'true'
          and (a.stage_id = any (vs.needs)
            or vs.after @> jsonb_build_array(jsonb_build_object('map', a.stage_id)))) n
      where r.id = any (p_run_ids)) c
    where c.why is not null
    group by c.why;
end
$$;

-- Tallies a stage that is done for a parent, and begins its followers, as begin_followers().
create function millrace.advance_others(
  p_stage_id int, p_run_ids bigint[], p_all boolean default false
) returns int[]
as $$
begin
  insert into millrace.child_tallies (fan_out_id, stage_id, done)
  select r.fan_out_id, p_stage_id, count(*)
  from millrace.runs r
  where (select s.counted_by_parent from millrace.stages s where s.id = p_stage_id)
    and r.id = any (p_run_ids)
    and r.fan_out_id is not null
  group by r.fan_out_id;
  return millrace.begin_followers(p_stage_id, p_run_ids, p_all);
end
$$;

-- Begins followers of a stage in held runs: p_all, or those under conditions; without a stage all
-- that may. A person may be writing then: gates with limits are left to the sweep.
create function millrace.begin_followers(
  p_stage_id int, p_run_ids bigint[], p_all boolean default false
) returns int[]
as $$
declare
  v_follower record;
  v_wake int[] := '{}';
begin
  for v_follower in
    select f.stage_id, r.ids, s.kind = 'gate' and s.limits is not null as is_limited_gate
    from (
      select o.version_id, array_agg(o.id) as ids
      from millrace.runs o
      where o.id = any (p_run_ids)
      group by o.version_id) r
    join millrace.version_stages f on f.version_id = r.version_id
    join millrace.stages s on s.id = f.stage_id
    where p_stage_id is null
      or (p_all or not f.unconditional)
        and (p_stage_id = any (f.needs)
          or f.after @> jsonb_build_array(jsonb_build_object('map', p_stage_id)))
    order by f.position, r.version_id
  loop
    v_wake := v_wake || millrace.begin_stage(v_follower.stage_id,
      millrace.open_runs(v_follower.stage_id, v_follower.ids));
    if v_follower.is_limited_gate and p_stage_id is not null then
      v_wake := v_wake || millrace.pass_at_once(v_follower.stage_id, v_follower.ids, true);
    end if;
  end loop;
  return v_wake;
end
$$;

-- Skips a stage in these runs, says why, and goes on to what follows it. One that nobody asked for
-- is not shown.
create function millrace.skip_stage(p_stage_id int, p_run_ids bigint[], p_why jsonb)
returns int[]
as $$
begin
  perform millrace.add_skipped(array[p_stage_id], p_run_ids, p_why);
  if not p_why ? 'on_demand' then
    perform millrace.show_stage(p_stage_id, p_run_ids, 'skipped', millrace.now());
  end if;
  return millrace.continue_after_skip(p_stage_id, p_run_ids);
end
$$;

-- Adds skipped attempts to these runs at those of the stages that are not done; returns these, for
-- the caller to show.
create function millrace.add_skipped(p_stage_ids int[], p_run_ids bigint[], p_why jsonb)
returns int[]
as $$
declare
  v_now timestamptz := millrace.now();
  v_skipped int[];
begin
  with skipped as (
    insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
    select r.id, vs.stage_id, coalesce(h.number, 0) + 1, 'skipped', v_now, v_now,
      case when vs.otherwise = 'skip_dependents' and p_why ->> 'code' <> 'failed'
          and not p_why ? 'ended'
        then p_why || '{"dependents": true}' else p_why end
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id and vs.stage_id = any (p_stage_ids)
    cross join lateral (
      select max(a.number) as number,
        bool_or(a.state in ('completed', 'skipped') and not a.superseded) as is_done
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = vs.stage_id) h
    where r.id = any (p_run_ids)
      and h.is_done is not true
    order by r.id, vs.position
    returning stage_id
  )
  select array_agg(k.stage_id) into v_skipped from skipped k;
  perform millrace.note_pulses('skipped', v_skipped);
  return array(select distinct s from unnest(v_skipped) s order by s);
end
$$;

-- Adds attempts of a stage that wait for what the engine does itself; p_job_id: else their own id.
create function millrace.add_waiting(
  p_stage_id int, p_run_ids bigint[], p_service text, p_job_id text default null
) returns setof millrace.attempts
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return query
    insert into millrace.attempts (id, run_id, stage_id, number, parent_id, state, created_at,
      started_at, deadline_at, late_at, service, job_id)
    overriding system value
    select i.id, i.run_id, p_stage_id, coalesce(l.number, 0) + 1,
      case when not l.superseded then l.id end, 'waiting', v_now, v_now, v_now + s.deadline,
      v_now + s.sla, p_service, coalesce(p_job_id, i.id::text)
    from (
      select r.id as run_id, nextval('millrace.attempts_id_seq') as id
      from (select u.id from unnest(p_run_ids) u(id) order by u.id) r) i
    join millrace.stages s on s.id = p_stage_id
    left join lateral (
      select a.id, a.number, a.superseded
      from millrace.attempts a
      where a.run_id = i.run_id
        and a.stage_id = p_stage_id
      order by a.number desc
      limit 1) l on true
    returning *;
end
$$;

-- Begins what follows a skipped stage and finishes runs, unless a user's trigger has ended the run
-- or started the stage over.
create function millrace.continue_after_skip(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
      and (
        select a.id
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = p_stage_id
          and a.state = 'skipped'
          and not a.superseded
        limit 1) is not null
    order by r.id);
  v_wake int[];
begin
  v_wake := millrace.advance_others(p_stage_id, v_runs, true);
  perform millrace.finish_runs(p_stage_id, v_runs);
  perform millrace.show_status(r.pipeline_id, array_agg(r.entity_id))
  from millrace.runs r
  where r.id = any (v_runs) and r.status = 'completed'
  group by r.pipeline_id;
  return v_wake;
end
$$;

-- Follows a failure for good with a skip, unless a user's trigger has started the stage over.
create function millrace.skip_failed_stage(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    join millrace.attempts a on a.run_id = r.id and a.stage_id = p_stage_id
    where r.id = any (p_run_ids)
      and r.status = 'running'
      and a.state = 'failed'
      and millrace.is_last_word(a)
    order by r.id);
begin
  perform millrace.add_skipped(array[p_stage_id], v_runs,
    '{"code": "failed", "message": "the stage failed, and the run goes on without it"}');
  -- No join: by an old plan it would compare each with all attempts of the stage.
  update millrace.attempts a
  set parent_id = (
    select o.id
    from millrace.attempts o
    where o.run_id = a.run_id and o.stage_id = p_stage_id and o.number = a.number - 1)
  where a.run_id = any (v_runs)
    and a.stage_id = p_stage_id
    and a.state = 'skipped'
    and not a.superseded;
  return millrace.continue_after_skip(p_stage_id, v_runs);
end
$$;

-- Begins all that may begin in runs, and clears on the rows what has not begun.
create function millrace.begin_branches(p_run_ids bigint[]) returns int[]
as $$
begin
  perform millrace.project_queued(g.pipeline_id, null, g.pending, g.entity_ids)
  from (
    select r.pipeline_id, array_agg(r.entity_id) as entity_ids, array(
      select vs.stage_id
      from millrace.version_stages vs
      where vs.version_id = r.version_id
        and not exists (
          select
          from millrace.attempts a
          where a.run_id = r.id and a.stage_id = vs.stage_id and not a.superseded)) as pending
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id and p.projection <> 'none'
    where r.id = any (p_run_ids)
      -- A user's trigger may have begun another run of the row.
      and (r.status = 'running' or millrace.is_latest_run(r.id))
    group by 1, 3) g;
  return millrace.begin_followers(null, p_run_ids);
end
$$;

-- Shows the latest runs of held entities, where the pipeline has one status column.
create function millrace.show_status(p_pipeline_id int, p_entity_ids text[])
as $$
begin
  if cardinality(p_entity_ids) > 0 and (
      select p.projection = 'status'
      from millrace.pipelines p
      where p.id = p_pipeline_id) then
    perform millrace.project_entities(p_pipeline_id, 'settle', null, array(
      select millrace.change_of(i, 'queued')
      from unnest(p_entity_ids) i), null, null);
  end if;
end
$$;
