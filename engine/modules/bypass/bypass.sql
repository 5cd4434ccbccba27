-- Bypass: a stage is left out for a while, and its rows are remembered
--
-- The call that begins a bypass, and then the sweep, skip the rows that are queued at the stage;
-- the runs go on. millrace.bypassed has each row until take_up() starts it at the stage.

-- Bypasses a stage, or changes its bypass, and skips the first 500 rows or so that are queued
-- there. Raises MR004 for a stage without a function.
-- p_entry: the number of the journal entry.
create function millrace.begin_bypass(
  p_stage millrace.stages, p_request jsonb, p_entry bigint
) returns jsonb
as $$
-- Locks the table of the rows before the stage, in the order of define(). Then reads the stage,
-- which define() may just have changed.
execute format('lock table %s in row exclusive mode', (
  select p.entity_table from millrace.pipelines p where p.id = p_stage.pipeline_id));
select s.* into p_stage from millrace.stages s where s.id = p_stage.id;
if p_stage.function_name is null then
  raise exception 'MR004: stage % cannot be bypassed: no worker takes anything of a % stage',
    p_stage.name, p_stage.kind
    using hint = format(
      'To let one run go on without it: select millrace.skip(run, %L).', p_stage.name);
end if;
update millrace.stages s set bypassed = true where s.id = p_stage.id;
insert into millrace.bypasses as b (stage_id, reason, until, journal_entry, began_at)
values (p_stage.id, p_request ->> 'reason', (p_request ->> 'until')::timestamptz, p_entry, v_now)
on conflict on constraint bypasses_pkey do update set
  reason = excluded.reason, until = excluded.until, journal_entry = excluded.journal_entry;
return jsonb_build_object('until', p_request -> 'until', 'skipped',
  millrace.bypass_queued(p_stage, 500));
$$;

-- Ends the bypass of a stage, and wakes the stage if it has ready work. Returns an empty outcome.
-- Raises MR004 where the stage is not bypassed.
create function millrace.finish_bypass(p_stage millrace.stages) returns jsonb
as $$
update millrace.stages s set bypassed = false where s.id = p_stage.id and s.bypassed;
if not found then
  raise exception 'MR004: stage % is not bypassed', p_stage.name
    using hint = 'Those that are: select * from millrace.bypasses.';
end if;
delete from millrace.bypasses b where b.stage_id = p_stage.id;
perform millrace.wake(case when millrace.has_ready_work(p_stage.id) then array[p_stage.id] end);
return '{}';
$$;

-- Skips about p_limit rows that are queued at stages which are bypassed, or left out while their
-- budget is spent, and returns how many. Ends bypasses whose time is over. A stage whose row is
-- locked keeps its bypass until the next sweep.
create function millrace.sweep_bypasses(p_pipeline_id int, p_limit int) returns int
as $$
  v_stage millrace.stages;
  v_skipped int := 0;

for v_stage in
  select s.*
  from millrace.stages s
  left join millrace.bypasses b on b.stage_id = s.id
  where s.pipeline_id = p_pipeline_id and s.function_name is not null
    and (s.bypassed or s.when_spent = 'bypass' and millrace.is_spent(s))
    and (b.until <= v_now) is not true
  order by s.id
loop
  v_skipped := v_skipped + millrace.bypass_queued(v_stage, p_limit - v_skipped);
end loop;
-- Locks the stages last, since define() locks the table of the rows before its stages.
for v_stage in
  select s.*
  from millrace.stages s
  join millrace.bypasses b on b.stage_id = s.id
  where s.pipeline_id = p_pipeline_id and b.until <= v_now
  order by s.id
  for no key update skip locked
loop
  perform millrace.finish_bypass(v_stage);
end loop;
return v_skipped;
$$;

-- Skips about p_limit rows that are queued at a bypassed stage, due or not, for up to two seconds,
-- and returns how many. Passes over rows that are locked, or for which Postgres raises an error, as
-- where a user's trigger refuses the projection.
create function millrace.bypass_queued(p_stage millrace.stages, p_limit int) returns int
as $$
  v_until timestamptz := clock_timestamp() + interval '2 seconds';
  v_most int := least(p_limit, 500);
  v_more boolean := true;
  v_last_at timestamptz := '-infinity';
  v_last_id bigint := 0;
  v_ids text[];
  v_skipped record;
  v_done int := 0;

while v_more and v_done < p_limit and clock_timestamp() < v_until loop
  select coalesce(array_agg(q.id::text order by q.queue_at, q.id), '{}'), max(q.queue_at),
    count(*) = v_most
  into v_ids, v_last_at, v_more
  from (
    select a.id, a.queue_at
    from millrace.attempts a
    where a.stage_id = p_stage.id and a.queue_at is not null and a.state = 'queued'
      and (a.queue_at, a.id) > (v_last_at, v_last_id)
    order by a.queue_at, a.id
    limit v_most) q;
  v_last_id := v_ids[cardinality(v_ids)];
  v_skipped := millrace.in_halves(v_ids, format(
    'select millrace.bypass_locked(s, millrace.lock_attempts($1::bigint[])) '
    'from millrace.stages s where s.id = %s', p_stage.id), v_until);
  perform millrace.report_passed_over(p.name, p_stage.name, r.entity_id, f.why)
  from unnest(v_skipped.refused) f
  join millrace.attempts a on a.id = f.key::bigint
  join millrace.runs r on r.id = a.run_id
  join millrace.pipelines p on p.id = r.pipeline_id;
  v_done := v_done + v_skipped.done;
end loop;
return v_done;
$$;

-- Skips the stage in locked runs that are queued there, remembers their rows, and returns how many.
-- A claim at the next stages charges a start to its tenant that was not charged before.
create function millrace.bypass_locked(p_stage millrace.stages, p_attempt_ids bigint[]) returns int
as $$
  -- Null where a person has ended the bypass since the sweep read the stage.
  v_reason text := coalesce(
    (select b.reason from millrace.bypasses b where b.stage_id = p_stage.id),
    case when p_stage.when_spent = 'bypass' and millrace.is_spent(p_stage)
      then 'its budget is spent' end);
  v_runs bigint[];
  v_uncounted bigint[];

select array_agg(a.run_id order by a.run_id),
  array_agg(a.run_id) filter (where p_stage.has_quota and a.uncounted)
into v_runs, v_uncounted
from millrace.attempts a
where a.id = any (p_attempt_ids) and a.state = 'queued';
if v_reason is null or v_runs is null then
  return 0;
end if;
insert into millrace.bypassed (stage_id, entity_id, run_id, at, reason)
select p_stage.id, r.entity_id, r.id, v_now, v_reason
from millrace.runs r
where r.id = any (v_runs) and r.copy_key is null
order by r.entity_id
on conflict on constraint bypassed_pkey do update set
  run_id = excluded.run_id, at = excluded.at, reason = excluded.reason;
perform millrace.cancel_attempts(v_runs, array[p_stage.id]);
perform millrace.wake(millrace.skip_stage(p_stage.id, v_runs, jsonb_build_object(
  'code', 'bypassed', 'message', 'bypassed: ' || v_reason)));
perform millrace.hook_started(v_uncounted, v_now) where v_uncounted is not null;
return cardinality(v_runs);
$$;
