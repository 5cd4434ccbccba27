-- Taking up: rows that a bypass has left out are started at the stage
--
-- Nobody waits: a row that somebody holds, and one whose run is still live, stays remembered for
-- the next call. What counts is the row's latest run: where the stage is no longer left out there,
-- somebody has started it since, and the row is forgotten.

-- Takes up remembered rows of a stage, oldest first, for up to five seconds; returns how many it
-- started.
create function millrace.take_up_rows(p_stage millrace.stages, p_limit int)
returns int
language plpgsql
as $$
declare
  v_until timestamptz := clock_timestamp() + interval '5 seconds';
  v_last_at timestamptz := '-infinity';
  v_last_run bigint := 0;
  v_next record;
  v_started int := 0;
begin
  perform millrace.check_take_up(p_stage, p_limit);
  loop
    select count(*) as found, array_agg(q.entity_id order by q.at, q.run_id) as ids,
      max(q.at) as at, array_agg(q.run_id order by q.at, q.run_id) as run_ids
    into v_next
    from (
      select b.entity_id, b.at, b.run_id
      from millrace.bypassed b
      where b.stage_id = p_stage.id
        and (b.at, b.run_id) > (v_last_at, v_last_run)
      order by b.at, b.run_id
      limit 500) q;
    exit when v_next.found = 0;
    v_last_at := v_next.at;
    v_last_run := v_next.run_ids[v_next.found];
    v_started := v_started + millrace.take_up_portion(
      p_stage, v_next.ids, p_limit - v_started, v_until);
    exit when v_next.found < 500 or v_started >= p_limit or clock_timestamp() >= v_until;
  end loop;
  return v_started;
end
$$;

-- Raises MR004 unless what is taken up at a stage would be worked there.
create function millrace.check_take_up(p_stage millrace.stages, p_limit int)
returns void
language plpgsql
as $$
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    raise exception 'p_count is %, but must be from 1 to 10000', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Call it again for more.';
  elsif p_stage.bypassed then
    raise exception 'stage % is bypassed: what is taken up would be left out again', p_stage.name
      using errcode = 'MR004',
        hint = 'End that first: select millrace.end_bypass(pipeline, stage).';
  elsif not exists (
      select
      from millrace.pipelines p
      join millrace.version_stages vs
        on vs.version_id = p.current_version_id and vs.stage_id = p_stage.id
      where p.id = p_stage.pipeline_id) then
    raise exception 'stage % is not part of the pipeline''s current version', p_stage.name
      using errcode = 'MR004', hint = 'It was dropped from the definition: start the rows at '
        'another stage with millrace.start().';
  elsif millrace.is_spent_out(p_stage) then
    raise exception 'the budget of stage % is spent: what is taken up would be left out again',
      p_stage.name
      using errcode = 'MR004', hint = 'Wait for the next window, or raise the budget.';
  end if;
end
$$;

-- Takes up those of some remembered rows that may be, as many as p_limit, and forgets those that
-- are gone or were started since. Returns how many it started. Rows whose run is live are not even
-- locked: most of a long list may be.
create function millrace.take_up_portion(
  p_stage millrace.stages, p_ids text[], p_limit int, p_until timestamptz
) returns int
language plpgsql
as $$
declare
  v_wanted text[] := array(
    select i.id
    from unnest(p_ids) i(id)
    where (
      select r.id
      from millrace.runs r
      where r.pipeline_id = p_stage.pipeline_id
        and r.entity_id = i.id
        and r.status = 'running'
      limit 1) is null);
  v_held text[] := millrace.lock_entities(p_stage.pipeline_id, v_wanted, false);
  v_left text[] := array(select w from unnest(v_wanted) w where w <> all (v_held));
  v_found record;
