-- Beginning the stages that advance() does not queue by itself. The callers have locked the
-- entities and runs.

-- Returns the runs in which a stage is skipped instead of begun, in groups by the reason.
-- p_by_name: whether the start names the stage, so that its conditions do not count.
-- why: the error that the skipped attempt has.
create function millrace.runs_to_skip(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean
) returns table (run_ids bigint[], why jsonb)
as $$
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
    where a.run_id = r.id and a.state = 'skipped' and not a.superseded
      and a.error -> 'dependents' = 'true'
      and (a.stage_id = any (vs.needs)
        or vs.after @> jsonb_build_array(jsonb_build_object('map', a.stage_id)))) n
  where r.id = any (p_run_ids)) c
where c.why is not null
group by c.why;
$$;

-- Begins the stages that need a stage, in locked runs in which they can begin. Returns the stages
-- to wake.
-- p_stage_id: null means all stages of the runs.
-- p_all: false leaves out unconditional stages, which advance() queues.
create function millrace.begin_followers(
  p_stage_id int, p_run_ids bigint[], p_all boolean default false
) returns int[]
as $$
  v_follower record;
  v_wake int[] := '{}';

for v_follower in
  select f.stage_id, r.ids
  from (
    select o.version_id, array_agg(o.id) as ids
    from millrace.runs o
    where o.id = any (p_run_ids)
    group by o.version_id) r
  join millrace.version_stages f on f.version_id = r.version_id
  where p_stage_id is null
    or (p_all or not f.unconditional)
      and (p_stage_id = any (f.needs)
        or f.after @> jsonb_build_array(jsonb_build_object('map', p_stage_id)))
  order by f.position, r.version_id
loop
  v_wake := v_wake || millrace.hook_begin(v_follower.stage_id,
    millrace.runs_ready_for(v_follower.stage_id, v_follower.ids), false);
end loop;
return v_wake;
$$;

-- Raises MR002 where one of these runs is a copy, which would begin a stage of a kind that it does
-- not. A definition that came after the copy may have given the stage this kind.
create function millrace.refuse_copies(p_run_ids bigint[], p_stage_id int)
as $$
perform millrace.refuse(
  format('stage %s writes rows or asks a person, which no copy does', s.name),
  'Edit the run itself.', 'MR002')
from millrace.stages s
where s.id = p_stage_id and exists (
  select from millrace.runs r where r.id = any (p_run_ids) and r.copy_key is not null);
$$;
