-- Chapter 16: reports
--
-- What a worker or an external service says about attempts arrives as a JSON list. Each item is parsed, judged under
-- the locks and answered on its own: accepted, duplicate, stale, busy or rejected. The argument is `json`, not `jsonb`:
-- a value that jsonb cannot hold then fails its own attempt and not the whole call.

create or replace function millrace.storable_item(p_item json) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_item json;
  v_why text;
begin
  return p_item::jsonb;
exception when others then
  -- Without the escapes that jsonb refuses, the fields that say whom it concerns can be read; a failure keeps its own error.
  v_why := sqlerrm;
  v_item := regexp_replace(p_item::text, '(?<!\\)((?:\\\\)*)\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\1?', 'g')::json;
  return jsonb_build_object('attempt', v_item ->> 'attempt', 'submission', v_item ->> 'submission', 'token', v_item ->> 'token',
    'service', v_item ->> 'service', 'job_id', v_item ->> 'job_id', 'stage', v_item ->> 'stage', 'trace_id', v_item ->> 'trace_id', 'outcome', case v_item ->> 'outcome' when 'completed' then 'failed' else v_item ->> 'outcome' end)
    || case when v_item ->> 'outcome' = 'completed' then jsonb_build_object('refused', v_why, 'error', jsonb_build_object('code', 'unstorable_result', 'permanent', true,
         'message', format('the result holds something that Postgres cannot store (%s); remove it before returning the result', v_why)))
       else jsonb_build_object('error', jsonb_strip_nulls(jsonb_build_object('detail', v_item #>> '{error,detail}')) || jsonb_build_object('code', v_item #>> '{error,code}', 'message', v_item #>> '{error,message}',
         'permanent', coalesce(v_item #>> '{error,permanent}' = 'true', false))) end;
end
$$;
comment on function millrace.storable_item(json) is 'An item as jsonb; one that jsonb cannot hold becomes a failure that says so.';

create or replace function millrace.items_of(p_items json) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_items jsonb;
  v_count int;
begin
  if p_items is null or json_typeof(p_items) <> 'array' then
    raise exception 'p_items is %, but must be a list', coalesce(json_typeof(p_items), 'null') using errcode = 'MR002', hint = 'Send a JSON list, an empty one when there is nothing to report.';
  end if;
  begin
    v_items := p_items;
    -- Counted like this, since counting the items of a json value parses all of it once more.
    v_count := jsonb_array_length(v_items);
  exception when others then
    v_count := json_array_length(p_items);
  end;
  if v_count > 1000 then
    raise exception 'p_items has % items, but one call takes at most 1000', v_count using errcode = 'MR002', hint = 'Send them in several calls; nothing of this one was recorded.';
  end if;
  return coalesce(v_items, (select jsonb_agg(millrace.storable_item(i.value) order by i.ordinality) from json_array_elements(p_items) with ordinality i));
end
$$;
comment on function millrace.items_of(json) is 'The list of reports as jsonb, item by item where the whole cannot be.';

create or replace function millrace.item_fault(p_item jsonb, p_key text, p_id bigint) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_outcome text := p_item ->> 'outcome';
begin
  return case
    -- What names an attempt is an object, whatever other keys it has.
    when p_id is null and p_item ->> 'malformed' is not null then format('an item must be an object, this is %s', p_item ->> 'malformed')
    when p_id is null then format('%s must be the number of an attempt, this is %s', p_key, coalesce(p_item ->> p_key, 'null'))
    when p_key = 'attempt' and p_item ->> 'token' is null then 'token must be the one that the claim handed over, this is null'
    when v_outcome is null or v_outcome not in ('completed', 'failed', 'waiting', 'released') or (p_key = 'submission' and v_outcome in ('waiting', 'released'))
      then format('outcome must be completed, failed, waiting or released (of a job: completed or failed), this is %s', coalesce(v_outcome, 'null'))
    when v_outcome = 'completed' and not p_item ? 'result' then 'a completed item must have a result'
    when (v_outcome = 'waiting' or p_key = 'submission') and (p_item ->> 'service' is null or p_item ->> 'job_id' is null) then 'service and job_id must name the external job'
    when v_outcome = 'released' and p_item ->> 'limit' not in ('cpu', 'memory')
      then format('limit must be cpu, memory or left out, this is %s', p_item ->> 'limit')
    when v_outcome = 'failed' and jsonb_typeof(p_item #> '{error,retry_after_ms}') not in ('number', 'null') then 'error.retry_after_ms must be a number of milliseconds'
    when v_outcome = 'failed' and jsonb_typeof(p_item #> '{error,permanent}') not in ('boolean', 'null') then 'error.permanent must be true or false'
  end;
end
$$;
comment on function millrace.item_fault(jsonb, text, bigint) is 'What is malformed about a report; null when nothing is. id: the attempt''s number, null where the item names none.';

-- A released item says by `limit` that its function reached one of the platform's.
create or replace function millrace.limit_error(p_limit text) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object('code', 'resource_limit', 'message', format(
    'the function reached the platform''s limit of %s while it worked on this row isolated; '
    'give the row less to do, or the stage less to do in one call',
    case p_limit when 'cpu' then 'CPU time' else p_limit end))
  where p_limit is not null
$$;
comment on function millrace.limit_error(text) is
  'The error of an attempt that ran alone when its function reached this limit; null without one.';

-- p_key is 'attempt' for what a worker says (which must show a token) and 'submission' for an external job's end.
create or replace function millrace.parse_items(p_items json, p_key text) returns millrace.work[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_items jsonb := millrace.items_of(p_items);
begin
  if jsonb_path_exists(v_items, '$[*] ? (@.type() != "object")') then
    v_items := (select jsonb_agg(case when jsonb_typeof(i.value) = 'object' then i.value else jsonb_build_object('malformed', jsonb_typeof(i.value)) end order by i.ordinality)
                from jsonb_array_elements(v_items) with ordinality i);
  end if;
  return array(
    select row(f.ordinality, k.id, a.token, f.token, f.outcome, case when f.outcome = 'completed' then coalesce(f.result, 'null') end,
      case when jsonb_typeof(f.usage) = 'object' then f.usage end,
      case
        when f.outcome = 'failed' then
          jsonb_build_object('code', 'unknown', 'message', 'no error was given')
          || case when jsonb_typeof(f.error) = 'object' then f.error else '{}' end
        when f.outcome = 'released' then millrace.limit_error(f."limit")
      end,
      f.service, f.job_id, a.run_id, a.stage_id, r.entity_id, a.state,
      case when v.reason is not null then 'rejected' end, coalesce(v.reason, f.refused), f.stage, f.trace_id)::millrace.work
    from rows from (jsonb_to_recordset(v_items) as (
        attempt text, submission text, token text, outcome text, result jsonb, usage jsonb,
        error jsonb, "limit" text, service text, job_id text, stage text, trace_id text,
        refused text))
      with ordinality f(attempt, submission, token, outcome, result, usage,
        error, "limit", service, job_id, stage, trace_id, refused, ordinality)
    cross join lateral (select case p_key when 'attempt' then f.attempt else f.submission end as id) n
    cross join lateral (select case when ltrim(n.id, '0123456789') = '' and length(n.id) between 1 and 18 then n.id::bigint end as id) k
    left join millrace.attempts a on a.id = k.id and p_key = 'attempt'
    left join millrace.runs r on r.id = a.run_id
    cross join lateral (
      select case when k.id is null or f.token is null or f.outcome is distinct from 'completed' or f.result is null or p_key = 'submission'
        then millrace.item_fault(v_items -> (f.ordinality - 1)::int, p_key, k.id) end as reason
    ) v
    order by f.ordinality);
end
$$;
comment on function millrace.parse_items(json, text) is 'Reports as work items; one that is malformed carries the verdict rejected and the reason. What a worker''s items concern is filled in as it was before any lock.';

-- What the attempt's state means for somebody who comes too late.
create or replace function millrace.stale_reason(p_state millrace.attempt_state, p_error jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_state is null then 'there is no such attempt: its entity or its run was deleted'
    when p_state = 'cancelled' then 'the attempt was cancelled'
    when p_state = 'failed' and p_error ->> 'code' = 'lost_lease' then 'the lease had expired and the attempt was given up'
    when p_state = 'started' then 'another worker has the attempt: the token is not the current one'
    else format('the attempt is %s', p_state)
  end
$$;
comment on function millrace.stale_reason(millrace.attempt_state, jsonb) is 'Why a report on an attempt in this state changes nothing.';

-- The waiting attempt must wait for this very job, or a job of an earlier submission that comes late; one that is started
-- or queued has not said yet. A stage that is completed needs no other result, whichever submission's it has; what a
-- person completed is void for every job.
create or replace function millrace.verdict_on_end(
  p_attempt millrace.attempts, p_item millrace.work, p_late boolean, p_too_large boolean
) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_late and p_too_large then 'stale'
    when p_attempt.state in ('started', 'queued') then null
    when p_attempt.state = 'waiting' and (p_late or e.same_job) then null
    when p_attempt.state = 'completed' and p_item.outcome = 'completed'
      and p_attempt.service is distinct from 'by_hand' then 'duplicate'
    when p_attempt.state::text = p_item.outcome and e.same_job then 'duplicate'
    else 'stale'
  end
  from (select p_attempt.service = p_item.service and p_attempt.job_id = p_item.job_id as same_job) e
$$;
comment on function millrace.verdict_on_end(millrace.attempts, millrace.work, boolean, boolean) is 'Verdict on the end of an external job for the attempt that it is about; null to go on. late: an earlier submission''s job.';

-- Fills in what each item concerns, and its verdict. Call it after the locks: it must read a snapshot taken under them.
-- p_late names, by their place, the ends of jobs that an earlier submission bought.
create or replace function millrace.check_fencing(p_items millrace.work[], p_locked bigint[], p_late int[] default '{}') returns millrace.work[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_twice bigint[] := array(select i.attempt_id from unnest(p_items) i where i.verdict is null group by i.attempt_id having count(*) > 1);
begin
  return array(
    select row(i.ord, i.attempt_id, a.token, i.shown,
      case when l.too_large then 'failed' else i.outcome end, case when l.too_large is not true then i.result end, i.usage,
      case when l.too_large then jsonb_build_object('code', 'result_too_large', 'permanent', true, 'message', l.message) else i.error end,
      i.service, i.job_id, a.run_id, a.stage_id, r.entity_id, a.state, v.verdict,
      case v.verdict when 'stale' then case when i.ord = any (p_late) and l.too_large then l.message when i.claimed_stage <> s.name or i.claimed_trace <> r.trace_id::text
          then 'the job was submitted for another run' else millrace.stale_reason(a.state, a.error) end when 'busy' then 'the entity is locked by another transaction'
        when 'rejected' then coalesce(i.reason, case when i.outcome = 'waiting' and s.kind = 'map' then 'the children are not all spawned: send the last chunk, with p_last, first' end, format('attempt %s is listed twice in one call', i.attempt_id)) else coalesce(i.reason, l.message) end, i.claimed_stage, i.claimed_trace)::millrace.work
    from unnest(p_items) i
    left join millrace.attempts a on a.id = i.attempt_id
    left join millrace.runs r on r.id = a.run_id
    left join millrace.stages s on s.id = a.stage_id
    cross join lateral (
      select z.size > s.result_limit_bytes as too_large, case when z.size > s.result_limit_bytes then
        format('the result has %s bytes, but the limit of stage %s is %s; put it into Storage and return its location', z.size, s.name, s.result_limit_bytes) end as message
      -- offset 0 keeps the planner from pulling the text form up into each of its uses.
      from (select case when i.outcome = 'completed' then octet_length(i.result::text) else 0 end as size offset 0) z
    ) l
    cross join lateral (
      select case
        when i.verdict is not null then i.verdict
        -- Two jobs of one attempt that end in one call: the second is judged when the first is recorded.
        when i.attempt_id = any (v_twice) and i.shown is null and exists (
          select from unnest(p_items) u
          where u.attempt_id = i.attempt_id and u.verdict is null and u.ord < i.ord and u.job_id <> i.job_id) then 'busy'
        when i.attempt_id = any (v_twice)
          and exists (select from unnest(p_items) u where u.attempt_id = i.attempt_id and u.verdict is null and u.ord < i.ord) then 'rejected'
        when a.id is null then 'stale'
        when not a.id = any (p_locked) then 'busy'
        when i.shown is not null then case
          when a.state = 'started' and a.token::text = i.shown and i.outcome = 'waiting' and s.kind = 'map'
            and not exists (select from millrace.fan_outs f where f.run_id = a.run_id and f.stage_id = a.stage_id and f.state = 'open' and f.total is not null) then 'rejected'
          when a.state = 'started' and a.token::text = i.shown then null
          when a.token::text = i.shown and a.state::text in (i.outcome, case when i.outcome = 'waiting' then 'completed' end) then 'duplicate'
          else 'stale' end
        -- An external job of another project, or of a database that was since made anew, must not end this attempt.
        when i.claimed_stage <> s.name or i.claimed_trace <> r.trace_id::text then 'stale'
        else millrace.verdict_on_end(a, i, i.ord = any (p_late), l.too_large) end as verdict
    ) v
    order by i.ord);
end
$$;
comment on function millrace.check_fencing(millrace.work[], bigint[], int[]) is 'Verdict of each item under the locks: null to go on, else duplicate, stale, busy or rejected with the reason.';

-- The batch that nearly all are: everything completed under one token of one stage, with no function to apply. Once its entities and runs are held, one
-- look at the attempts, in a snapshot of its own, tells that check_fencing() would let all of it go on.
create or replace function millrace.lock_uniform_batch(p_items millrace.work[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_token uuid := p_items[1].token;
  v_stage record;
  v_batch record;
begin
  select s.id, s.pipeline_id, s.result_limit_bytes, millrace.writes_entities(s.pipeline_id) as writes into v_stage from millrace.stages s where s.id = p_items[1].stage_id and s.apply is null;
  select array_agg(i.attempt_id) as attempt_ids, array_agg(i.run_id) as run_ids, array_agg(i.entity_id) as entity_ids, count(*) as size,
    -- Its text is longer than the jsonb value, of a list of numbers such as 1e-300 twenty times; 32 times is more than any number of a function needs.
    bool_and(i.outcome = 'completed' and i.stage_id = v_stage.id and i.token = v_token and i.shown = v_token::text and i.verdict is null and i.reason is null
      and pg_column_size(i.result) < v_stage.result_limit_bytes / 32) as alike
  into v_batch from unnest(p_items) i;
  if v_batch.alike is not true then
    return null;
  end if;
  if v_stage.writes and cardinality(millrace.lock_entities(v_stage.pipeline_id, v_batch.entity_ids, false)) < v_batch.size then
    return null;
  end if;
  if v_batch.size > (select count(*) from (select from millrace.runs r where r.id = any (v_batch.run_ids) order by r.id for no key update skip locked) r) then
    return null;
  end if;
  return case when v_batch.size = (select count(*) from millrace.attempts a where a.id = any (v_batch.attempt_ids) and a.token = v_token and a.state = 'started')
    -- A definition that holds the entities' table makes the locks wait, and counts from then on.
    and exists (select from millrace.stages s where s.id = v_stage.id and s.apply is null and s.result_limit_bytes >= v_stage.result_limit_bytes) then v_batch.attempt_ids end;
end
$$;
comment on function millrace.lock_uniform_batch(millrace.work[]) is 'Locks a batch whose items are all completed under one token of one stage without an apply function. Returns the attempts when all of it was free and may go on; null: it is to be locked and judged item by item.';

create or replace function millrace.verdicts_of(p_items millrace.work[]) returns json
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select json_agg(v)
    from (
      select i.attempt_id as attempt, i.reason,
        coalesce(i.verdict, case when i.reason is null then 'accepted' else 'rejected' end) as verdict
      from unnest(p_items) i
      order by i.ord) v);
end
$$;
comment on function millrace.verdicts_of(millrace.work[]) is 'The answer to each item of a settled batch, in order.';

-- Two seconds, of the eight that the Data API gives a call, for whatever a user's trigger waits for.
create or replace function millrace.record_items(p_items millrace.work[], out verdicts json, out ready int[])
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '2s'
as $$
declare
  v_alike bigint[];
  v_done record;
begin
  if cardinality(p_items) = 0 then
    verdicts := '[]';
    ready := '{}';
    return;
  end if;
  v_alike := millrace.lock_uniform_batch(p_items);
  if v_alike is not null then
    v_done := millrace.apply_outcomes_guarded(p_items, p_alike => true);
  else
    v_done := millrace.apply_outcomes_guarded(millrace.check_fencing(p_items, millrace.lock_attempts(array(select i.attempt_id from unnest(p_items) i where i.verdict is null))));
  end if;
  ready := v_done.ready;
  if v_done.items is null then
    select json_agg(v) into verdicts from (select i.id as attempt, null as reason, 'accepted' as verdict from unnest(v_alike) i(id)) v;
  else
    verdicts := millrace.verdicts_of(v_done.items);
  end if;
end
$$;
comment on function millrace.record_items(millrace.work[]) is 'Locks, judges and settles a parsed batch.';

-- A job whose deadline passed, or whose worker was lost, may still end well. Its result is as good as that of the job that
-- was bought after it, unless somebody has voided it since: by starting the stage over, a reset, a cancel, or by ending an
-- attempt by hand.
create or replace function millrace.successor_of(p_attempt millrace.attempts) returns millrace.attempts
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_newest millrace.attempts;
begin
  if p_attempt.state <> 'failed'
     or p_attempt.superseded
     or coalesce(p_attempt.error ->> 'code', '') not in ('deadline', 'lost_lease') then
    return null;
  end if;
  select a.* into v_newest
  from millrace.attempts a
  where a.run_id = p_attempt.run_id and a.stage_id = p_attempt.stage_id and a.number > p_attempt.number
  order by a.number desc
  limit 1;
  if v_newest.state in ('queued', 'started', 'waiting', 'completed')
     and not v_newest.superseded
     and not exists (
       select from millrace.attempts a
       where a.run_id = p_attempt.run_id
         and a.stage_id = p_attempt.stage_id
         and a.number > p_attempt.number
         and (a.state = 'cancelled' or a.service = 'by_hand')) then
    return v_newest;
  end if;
  return null;
end
$$;
comment on function millrace.successor_of(millrace.attempts) is 'The attempt that a late result of this one, whose deadline passed or whose worker was lost, completes or comes too late for; null when there is none.';

-- Finds the attempt that each job's end is about. Call it after the locks: a sweep that replaces an attempt while a callback is
-- on its way must not make that callback stale.
create or replace function millrace.address_ends(
  p_items millrace.work[], p_locked bigint[], out items millrace.work[], out late int[]
)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt millrace.attempts;
  v_next millrace.attempts;
  v_job record;
begin
  items := p_items;
  late := '{}';
  for v_i in 1 .. cardinality(items) loop
    continue when items[v_i].verdict is not null or items[v_i].attempt_id <> all (p_locked);
    -- The newest that carries the submission; offset 0 keeps the planner from walking all attempts backwards for max().
    items[v_i].attempt_id := coalesce(
      (select max(c.id)
       from (select a.id from millrace.attempts a where a.submission_id = items[v_i].attempt_id offset 0) c),
      items[v_i].attempt_id);
    select a.* into v_attempt from millrace.attempts a where a.id = items[v_i].attempt_id;
    v_next := millrace.successor_of(v_attempt);
    continue when v_next.id is null;
    v_job := (items[v_i].service, items[v_i].job_id);
    if (v_next.service, v_next.job_id) = v_job then
      -- Submitted again under the key of the stage's execution, so that its service gave it the same job.
      items[v_i].attempt_id := v_next.id;
    elsif items[v_i].outcome = 'completed'
       and coalesce((v_attempt.service, v_attempt.job_id) = v_job, true) then
      -- A failure would say nothing about the later job; and what waited for a job takes no other one's result.
      items[v_i].attempt_id := v_next.id;
      late := late || items[v_i].ord;
    end if;
  end loop;
end
$$;
comment on function millrace.address_ends(millrace.work[], bigint[]) is 'Replaces the submission that each job''s end names, as far as its run is locked, with the attempt that it is about; late: the places of those that an earlier submission of the stage bought.';

create or replace function millrace.record_ends(p_items millrace.work[], out verdicts json, out ready int[])
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '2s'
as $$
declare
  v_locked bigint[];
  v_to record;
  v_done record;
begin
  -- A submission is the id of the attempt that began it, so the run and the entity to lock are known before its successor is.
  v_locked := millrace.lock_attempts(
    array(select i.attempt_id from unnest(p_items) i where i.verdict is null));
  v_to := millrace.address_ends(p_items, v_locked);
  -- Once more, for those that are queued, which a claim might take otherwise.
  v_locked := millrace.lock_attempts(array(
    select t.attempt_id
    from unnest(p_items) i
    join unnest(v_to.items) t on t.ord = i.ord
    where i.attempt_id = any (v_locked)));
  v_done := millrace.apply_outcomes_guarded(millrace.check_fencing(v_to.items, v_locked, v_to.late));
  verdicts := coalesce(millrace.verdicts_of(v_done.items), '[]');
  ready := v_done.ready;
end
$$;
comment on function millrace.record_ends(millrace.work[]) is 'Locks, addresses, judges and settles the ends of external jobs.';

create or replace function public.millrace_resume(p_items json) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_done record;
  v_wake int[];
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  v_done := millrace.record_ends(millrace.parse_items(p_items, 'submission'));
  -- A duplicate may be the repeat of a call whose answer was lost, and its wakes with it: rather a wake-up too many.
  v_wake := millrace.stages_to_wake(v_done.ready) || array(
    select f from (select distinct a.stage_id from json_to_recordset(v_done.verdicts) as d(attempt bigint, verdict text) join millrace.attempts a on a.id = d.attempt where d.verdict = 'duplicate') s,
      unnest(millrace.followers_with_work(s.stage_id)) f)
    || millrace.wakes_for_freed(array(select d.attempt from json_to_recordset(v_done.verdicts) as d(attempt bigint, verdict text) where d.verdict = 'accepted'));
  return jsonb_build_object(
    'items', v_done.verdicts,
    'wake', millrace.wake_list(v_wake),
    'sweep_due', millrace.sweep_due(),
    'collect', millrace.parents_to_collect('{}'));
end
$$;
comment on function public.millrace_resume(json) is 'The end of external jobs, by a verified callback or by polling: the first one wins. Items: {submission, stage, trace_id, service, job_id, outcome, result | error, usage}; stage and trace_id, where given, must be the attempt''s.';
revoke all on function public.millrace_resume(json) from public, anon, authenticated;
grant execute on function public.millrace_resume(json) to service_role;

create or replace function public.millrace_poll(p_limit int, p_poll_ms int default null) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
  v_jobs jsonb;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_poll_ms is not null and p_poll_ms not between 1 and 3600000 then
    raise exception 'p_poll_ms is %, but must be from 1 to 3600000', p_poll_ms using errcode = 'MR002', hint = 'Set COMPLETION_POLL_INTERVAL to a number of milliseconds, or leave it unset.';
  end if;
  if p_limit is null or p_limit not between 1 and 1000 then
    raise exception 'p_limit is %, but must be from 1 to 1000', coalesce(p_limit::text, 'null') using errcode = 'MR002', hint = 'Send how many jobs to ask for at once.';
  end if;
  with due as (
    select a.id from millrace.attempts a where a.poll_at <= v_now and a.state = 'waiting' order by a.poll_at limit p_limit for update skip locked
  ), taken as (
    -- The next poll is set at once, so that two pollers never ask for the same job.
    update millrace.attempts a set poll_at = v_now + coalesce(make_interval(secs => p_poll_ms / 1000.0), s.poll_every)
    from due, millrace.stages s where a.id = due.id and s.id = a.stage_id
    returning a.*, s.name as stage, s.function_name, s.pipeline_id,
      s.deadline_from = 'start' and a.job_started_at is null as awaits_start
  )
  select jsonb_agg(jsonb_build_object(
      'attempt', t.id, 'submission', coalesce(t.submission_id, t.id), 'trace_id', r.trace_id,
      'pipeline', p.name, 'stage', t.stage, 'function', t.function_name,
      'service', t.service, 'job_id', t.job_id, 'entity_id', r.entity_id,
      'deadline_at', t.deadline_at, 'awaits_start', t.awaits_start,
      'faulty', t.error is not null) order by t.id) into v_jobs
  from taken t join millrace.pipelines p on p.id = t.pipeline_id join millrace.runs r on r.id = t.run_id;
  return jsonb_build_object('jobs', coalesce(v_jobs, '[]'), 'more', coalesce(jsonb_array_length(v_jobs), 0) = p_limit);
end
$$;
comment on function public.millrace_poll(int, int) is 'Takes waiting jobs whose poll is due. p_poll_ms overrides the stages'' own poll intervals. awaits_start: millrace_note_jobs() is to be told whether the job waits or runs.';
revoke all on function public.millrace_poll(int, int) from public, anon, authenticated;
grant execute on function public.millrace_poll(int, int) to service_role;

create or replace function millrace.check_job_states(p_jobs jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault record;
begin
  if coalesce(jsonb_typeof(p_jobs), 'null') <> 'array' or jsonb_array_length(p_jobs) > 1000 then
    raise exception 'p_jobs must be a list of at most 1000 jobs, this is %',
      case when jsonb_typeof(p_jobs) = 'array' then 'a list of ' || jsonb_array_length(p_jobs)
      else coalesce(jsonb_typeof(p_jobs), 'null') end
      using errcode = 'MR002', hint = 'Send [{attempt, service, job_id, state}], in several calls if need be.';
  end if;
  select j.ordinality - 1 as place, j.value as job into v_fault
  from jsonb_array_elements(p_jobs) with ordinality j
  where (jsonb_typeof(j.value -> 'attempt') = 'number' and j.value ->> 'attempt' ~ '^[0-9]{1,18}$'
    and jsonb_typeof(j.value -> 'service') = 'string' and jsonb_typeof(j.value -> 'job_id') = 'string'
    and j.value ->> 'state' in ('queued', 'running')) is not true
  order by j.ordinality limit 1;
  if found then
    raise exception 'p_jobs[%] is %, but must be {attempt, service, job_id, state}',
      v_fault.place, left(v_fault.job::text, 200)
      using errcode = 'MR002',
        hint = 'attempt is a number; state is queued (the job waits at its service) or running.';
  end if;
end
$$;
comment on function millrace.check_job_states(jsonb) is 'Raises MR002 unless this is what millrace_note_jobs() takes.';

-- A poller reports its jobs every few seconds, and most reports change nothing: while a job waits, its deadline moves only
-- once half of it has passed, and its start is noted once. A row that somebody holds is left to the next report.
create or replace function public.millrace_note_jobs(p_jobs jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
  v_noted int;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  perform millrace.check_job_states(p_jobs);
  with held as (
    select w.id, w.deadline, t.state
    from jsonb_to_recordset(p_jobs) as t(attempt bigint, service text, job_id text, state text)
    -- A lateral look-up, or the planner would walk the attempts of a stage; in no order, since it waits for nobody.
    cross join lateral (
      select a.id, s.deadline
      from millrace.attempts a
      join millrace.stages s on s.id = a.stage_id
      where a.id = t.attempt
        and a.state = 'waiting'
        and a.service = t.service
        and a.job_id = t.job_id
        and a.job_started_at is null
        and s.deadline_from = 'start'
        and (t.state = 'running' or a.deadline_at < v_now + s.deadline / 2)
      limit 1
      for update of a skip locked
    ) w
  ), noted as (
    update millrace.attempts a
    set deadline_at = v_now + h.deadline,
        job_started_at = case when h.state = 'running' then v_now end
    from held h
    where a.id = h.id
    returning a.id
  )
  select count(*) into v_noted from noted;
  return jsonb_build_object('noted', v_noted);
end
$$;
comment on function public.millrace_note_jobs(jsonb) is 'What services say of jobs that have not ended: [{attempt, service, job_id, state}], state being queued or running. Where a stage''s deadline counts from the start, it does not run while the job is queued. noted: how many rows that changed.';
revoke all on function public.millrace_note_jobs(jsonb) from public, anon, authenticated;
grant execute on function public.millrace_note_jobs(jsonb) to service_role;
