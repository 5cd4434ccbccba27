-- Waking stages
--
-- A wake-up tells a function that a stage has work, and nothing else. It may get lost, come twice
-- or come late: the sweep wakes for any ready work. A leaving worker and a transaction that queues
-- work cannot miss each other. The transaction takes the stage's advisory lock, shared, until its
-- commit, and then looks for a live worker in a fresh snapshot. The worker tries the same lock
-- exclusively, and then looks at the queue.
--
-- Every SQL role can read pg_net's queue. A wake-up therefore carries a secret that can only wake,
-- where one is set.

-- Picks the stages that need a wake-up now, inserts a row of wake_ups for each, and posts to the
-- processes that run stages with host `worker`. Returns the stages that Edge Functions run, for the
-- caller to wake.
-- p_scaling_out: the caller's own stage, which may have live workers and is woken all the same.
create function millrace.stages_to_wake(
  p_stage_ids int[], p_scaling_out int default null
) returns int[]
as $$
  v_since timestamptz := millrace.alive_since();
  -- Above read committed a statement gets no fresh snapshot, so the function always wakes.
  v_look boolean := current_setting('transaction_isolation') = 'read committed';
  v_wakes int[];
  v_at_workers int[];

perform pg_advisory_xact_lock_shared(hashtext('millrace.stage'), s.id)
from (select distinct u.id from unnest(p_stage_ids) u(id) order by u.id) s;
select coalesce(array_agg(s.id) filter (where s.host is null), '{}'),
  array_agg(s.id) filter (where s.host = 'worker')
into v_wakes, v_at_workers
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
where s.id = any (p_stage_ids) and s.enabled and not s.bypassed and p.enabled
  and s.kind <> 'gate'
  and (not v_look or (
    (s.id is not distinct from p_scaling_out or not exists (
      select from millrace.workers w
      where w.stage_id = s.id and w.working and w.left_at is null
        and w.heartbeat_at > v_since))
    and not exists (
      select from millrace.wake_ups r
      where r.stage_id = s.id
        and r.woken_at > v_now - interval '2 seconds')
    -- A stage whose limits are used up is woken later: by a worker that frees a slot, or by the
    -- sweep.
    and (s.limits is null or millrace.hook_has_room(s))));
insert into millrace.wake_ups (stage_id, woken_at)
select r, v_now
from unnest(v_wakes || v_at_workers) r
order by r;
-- An Edge Function knows the project's address alone, so the database posts to processes itself.
if v_at_workers is not null then
  perform millrace.post(s.function_name,
    jsonb_build_object('pipeline', p.name, 'stage', s.name), s.seen ->> 'url')
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  -- Skips a process that has not asked to be woken for a week.
  where s.id = any (v_at_workers)
    and (s.seen ->> 'woken_at')::timestamptz > v_now - interval '7 days';
end if;
return v_wakes;
$$;

-- Lists stages in the form in which functions read a wake-up.
create function millrace.wake_list(p_stage_ids int[]) returns jsonb
stable
as $$
return (
  select coalesce(json_agg(jsonb_build_object(
    'pipeline', p.name, 'stage', s.name, 'function', s.function_name) order by s.id)::jsonb, '[]')
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where s.id = any (p_stage_ids) and s.kind <> 'gate');
$$;

-- Posts a wake-up for each of the stages that has no live worker and no unanswered wake-up. Returns
-- for how many stages it posted.
-- p_noted: the rows of wake_ups exist already, so all stages are woken.
create function millrace.wake(p_stage_ids int[], p_noted boolean default false) returns int
as $$
  v_wakes int[] := case
    when p_noted then p_stage_ids
    else millrace.stages_to_wake(p_stage_ids)
  end;

return (
  select count(*) filter (where millrace.post(
    s.function_name, jsonb_build_object('pipeline', p.name, 'stage', s.name)))
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where s.id = any (v_wakes) and s.kind <> 'gate');
$$;

-- Wakes stages for a worker that could not deliver their wake-ups. The rows of wake_ups exist
-- already.
create function public.millrace_wake(p_stages jsonb)
as $$
perform millrace.require_list('p_stages', jsonb_typeof(p_stages),
  'Send [{"pipeline": "…", "stage": "…"}].');
return jsonb_build_object('woken', millrace.wake(array(
  select (millrace.stage_named(s.value ->> 'pipeline', s.value ->> 'stage')).id
  from jsonb_array_elements(p_stages) s), true));
$$;

-- Has pg_net call an Edge Function once the transaction commits. Returns whether it could. Writes a
-- missing or wrong setting into millrace.log and does not raise, so that the user's own write goes
-- on.
-- p_url: the address of a process to call instead.
create function millrace.post(p_function text, p_body jsonb, p_url text default null)
returns boolean
as $$
  v_url text;
  v_secret text;
  v_key text;

-- The values are read in the body, since the handler catches no error of a declaration.
v_url := millrace.setting('project_url');
v_secret := millrace.setting('wake_secret');
v_key := case when v_secret is null then millrace.setting('secret_key') end;
if v_url is null or coalesce(v_secret, v_key) is null then
  perform millrace.report('error', 'wake_up_not_configured',
    'No function can be woken: project_url or wake_secret is not set',
    '{"hint": "npx millrace connect writes both"}');
  return false;
end if;
insert into millrace.posts (request_id, function_name)
select net.http_post(
  url := coalesce(p_url, rtrim(v_url, '/') || '/functions/v1/' || p_function),
  body := p_body,
  headers := (
    select jsonb_strip_nulls(jsonb_build_object('x-millrace-wake-secret', v_secret,
      'apikey', v_key, 'Content-Type', 'application/json', 'x-millrace-level', e.level::text,
      'x-millrace-contracts', array_to_string(e.contracts, ',')))
    from millrace.engine() e),
  timeout_milliseconds := 5000), p_function;
return true;
exception when others then
  if not millrace.report_caught(sqlstate, null, 'wake_up_failed',
      'No function was woken: ' || sqlerrm,
      jsonb_build_object('function', p_function, 'project_url', v_url)) then
    raise;
  end if;
  return false;
$$;
