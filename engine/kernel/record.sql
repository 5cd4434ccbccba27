-- Recording a batch: its locks, the check of each item, and the transitions by stage and outcome

-- Locks, checks and records a parsed batch. Each lock waits at most two of the Data API's eight
-- seconds.
-- verdicts: the answer to each item, {attempt, reason, verdict}.
-- ready: the stages that got work.
-- uniform: all items were accepted as lock_uniform_batch() allows.
create function millrace.record_items(
  p_items millrace.work[], out verdicts json, out ready int[], out uniform boolean
)
set lock_timeout = '2s'
as $$
  c_accepted constant text := ',"reason":null,"verdict":"accepted"}';
  v_batch record;
  v_done record;

uniform := false;
if p_items = '{}' then
  verdicts := '[]';
  ready := '{}';
  return;
end if;
v_batch := millrace.lock_uniform_batch(p_items);
if v_batch.result_limit_bytes is not null then
  begin
    ready := millrace.complete(
      p_items[1].stage_id, p_items, v_batch.result_limit_bytes, v_batch.run_ids);
    -- Building the JSON row by row costs five times as much.
    verdicts := '[{"attempt":'
      || array_to_string(v_batch.attempt_ids, c_accepted || ',{"attempt":') || c_accepted || ']';
    uniform := true;
    return;
  exception when anything then
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
  end;
end if;
v_done := millrace.apply_outcomes_guarded(millrace.check_fencing(p_items,
  millrace.lock_attempts(
    array(select i.attempt_id from unnest(p_items) i where i.verdict is null))));
ready := v_done.ready;
verdicts := millrace.verdicts_of(v_done.items);
$$;

-- Locks a batch whose items are all completed, under one token of one stage that has no apply
-- function and no endings. This way saves a quarter of a transition's CPU time. Returns nulls where
-- an item differs, a result may be too large, or another transaction has locked a row. complete()
-- checks afterwards that the attempts are still started under the token.
create function millrace.lock_uniform_batch(
  p_items millrace.work[],
  out result_limit_bytes int, out attempt_ids bigint[], out run_ids bigint[]
)
as $$
  v_stage_id int := p_items[1].stage_id;
  v_token uuid := p_items[1].token;
  v_reported_token text := v_token::text;
  v_batch record;

select s.pipeline_id, s.result_limit_bytes,
  p.projection <> 'none' or millrace.writes_entities(p.id) as writes,
  b.attempt_ids, b.run_ids, b.entity_ids, b.size, b.alike
into v_batch
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join lateral (
  select array_agg(i.attempt_id) as attempt_ids, array_agg(i.run_id) as run_ids,
    array_agg(i.entity_id) as entity_ids, count(*) as size,
    bool_and(i.outcome = 'completed' and i.stage_id = s.id and i.token = v_token
      and i.reported_token = v_reported_token and i.verdict is null and i.reason is null
      -- A number such as 1e-300 has a text twenty times as long.
      and pg_column_size(i.result) < s.result_limit_bytes / 32) as alike
  from unnest(p_items) i
) b
where s.id = v_stage_id and s.apply is null and not s.has_ends;
if v_batch.alike is not true
  or v_batch.writes and v_batch.size > cardinality(
    millrace.lock_entities(v_batch.pipeline_id, v_batch.entity_ids, false)) then
  return;
end if;
if v_batch.size > (
    select count(*)
    from (
      select from millrace.runs r
      where r.id = any (v_batch.run_ids)
      order by r.id
      for no key update skip locked) r) then
  return;
end if;
result_limit_bytes := v_batch.result_limit_bytes;
attempt_ids := v_batch.attempt_ids;
run_ids := v_batch.run_ids;
$$;

-- Returns the items with their attempts' data and their verdicts. Called after the locks, so that
-- its snapshot has what the locks guard.
-- p_locked: the attempts that the caller has locked.
-- p_late: the positions of ends of jobs that an earlier attempt submitted.
create function millrace.check_fencing(
  p_items millrace.work[], p_locked bigint[], p_late int[] default '{}'
) returns millrace.work[]
as $$
  v_twice bigint[] := array(
    select i.attempt_id
    from unnest(p_items) i
    where i.verdict is null
    group by i.attempt_id
    having count(*) > 1);

