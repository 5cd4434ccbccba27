-- The sweep: recovery
--
-- pg_cron calls sweep_all() every ten seconds; when it stalls, workers and callbacks call
-- millrace_sweep(). It makes good whatever got lost: leases of dead workers, jobs that never came
-- back, retries that fell due, wake-ups that nobody heard. It also starts what is due. What there
-- is to do to-sweep.sql finds; when idle that is all.
--
-- The rows that a transaction of the sweep changes are held until it commits, and a user who writes
-- one of them waits. So it works in portions, and sweep_all() commits after each; sweep(), which
-- is one transaction, ends with the first part that has more than a portion.

-- How many rows one portion holds at most.
create function millrace.portion() returns int
language sql immutable
as $$
  select 250
$$;

-- Wakes the stages of a pipeline that have ready work; returns how many.
create function millrace.wake_ready(p_pipeline_id int) returns int
language plpgsql
as $$
begin
  return millrace.wake(array(
    select s.id
    from millrace.stages s
    where s.pipeline_id = p_pipeline_id
      and s.enabled
      and s.kind <> 'gate'
      and not s.bypassed
      and millrace.has_ready_work(s.id)));
end
$$;

-- Deletes what nobody asks for any more: answered wake-ups, claims without started attempts,
-- workers that are gone, and all but about the newest hundred posts.
create function millrace.forget_leftovers() returns void
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_oldest_post timestamptz := (
    select p.posted_at from millrace.posts p order by p.posted_at desc offset 99 limit 1);
begin
  delete from millrace.wake_ups r
  where r.id in (
    select o.id
    from millrace.wake_ups o
    where o.woken_at < v_now - interval '10 seconds'
    for update skip locked);
  delete from millrace.claims c
  where c.token in (
    select o.token
    from millrace.claims o
    where o.expires_at <= v_now - interval '1 minute'
      and not exists (
        select
        from millrace.attempts a
        where a.id = any (o.attempt_ids) and a.token = o.token and a.state = 'started')
    for update skip locked);
  delete from millrace.workers w
  where w.id in (
    select o.id
    from millrace.workers o
    where o.heartbeat_at < v_now - interval '1 hour'
    for update skip locked);
  delete from millrace.posts p
  where p.ctid = any (array(
    select o.ctid
    from millrace.posts o
    where o.posted_at < v_oldest_post
    for update skip locked));
end
$$;

-- Has a part of the sweep do what it may in one portion; returns how much that was.
create function millrace.sweep_part(p_part text, p_id bigint) returns int
language plpgsql
as $$
declare
  v_pipeline int := p_id;
  v_most int := millrace.portion();
begin
  case p_part
    when 'leases' then return millrace.sweep_leases(v_pipeline, v_most);
    when 'deadlines' then return millrace.sweep_deadlines(v_pipeline, v_most);
    when 'woken' then return millrace.wake_ready(v_pipeline);
    when 'leftovers' then
      perform millrace.forget_leftovers();
      return 0;
    else return millrace.hook_sweep(p_part, p_id, v_most);
  end case;
end
$$;

-- Does one portion of a part of the sweep. more: it may have more to do, which it can do now. A
-- fault of it, such as a table that was dropped, is reported and ends no other part. Nothing that
-- a user's trigger waits for holds it up for longer than two seconds.
create function millrace.sweep_portion(
  p_part text, p_id bigint, out done int, out more boolean
)
language plpgsql
set millrace.plan = by_index
set lock_timeout = '2s'
as $$
declare
  v_context text;
begin
  done := coalesce(millrace.sweep_part(p_part, p_id), 0);
  more := case
    when p_part in ('pulses', 'woken', 'faults', 'bulks') then false
    -- These go round, and hold what has ended alone.
    when p_part in ('decisions', 'resolved') then exists (
      select
      from millrace.settings s
      where s.name = case p_part when 'decisions' then 'decisions_seen' else 'alerts_seen' end
        and s.value <> '0')
    else done >= millrace.portion()
  end;
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'sweep_failed', format(
        'The sweep failed at %s%s: %s', p_part, coalesce(' of pipeline ' || (
          select p.name
          from millrace.pipelines p
          where p.id = p_id and p_part <> 'bulks'), ''), sqlerrm)) then
      raise;
    end if;
    done := 0;
    more := false;
