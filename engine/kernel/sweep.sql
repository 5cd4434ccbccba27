-- The sweep: recovers lost leases, deadlines and wake-ups, and starts due work
--
-- pg_cron sweeps every ten seconds. When pg_cron stalls, workers and callbacks call
-- millrace_sweep(). A user who writes a row waits for the transaction that has locked it. So
-- pg_cron's job (the view millrace.schedules) commits after each portion.

-- Lists the parts of the sweep that have work, in the order in which they are done. The list is
-- made by index probes alone, since pg_cron's fresh sessions compile each function that they call.
-- p_done: the names of parts to leave out.
-- id: of the pipeline, or of the row that the part is about; null for none.
create function millrace.to_sweep(p_done text[])
returns table (part text, id bigint, name text)
set plan = by_index
as $$
return query
select t.part, t.id, n.name
from (
  select k.priority, k.part, p.id::bigint as id
  from millrace.pipelines p
  cross join lateral (values
    (1, 'leases', exists (select from millrace.claims c where c.expires_at <= v_now)),
    (2, 'deadlines', exists (select from millrace.attempts a where a.deadline_at <= v_now)),
    (6, 'woken', exists (
      select from millrace.stages s
      -- by key
      cross join lateral (
        select from millrace.attempts a
        where a.stage_id = s.id and a.queue_at <= v_now and a.state = 'queued'
        limit 1) a
      where s.pipeline_id = p.id and s.enabled and s.kind <> 'gate'
        and not s.bypassed))) k(priority, part, wanted)
  where k.wanted
  union all
  select * from millrace.hook_to_sweep()) t
cross join lateral (
  select case when t.priority < 10 then t.part || ' of pipeline ' || (
      select p.name from millrace.pipelines p where p.id = t.id)
    else concat_ws(' ', t.part, t.id) end as name) n
where n.name <> all (p_done)
order by t.priority, t.id;
$$;

-- Does one portion of the first part of the sweep, some 250 rows. An error of the part goes into
-- millrace.log and does not stop the other parts. Where no part has work, writes the end of the
-- sweep into the setting last_sweep_at.
-- p_done: the names of parts to leave out.
-- name: null where no part has work.
-- more: there may be more to do now.
create function millrace.sweep_portion(
  p_done text[], out name text, out part text, out done int, out more boolean
)
set plan = by_index
set lock_timeout = '2s'
as $$
  c_most constant int := 250;
  v_id bigint;

-- Gates with limits may pass rows: no user keeps this transaction open.
perform set_config('millrace.commits_soon', 'on', true);
select t.name, t.part, t.id into name, part, v_id from millrace.to_sweep(p_done) t limit 1;
if not found then
  -- The time is written as JSON writes it, which no DateStyle changes.
  update millrace.settings s
  set value = trim('"' from to_jsonb(v_now)::text)
  where s.name in (
    select o.name
    from millrace.settings o
    where o.name = 'last_sweep_at'
    for update skip locked);
  return;
end if;
done := 0;
begin
  case part
    when 'leases', 'deadlines' then
      done := millrace.sweep_overdue(part, v_id::int, c_most);
    when 'woken' then
      more := false;
      done := millrace.wake(array(
        select s.id
        from millrace.stages s
        where s.pipeline_id = v_id and s.enabled and s.kind <> 'gate'
          and not s.bypassed
          and millrace.has_ready_work(s.id)));
    else
      select h.done, h.more into done, more from millrace.hook_sweep(part, v_id, c_most) h;
  end case;
  more := coalesce(more, done >= c_most);
exception when anything then
  if not millrace.report_caught(sqlstate, v_context, 'sweep_failed',
      format('The sweep failed at %s: %s', name, sqlerrm)) then
    raise;
  end if;
  done := 0;
  more := false;
end;
$$;

-- Fails a pipeline's started attempts whose lease expired, or its waiting attempts whose deadline
-- has passed. Works page by page: a locked or refused row does not block the rest. Returns how many
-- items were ended or found stale.
-- p_part: `leases` or `deadlines`.
-- p_limit: how many attempts a page has. The call ends after the page that reaches it.
create function millrace.sweep_overdue(p_part text, p_pipeline_id int, p_limit int) returns int
as $$
  v_stages int[] := array(
    select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id);
  v_page record;
  v_last_at timestamptz := '-infinity';
  v_last_id bigint := 0;
  v_locked bigint[];
  v_tokens uuid[];
  v_done record;
  v_refused bigint[];
  v_failed int := 0;

