-- Chapter 26: agents: the turns of a conversation with a model
--
-- A stage of kind `agent` takes many turns: the model is asked, the tools it calls are run, and their outputs go back to
-- it. The worker records each turn as soon as it is over, with millrace_checkpoint(), so that a crash costs one turn: the
-- next attempt reads the conversation with millrace_turns() and goes on behind its last turn.
--
-- A execution is the chain of an attempt and its automatic retries: they share one conversation and its limits. A reset, or
-- a retry that a person asks for, begins a new execution with an empty conversation. A execution is named by the number of its
-- first attempt, which for each attempt of the chain is number - retry_count.
--
-- A checkpoint locks the attempt and, after its worker, nothing else that anybody may hold for long. Only who ends or
-- deletes that attempt can hold it: then the answer is `busy` and the worker asks again, since what it has done may be void.

create or replace function millrace.check_turns(p_turns jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault record;
begin
  if p_turns is null or jsonb_typeof(p_turns) <> 'array' then
    raise exception 'p_turns is %, but must be a list', coalesce(jsonb_typeof(p_turns), 'null') using errcode = 'MR002', hint = 'Send a JSON list of turns.';
  end if;
  if jsonb_array_length(p_turns) not between 1 and 100 then
    raise exception 'p_turns has % turns, but must have 1 to 100', jsonb_array_length(p_turns) using errcode = 'MR002', hint = 'Send each turn as soon as it is over.';
  end if;
  select t.place - 1 as place, f.fault, f.hint into v_fault
  from jsonb_array_elements(p_turns) with ordinality t(turn, place), lateral (values
    (jsonb_typeof(t.turn) <> 'object', format('is %s, but must be an object', jsonb_typeof(t.turn)), 'Send {seq, kind, call_id, content, usage}.'),
    (coalesce(t.turn ->> 'seq' !~ '^[1-9][0-9]{0,8}$', true), format('.seq is %s, but must be a whole number from 1', coalesce(t.turn ->> 'seq', 'null')), 'Count the turns of a conversation from 1.'),
    (case when t.turn ->> 'seq' ~ '^[1-9][0-9]{0,8}$' and p_turns #>> '{0,seq}' ~ '^[1-9][0-9]{0,8}$' then (t.turn ->> 'seq')::int <> (p_turns #>> '{0,seq}')::int + t.place - 1 else false end, format('.seq is %s, which does not follow the turn before', t.turn ->> 'seq'), 'Send turns in order and without a gap.'),
    (coalesce(t.turn ->> 'kind', '') not in ('model', 'tool'), format('.kind is %s, but must be model or tool', coalesce(t.turn ->> 'kind', 'null')), 'Say who took the turn.'),
    ((coalesce(jsonb_typeof(t.turn -> 'call_id'), 'null') = 'string') <> (t.turn ->> 'kind' = 'tool'), format('.call_id is %s, but must be a string for a tool and null for the model', coalesce(t.turn ->> 'call_id', 'null')), 'Name the call that the tool answers.'),
    (coalesce(jsonb_typeof(t.turn -> 'content'), '') <> 'object', format('.content is %s, but must be an object', coalesce(jsonb_typeof(t.turn -> 'content'), 'null')), 'Send what was said.'),
    (coalesce(jsonb_typeof(t.turn -> 'usage'), 'null') not in ('object', 'null'), format('.usage is %s, but must be an object or null', jsonb_typeof(t.turn -> 'usage')), 'Send {input_tokens, output_tokens, cost_usd}.'),
    (octet_length(t.turn::text) > 1048576, format('has %s bytes, but a turn may have 1048576', octet_length(t.turn::text)), 'Let the tool answer with less, or with the location of a file in Storage.')
  ) f(wrong, fault, hint)
  where f.wrong order by t.place limit 1;
  if found then
    raise exception 'p_turns[%]%', v_fault.place, case when v_fault.fault like '.%' then v_fault.fault else ' ' || v_fault.fault end using errcode = 'MR002', hint = v_fault.hint;
  end if;
end
$$;
comment on function millrace.check_turns(jsonb) is 'Raises MR002 with the place, the value found and the remedy unless these are turns that can be recorded.';

-- Why a worker that shows this token may not speak for the attempt any more; null when it may.
create or replace function millrace.void_reason(p_attempt millrace.attempts, p_token uuid) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if p_attempt.state = 'started' and p_attempt.token = p_token then
    return null;
  end if;
  return millrace.stale_reason(p_attempt.state, p_attempt.error);
end
$$;
comment on function millrace.void_reason(millrace.attempts, uuid) is 'Why a token no longer stands for a started attempt, or null when it does.';

create or replace function millrace.append_turns(p_attempt millrace.attempts, p_turns jsonb, out added int, out next_seq int)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_execution int := p_attempt.number - p_attempt.retry_count;
begin
  next_seq := coalesce((select max(t.seq) from millrace.turns t where t.run_id = p_attempt.run_id and t.stage_id = p_attempt.stage_id and t.execution = v_execution), 0) + 1;
  if (p_turns #>> '{0,seq}')::int > next_seq then
    raise exception 'p_turns[0].seq is %, but the next turn of this conversation is %', p_turns #>> '{0,seq}', next_seq
      using errcode = 'MR002', hint = 'Read the conversation with millrace_turns() and go on behind its last turn.';
  end if;
  insert into millrace.turns (run_id, stage_id, execution, seq, kind, call_id, content, usage, attempt_id, created_at)
  select p_attempt.run_id, p_attempt.stage_id, v_execution, t.seq, t.kind, t.call_id, t.content, nullif(t.usage, 'null'), p_attempt.id, millrace.now()
  from jsonb_to_recordset(p_turns) as t(seq int, kind text, call_id text, content jsonb, usage jsonb)
  where t.seq >= next_seq;
  get diagnostics added = row_count;
  next_seq := next_seq + added;
  -- Whoever took a turn is no row that always outlives its worker: the count of releases in a row begins anew.
  if added > 0 and p_attempt.releases > 0 then
    update millrace.attempts a set releases = 0 where a.id = p_attempt.id;
  end if;
end
$$;
comment on function millrace.append_turns(millrace.attempts, jsonb) is 'Adds turns to the conversation of a locked attempt; those whose number is taken already change nothing.';

create or replace function public.millrace_checkpoint(p_worker uuid, p_attempt bigint, p_token uuid, p_turns jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempt millrace.attempts;
  v_reason text;
  v_done record;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_worker is null or p_attempt is null or p_token is null then
    raise exception 'p_worker, p_attempt and p_token must be given' using errcode = 'MR002', hint = 'Send the worker''s id and the attempt and token that its claim handed over.';
  end if;
  perform millrace.check_turns(p_turns);
  perform from millrace.workers w where w.id = p_worker for update;
  -- Under this lock nobody else can end the attempt, so a turn is recorded before its end or not at all.
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt for no key update skip locked;
  if not found and exists (select from millrace.attempts a where a.id = p_attempt) then
    perform public.millrace_renew(p_worker, '{}');
    return jsonb_build_object('status', 'busy', 'reason', 'another transaction is ending the attempt or has locked it');
  end if;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return jsonb_build_object('status', 'stale', 'reason', v_reason);
  end if;
  v_done := millrace.append_turns(v_attempt, p_turns);
  perform public.millrace_renew(p_worker, '{}');
  return jsonb_build_object('status', case when v_done.added > 0 then 'accepted' else 'duplicate' end, 'next_seq', v_done.next_seq);
end
$$;
comment on function public.millrace_checkpoint(uuid, bigint, uuid, jsonb) is 'Records turns {seq, kind, call_id, content, usage} of an agent''s started attempt under its token, and renews its worker''s heartbeat and leases. The status is accepted, duplicate (these numbers are taken, the first ones stay), stale or busy.';
revoke all on function public.millrace_checkpoint(uuid, bigint, uuid, jsonb)
  from public, anon, authenticated;
grant execute on function public.millrace_checkpoint(uuid, bigint, uuid, jsonb) to service_role;

create or replace function public.millrace_turns(p_worker uuid, p_attempt bigint, p_token uuid) returns json
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempt millrace.attempts;
  v_reason text;
  v_stage millrace.stages;
  v_execution int;
  v_began timestamptz;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_worker is null or p_attempt is null or p_token is null then
    raise exception 'p_worker, p_attempt and p_token must be given' using errcode = 'MR002', hint = 'Send the worker''s id and the attempt and token that its claim handed over.';
  end if;
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return json_build_object('status', 'stale', 'reason', v_reason);
  end if;
  select s.* into v_stage from millrace.stages s where s.id = v_attempt.stage_id;
  if v_stage.kind <> 'agent' then
    raise exception 'stage % is of kind %, which keeps no conversation', v_stage.name, v_stage.kind using errcode = 'MR004', hint = 'Set its kind to agent in the pipeline''s definition and push the migration.';
  end if;
  v_execution := v_attempt.number - v_attempt.retry_count;
  -- A released attempt forgets when it was started; its first turn still tells.
  v_began := least(
    (select min(a.started_at) from millrace.attempts a where a.run_id = v_attempt.run_id and a.stage_id = v_attempt.stage_id and a.number between v_execution and v_attempt.number),
    (select t.created_at from millrace.turns t where t.run_id = v_attempt.run_id and t.stage_id = v_attempt.stage_id and t.execution = v_execution and t.seq = 1));
  return json_build_object('status', 'current', 'execution', v_execution,
    'elapsed_ms', greatest(0, floor(extract(epoch from millrace.now() - v_began) * 1000)),
    'limits', case jsonb_typeof(v_stage.agent) when 'object' then v_stage.agent else '{}' end,
    'turns', coalesce((
      select json_agg(json_build_object('seq', t.seq, 'kind', t.kind, 'call_id', t.call_id, 'content', t.content, 'usage', t.usage, 'attempt', t.attempt_id) order by t.seq)
      from millrace.turns t where t.run_id = v_attempt.run_id and t.stage_id = v_attempt.stage_id and t.execution = v_execution), '[]'));
end
$$;
comment on function public.millrace_turns(uuid, bigint, uuid) is 'What an agent''s attempt goes on from: the turns of its execution, the stage''s limits of today, and the milliseconds since the execution began (waits between retries included). The status is current or stale.';
revoke all on function public.millrace_turns(uuid, bigint, uuid) from public, anon, authenticated;
grant execute on function public.millrace_turns(uuid, bigint, uuid) to service_role;

-- Called by millrace_complete for agent stages alone, in the transaction that completes them.
create or replace function millrace.drop_turns(p_stage millrace.stages, p_verdicts json) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce((p_stage.agent ->> 'debug')::boolean, false) then
    return;
  end if;
  delete from millrace.turns t
  using json_to_recordset(p_verdicts) as v(attempt bigint, verdict text)
  join millrace.attempts a on a.id = v.attempt and a.state = 'completed' and a.stage_id = p_stage.id
  where v.verdict = 'accepted' and t.run_id = a.run_id and t.stage_id = a.stage_id and t.execution = a.number - a.retry_count;
end
$$;
comment on function millrace.drop_turns(millrace.stages, json) is 'Deletes the conversations of attempts that were just completed, unless their stage says debug.';

create or replace view millrace.agent_log as
select p.name as pipeline, s.name as stage, t.run_id, r.entity_id, t.execution, t.seq, t.kind,
  case
    when t.kind = 'tool' then case when t.content -> 'failed' = 'true' then 'fails' else 'answers' end
    when t.content ? 'discarded' then 'discarded: ' || (t.content ->> 'discarded')
    when m.calls is not null then 'calls ' || m.calls
    else 'answers'
  end as what,
  case when t.kind = 'tool' then t.content ->> 'name' else m.calls end as tool,
  case when t.kind = 'tool' then t.content ->> 'arguments' else m.arguments end as arguments,
  case when t.kind = 'tool' then t.content ->> 'output' else m.said end as output,
  (t.usage ->> 'input_tokens')::numeric + (t.usage ->> 'output_tokens')::numeric as tokens, (t.usage ->> 'cost_usd')::numeric as cost_usd,
  t.content ->> 'asked' as asked, t.attempt_id, t.created_at as at
from millrace.turns t
join millrace.stages s on s.id = t.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.runs r on r.id = t.run_id
cross join lateral (
  select string_agg(i ->> 'name', ', ' order by n) filter (where i ->> 'type' = 'function_call') as calls,
    string_agg(i ->> 'arguments', ', ' order by n) filter (where i ->> 'type' = 'function_call') as arguments,
    string_agg(jsonb_path_query_first(i, '$.content[*].text') #>> '{}', E'\n' order by n) as said
  from jsonb_array_elements(case when t.kind = 'model' and jsonb_typeof(t.content -> 'output') = 'array' then t.content -> 'output' else '[]' end) with ordinality o(i, n)
) m
order by t.run_id, t.stage_id, t.execution, t.seq;
comment on view millrace.agent_log is 'The conversations of agents, one row a turn: what the model said or called, and what its tools answered.';

create or replace view millrace.agent_executions as
select p.name as pipeline, s.name as stage, t.run_id, r.entity_id, t.execution,
  count(*) filter (where t.kind = 'model') as turns, count(*) filter (where t.kind = 'tool') as tool_calls,
  sum((t.usage ->> 'input_tokens')::numeric) as input_tokens, sum((t.usage ->> 'output_tokens')::numeric) as output_tokens, sum((t.usage ->> 'cost_usd')::numeric) as cost_usd,
  count(distinct t.attempt_id) as attempts, min(t.created_at) as first_turn_at, max(t.created_at) as last_turn_at
from millrace.turns t
join millrace.stages s on s.id = t.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.runs r on r.id = t.run_id
group by p.name, s.id, s.name, t.run_id, r.entity_id, t.execution
order by t.run_id, s.id, t.execution;
comment on view millrace.agent_executions is 'What each conversation of an agent has used up so far, over all attempts of its execution.';