begin
  with latest as materialized (
    select i.id, i.place, case
        when r.id is null then 'pruned'
        when a.left_out is not true then 'since'
        when r.status = 'running' then 'live'
        else 'ready'
      end as state
    from unnest(p_ids) with ordinality i(id, place)
    left join lateral (
      select o.id, o.status
      from millrace.runs o
      where o.entity_id = any (array[i.id])
        and o.pipeline_id = p_stage.pipeline_id
      order by o.entity_id desc, o.id desc
      limit 1) r on true
    left join lateral (
      select w.state = 'skipped' and w.error ->> 'code' = 'bypassed' as left_out
      from millrace.attempts w
      where w.run_id = r.id
        and w.stage_id = p_stage.id
        and not w.superseded
      order by w.number desc
      limit 1) a on true
    where i.id = any (v_held)
  ), next as materialized (
    select l.id, l.state
    from latest l
    where l.state in ('ready', 'pruned')
    order by l.place
    limit p_limit
  )
  select array(select n.id from next n where n.state = 'ready') as ready,
    array(select n.id from next n where n.state = 'pruned') as pruned,
    array(select l.id from latest l where l.state = 'since') as since
  into v_found;
  delete from millrace.bypassed b
  where b.stage_id = p_stage.id
    and b.entity_id in (
      select o.entity_id
      from millrace.bypassed o
      where o.stage_id = p_stage.id
        and o.entity_id = any (v_found.since || array(
          select g.id
          from unnest(v_left, millrace.sizes_of_entities(p_stage.pipeline_id, v_left)) g(id, size)
          where g.size is null))
      for update skip locked);
  return millrace.start_bypassed(p_stage, v_found.ready, false, p_until)
    + millrace.start_bypassed(p_stage, v_found.pruned, true, p_until);
end
$$;

-- Starts held rows and forgets them; returns how many. A row that cannot start stays remembered,
-- and the log says why.
create function millrace.start_bypassed(
  p_stage millrace.stages, p_ids text[], p_first boolean, p_until timestamptz
) returns int
language plpgsql
as $$
declare
  v_started record;
begin
  v_started := millrace.in_halves(p_ids,
    format('select millrace.start_remembered(s, $1, %L) from millrace.stages s where s.id = %s',
      p_first, p_stage.id), p_until);
  perform millrace.report('error', 'not_taken_up', format(
    'Row %s cannot be taken up at stage %s%s: %s', r.key, p_stage.name,
    case when r.others > 0 then ', nor can ' || r.others || ' others' end, r.why))
  from unnest(v_started.refused, v_started.others, v_started.why) r(key, others, why);
  return v_started.done;
end
$$;

-- Forgets held rows and starts them at the stage that was left out, or, where no run of them is
-- known any more, at the first one; returns how many. A stage on demand is begun by its name.
create function millrace.start_remembered(
  p_stage millrace.stages, p_ids text[], p_first boolean
) returns int
language plpgsql
as $$
begin
  delete from millrace.bypassed b
  where b.stage_id = p_stage.id
    and b.entity_id = any (p_ids);
  perform millrace.queue_stage(p_stage.pipeline_id,
    case when p_first then millrace.first_stage(p_stage.pipeline_id) else p_stage.id end,
    p_ids, p_ids, p_by_name => not p_first and exists (
      select
      from millrace.pipelines p
      join millrace.version_stages vs
        on vs.version_id = p.current_version_id and vs.stage_id = p_stage.id
      where p.id = p_stage.pipeline_id
        and vs.on_demand));
  return cardinality(p_ids);
end
$$;

-- Forgets rows whose stage has been done since it was left out, by a run that is about to be
-- pruned: nothing will tell of it any more.
create function millrace.forget_worked(p_run_ids bigint[]) returns void
language plpgsql
as $$
begin
  if exists (select from millrace.bypassed) then
    delete from millrace.bypassed b
    using millrace.runs r
    join millrace.attempts a
      on a.run_id = r.id and a.state = 'completed' and not a.superseded
    where r.id = any (p_run_ids)
      and b.stage_id = a.stage_id
      and b.entity_id = r.entity_id
      and b.run_id <= r.id;
  end if;
end
$$;

-- Finds stages whose switch is not what their bypass says.
create or replace view millrace.bypass_faults (rule, run_id, attempt_id, detail) as
select 'a stage is switched as its bypass says', null::bigint, null::bigint,
  format('stage %s is %s', s.name, case when s.bypassed then 'bypassed' else 'not bypassed' end)
from millrace.stages s
where s.bypassed <> exists (
  select
  from millrace.bypasses b
  where b.stage_id = s.id);
comment on view millrace.bypass_faults is
  'Bypasses that contradict the switch of their stage, for check_invariants().';