end
$$;

-- Lists what there is to sweep but for what has been swept, which p_done names.
create function millrace.to_sweep(p_done text[])
returns table (part text, id bigint, name text)
language plpgsql volatile
as $$
begin
  return query
    select t.part, t.id, concat_ws(' ', t.part, t.id)
    from (
      select * from millrace.pipelines_to_sweep()
      union all
      select * from millrace.rest_to_sweep()
      union all
      select * from millrace.upkeep_to_sweep()) t
    where concat_ws(' ', t.part, t.id) <> all (p_done);
end
$$;

-- Notes that a sweep has come to its end, in a form that reads the same in every session, whatever
-- its DateStyle.
create function millrace.note_sweep() returns void
language plpgsql
as $$
begin
  update millrace.settings s
  set value = trim('"' from to_jsonb(millrace.now())::text)
  where s.name in (
    select o.name
    from millrace.settings o
    where o.name = 'last_sweep_at'
    for update skip locked);
end
$$;

-- Sweeps in one transaction. It looks again for what came up while it swept.
create function millrace.sweep() returns jsonb
language plpgsql
as $$
declare
  v_counts jsonb := '{"leases": 0, "deadlines": 0, "woken": 0, "collected": 0, "cancelled": 0,
    "alerts": 0, "resolved": 0, "pulses": 0, "due": 0, "bulks": 0}';
  v_done text[] := '{}';
  v_before text[];
  v_part record;
  v_portion record;
begin
  loop
    v_before := v_done;
    for v_part in select t.* from millrace.to_sweep(v_done) t loop
      v_portion := millrace.sweep_portion(v_part.part, v_part.id);
      v_done := v_done || v_part.name;
      if v_portion.done > 0 then
        v_counts := v_counts || jsonb_build_object(v_part.part,
          coalesce((v_counts ->> v_part.part)::int, 0) + v_portion.done);
      end if;
      if v_portion.more then
        return v_counts || '{"more": true}';
      end if;
    end loop;
    exit when v_done = v_before;
  end loop;
  perform millrace.note_sweep();
  return v_counts;
end
$$;
comment on function millrace.sweep() is
  'Makes good what got lost: expired leases, passed deadlines, due retries and unheard wake-ups; '
  'starts runs of rows that are due; raises alerts. Harmless at any time. In one transaction, so '
  'it ends once it has changed some 250 rows, and says "more": call it again, or sweep_all().';

-- Sweeps everything, for up to fifty seconds, and commits after each portion. It sets nothing in
-- its header, since Postgres lets no such procedure commit; all that it calls does.
create procedure millrace.sweep_all()
language plpgsql
as $$
declare
  v_until timestamptz := clock_timestamp() + interval '50 seconds';
  v_done text[] := '{}';
  v_before text[];
  v_part record;
  v_portion record;
begin
  loop
    v_before := v_done;
    for v_part in select t.* from millrace.to_sweep(v_done) t loop
      loop
        v_portion := millrace.sweep_portion(v_part.part, v_part.id);
        commit;
        exit when not v_portion.more or clock_timestamp() >= v_until;
      end loop;
      v_done := v_done || v_part.name;
    end loop;
    exit when v_done = v_before or clock_timestamp() >= v_until;
  end loop;
  perform millrace.note_sweep();
end
$$;
comment on procedure millrace.sweep_all() is
  'Does what millrace.sweep() does, all of it, and commits after each 250 rows or so: whoever '
  'writes one of them waits no longer than for that. pg_cron calls it. Not within a transaction.';

-- Sweeps for a worker or a callback. The Data API's own eight seconds are not enough for all that
-- may have piled up.
create function public.millrace_sweep() returns jsonb
language plpgsql security definer
set statement_timeout = '60s'
as $$
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if not pg_try_advisory_xact_lock(hashtext('millrace.sweep')) then
    return jsonb_build_object('swept', false);
  end if;
  -- In a statement after the lock: whoever held it may just have swept.
  if not millrace.sweep_due() then
    return jsonb_build_object('swept', false);
  end if;
  perform millrace.sweep();
  return jsonb_build_object('swept', true);
end
$$;
comment on function public.millrace_sweep() is
  'Sweeps if the last sweep is over a minute old and nobody else does so now.';
