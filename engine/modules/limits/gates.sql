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

-- Passes attempts that were just queued at a gate, where none is queued before them and the gate's
-- limits are free. Returns the stages that got work.
create function millrace.pass_at_once(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
begin
  if exists (
      select
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      where s.id = p_stage_id and s.enabled and p.enabled)
    and (
      select a.run_id
      from millrace.attempts a
      where a.stage_id = p_stage_id and a.queue_at <= v_now and a.state = 'queued'
      order by a.queue_at, a.id
      limit 1) = any (p_run_ids) then
    return (millrace.pass_gate(p_stage_id, cardinality(p_run_ids))).ready;
  end if;
  return '{}';
end
$$;
