-- Gates: stages without a function, which the database passes
--
-- Rows that a person's transaction brings to a gate with limits are left to the sweep. The gate's
-- locks last until the commit, which a person may delay, and an old snapshot would count wrong.

-- Completes queued attempts at a gate, as far as its limits allow. Each round skips the attempts
-- that an earlier round has tried, such as locked ones. A claim at the next stages charges a start
-- to its tenant that was not charged before.
-- passed: how many attempts. ready: the stages to wake.
create function millrace.pass_gate(
  p_stage_id int, p_limit int, out passed int, out ready int[]
)
as $$
  v_stage millrace.stages;
  v_next record;
  v_behind text;
  v_ids bigint[];
  v_seen bigint[] := '{}';
  v_items millrace.work[];
  v_uncounted bigint[];
  v_done record;

passed := 0;
ready := '{}';
select s.*
into v_stage
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id and p.enabled
where s.id = p_stage_id and s.enabled;
if v_stage.limits is not null then
  v_stage := millrace.enter_limits(p_stage_id, false);
  p_limit := (millrace.room_at(v_stage, p_limit)).room;
end if;
for v_round in 1 .. 20 loop
  exit when v_stage.id is null or passed >= p_limit
    or millrace.now() > v_now + interval '1 second';
  select n.*
  into v_next
  from millrace.next_by_group(v_stage, least(p_limit - passed, 500), 50, v_seen, v_behind) n
  where v_stage.has_groups;
  v_behind := v_next.behind;
  v_ids := array(
    select q.id
    from unnest(v_next.names, v_next.shares) n(name, share)
    cross join lateral (
      select a.id
      from millrace.attempts a
      where a.stage_id = v_stage.id and a.concurrency_group = n.name
        and a.queue_at <= v_now and a.state = 'queued'
        and a.id <> all (v_seen)
      order by a.queue_at, a.id
      limit n.share) q
    union all
    (select a.id
     from millrace.attempts a
     where not v_stage.has_groups and a.stage_id = v_stage.id
       and a.queue_at <= v_now and a.state = 'queued'
       and a.id <> all (v_seen)
     order by a.queue_at, a.id
     limit least(p_limit - passed, 500)));
  exit when v_ids = '{}';
  v_seen := v_seen || v_ids;
  v_ids := millrace.lock_attempts(v_ids);
  select array_agg(millrace.work_on(a, r.entity_id, 'completed', 'null') order by a.id),
    array_agg(a.run_id) filter (where a.uncounted)
  into v_items, v_uncounted
  from millrace.attempts a
  cross join lateral (
    select o.entity_id
    from millrace.runs o
    where o.id = a.run_id and o.status = 'running'
    offset 0) r
  where a.id = any (v_ids) and a.state = 'queued';
  continue when v_items is null;
  v_done := millrace.apply_outcomes_guarded(v_items);
  ready := ready || v_done.ready;
  v_ids := array(
    select i.attempt_id
    from unnest(v_done.items) i
    where i.verdict is null and i.outcome = 'completed');
  passed := passed + cardinality(v_ids);
  perform millrace.take_tokens(p_stage_id, v_ids, 1);
  perform millrace.hook_started(v_uncounted, v_now) where v_uncounted is not null;
end loop;
update millrace.limits l
set last_group = v_behind
where l.stage_id = p_stage_id and l.last_group <> v_behind;
if v_stage.limits ? 'shared' then
  perform millrace.note_share(p_stage_id, null, null, passed);
end if;
$$;

-- Passes about p_limit attempts at gates, beginning with the gate that has the oldest, and returns
-- how many. A gate that raises an error is logged; the other gates go on.
create function millrace.sweep_gates(p_limit int default 2000) returns int
as $$
  v_gate record;
  v_set record;
  v_passed int := 0;

for v_gate in
  select s.id, s.name
  from millrace.stages s
  cross join lateral (
    select a.queue_at, a.id
    from millrace.attempts a
    where a.stage_id = s.id and a.queue_at <= v_now and a.state = 'queued'
    order by a.queue_at, a.id
    limit 1) h
  where s.kind = 'gate'
  order by h.queue_at, h.id
loop
  exit when v_passed >= p_limit;
  begin
    v_set := millrace.pass_gate(v_gate.id, p_limit - v_passed);
    perform millrace.wake(v_set.ready);
    v_passed := v_passed + v_set.passed;
  exception when anything then
    if not millrace.report_caught(sqlstate, v_context, 'sweep_failed', format(
        'Gate %s could not be passed: %s', v_gate.name, sqlerrm)) then
      raise;
    end if;
  end;
end loop;
return v_passed;
$$;
