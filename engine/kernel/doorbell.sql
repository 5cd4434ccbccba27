-- The doorbell: posts to the Edge Functions through pg_net, and what came back
--
-- Every SQL role can read net.http_request_queue, where a request waits with its headers. So the
-- doorbell shows a secret that wakes and does nothing else; the project's secret key wakes only
-- where no such secret is set.

-- Returns what the doorbell shows the functions: wake_secret, else secret_key, else null.
create function millrace.wake_headers() returns jsonb
language plpgsql stable
as $$
declare
  v_wake_secret text := millrace.setting('wake_secret');
  v_secret_key text;
begin
  if v_wake_secret is not null then
    return jsonb_build_object('x-millrace-wake-secret', v_wake_secret);
  end if;
  v_secret_key := millrace.setting('secret_key');
  return case when v_secret_key is not null then jsonb_build_object('apikey', v_secret_key) end;
end
$$;

-- Tells an operator how to set the wake-up secret on both sides.
create function millrace.wake_secret_remedy() returns text
language sql immutable
as $$
  select 'set the function secret MILLRACE_WAKE_SECRET to a random text, then '
    || 'select vault.create_secret(''the same text'', ''millrace_wake_secret'')'
$$;

-- Wakes an Edge Function at commit; this alone calls pg_net. It reports a setting that is missing
-- or wrong and returns false, and never raises: the user's own write goes on.
create function millrace.post(p_function text, p_body jsonb) returns boolean
language plpgsql
as $$
declare
  v_url text;
  v_headers jsonb;
  v_request bigint;
begin
  -- Not as initial values: their errors (a Vault that cannot decrypt) would escape the handler.
  v_url := millrace.setting('project_url');
  v_headers := millrace.wake_headers();
  if v_url is null or v_headers is null then
    perform millrace.report('error', 'doorbell_not_configured',
      'The doorbell cannot wake: project_url or wake_secret is not set',
      jsonb_build_object('hint',
        'select vault.create_secret(''https://REF.supabase.co'', ''millrace_project_url''); '
        || millrace.wake_secret_remedy()));
    return false;
  end if;
  v_request := net.http_post(
    url := rtrim(v_url, '/') || '/functions/v1/' || p_function,
    body := p_body,
    headers := v_headers || '{"Content-Type": "application/json"}' || (
      select jsonb_build_object('x-millrace-level', e.level::text,
        'x-millrace-contracts', array_to_string(e.contracts, ','))
      from millrace.engine() e),
    timeout_milliseconds := 5000);
  insert into millrace.posts (request_id, function_name) values (v_request, p_function);
  return true;
exception
  when others then
    if not millrace.report_caught(sqlstate, null, 'doorbell_failed',
        'The doorbell could not wake: ' || sqlerrm,
        jsonb_build_object('function', p_function, 'project_url', v_url)) then
      raise;
    end if;
    return false;
end
$$;

-- Returns what the functions answered to the last so many posts of the engine, as far as they did.
create function millrace.last_answers(p_limit int)
returns table (
  function_name text, posted_at timestamptz, status_code int, error_msg text, content text
)
language plpgsql stable
as $$
declare
  v_posts millrace.posts[] := array(
    select p from millrace.posts p order by p.posted_at desc limit p_limit);
begin
  return query
    select p.function_name, p.posted_at, r.status_code, r.error_msg, r.content
    from unnest(v_posts) p
    -- pg_net dates an answer by the start of its own transaction, which may be a moment before
    -- ours.
    join net._http_response r
      on r.id = p.request_id and r.created > p.posted_at - interval '1 minute'
    where r.created > (
      select min(o.posted_at) - interval '1 minute'
      from unnest(v_posts) o);
end
$$;

-- Says what helps where a function answered a wake-up so; null where it answered well.
create function millrace.answer_remedy(p_function text, p_status int) returns text
language sql immutable
as $$
  select case
    when p_status between 200 and 299 then null
    when p_status is null then 'correct the setting project_url, or see whether it is up there'
    when p_status = 404 then 'deploy it: npx supabase functions deploy ' || p_function
    when p_status in (401, 403) then millrace.wake_secret_remedy()
    when p_status = 426 then 'deploy it anew: npx supabase functions deploy ' || p_function
    else 'look at the logs of function ' || p_function
  end
$$;