return array(
  select jsonb_populate_record(i, jsonb_build_object(
    'token', a.token, 'run_id', a.run_id, 'stage_id', a.stage_id, 'was', a.state,
    'entity_id', r.entity_id, 'verdict', v.verdict, 'reason', case
      when v.verdict = 'busy' then 'the entity is locked by another transaction'
      when v.verdict = 'rejected' then coalesce(i.reason,
        case when i.outcome = 'waiting' and s.kind = 'map' then 'the children are not all '
          'spawned: send the last chunk, with p_last, first' end,
        format('attempt %s is listed twice in one call', i.attempt_id))
      when v.verdict is distinct from 'stale' then coalesce(i.reason, l.too_large)
      when i.ord = any (p_late) and l.too_large is not null then l.too_large
      when l.elsewhere then 'the job was submitted for another run'
      else millrace.stale_reason(a.state, a.error) end)
    || case when l.too_large is null then '{}' else jsonb_build_object(
      'outcome', 'failed', 'result', null, 'error', jsonb_build_object(
        'code', 'result_too_large', 'permanent', true, 'message', l.too_large)) end)
  from unnest(p_items) i
  left join millrace.attempts a on a.id = any (array[i.attempt_id])
  left join millrace.runs r on r.id = any (array[a.run_id])
  left join millrace.stages s on s.id = a.stage_id
  cross join lateral (
    select case when i.outcome = 'completed' and octet_length(i.result::text)
        > s.result_limit_bytes then format(
          'the result has %s bytes, but the limit of stage %s is %s; '
          'put it into Storage and return its location',
          octet_length(i.result::text), s.name, s.result_limit_bytes) end as too_large,
      i.claimed_stage <> s.name or i.claimed_trace <> r.trace_id::text as elsewhere
    offset 0) l
  cross join lateral (
    select millrace.verdict_of(p_items, i, a, s.kind,
      l.elsewhere or i.ord = any (p_late) and l.too_large is not null,
      i.attempt_id = any (v_twice), a.id = any (p_locked), i.ord = any (p_late)) as verdict
    offset 0) v
  order by i.ord);
$$;

-- Returns the verdict of one item, by the first case that applies to its attempt. Null: the item is
-- to be recorded.
-- p_kind: the kind of the stage.
-- p_elsewhere: the job was submitted for another run or stage, or its late result is too large.
-- p_twice: the call lists the attempt more than once.
-- p_locked: the caller has locked the attempt.
-- p_late: an earlier attempt submitted the job.
create function millrace.verdict_of(
  p_items millrace.work[], p_item millrace.work, p_attempt millrace.attempts, p_kind text,
  p_elsewhere boolean, p_twice boolean, p_locked boolean, p_late boolean
) returns text
as $$
  v_state text := p_attempt.state;
  v_by_worker boolean := p_item.reported_token is not null;
  v_same_job boolean :=
    p_attempt.service = p_item.service and p_attempt.job_id = p_item.job_id;
  v_repeat text;
  v_unspawned boolean := p_kind = 'map' and p_item.outcome = 'waiting'
    and millrace.hook_unspawned(p_attempt);

if p_twice and p_item.verdict is null then
  -- The second of two jobs is busy until the first is recorded.
  v_repeat := (
    select case when not v_by_worker and bool_or(e.job_id <> p_item.job_id) then 'busy'
      else 'rejected' end
    from unnest(p_items) e
    where e.attempt_id = p_item.attempt_id and e.verdict is null and e.ord < p_item.ord
    having count(*) > 0);
end if;
return case
  when p_item.verdict is not null then p_item.verdict
  when v_repeat is not null then v_repeat
  when p_attempt.id is null then 'stale'
  when not p_locked then 'busy'
  -- A worker's report, under the token of its claim
  when v_by_worker and p_attempt.token::text is distinct from p_item.reported_token then 'stale'
  when v_by_worker and v_state = 'started' and v_unspawned then 'rejected'
  when v_by_worker and v_state = 'started' then null
  when v_by_worker and v_state = p_item.outcome then 'duplicate'
  when v_by_worker and v_state = 'completed' and p_item.outcome = 'waiting' then 'duplicate'
  when v_by_worker then 'stale'
  -- The end of a job, which may come before its worker's report
  when p_elsewhere then 'stale'
  when v_state in ('started', 'queued') then null
  when v_state = 'waiting' and (p_late or v_same_job) then null
  when v_state = 'completed' and p_item.outcome = 'completed'
    and p_attempt.service is distinct from 'by_hand' then 'duplicate'
  when v_state = p_item.outcome and v_same_job then 'duplicate'
  else 'stale'
end;
$$;

