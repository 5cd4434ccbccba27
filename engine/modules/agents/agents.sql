-- Agents: the turns of a conversation with a model, or the steps of another stage. An attempt and
-- its automatic retries are one stage run and share the turns. The stage run is known by the number
-- of its first attempt: number - retry_count.

-- Records turns of a started attempt under its token, and renews its worker's leases. Answers
-- {status, next_seq}, or {status, reason}. The status is accepted, duplicate, stale or busy.
-- p_turns: a list of {seq, kind, call_id, content, usage}, 100 at most, whose seq has no gaps.
create function public.millrace_checkpoint(
  p_worker uuid, p_attempt bigint, p_token uuid, p_turns jsonb
)
as $$
  c_schema constant jsonb := '{"type": "array", "minItems": 1, "maxItems": 100, "items": {
    "type": "object", "required": ["seq", "kind", "content"], "properties": {
      "seq": {"type": "integer", "minimum": 1, "maximum": 999999999},
      "kind": {"enum": ["model", "tool"]}, "call_id": {"type": ["string", "null"]},
      "content": {"type": "object"}, "usage": {"type": ["object", "null"]}}}}';
  v_fault text := coalesce(millrace.schema_fault(c_schema, p_turns, 'p_turns'), (
    select format('p_turns[%s]', t.ordinal - 1) || f.fault
    from jsonb_array_elements(p_turns) with ordinality t(turn, ordinal)
    cross join lateral (
      select case
        when t.turn -> 'seq' <> to_jsonb((p_turns #> '{0,seq}')::int + t.ordinal - 1)
          then format('.seq is %s, which does not follow the turn before', t.turn ->> 'seq')
        when (t.turn ->> 'call_id' is null) = (t.turn ->> 'kind' = 'tool')
          then format('.call_id is %s, but must be given for a tool alone',
            coalesce(t.turn ->> 'call_id', 'null'))
        when octet_length(t.turn::text) > 1048576
          then format(' has %s bytes, but a turn may have 1048576', octet_length(t.turn::text))
      end) f(fault)
    where f.fault is not null
    limit 1));
  v_attempt millrace.attempts;
  v_reason text;
  v_stage_run int;
  v_next_seq int;
  v_added int;

perform from millrace.workers w where w.id = p_worker for update;
-- Under this lock a turn is recorded before the attempt's end, or not at all.
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
v_stage_run := v_attempt.number - v_attempt.retry_count;
v_next_seq := 1 + coalesce((
  select max(t.seq)
  from millrace.turns t
  where t.run_id = v_attempt.run_id and t.stage_id = v_attempt.stage_id
    and t.stage_run = v_stage_run), 0);
if v_fault is null and (p_turns #> '{0,seq}')::int > v_next_seq then
  v_fault := format('p_turns[0].seq is %s, but the next turn of this conversation is %s',
    p_turns #> '{0,seq}', v_next_seq);
end if;
perform millrace.refuse(v_fault,
  'Send turns {seq, kind, call_id, content, usage}, counted from 1 without a gap; '
  'let a tool answer with the location of a file in Storage where its output is large.', 'MR002');
insert into millrace.turns
  (run_id, stage_id, stage_run, seq, kind, call_id, content, usage, attempt_id, created_at)
select v_attempt.run_id, v_attempt.stage_id, v_stage_run, t.seq, t.kind, t.call_id, t.content,
  nullif(t.usage, 'null'), v_attempt.id, v_now
from jsonb_to_recordset(p_turns)
  as t(seq numeric, kind text, call_id text, content jsonb, usage jsonb)
where t.seq >= v_next_seq;
get diagnostics v_added = row_count;
v_next_seq := v_next_seq + v_added;
-- A turn is progress, so the releases before it no longer count against the row.
if v_added > 0 and v_attempt.releases > 0 then
  update millrace.attempts a set releases = 0 where a.id = v_attempt.id;
end if;
perform public.millrace_renew(p_worker, '{}');
return jsonb_build_object(
  'status', case when v_added > 0 then 'accepted' else 'duplicate' end,
  'next_seq', v_next_seq);
$$;

-- Returns what an attempt goes on from: {status, stage_run, elapsed_ms, limits, turns}. The status
-- is current or stale. elapsed_ms is the time since the stage run began.
create function public.millrace_turns(p_worker uuid, p_attempt bigint, p_token uuid)
returns json
as $$
  v_attempt millrace.attempts := (select a from millrace.attempts a where a.id = p_attempt);
  v_reason text := millrace.void_reason(v_attempt, p_token);
  v_stage_run int := v_attempt.number - v_attempt.retry_count;
  v_turns json;
  v_began timestamptz;

if v_reason is not null then
  return json_build_object('status', 'stale', 'reason', v_reason);
end if;
select min(a.started_at) into v_began
from millrace.attempts a
where a.run_id = v_attempt.run_id and a.stage_id = v_attempt.stage_id
  and a.number between v_stage_run and v_attempt.number;
-- A released attempt has no started_at any more. Its first turn says when it began.
select least(v_began, min(t.created_at) filter (where t.seq = 1)),
  coalesce(json_agg(json_build_object('seq', t.seq, 'kind', t.kind, 'call_id', t.call_id,
    'content', t.content, 'usage', t.usage, 'attempt', t.attempt_id) order by t.seq), '[]')
into v_began, v_turns
from millrace.turns t
where t.run_id = v_attempt.run_id and t.stage_id = v_attempt.stage_id
  and t.stage_run = v_stage_run;
return json_build_object('status', 'current', 'stage_run', v_stage_run,
  'elapsed_ms', greatest(0, floor(extract(epoch from v_now - v_began) * 1000)),
  'limits', (
    select case jsonb_typeof(s.agent) when 'object' then s.agent else '{}' end
    from millrace.stages s
    where s.id = v_attempt.stage_id),
  'turns', v_turns);
$$;
