-- Agents: the turns of a conversation with a model
--
-- A stage of kind `agent` takes many turns: the model is asked, the tools it calls are run, and
-- their outputs go back to it. The worker records each turn as soon as it is over, with
-- millrace_checkpoint(), so that a crash costs one turn: the next attempt reads the conversation
-- with millrace_turns() and goes on behind its last turn.
--
-- An execution of a stage is the chain of an attempt and its automatic retries: they share one
-- conversation and its limits. A reset, or a retry that a person asks for, begins a new execution
-- with an empty conversation. The number of its first attempt names an execution; for each attempt
-- of the chain that is number - retry_count.
--
-- A checkpoint locks the attempt and, after its worker, nothing else that anybody may hold for
-- long. Only who ends or deletes that attempt can hold it: then the answer is `busy` and the worker
-- asks again, since what it has done may be void.

-- Raises MR002 with the place, the value found and the remedy unless these are turns that can be
-- recorded.
create function millrace.check_turns(p_turns jsonb)
as $$
declare
  v_fault record;
begin
  if p_turns is null or jsonb_typeof(p_turns) <> 'array' then
    raise exception 'p_turns is %, but must be a list', coalesce(jsonb_typeof(p_turns), 'null')
      using errcode = 'MR002', hint = 'Send a JSON list of turns.';
  end if;
  if jsonb_array_length(p_turns) not between 1 and 100 then
    raise exception 'p_turns has % turns, but must have 1 to 100', jsonb_array_length(p_turns)
      using errcode = 'MR002', hint = 'Send each turn as soon as it is over.';
  end if;
  select t.place, f.fault, f.hint into v_fault
  from jsonb_array_elements(p_turns) with ordinality t(turn, place)
  cross join lateral millrace.turn_fault(t.turn, p_turns #>> '{0,seq}', t.place - 1) f
  where f.fault is not null
  order by t.place
  limit 1;
  if found then
    raise exception 'p_turns[%]%', v_fault.place - 1, v_fault.fault
      using errcode = 'MR002', hint = v_fault.hint;
  end if;
end
$$;

-- Says what is wrong with a turn, and the remedy; null when it can be recorded. p_first is the
-- number of the first turn sent, p_place how many turns came after that one.
create function millrace.turn_fault(
  p_turn jsonb, p_first text, p_place bigint, out fault text, out hint text
)
immutable
as $$
declare
  v_number constant text := '^[1-9][0-9]{0,8}$';
  v_seq text := p_turn ->> 'seq';
  v_kind text := p_turn ->> 'kind';
  v_call text := coalesce(jsonb_typeof(p_turn -> 'call_id'), 'null');
  v_content text := coalesce(jsonb_typeof(p_turn -> 'content'), 'null');
  v_usage text := coalesce(jsonb_typeof(p_turn -> 'usage'), 'null');
begin
  if jsonb_typeof(p_turn) <> 'object' then
    fault := format(' is %s, but must be an object', jsonb_typeof(p_turn));
    hint := 'Send {seq, kind, call_id, content, usage}.';
  elsif coalesce(v_seq !~ v_number, true) then
    fault := format('.seq is %s, but must be a whole number from 1', coalesce(v_seq, 'null'));
    hint := 'Count the turns of a conversation from 1.';
  elsif p_first ~ v_number and v_seq::int <> p_first::int + p_place then
    fault := format('.seq is %s, which does not follow the turn before', v_seq);
    hint := 'Send turns in order and without a gap.';
  elsif coalesce(v_kind, '') not in ('model', 'tool') then
    fault := format('.kind is %s, but must be model or tool', coalesce(v_kind, 'null'));
    hint := 'Say who took the turn.';
  elsif (v_call = 'string') <> (v_kind = 'tool') then
    fault := format('.call_id is %s, but must be a string for a tool and null for the model',
      coalesce(p_turn ->> 'call_id', 'null'));
    hint := 'Name the call that the tool answers.';
  elsif v_content <> 'object' then
    fault := format('.content is %s, but must be an object', v_content);
    hint := 'Send what was said.';
  elsif v_usage not in ('object', 'null') then
    fault := format('.usage is %s, but must be an object or null', v_usage);
    hint := 'Send {input_tokens, output_tokens, cost_usd}.';
  elsif octet_length(p_turn::text) > 1048576 then
    fault := format(' has %s bytes, but a turn may have 1048576', octet_length(p_turn::text));
    hint := 'Let the tool answer with less, or with the location of a file in Storage.';
  end if;
end
$$;

-- Records turns {seq, kind, call_id, content, usage} of an agent's started attempt under its
-- token, and renews its worker's heartbeat and leases: called after every turn, so that a crash
-- costs one turn. The status is accepted, duplicate (these numbers are taken, the first ones stay),
-- stale or busy.
create function public.millrace_checkpoint(
  p_worker uuid, p_attempt bigint, p_token uuid, p_turns jsonb
) returns jsonb
set millrace.plan = by_key
as $$
declare
  v_attempt millrace.attempts;
  v_reason text;
  v_execution int;
  v_next_seq int;
  v_added int;
begin
  if p_worker is null or p_attempt is null or p_token is null then
    raise exception 'p_worker, p_attempt and p_token must be given'
      using errcode = 'MR002',
        hint = 'Send the worker''s id and the attempt and token that its claim handed over.';
  end if;
  perform millrace.check_turns(p_turns);
  perform from millrace.workers w where w.id = p_worker for update;
  -- Under this lock nobody else can end the attempt, so a turn is recorded before its end or not at
  -- all.
  select a.* into v_attempt
  from millrace.attempts a
  where a.id = p_attempt
  for no key update skip locked;
  if not found and exists (select from millrace.attempts a where a.id = p_attempt) then
    perform public.millrace_renew(p_worker, '{}');
    return jsonb_build_object('status', 'busy',
      'reason', 'another transaction is ending the attempt or has locked it');
  end if;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return jsonb_build_object('status', 'stale', 'reason', v_reason);
  end if;
  v_execution := v_attempt.number - v_attempt.retry_count;
  v_next_seq := 1 + coalesce((
    select max(t.seq)
    from millrace.turns t
    where t.run_id = v_attempt.run_id
      and t.stage_id = v_attempt.stage_id
      and t.execution = v_execution), 0);
  if (p_turns #>> '{0,seq}')::int > v_next_seq then
    raise exception 'p_turns[0].seq is %, but the next turn of this conversation is %',
        p_turns #>> '{0,seq}', v_next_seq
      using errcode = 'MR002',
        hint = 'Read the conversation with millrace_turns() and go on behind its last turn.';
  end if;
  insert into millrace.turns
    (run_id, stage_id, execution, seq, kind, call_id, content, usage, attempt_id, created_at)
  select v_attempt.run_id, v_attempt.stage_id, v_execution, t.seq, t.kind, t.call_id, t.content,
    nullif(t.usage, 'null'), v_attempt.id, millrace.now()
  from jsonb_to_recordset(p_turns)
    as t(seq int, kind text, call_id text, content jsonb, usage jsonb)
  where t.seq >= v_next_seq;
  get diagnostics v_added = row_count;
  v_next_seq := v_next_seq + v_added;
  -- A row that took a turn is none that always outlives its worker: the count of releases in a
  -- row begins anew.
  if v_added > 0 and v_attempt.releases > 0 then
    update millrace.attempts a set releases = 0 where a.id = v_attempt.id;
  end if;
  perform public.millrace_renew(p_worker, '{}');
  return jsonb_build_object(
    'status', case when v_added > 0 then 'accepted' else 'duplicate' end,
    'next_seq', v_next_seq);
end
$$;

-- Reads what an agent's attempt goes on from, before it asks the model anything: the turns of its
-- execution, the stage's limits of today, and the milliseconds since the execution began (waits
-- between retries included). The status is current or stale.
create function public.millrace_turns(p_worker uuid, p_attempt bigint, p_token uuid)
returns json
set millrace.plan = by_key
as $$
declare
  v_attempt millrace.attempts;
  v_reason text;
  v_stage millrace.stages;
  v_execution int;
  v_turns json;
  v_began timestamptz;
begin
  if p_worker is null or p_attempt is null or p_token is null then
    raise exception 'p_worker, p_attempt and p_token must be given'
      using errcode = 'MR002',
        hint = 'Send the worker''s id and the attempt and token that its claim handed over.';
  end if;
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return json_build_object('status', 'stale', 'reason', v_reason);
  end if;
  select s.* into v_stage from millrace.stages s where s.id = v_attempt.stage_id;
  if v_stage.kind <> 'agent' then
    raise exception 'stage % is of kind %, which keeps no conversation', v_stage.name, v_stage.kind
      using errcode = 'MR004',
        hint = 'Set its kind to agent in the pipeline''s definition and push the migration.';
  end if;
  v_execution := v_attempt.number - v_attempt.retry_count;
  select min(a.started_at) into v_began
  from millrace.attempts a
  where a.run_id = v_attempt.run_id
    and a.stage_id = v_attempt.stage_id
    and a.number between v_execution and v_attempt.number;
  -- A released attempt forgets when it was started; its first turn still tells.
  select least(v_began, min(t.created_at) filter (where t.seq = 1)),
    coalesce(json_agg(json_build_object('seq', t.seq, 'kind', t.kind, 'call_id', t.call_id,
      'content', t.content, 'usage', t.usage, 'attempt', t.attempt_id) order by t.seq), '[]')
  into v_began, v_turns
  from millrace.turns t
  where t.run_id = v_attempt.run_id
    and t.stage_id = v_attempt.stage_id
    and t.execution = v_execution;
  return json_build_object('status', 'current', 'execution', v_execution,
    'elapsed_ms', greatest(0, floor(extract(epoch from millrace.now() - v_began) * 1000)),
    'limits', case jsonb_typeof(v_stage.agent) when 'object' then v_stage.agent else '{}' end,
    'turns', v_turns);
end
$$;

-- Deletes the conversations of attempts that were just completed, unless their stage says debug.
-- millrace_complete calls it for agent stages alone, in the transaction that completes them.
create function millrace.drop_turns(p_stage millrace.stages, p_verdicts json)
as $$
begin
  if coalesce((p_stage.agent ->> 'debug')::boolean, false) then
    return;
  end if;
  delete from millrace.turns t
  using json_to_recordset(p_verdicts) as v(attempt bigint, verdict text)
  join millrace.attempts a
    on a.id = v.attempt and a.state = 'completed' and a.stage_id = p_stage.id
  where v.verdict = 'accepted'
    and t.run_id = a.run_id
    and t.stage_id = a.stage_id
    and t.execution = a.number - a.retry_count;
end
$$;