-- Returns why a report changes nothing at an attempt in this state.
-- p_state: null where the attempt does not exist.
create function millrace.stale_reason(p_state millrace.attempt_state, p_error jsonb)
returns text
immutable
as $$
select case
  when p_state is null then 'there is no such attempt: its entity or its run was deleted'
  when p_state = 'cancelled' then 'the attempt was cancelled'
  when p_state = 'failed' and p_error ->> 'code' = 'lost_lease'
    then 'the lease had expired and the attempt was given up'
  when p_state = 'started'
    then 'another worker has the attempt: the token is not the current one'
  else format('the attempt is %s', p_state)
end
$$;

-- Returns why the token's holder may not report for the attempt; null where it may.
create function millrace.void_reason(p_attempt millrace.attempts, p_token uuid) returns text
immutable
as $$
select millrace.stale_reason(p_attempt.state, p_attempt.error)
where (p_attempt.state = 'started' and p_attempt.token = p_token) is not true
$$;

-- Builds the answer to each item of a recorded batch, in the order of the items.
create function millrace.verdicts_of(p_items millrace.work[]) returns json
immutable
as $$
return (
  select json_agg(v)
  from (
    select i.attempt_id as attempt, i.reason,
      coalesce(i.verdict, case when i.reason is null then 'accepted' else 'rejected' end)
        as verdict
    from unnest(p_items) i
    order by i.ord) v);
$$;

-- Records the items without a verdict, by stage and outcome. Failures come last, since a failure
-- may cancel attempts of other items.
-- items: all items; `stale` where an earlier group has ended the attempt.
-- ready: the stages that got work.
create function millrace.apply_outcomes(
  p_items millrace.work[], out items millrace.work[], out ready int[]
)
as $$
  v_group record;
  v_left record;
  v_apply text;

items := array(select i from unnest(p_items) i where i.verdict is not null);
ready := '{}';
for v_group in
  select i.stage_id, i.outcome, array_agg(i order by i.ord) as items,
    row_number() over (order by i.outcome = 'failed', i.stage_id, i.outcome) as ordinal
  from unnest(p_items) i
  where i.verdict is null
  group by i.stage_id, i.outcome
  order by 4
loop
  if v_group.ordinal > 1 then
    v_left := millrace.without_late(v_group.items);
    items := items || v_left.late;
    v_group.items := v_left.in_time;
  end if;
  v_apply := (
    select s.apply || '(jsonb)'
    from millrace.stages s
    where s.id = v_group.stage_id and v_group.outcome = 'completed'
      and v_group.items <> '{}');
  if v_apply is not null then
    if to_regprocedure(v_apply) is null then
      raise exception 'MR004: the stage''s apply function % does not exist', v_apply
        using hint = 'Create it again, or define the pipeline without it; '
          'then retry the dead letters.';
    end if;
    -- A copy writes no rows: the function may have come with a definition later than the copy.
    execute format('select %s($1) where $1 is not null', to_regprocedure(v_apply)::regproc)
    using (
      select json_agg(jsonb_build_object('attempt', i.attempt_id, 'run', i.run_id,
        'entity_id', i.entity_id, 'result', i.result) order by i.ord)::jsonb
      from unnest(v_group.items) i
      where not i.entity_id ^@ 'copy ' or (
        select r.copy_key from millrace.runs r where r.id = i.run_id) is null);
    -- The apply function may have started a stage over or deleted the entity.
    v_left := millrace.without_late(v_group.items);
    items := items || v_left.late;
    v_group.items := v_left.in_time;
  end if;
  items := items || v_group.items;
  continue when v_group.items = '{}';
  case v_group.outcome
    when 'completed' then
      ready := ready || millrace.hook_complete(v_group.stage_id, v_group.items);
    when 'failed' then ready := ready || millrace.fail(v_group.stage_id, v_group.items);
    when 'released' then ready := ready || millrace.release(v_group.stage_id, v_group.items);
    when 'waiting' then perform millrace.wait(v_group.stage_id, v_group.items);
  end case;
end loop;
$$;

-- Splits off the items whose attempts an earlier group of the call has ended. Their verdict is
-- `stale`.
create function millrace.without_late(
  p_items millrace.work[], out in_time millrace.work[], out late millrace.work[]
)
as $$
late := array(
  select jsonb_populate_record(i, '{"verdict": "stale",
    "reason": "the attempt was cancelled by what else the same call did"}')
  from unnest(p_items) i
  left join millrace.attempts a on a.id = any (array[i.attempt_id])
  where i.verdict is null and a.state is distinct from i.was);
