-- Conditions: in which runs a stage may begin. The form "(select … limit 1) is null" makes Postgres
-- look up by key.

-- Returns the running runs in which a stage has not begun, its needs are done and its thresholds
-- hold.
create function millrace.runs_ready_for(p_stage_id int, p_run_ids bigint[]) returns bigint[]
as $$
return array(
  select r.id
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  where r.id = any (p_run_ids)
    and (r.status = 'running') is true
    and (
      select a.id
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = p_stage_id and not a.superseded
      limit 1) is null
    and cardinality(vs.needs) = (
      select count(*)
      from millrace.done_attempts n
      where n.run_id = r.id and n.stage_id = any (vs.needs))
    and (vs.after = '[]' or millrace.thresholds_hold(r.id, vs.after))
  order by r.id);
$$;

-- Returns whether all thresholds of a stage hold in a run. A threshold whose number exceeds the
-- number of children holds once each child has passed its stage or is over.
create function millrace.thresholds_hold(p_run_id bigint, p_after jsonb)
returns boolean
as $$
return not exists (
  select from jsonb_to_recordset(p_after) as a(map int, stage int, kind text, n int)
  left join millrace.fan_outs f
    on f.run_id = p_run_id and f.stage_id = a.map and f.state = 'open'
  left join lateral (
    select o.done
    from millrace.fan_progress o
    where o.fan_out_id = f.id and o.stage_id = a.stage
    limit 1) p on true
  where not millrace.is_done(p_run_id, a.map)
    and case
      when f.id is null then true
      when a.kind = 'count' and p.done >= a.n then false
      when a.kind = 'consecutive' and f.total is not null and p.done >= a.n and not exists (
        select from generate_series(a.n - 1, 0, -1) i
        where not exists (
          select from millrace.runs r
          where r.fan_out_id = f.id
            and r.item_key = (f.first_number + i)::text
            and millrace.is_done(r.id, a.stage)
          offset 0)) then false
      -- The sums exclude most cases without reading children. A child that failed after the stage
      -- is in two sums, so the children are read, too.
      else f.total is null
        or coalesce(p.done, 0) + f.failed + f.cancelled < f.total
        or exists (
          select from millrace.runs r
          where r.fan_out_id = f.id and r.status = 'running'
            and not millrace.is_done(r.id, a.stage))
    end);
$$;

-- Returns the rows that conditions read; {} for each where the conditions name no row, and null for
-- a row that is larger than a worker takes.
-- p_conditions: the conditions as text.
create function millrace.condition_rows(p_pipeline_id int, p_entity_ids text[], p_conditions text)
returns json[]
as $$
return case when p_conditions ~ 'entity|\*|keyvalue'
  then millrace.rows_of_entities(p_pipeline_id, p_entity_ids, millrace.batch_bytes())
  else array_fill('{}'::json, array[cardinality(p_entity_ids)]) end;
$$;

-- Returns the runs in which the condition of a stage does not hold. A run whose row is too large is
-- left out: the stage begins, and its claim fails the row.
create function millrace.unmet_runs(p_stage_id int, p_run_ids bigint[]) returns bigint[]
as $$
  v_batch record;

select array_agg(r.id order by r.id) as runs,
  array_agg(r.version_id order by r.id) as versions,
  array_agg(r.entity_id order by r.id) as entity_ids,
  min(r.pipeline_id) as pipeline_id, string_agg(distinct vs.when_path::text, '') as conditions
into v_batch
from millrace.runs r
join millrace.version_stages vs on vs.version_id = r.version_id
  and vs.stage_id = p_stage_id and vs.when_path is not null
where r.id = any (p_run_ids);
if v_batch.runs is null then
  return '{}';
end if;
return array(
  select u.id
  from unnest(v_batch.runs, v_batch.versions,
    millrace.condition_rows(v_batch.pipeline_id, v_batch.entity_ids, v_batch.conditions))
    u(id, version_id, entity)
  join millrace.version_stages vs on vs.version_id = u.version_id and vs.stage_id = p_stage_id
  cross join lateral (
    select coalesce(json_object_agg(s.name, d.output)::jsonb, '{}') as needs
    from millrace.done_attempts d
    join millrace.stages s on s.id = d.stage_id
    where d.run_id = u.id and d.stage_id = any (vs.needs)) n
  where u.entity is not null
    -- An unknown result, as of a text compared with a number, counts as false.
    and jsonb_path_match_tz(
      jsonb_build_object('entity', u.entity, 'needs', n.needs),
      vs.when_path, '{}', true) is not true);
$$;

-- Returns whether a stage of a run is done: completed or skipped.
create function millrace.is_done(p_run_id bigint, p_stage_id int) returns boolean
as $$
return exists (
  select from millrace.done_attempts a
  where a.run_id = p_run_id and a.stage_id = p_stage_id);
$$;
