-- Reports: their parsing; record.sql checks them against the attempts
--
-- The calls take `json`, since `jsonb` would refuse the whole call for one value that it cannot
-- store. Such a value then fails its own attempt alone.

-- Returns an item as jsonb. Where jsonb cannot store the item, a completion becomes a failure. Any
-- other outcome stays as it is, and its error loses the characters at fault.
create function millrace.storable_item(p_item json) returns jsonb
as $$
  v_item json;
  v_why text;
  v_kept jsonb;

return p_item::jsonb;
exception when others then
  v_why := sqlerrm;
  v_item := regexp_replace(p_item::text,
    '(?<!\\)((?:\\\\)*)\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\1?', 'g')::json;
  v_kept := (
    select json_object_agg(k, v_item ->> k)::jsonb
    from unnest(array['attempt', 'submission', 'token', 'service', 'job_id', 'stage',
      'trace_id']) k);
  if v_item ->> 'outcome' = 'completed' then
    return v_kept || jsonb_build_object('outcome', 'failed', 'refused', v_why,
      'error', jsonb_build_object('code', 'unstorable_result', 'permanent', true, 'message', format(
        'the result holds something that Postgres cannot store (%s); '
        'remove it before returning the result', v_why)));
  end if;
  return v_kept || jsonb_build_object('outcome', v_item ->> 'outcome',
    'error', jsonb_strip_nulls(jsonb_build_object(
        'detail', v_item #>> '{error,detail}', 'stack', v_item #>> '{error,stack}'))
      || jsonb_build_object(
        'code', v_item #>> '{error,code}', 'message', v_item #>> '{error,message}',
        'permanent', (v_item #>> '{error,permanent}' = 'true') is true));
$$;

-- Returns why a report is malformed; null where it is not.
-- p_key: as in parse_items().
-- p_id: the number under p_key; null where the item has none.
create function millrace.item_fault(p_item jsonb, p_key text, p_id bigint) returns text
immutable
as $$
  v_outcome text := p_item ->> 'outcome';

return case
  -- parse_items() puts {malformed} in place of an item that is no object, and {malformed} names no
  -- attempt. An object that names an attempt may have a key malformed of its own.
  when p_id is null and p_item ->> 'malformed' is not null
    then format('an item must be an object, this is %s', p_item ->> 'malformed')
  when p_id is null
    then format('%s must be the number of an attempt, this is %s',
      p_key, coalesce(p_item ->> p_key, 'null'))
  when p_key = 'attempt' and p_item ->> 'token' is null
    then 'token must be the one that the claim handed over, this is null'
  when v_outcome is null
    or v_outcome not in ('completed', 'failed', 'waiting', 'released')
    or p_key = 'submission' and v_outcome in ('waiting', 'released')
    then format('outcome must be completed, failed, waiting or released '
      '(of a job: completed or failed), this is %s', coalesce(v_outcome, 'null'))
  when v_outcome = 'completed' and not p_item ? 'result'
    then 'a completed item must have a result'
  when (v_outcome = 'waiting' or p_key = 'submission')
    and (p_item ->> 'service' is null or p_item ->> 'job_id' is null)
    then 'service and job_id must name the external job'
  when v_outcome = 'released' and p_item ->> 'limit' not in ('cpu', 'memory')
    then format('limit must be cpu, memory or left out, this is %s', p_item ->> 'limit')
  when v_outcome = 'failed'
    and jsonb_typeof(p_item #> '{error,retry_after_ms}') not in ('number', 'null')
    then 'error.retry_after_ms must be a number of milliseconds'
  when v_outcome = 'failed' and length(p_item #>> '{error,code}') > 200
    then 'error.code must have at most 200 characters'
  when v_outcome = 'failed'
    and jsonb_typeof(p_item #> '{error,permanent}') not in ('boolean', 'null')
    then 'error.permanent must be true or false'
end;
$$;

-- Raises MR002 where an argument is no JSON list.
-- p_type: the JSON type of the argument.
create function millrace.require_list(p_name text, p_type text, p_hint text)
as $$
if p_type is distinct from 'array' then
  raise exception 'MR002: % is %, but must be a list', p_name, coalesce(p_type, 'null')
    using hint = p_hint;
end if;
$$;

-- Parses reports into items. A malformed report gets the verdict `rejected` with the reason.
-- p_key: `attempt` for a worker's report, which has a token; `submission` for the end of a job.
create function millrace.parse_items(p_items json, p_key text) returns millrace.work[]
as $$
  v_items jsonb;
  v_count int;

perform millrace.require_list('p_items', json_typeof(p_items),
  'Send a JSON list, an empty one when there is nothing to report.');
begin
  v_items := p_items;
  -- Counting the items of p_items itself would parse the text once more.
  v_count := jsonb_array_length(v_items);
exception when others then
  v_count := json_array_length(p_items);
end;
if v_count > 1000 then
  raise exception 'MR002: p_items has % items, but one call takes at most 1000', v_count
    using hint = 'Send them in several calls; nothing of this one was recorded.';
end if;
if v_items is null then
  v_items := (
    select json_agg(millrace.storable_item(i.value) order by i.ordinality)::jsonb
    from json_array_elements(p_items) with ordinality i);
end if;
if jsonb_path_exists(v_items, 'strict $[*] ? (@.type() != "object")') then
  v_items := (
    select json_agg(
      case jsonb_typeof(i.value) when 'object' then i.value
        else jsonb_build_object('malformed', jsonb_typeof(i.value)) end
      order by i.ordinality)::jsonb
    from jsonb_array_elements(v_items) with ordinality i);
end if;
return array(
  select w::millrace.work
  from (
    select n.*, case
      when n.id is null or n.token is null or n.outcome is distinct from 'completed'
        or n.result is null or p_key = 'submission'
      then millrace.item_fault(v_items -> (n.ordinality - 1)::int, p_key, n.id) end as reason
    from (
      select j.*, case when ltrim(j.key, '0123456789') = '' and length(j.key) between 1 and 18
        then j.key::bigint end as id
      from (
        select e.*, case p_key when 'attempt' then e.attempt else e.submission end as key
        from rows from (jsonb_to_recordset(v_items) as (
            attempt text, submission text, token text, outcome text, result jsonb, usage jsonb,
            error jsonb, "limit" text, service text, job_id text, stage text, trace_id text,
            refused text))
          with ordinality e(attempt, submission, token, outcome, result, usage,
            error, "limit", service, job_id, stage, trace_id, refused, ordinality)) j
      -- by key; without "offset 0" Postgres would compute id and reason anew at each use
      offset 0) n
    offset 0) f
  left join lateral (
    select t.token, t.run_id, t.stage_id, t.state
    from millrace.attempts t
    where t.id = f.id and p_key = 'attempt'
    offset 0) a on true
  -- The columns stand in the order of the type. A constructor would cost a twentieth of a
  -- transition.
  cross join lateral (
    select f.ordinality::int as ord, f.id as attempt_id, a.token, f.token as reported_token,
      f.outcome,
      case when f.outcome = 'completed' then coalesce(f.result, 'null') end as result,
      case when jsonb_typeof(f.usage) = 'object' then f.usage end as usage,
      case f.outcome
        when 'failed' then '{"code": "unknown", "message": "no error was given"}'
          || case when jsonb_typeof(f.error) = 'object' then f.error else '{}' end
        when 'released' then case when f."limit" is not null then
          jsonb_build_object('code', 'resource_limit', 'message', format(
            'the function reached the platform''s limit of %s while it worked on this row '
            'isolated; give the row less to do, or the stage less to do in one call',
            case f."limit" when 'cpu' then 'CPU time' else f."limit" end)) end
      end as error,
      f.service, f.job_id, a.run_id, a.stage_id,
      (select r.entity_id from millrace.runs r where r.id = a.run_id) as entity_id,
      a.state as was, case when f.reason is not null then 'rejected' end as verdict,
      coalesce(f.reason, f.refused) as reason, f.stage as claimed_stage,
      f.trace_id as claimed_trace) w);
$$;