in_time := p_items;
if late <> '{}' then
  in_time := array(
    select i
    from unnest(p_items) i
    where i.verdict is not null
      or i.attempt_id not in (select l.attempt_id from unnest(late) l));
end if;
$$;

-- Does what apply_outcomes() does, but an error of Postgres fails one item alone. An item whose
-- error is transient, such as a lock timeout, becomes `busy` instead. Where even the
-- failure raises an error, as where a user's trigger refuses the row's update, the failure is
-- recorded without that update.
-- p_until: until when items with transient errors are tried again.
create function millrace.apply_outcomes_guarded(
  p_items millrace.work[],
  p_until timestamptz default millrace.now() + interval '2 seconds',
  out items millrace.work[], out ready int[]
)
as $$
  v_single constant boolean := cardinality(p_items) = 1;
  v_done record;
  v_kind text;
  v_why text;
  v_hint text;

-- Records the item as reported, then as failed, then as failed without a write of its row.
for v_try in 1 .. case when v_single then 3 else 1 end loop
  begin
    if v_try = 3 then
      perform set_config('millrace.projection_off', 'on', true);
    end if;
    v_done := millrace.apply_outcomes(p_items);
    if v_try = 3 then
      perform set_config('millrace.projection_off', '', true);
    end if;
    items := v_done.items;
    ready := v_done.ready;
    return;
  exception when anything then
    get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
    v_kind := millrace.error_kind(sqlstate, v_context);
    if v_kind = 'fatal' then
      raise;
    end if;
    exit when v_kind = 'transient' or not v_single;
    if v_try = 1 then
      p_items[1].outcome := 'failed';
      p_items[1].error := jsonb_strip_nulls(jsonb_build_object('code', 'sql_' || sqlstate,
        'message', 'the database refused to record this (sql_' || sqlstate || ')',
        'hint', nullif(v_hint, ''), 'detail', v_why, 'permanent', sqlstate ~ '^2[23]'));
      p_items[1].reason := v_why;
    elsif v_try = 2 then
      perform millrace.report('error', 'projection_failed',
        'An entity refuses the projection: ' || v_why,
        jsonb_build_object('entity_id', p_items[1].entity_id));
    end if;
  end;
end loop;
if v_single then
  items := millrace.put_off(p_items, v_why);
  ready := '{}';
else
  select h.items, h.ready into items, ready
  from millrace.apply_outcomes_in_halves(p_items, p_until, v_kind = 'transient') h;
end if;
$$;

-- Records the two halves of a batch that raised, with 200 ms for each lock.
-- p_transient: puts the items in random order first, so that repeated calls get past a locked row.
create function millrace.apply_outcomes_in_halves(
  p_items millrace.work[], p_until timestamptz, p_transient boolean,
  out items millrace.work[], out ready int[]
)
set lock_timeout = '200ms'
as $$
  v_half int := cardinality(p_items) / 2;
  v_left record;
  v_right record;
  v_rest millrace.work[];

if p_transient then
  p_items := array(select i from unnest(p_items) i order by random());
end if;
v_left := millrace.apply_outcomes_guarded(p_items[:v_half], p_until => p_until);
v_rest := p_items[v_half + 1:];
v_right := millrace.without_late(v_rest);
v_rest := v_right.in_time || v_right.late;
if p_transient and millrace.now() >= p_until then
  items := v_left.items
    || millrace.put_off(v_rest, 'others of the same call took too long');
  ready := v_left.ready;
  return;
end if;
v_right := millrace.apply_outcomes_guarded(v_rest, p_until => p_until);
items := v_left.items || v_right.items;
ready := v_left.ready || v_right.ready;
$$;

-- Gives items that the database cannot record now the verdict `busy`. Their senders report them
-- again.
create function millrace.put_off(p_items millrace.work[], p_why text)
returns millrace.work[]
as $$
perform millrace.report_passed_over(p.name, s.name, i.entity_id, p_why)
from (
  select u.stage_id, u.entity_id
  from unnest(p_items) u
  where u.verdict is null
  limit 1) i
join millrace.stages s on s.id = i.stage_id
join millrace.pipelines p on p.id = s.pipeline_id;
return array(
  select case when i.verdict is not null then i
    else jsonb_populate_record(i, jsonb_build_object('verdict', 'busy', 'reason', p_why)) end
  from unnest(p_items) i);
$$;
