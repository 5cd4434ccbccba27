-- On demand: stages that a person alone begins
--
-- A run that comes to such a stage by itself skips it with all that comes after it, and shows
-- nothing of that, so that it is over. A start by name begins the stage in a run of its own, with
-- the results before it copied (kernel/runs.sql).

-- Picks the runs in whose version a stage begins on demand alone.
create function millrace.undemanded_runs(p_stage_id int, p_run_ids bigint[])
returns bigint[]
language plpgsql volatile
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id and vs.stage_id = p_stage_id and vs.on_demand
    where r.id = any (p_run_ids)
    order by r.id);
end
$$;

-- Says why a stage is skipped that nobody has asked for, or that comes after one.
create function millrace.why_undemanded() returns jsonb
language sql immutable
as $$
  select '{"code": "skipped", "message": "nobody asked for it", "dependents": true,
    "on_demand": true}'::jsonb
$$;
