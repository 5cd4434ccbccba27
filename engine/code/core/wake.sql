-- Chapter 15: the doorbell
--
-- A wake-up says "there is work at this stage" and nothing else. It may be lost, doubled or late; the sweep makes good.
--
-- No lost wake-up: who enqueues takes the stage's advisory lock in shared mode (until its commit), and then, in a fresh
-- snapshot, looks for a live worker or an unanswered wake-up. A leaving worker tries the same lock exclusively and looks at
-- the queue again before it signs off. So either the worker sees the work, or the enqueuer sees that the worker has gone.

create or replace function millrace.stages_to_wake(p_stage_ids int[], p_scaling_out int default null) returns int[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  -- Above read committed there is no fresh snapshot to look at, so it always wakes.
  v_look boolean := current_setting('transaction_isolation') = 'read committed';
  v_wakes int[];
begin
  perform pg_advisory_xact_lock_shared(hashtext('millrace.stage'), s.id) from (select distinct u.id from unnest(p_stage_ids) u(id) order by u.id) s;
  v_wakes := array(
    select s.id from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = any (p_stage_ids) and s.enabled and p.enabled and (not v_look or (
      (s.id is not distinct from p_scaling_out
        or not exists (select from millrace.workers w where w.stage_id = s.id and w.left_at is null and w.heartbeat_at > v_now - interval '15 seconds'))
      and not exists (select from millrace.wake_ups r where r.stage_id = s.id and r.rung_at > v_now - interval '2 seconds')
      -- A stage at its limits is woken when a slot is freed, or by the sweep.
      and (s.limits is null or millrace.may_claim(s)))));
  if cardinality(v_wakes) > 0 then
    insert into millrace.wake_ups (stage_id, rung_at) select r, v_now from unnest(v_wakes) r order by r;
  end if;
  return v_wakes;
end
$$;
comment on function millrace.stages_to_wake(int[], int) is 'Of these stages, those to be woken now; each is noted as woken. A worker that scales its own stage out names it, since it is itself alive.';

create or replace function millrace.wake_list(p_stage_ids int[]) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('pipeline', p.name, 'stage', s.name, 'function', s.function_name) order by s.id), '[]')
    from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id where s.id = any (p_stage_ids));
end
$$;
comment on function millrace.wake_list(int[]) is 'Wakes as the functions read them: pipeline, stage, function.';

-- Every SQL role can read net.http_request_queue, where a request waits with its headers. So the doorbell shows a secret
-- that wakes and does nothing else; the project's secret key wakes only where no such secret is set.
create or replace function millrace.wake_headers() returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_ring_secret text := millrace.setting('wake_secret');
  v_secret_key text;
begin
  if v_ring_secret is not null then
    return jsonb_build_object('x-millrace-wake-secret', v_ring_secret);
  end if;
  v_secret_key := millrace.setting('secret_key');
  return case when v_secret_key is not null then jsonb_build_object('apikey', v_secret_key) end;
end
$$;
comment on function millrace.wake_headers() is
  'What the doorbell shows the functions: wake_secret, else secret_key, else null.';

create or replace function millrace.wake_secret_remedy() returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select 'set the function secret MILLRACE_WAKE_SECRET to a random text, then '
    || 'select vault.create_secret(''the same text'', ''millrace_wake_secret'')'
$$;
comment on function millrace.wake_secret_remedy() is 'How an operator sets the wake-up secret on both sides.';

