-- Returns each function's answer to the newest of its answered wake-ups.
-- p_within: how long ago at most the wake-up was sent.
-- answered, means: the answer, and what it means, as text.
-- remedy: what a person should do; null where the function answered well.
create function millrace.last_answers(p_within interval default '10 minutes')
returns table (
  function_name text, answered text, means text, remedy text, answered_at timestamptz
)
stable
set enable_nestloop = off
as $$
select distinct on (p.function_name) p.function_name,
  coalesce('answered ' || r.status_code, 'did not answer'),
  coalesce(
    case
      when r.status_code between 200 and 299 then 'but no worker came'
      when r.status_code = 404 then 'it is not deployed'
      when r.status_code = 503 then 'the function did not start'
      when r.status_code = 546 then 'it used up its memory or CPU'
    end,
    replace(rtrim(substring(r.content from '"message":"((?:[^"\\]|\\.)*)"'), '.'), '\"', '"'),
    r.error_msg,
    'nothing more is known'),
  millrace.answer_remedy(p.function_name, r.status_code), r.created
from millrace.posts p
-- pg_net dates an answer by the start of its own transaction, which can precede the post.
join net._http_response r
  on r.id = p.request_id and r.created > p.posted_at - interval '1 minute'
where p.posted_at > now() - p_within
  and r.created > now() - p_within - interval '1 minute'
  and p.function_name is not null
order by p.function_name, p.posted_at desc
$$;

-- Returns the stages that have had an attempt ready for over 30 seconds and that no worker takes
-- up. Either the stage was woken at least ten seconds ago and no worker came, or the sweep, which
-- would wake the stage, has stopped.
-- since: when the oldest of these attempts became ready.
-- cause: the last answer of the stage's function.
-- why: cause, with the answer's age.
-- remedy: the next step, as text.
create function millrace.unattended()
returns table (
  stage_id int, function_name text, pipeline text, stage text, since timestamptz, cause text,
  why text, remedy text
)
stable
set plan = for_lists
as $$
  v_is_swept boolean := coalesce(millrace.last_sweep() > v_now - interval '1 minute', false);

return query
with found as materialized (
  select s.*, p.name as pipeline, w.queue_at
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id and p.enabled
  cross join lateral (
    select a.queue_at
    from millrace.attempts a
    where a.stage_id = s.id
      and a.queue_at < v_now - interval '30 seconds'
      and a.state = 'queued'
    order by a.queue_at, a.id
    limit 1) w
  where s.function_name is not null and s.enabled and not s.bypassed
    and (not v_is_swept or exists (
      select from millrace.wake_ups r
      where r.stage_id = s.id
        and r.woken_at <= v_now - interval '10 seconds'))
    and millrace.live_workers(s.id) = 0
    and (s.limits is null or millrace.hook_has_room(s))
)
select f.id, f.function_name, f.pipeline, f.name, f.queue_at,
  concat_ws(' ', k.who, k.answered || ':', k.means),
  format('nobody takes it up: %s %s%s: %s', k.who, k.answered,
    ' ' || extract(epoch from now() - l.answered_at)::int || ' s ago', k.means),
  case when f.host is null
    then coalesce(l.remedy, millrace.answer_remedy(f.function_name, 500))
    else 'npx millrace work starts a worker; see the log of one that runs' end
from found f
-- A worker that asks for work by itself was never woken: the answer is of the stage's function.
left join millrace.last_answers() l on l.function_name = f.function_name
  and (f.host is null or f.seen ? 'url')
cross join lateral (
  select case when f.host is null then f.function_name
      else coalesce('the worker at ' || (f.seen ->> 'url'), 'its worker') end as who,
    coalesce(l.answered, 'is silent') as answered, coalesce(
    case when f.host is null then l.means else replace(l.means, 'the function', 'it') end,
    case when f.host is null then 'no wake-up came through, see npx millrace doctor' end,
    'it last asked for work at ' || (f.seen ->> 'seen_at'),
    'none has asked for work') as means) k
order by f.pipeline, f.id;
$$;

-- Returns when the last sweep ran; -infinity before the first. Reads the table, not setting(),
-- which raises where Vault cannot be read.
create function millrace.last_sweep() returns timestamptz
stable
as $$
return (select s.value from millrace.settings s where s.name = 'last_sweep_at');
$$;