loop
  select array_agg(d.id order by d.at, d.id) as ids, max(d.at) as last_at into v_page
  from (
    (select a.id, v_last_at as at
     from millrace.started_attempts a
     where p_part = 'leases' and a.expires_at <= v_now
       and a.stage_id = any (v_stages) and a.id > v_last_id
     order by a.id
     limit p_limit)
    union all
    (select a.id, a.deadline_at
     from millrace.attempts a
     where p_part = 'deadlines' and a.deadline_at <= v_now
       and (a.deadline_at, a.id) > (v_last_at, v_last_id)
       and a.stage_id = any (v_stages)
     order by a.deadline_at, a.id
     limit p_limit)) d;
  exit when v_page.ids is null;
  v_last_at := v_page.last_at;
  v_last_id := v_page.ids[cardinality(v_page.ids)];
  v_locked := millrace.lock_attempts(v_page.ids);
  -- The claims are read again under their locks, since a worker may just have renewed them.
  v_tokens := array(
    select c.token
    from millrace.claims c
    where p_part = 'leases' and c.expires_at <= v_now
    for update skip locked);
  v_done := millrace.apply_outcomes_guarded(array(
    select millrace.work_on(a, r.entity_id, 'failed', p_error => case
        when p_part = 'deadlines' then jsonb_build_object('code', 'deadline',
          'permanent', a.service in ('children', 'decision'), 'message', case a.service
            when 'children' then 'the children did not end before the deadline'
            when 'decision' then 'nobody decided before the deadline'
            else 'the external job did not end before its deadline' end)
        -- A row that was lost alone before is to blame for this loss, too, where its isolate had
        -- taken no other row, or where no try is left.
        when a.lost_alone and (
            1 >= (select sum(w.taken) from millrace.workers w where w.host = c.host)
            or millrace.retry_due(a.stage_id, '{"code": "lost_lease"}', a.retry_count) is null)
          then jsonb_build_object('code', 'resource_limit',
          'message', 'Its function ended without a word while it ran this row alone, a second '
            'time: the row takes more CPU or memory than the platform allows')
        else jsonb_build_object('code', 'lost_lease',
          'message', 'The worker ended without a word and its lease expired') end)
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    left join millrace.claims c on c.token = a.token
    where a.id = any (v_locked) and case p_part
        when 'leases' then a.state = 'started' and c.token = any (v_tokens)
        else a.state = 'waiting' and a.deadline_at <= v_now end
    order by a.id));
  perform millrace.hook_hosts_lost(l.stage_id, l.hosts)
  from (
    select i.stage_id, array_agg(distinct c.host) as hosts
    from unnest(v_done.items) i
    join millrace.claims c on c.token = i.token and c.token = any (v_tokens) and not c.isolated
    where i.verdict is distinct from 'busy'
    group by i.stage_id
    order by i.stage_id) l;
  perform millrace.wake(v_done.ready);
  v_refused := array(
    select i.attempt_id from unnest(v_done.items) i where i.verdict = 'busy');
  -- A waiting attempt that was busy is tried again in a minute.
  update millrace.attempts a
  set deadline_at = v_now + interval '1 minute'
  where a.id in (
    select o.id
    from millrace.attempts o
    where o.id = any (v_refused) and o.state = 'waiting'
    for update skip locked);
  v_failed := v_failed + cardinality(v_done.items) - cardinality(v_refused);
  exit when cardinality(v_page.ids) < p_limit or v_failed >= p_limit;
end loop;
return v_failed;
$$;

-- Fails attempts whose lease or deadline has passed, wakes stages with ready work, and does all
-- other parts of the sweep. May be called at any time. Ends in one transaction, after the first
-- portion that leaves more to do; then the answer has "more": true, and the caller calls again.
create function millrace.sweep() returns jsonb
as $$
  v_counts jsonb := '{"leases": 0, "deadlines": 0, "woken": 0, "collected": 0, "cancelled": 0,
    "alerts": 0, "resolved": 0, "pulses": 0, "due": 0, "bulks": 0}';
  v_done text[] := '{}';
  v_portion record;

loop
  v_portion := millrace.sweep_portion(v_done);
  exit when v_portion.name is null;
  if v_portion.done > 0 then
    v_counts := v_counts || jsonb_build_object(v_portion.part,
      coalesce((v_counts ->> v_portion.part)::int, 0) + v_portion.done);
  end if;
  if v_portion.more then
    return v_counts || '{"more": true}';
  end if;
  v_done := v_done || v_portion.name;
end loop;
return v_counts;
$$;

-- Does the next portion of a whole sweep. pg_cron's job calls it until it returns null, and commits
-- after each call. A procedure could not do so, since one that commits may not set its search_path.
-- p_state: what the call before returned; null begins a sweep.
create function millrace.sweep_next(p_state jsonb) returns jsonb
as $$
  v_state jsonb := coalesce(p_state,
    jsonb_build_object('until', clock_timestamp() + interval '50 seconds', 'done', '[]'::jsonb));
  v_done text[] := array(select jsonb_array_elements_text(v_state -> 'done'));
  v_portion record := millrace.sweep_portion(v_done);

if v_portion.name is null then
  return null;
-- After 50 seconds each part that is left gets one portion. Otherwise the last parts would starve.
elsif v_portion.more and clock_timestamp() < (v_state ->> 'until')::timestamptz then
  return v_state;
end if;
return jsonb_insert(v_state, '{done,-1}', to_jsonb(v_portion.name), true);
$$;

-- Tells whether the last sweep is over a minute old. The receiver of an answer that says so calls
-- millrace_sweep().
create function millrace.sweep_due() returns boolean
as $$
-- A time later than now means that the clock was set back.
return coalesce((
  select s.value::timestamptz <= v_now - interval '1 minute'
    or s.value::timestamptz >= v_now + interval '1 minute'
  from millrace.settings s
  where s.name = 'last_sweep_at'), true);
$$;

-- Sweeps where the last sweep is over a minute old and no other session sweeps now. The call may
-- take a minute, longer than the Data API's eight seconds.
create function public.millrace_sweep()
set statement_timeout = '60s'
set plan = free
as $$
-- sweep_due() reads under the lock, since another session may just have swept.
if not (pg_try_advisory_xact_lock(hashtext('millrace.sweep')) and millrace.sweep_due()) then
  return '{"swept": false}';
end if;
perform millrace.sweep();
return '{"swept": true}';
$$;
