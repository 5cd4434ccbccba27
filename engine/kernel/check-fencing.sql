-- What a report may change
--
-- Reports are judged one by one, under the locks. lock_uniform_batch() is the fast path beside
-- check_fencing(): nearly every batch is completed as a whole under one token.

-- Says why a report changes nothing that comes when the attempt is in this state.
create function millrace.stale_reason(p_state millrace.attempt_state, p_error jsonb)
returns text
language sql immutable
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

-- Judges the end of an external job by the attempt that it is about; null to go on. p_late: an
-- earlier submission's job. The waiting attempt must wait for this very job, or for a job of an
-- earlier submission that comes late; one that is started or queued has not said yet. A stage that
-- is completed needs no other result, whichever submission's it has; what a person completed is
-- void for every job.
create function millrace.verdict_on_end(
  p_attempt millrace.attempts, p_item millrace.work, p_late boolean, p_too_large boolean
) returns text
language sql immutable
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
  from (
    select p_attempt.service = p_item.service and p_attempt.job_id = p_item.job_id as same_job) e
$$;

-- Judges what a worker says by the attempt and the token that it shows; null to go on. A map stage
-- may wait only once it has spawned its last child.
create function millrace.verdict_on_report(
  p_attempt millrace.attempts, p_item millrace.work, p_kind text
) returns text
language plpgsql volatile
as $$
begin
  return case
    when p_attempt.token::text is distinct from p_item.shown then 'stale'
    when p_attempt.state = 'started' and p_item.outcome = 'waiting' and p_kind = 'map'
      and not exists (
        select from millrace.fan_outs f
        where f.run_id = p_attempt.run_id
          and f.stage_id = p_attempt.stage_id
          and f.state = 'open'
          and f.total is not null) then 'rejected'
    when p_attempt.state = 'started' then null
    when p_attempt.state::text = p_item.outcome then 'duplicate'
    when p_item.outcome = 'waiting' and p_attempt.state = 'completed' then 'duplicate'
    else 'stale'
  end;
end
$$;

-- Judges each item under the locks and fills in what it concerns: the verdict is null to go on,
-- else duplicate, stale, busy or rejected with the reason. Call it after the locks: it must read a
-- snapshot taken under them. p_late names, by their place, the ends of jobs that an earlier
-- submission bought.
create function millrace.check_fencing(
  p_items millrace.work[], p_locked bigint[], p_late int[] default '{}'
) returns millrace.work[]
language plpgsql volatile
as $$
declare
  v_judged record;
  v_item millrace.work;
  v_items millrace.work[] := '{}';
  v_twice bigint[] := array(
    select i.attempt_id
    from unnest(p_items) i where i.verdict is null
    group by i.attempt_id
    having count(*) > 1);
begin
  for v_judged in
    select i as item, a as attempt, r.entity_id, l.too_large, l.elsewhere, v.verdict,
      case when i.outcome = 'waiting' and s.kind = 'map' then 'the children are not all spawned: '
          'send the last chunk, with p_last, first'
        else format('attempt %s is listed twice in one call', i.attempt_id) end as why_rejected
    from unnest(p_items) i
    left join millrace.attempts a on a.id = i.attempt_id
    left join millrace.runs r on r.id = a.run_id
    left join millrace.stages s on s.id = a.stage_id
    cross join lateral (
      select millrace.size_fault(i, s) as too_large,
        i.claimed_stage <> s.name or i.claimed_trace <> r.trace_id::text as elsewhere
      offset 0) l
    cross join lateral (
      select millrace.verdict_of(p_items, i, a, s.kind, l.elsewhere, i.attempt_id = any (v_twice),
        a.id = any (p_locked), i.ord = any (p_late), l.too_large is not null) as verdict) v
    order by i.ord
  loop
    v_item := v_judged.item;
    if v_judged.too_large is not null then
      v_item.outcome := 'failed';
      v_item.result := null;
      v_item.error := jsonb_build_object(
        'code', 'result_too_large', 'permanent', true, 'message', v_judged.too_large);
    end if;
    v_item.token := (v_judged.attempt).token;
    v_item.run_id := (v_judged.attempt).run_id;
    v_item.stage_id := (v_judged.attempt).stage_id;
    v_item.was := (v_judged.attempt).state;
    v_item.entity_id := v_judged.entity_id;
    v_item.verdict := v_judged.verdict;
    v_item.reason := case
      when v_item.verdict = 'busy'
       then 'the entity is locked by another transaction'
      when v_item.verdict = 'rejected' then coalesce(v_item.reason, v_judged.why_rejected)
      when v_item.verdict is distinct from 'stale' then coalesce(v_item.reason, v_judged.too_large)
      when v_item.ord = any (p_late) and v_judged.too_large is not null then v_judged.too_large
      when v_judged.elsewhere then 'the job was submitted for another run'
      else millrace.stale_reason((v_judged.attempt).state, (v_judged.attempt).error) end;
    v_items := v_items || v_item;
  end loop;
  return v_items;
end
$$;

