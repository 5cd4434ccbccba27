-- Gates: stages that the database passes
--
-- A gate has no function. Its attempt is completed with the result null as soon as the gate's rate
-- and back pressure let it: by the transaction that queues it, where that waits for nobody, else by
-- the sweep (pass-gates.sql). A gate with limits is passed at once only after a transition of the
-- engine's: the locks of its limits last until the commit, and nobody knows when a person commits.

-- Queues attempts at a gate in held runs and shows them there; passes them on where the gate has no
-- limits. Returns the stages that got work.
create function millrace.queue_at_gate(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
as $$
begin
  perform millrace.queue_attempts(p_stage_id, p_run_ids);
  perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
  return millrace.pass_if_open(p_stage_id, p_run_ids);
end
$$;

-- Passes what has just been queued at a gate without limits. Returns the stages that got work.
create function millrace.pass_if_open(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
as $$
begin
  if (select s.limits is null from millrace.stages s where s.id = p_stage_id) then
    return millrace.pass_at_once(p_stage_id, p_run_ids);
  end if;
  return '{}';
end
$$;

-- Lists the work items of attempts queued at a gate in held runs; a user's trigger on their rows
-- may have ended some.
create function millrace.queued_at_gate(p_stage_id int, p_run_ids bigint[])
returns millrace.work[]
language plpgsql
as $$
begin
  return array(
    select millrace.work_on(
      a, r.entity_id, 'completed', 'null', p_ord => (row_number() over (order by a.id))::int)
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id and (r.status = 'running') is true
    where a.run_id = any (p_run_ids)
      and a.stage_id = p_stage_id
      and a.state = 'queued'
    order by a.id);
end
$$;

-- Passes attempts that were just queued at a gate, where none is queued before them and the gate's
-- limits are free. Returns the stages that got work.
create function millrace.pass_at_once(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_stage millrace.stages;
  v_entered record;
  v_items millrace.work[];
  v_first bigint;
begin
  select s.* into v_stage
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where s.id = p_stage_id and s.enabled and p.enabled;
  if not found then
    return '{}';
  end if;
  v_items := millrace.queued_at_gate(p_stage_id, p_run_ids);
  v_first := (
    select a.id
    from millrace.attempts a
    where a.stage_id = p_stage_id and a.queue_at <= v_now and a.state = 'queued'
    order by a.queue_at, a.id
    limit 1);
  if cardinality(v_items) = 0
    or not exists (select from unnest(v_items) i where i.attempt_id = v_first) then
    return '{}';
  elsif v_stage.limits is null then
    return (millrace.pass(v_stage, v_items)).ready;
  end if;
  v_entered := millrace.enter_limits(p_stage_id, false);
  if v_entered.limits is null then
    return '{}';
  end if;
  v_stage := v_entered.stage;
  v_items := v_items[:(millrace.room_at(
    v_stage, v_entered.limits, cardinality(v_items))).room];
  if cardinality(v_items) = 0 then
    return '{}';
  end if;
  perform millrace.take_at_gate(v_stage, cardinality(v_items));
  return (millrace.pass(v_stage, v_items)).ready;
end
$$;

-- Takes tokens for what a gate passes, which has no place in work.
create function millrace.take_at_gate(p_stage millrace.stages, p_taken int)
returns void
language plpgsql
as $$
begin
  perform millrace.take_tokens(p_stage.id, p_taken);
  if p_stage.limits ? 'shared' then
    perform millrace.note_share(p_stage.id, null, null, p_taken);
  end if;
end
$$;

-- queued → completed at a gate, for held attempts. A start that no tenant has paid for passes its
-- charge on to what follows. p_guarded: an attempt that the database refuses fails alone, or is put
-- off.
create function millrace.pass(
  p_stage millrace.stages, p_items millrace.work[], p_guarded boolean default false,
  out passed int, out ready int[]
)
language plpgsql
as $$
declare
  v_began_at timestamptz := millrace.now();
  v_uncounted bigint[];
  v_done record;
begin
  if p_stage.counted then
    v_uncounted := array(
      select a.run_id
      from unnest(p_items) i
      join millrace.attempts a on a.id = i.attempt_id and a.uncounted);
  end if;
  if p_guarded then
    v_done := millrace.apply_outcomes_guarded(p_items);
    ready := v_done.ready;
    passed := (
      select count(*)
      from unnest(v_done.items) i
      where i.verdict is null and i.outcome = 'completed');
  else
    ready := millrace.complete(p_stage.id, p_items);
    passed := cardinality(p_items);
  end if;
  if cardinality(v_uncounted) > 0 then
    perform millrace.note_starts(v_uncounted, v_began_at);
  end if;
end
$$;
