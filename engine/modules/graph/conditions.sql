-- Conditions: in which runs a stage may begin
--
-- "(select … limit 1) is null" looks at each run by itself in every plan. "not exists" would let a
-- session that planned it when there were few attempts compare each run with all there are now. So
-- would a join of runs with a list of them, where the statistics are of a time when the table was
-- empty.

-- Picks the runs in which a stage may begin and has not: no attempt counts, its needs are done and
-- its thresholds hold.
create function millrace.open_runs(p_stage_id int, p_run_ids bigint[]) returns bigint[]
volatile
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
      and (
        select a.id
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = p_stage_id
          and not a.superseded
        limit 1) is null
      and cardinality(vs.needs) = (
        select count(*)
        from millrace.done_attempts n
        where n.run_id = r.id
          and n.stage_id = any (vs.needs))
      and (vs.after = '[]' or millrace.thresholds_hold(r.id, vs.after))
    order by r.id);
end
$$;

-- Says whether all thresholds of a stage hold in a run. Where fewer children exist than a number
-- asks for, all of them will do. A map that is done satisfies all.
create function millrace.thresholds_hold(p_run_id bigint, p_after jsonb)
returns boolean
volatile
as $$
declare
  v_after record;
  v_fan_out millrace.fan_outs;
  v_progress millrace.fan_progress;
begin
  for v_after in
    select a.*
    from jsonb_to_recordset(p_after) as a(map int, stage int, kind text, n int)
  loop
    continue when millrace.is_done(p_run_id, v_after.map);
    select f.* into v_fan_out
    from millrace.fan_outs f
    where f.run_id = p_run_id
      and f.stage_id = v_after.map
      and f.state = 'open';
    if not found then
      return false;
    end if;
    select p.* into v_progress
    from millrace.fan_progress p
    where p.fan_out_id = v_fan_out.id
      and p.stage_id = v_after.stage;
    continue when v_after.kind = 'count' and v_progress.done >= v_after.n;
    -- Which number is the smallest is known once all items are. From the last one, which is mostly
    -- done last.
    continue when v_after.kind = 'consecutive'
      and v_fan_out.total is not null
      and v_progress.done >= v_after.n
      and not exists (
        select
        from generate_series(v_after.n - 1, 0, -1) i
        where not exists (
          select
          from millrace.runs r
          where r.fan_out_id = v_fan_out.id
            and r.item_key = (v_fan_out.first_number + i)::text
            and millrace.is_done(r.id, v_after.stage)
          offset 0));
    -- The sums rule most cases out before it reads a child; one that failed after this stage is in
    -- both.
    if v_fan_out.total is null
       or coalesce(v_progress.done, 0) + v_fan_out.failed + v_fan_out.cancelled < v_fan_out.total
       or exists (
         select
         from millrace.runs r
         where r.fan_out_id = v_fan_out.id
           and r.status = 'running'
           and not millrace.is_done(r.id, v_after.stage)) then
      return false;
    end if;
  end loop;
  return true;
end
$$;

-- Picks the runs in which the condition of a stage does not hold. No document is built of a row
-- that is larger than a worker takes, or a few such rows would keep their neighbours from being
-- recorded: the stage begins there, and its claim refuses the row.
create function millrace.unmet_runs(p_stage_id int, p_run_ids bigint[]) returns bigint[]
volatile
as $$
declare
  v_pipeline_id int := (
    select s.pipeline_id from millrace.stages s where s.id = p_stage_id);
  v_asked record;
  v_rows json[];
begin
  select array_agg(r.id order by r.id) as runs,
    array_agg(r.version_id order by r.id) as versions,
    array_agg(r.entity_id order by r.id) as entity_ids,
    -- What names neither the row nor "all there is" does not look at the row.
    bool_or(vs.when_path::text ~ '"entity"|\*|keyvalue') as reads_rows
  into v_asked
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id
    and vs.stage_id = p_stage_id
    and vs.when_path is not null
  where r.id = any (p_run_ids);
  if v_asked.runs is null then
    return '{}';
  end if;
  v_rows := case
    when v_asked.reads_rows then
      millrace.rows_of_entities(v_pipeline_id, v_asked.entity_ids, millrace.batch_bytes())
    else array_fill('{}'::json, array[cardinality(v_asked.runs)])
  end;
  return array(
    select u.id
    from unnest(v_asked.runs, v_asked.versions, v_rows) u(id, version_id, entity)
    join millrace.version_stages vs on vs.version_id = u.version_id and vs.stage_id = p_stage_id
    cross join lateral (
      select jsonb_object_agg(s.name, n.output) as needs
      from millrace.done_attempts n
      join millrace.stages s on s.id = n.stage_id
      where n.run_id = u.id
        and n.stage_id = any (vs.needs)
    ) n
    where u.entity is not null
      -- Unknown counts as false: a comparison with what is not there, or of a text with a number.
      and not coalesce(jsonb_path_match_tz(
        jsonb_build_object('entity', u.entity::jsonb, 'needs', coalesce(n.needs, '{}')),
        vs.when_path, '{}', true), false));
end
$$;

-- Says whether a stage of a run is done.
create function millrace.is_done(p_run_id bigint, p_stage_id int) returns boolean
volatile
as $$
begin
  return exists (
    select
    from millrace.done_attempts a
    where a.run_id = p_run_id
      and a.stage_id = p_stage_id);
end
$$;