create or replace function millrace.forget_posts(p_keep int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_oldest timestamptz := (
    select p.posted_at from millrace.posts p order by p.posted_at desc offset p_keep - 1 limit 1);
begin
  delete from millrace.posts p
  where p.ctid = any (array(
    select o.ctid from millrace.posts o where o.posted_at < v_oldest for update skip locked));
end
$$;
comment on function millrace.forget_posts(int) is 'Deletes all but about this many of the newest posts.';

create or replace function millrace.last_answers(p_limit int)
returns table (status_code int, error_msg text, content text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_posts millrace.posts[] := array(
    select p from millrace.posts p order by p.posted_at desc limit p_limit);
begin
  return query
    select r.status_code, r.error_msg, r.content
    from unnest(v_posts) p
    -- pg_net dates an answer by the start of its own transaction, which may be a moment before ours.
    join net._http_response r on r.id = p.request_id and r.created > p.posted_at - interval '1 minute'
    where r.created > (select min(o.posted_at) from unnest(v_posts) o) - interval '1 minute';
end
$$;
comment on function millrace.last_answers(int) is
  'What the functions answered to the last so many posts of the engine, as far as they did.';

-- The one place that calls pg_net. A setting that is missing or wrong is reported, never raised: the user's own write goes on.
create or replace function millrace.post(p_function text, p_body jsonb) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_url text;
  v_headers jsonb;
  v_request bigint;
begin
  -- Not as initial values: their errors (a Vault that cannot decrypt) would escape the exception block.
  v_url := millrace.setting('project_url');
  v_headers := millrace.wake_headers();
  if v_url is null or v_headers is null then
    perform millrace.report(
      'error',
      'doorbell_not_configured',
      'The doorbell cannot wake: project_url or wake_secret is not set',
      jsonb_build_object('hint',
        'select vault.create_secret(''https://REF.supabase.co'', ''millrace_project_url''); '
        || millrace.wake_secret_remedy()));
    return false;
  end if;
  v_request := net.http_post(
    url := rtrim(v_url, '/') || '/functions/v1/' || p_function, body := p_body,
    headers := v_headers || '{"Content-Type": "application/json"}' || (
      select jsonb_build_object('x-millrace-level', e.level::text,
        'x-millrace-contracts', array_to_string(e.contracts, ','))
      from millrace.engine() e),
    timeout_milliseconds := 5000);
  insert into millrace.posts (request_id) values (v_request);
  return true;
exception
  when others then
    if millrace.error_kind(sqlstate) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'doorbell_failed', 'The doorbell could not wake: ' || sqlerrm, jsonb_build_object('function', p_function, 'project_url', v_url));
    return false;
end
$$;
comment on function millrace.post(text, jsonb) is 'Wakes an Edge Function through pg_net at commit; false (and a line in millrace.log) when it cannot.';

create or replace function millrace.wake(p_stage_ids int[]) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage jsonb;
  v_rung int := 0;
begin
  for v_stage in select r from jsonb_array_elements(millrace.wake_list(millrace.stages_to_wake(p_stage_ids))) r loop
    v_rung := v_rung + millrace.post(v_stage ->> 'function', v_stage - 'function')::int;
  end loop;
  return v_rung;
end
$$;
comment on function millrace.wake(int[]) is 'Wakes those of the stages that have no live worker and no unanswered wake-up; returns how many.';

create or replace function public.millrace_wake(p_stages jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_stage jsonb;
  v_rung int := 0;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if jsonb_typeof(p_stages) is distinct from 'array' then
    raise exception 'p_stages is %, but must be a list', coalesce(jsonb_typeof(p_stages), 'null') using errcode = 'MR002', hint = 'Send [{"pipeline": "…", "stage": "…"}].';
  end if;
  -- The worker has noted these wake-ups already and could not deliver them, so they are posted without a second look.
  for v_stage in
    select distinct jsonb_build_object('pipeline', s.value ->> 'pipeline', 'stage', n.name, 'function', n.function_name)
    from jsonb_array_elements(p_stages) s, lateral millrace.stage_named(s.value ->> 'pipeline', s.value ->> 'stage') n
  loop
    v_rung := v_rung + millrace.post(v_stage ->> 'function', v_stage - 'function')::int;
  end loop;
  return jsonb_build_object('woken', v_rung);
end
$$;
comment on function public.millrace_wake(jsonb) is 'Asks the database to wake stages that a worker could not reach itself.';
revoke all on function public.millrace_wake(jsonb) from public, anon, authenticated;
grant execute on function public.millrace_wake(jsonb) to service_role;
