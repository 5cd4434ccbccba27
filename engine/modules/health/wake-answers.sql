-- What the functions answered to wake-ups

-- Returns what the functions answered to the last so many posts of the engine, as far as they did.
create function millrace.last_answers(p_limit int)
returns table (
  function_name text, posted_at timestamptz, status_code int, error_msg text, content text
)
stable
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

-- Says what helps where a function, or an address below it, answered a wake-up so; null where it
-- answered well.
create function millrace.answer_remedy(p_function text, p_status int) returns text
language sql immutable
as $$
  select case
    when p_status between 200 and 299 then null
    when p_status is null then 'correct the setting project_url, or see whether it is up there'
    when p_status = 404 then 'deploy it: npx supabase functions deploy ' || f.name
    when p_status in (401, 403) then millrace.wake_secret_remedy()
    when p_status = 426 then 'deploy it anew: npx supabase functions deploy ' || f.name
    else 'look at the logs of function ' || f.name
  end
  from split_part(p_function, '/', 1) f(name)
$$;

-- Tells what became of the wake-up that pg_net has under this id: answered is false until it was.
create function public.millrace_wake_answer(p_request bigint) returns jsonb
stable
as $$
begin
  return coalesce((
    select jsonb_build_object('answered', true, 'status', r.status_code, 'error', r.error_msg,
      'remedy', millrace.answer_remedy('millrace', r.status_code))
    from millrace.posts p
    join net._http_response r
      on r.id = p.request_id and r.created > p.posted_at - interval '1 minute'
    where p.request_id = p_request
    order by p.posted_at desc
    limit 1), '{"answered": false}');
end
$$;