-- Says that a result is longer than its stage allows; null where it is not.
create function millrace.size_fault(p_item millrace.work, p_stage millrace.stages)
returns text
language plpgsql stable
as $$
declare
  v_size int := case when p_item.outcome = 'completed' then octet_length(p_item.result::text) end;
begin
  if v_size > p_stage.result_limit_bytes then
    return format('the result has %s bytes, but the limit of stage %s is %s; '
      'put it into Storage and return its location',
      v_size, p_stage.name, p_stage.result_limit_bytes);
  end if;
  return null;
end
$$;

-- Judges one item of a batch under the locks; null to go on. p_elsewhere: its job was submitted for
-- another run, or for a database that was since made anew. p_twice: others of the call may name its
-- attempt too. Of two jobs of one attempt that end in one call, the second is judged when the first
-- is recorded.
create function millrace.verdict_of(
  p_items millrace.work[], p_item millrace.work, p_attempt millrace.attempts, p_kind text,
  p_elsewhere boolean, p_twice boolean, p_locked boolean, p_late boolean, p_too_large boolean
) returns text
language plpgsql volatile
as $$
declare
  v_repeat text;
begin
  if p_twice and p_item.verdict is null then
    v_repeat := (
      select case when p_item.shown is null and bool_or(e.job_id <> p_item.job_id) then 'busy'
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
    when p_item.shown is not null then millrace.verdict_on_report(p_attempt, p_item, p_kind)
    when p_elsewhere then 'stale'
    else millrace.verdict_on_end(p_attempt, p_item, p_late, p_too_large)
  end;
end
$$;

-- Locks the batch that nearly all are: everything completed under one token of one stage, with no
-- function to apply and no run to end. Returns the stage's limit of a result's bytes, under which
-- none of these can be too long; null where something is held by somebody or differs, for then the
-- batch is to be locked and judged item by item. Whether the token still counts is left to
-- complete(), whose statement finds out at no cost. At batches of 50 it saves a quarter of a
-- transition's CPU time.
create function millrace.lock_uniform_batch(p_items millrace.work[]) returns int
language plpgsql volatile
as $$
declare
  v_stage_id int := p_items[1].stage_id;
  v_token uuid := p_items[1].token;
  v_shown text := v_token::text;
  v_batch record;
begin
  select s.pipeline_id, s.result_limit_bytes,
    p.projection <> 'none' or millrace.writes_entities(p.id) as writes,
    b.run_ids, b.entity_ids, b.size, b.alike
  into v_batch
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  cross join lateral (
    select array_agg(i.run_id) as run_ids, array_agg(i.entity_id) as entity_ids, count(*) as size,
      bool_and(i.outcome = 'completed' and i.stage_id = s.id and i.token = v_token
        and i.shown = v_shown and i.verdict is null and i.reason is null
        -- Its text is longer than the jsonb value, of a list of numbers such as 1e-300 twenty
        -- times; 32 times is more than any number of a function needs.
        and pg_column_size(i.result) < s.result_limit_bytes / 32) as alike
    from unnest(p_items) i
  ) b
  where s.id = v_stage_id and s.apply is null and not s.has_ends;
  if v_batch.alike is not true then
    return null;
  end if;
  if v_batch.writes and v_batch.size > cardinality(
      millrace.lock_entities(v_batch.pipeline_id, v_batch.entity_ids, false)) then
    return null;
  end if;
  if v_batch.size > (
      select count(*)
      from (
        select from millrace.runs r
        where r.id = any (v_batch.run_ids)
        order by r.id
        for no key update skip locked) r) then
    return null;
  end if;
  return v_batch.result_limit_bytes;
end
$$;

-- Builds the answer to each item of a recorded batch, in order.
create function millrace.verdicts_of(p_items millrace.work[]) returns json
language plpgsql immutable
as $$
begin
  return (
    select json_agg(v)
    from (
      select i.attempt_id as attempt, i.reason,
        coalesce(i.verdict, case when i.reason is null then 'accepted' else 'rejected' end)
          as verdict
      from unnest(p_items) i
      order by i.ord) v);
end
$$;

-- Locks, judges and records a parsed batch. uniform: it went the fast way, so that all of it was
-- accepted. Whatever a user's trigger waits for may take two seconds, of the eight that the Data
-- API gives a call.
create function millrace.record_items(
  p_items millrace.work[], out verdicts json, out ready int[], out uniform boolean
)
language plpgsql
set lock_timeout = '2s'
as $$
declare
  v_limit int;
  v_done record;
begin
  uniform := false;
  if cardinality(p_items) = 0 then
    verdicts := '[]';
    ready := '{}';
    return;
  end if;
  v_limit := millrace.lock_uniform_batch(p_items);
  if v_limit is not null then
    v_done := millrace.apply_outcomes_guarded(p_items, v_limit);
    ready := v_done.ready;
    uniform := v_done.items is null and ready is not null;
  end if;
  if ready is null then
    v_done := millrace.apply_outcomes_guarded(millrace.check_fencing(p_items,
      millrace.lock_attempts(
        array(select i.attempt_id from unnest(p_items) i where i.verdict is null))));
    ready := v_done.ready;
  end if;
  verdicts := millrace.verdicts_of(coalesce(v_done.items, p_items));
end
$$;
