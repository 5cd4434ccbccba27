-- Whose a job is, and what went wrong with it. What keeps a job from being asked after or finished
-- stands on the attempt that waits, and goes when the service answers again.

-- Finds the Edge Function that finishes an external job: {function, service, pipeline, stage,
-- submission, trace_id, entity_id, ended}. By the stage that its metadata names, or by {job_id}
-- alone: the attempt that waits for it, else the last that had it. Null when there is none, or
-- where two wait: two services may give the same id. ended: what it brings comes too late.
create function public.millrace_job_owner(p_job jsonb) returns jsonb
stable
set millrace.plan = by_key
as $$
declare
  v_job_id text := p_job ->> 'job_id';
  v_found millrace.attempts[];
  v_attempt millrace.attempts;
begin
  if p_job ? 'stage' then
    -- Whether the attempt still waits is judged when the job is recorded.
    return (
      select p_job
        || jsonb_build_object('function', s.function_name, 'service', p_job ->> 'service')
      from millrace.pipelines p
      join millrace.stages s on s.pipeline_id = p.id
      where p.name = p_job ->> 'pipeline'
        and s.name = p_job ->> 'stage'
        and s.function_name is not null);
  end if;
  if v_job_id is null then
    raise exception 'p_job names neither a stage nor a job_id: %', left(p_job::text, 200)
      using errcode = 'MR002',
        hint = 'Send {pipeline, stage, submission, trace_id, entity_id} or {job_id}.';
  end if;
  v_found := array(
    select a
    from (
      select a.*
      from millrace.attempts a
      where hashtextextended(a.job_id, 0) = hashtextextended(v_job_id, 0)
        and a.job_id is not null
        and a.service not in ('children', 'decision', 'by_hand')
        and a.job_id = v_job_id
      order by a.id desc
      limit 100
    ) a
    order by a.state = 'waiting' desc, a.id desc
    limit 2);
  if v_found[1].state = 'waiting' and v_found[2].state = 'waiting' then
    return null;
  end if;
  v_attempt := v_found[1];
  return (
    select jsonb_build_object('function', s.function_name, 'service', v_attempt.service,
      'pipeline', p.name, 'stage', s.name,
      'submission', coalesce(v_attempt.submission_id, v_attempt.id),
      'trace_id', r.trace_id, 'entity_id', r.entity_id,
      'ended', r.status <> 'running' or v_attempt.state not in ('waiting', 'failed'))
    from millrace.runs r
    join millrace.stages s on s.id = v_attempt.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where r.id = v_attempt.run_id);
end
$$;

-- Notes what went wrong with jobs that attempts wait for: [{submission, service, job_id, code,
-- message}]; a null code says that it is over. noted: how many attempts that changed; the next poll
-- says again what somebody held.
create function public.millrace_note_faults(p_faults jsonb) returns jsonb
set millrace.plan = by_key
as $$
declare
  v_noted int;
  v_first jsonb;
begin
  if jsonb_typeof(p_faults) is distinct from 'array' then
    raise exception 'p_faults is %, but must be a list', coalesce(jsonb_typeof(p_faults), 'null')
      using errcode = 'MR002', hint = 'Send [{submission, service, job_id, code, message}].';
  end if;
  with told as (
    select
      coalesce(
        (select max(a.id) from millrace.attempts a where a.submission_id = n.id), n.id
      ) as attempt_id,
      f.service, f.job_id, f.code, left(f.message, 2000) as message
    from jsonb_to_recordset(p_faults)
      as f(submission text, service text, job_id text, code text, message text)
    cross join lateral (
      select case when f.submission ~ '^[0-9]{1,18}$' then f.submission::bigint end as id) n
  ), held as (
    select a.id, t.code, t.message
    from told t
    join millrace.attempts a on a.id = t.attempt_id
    where a.state = 'waiting'
      and (t.service = '' or a.service = t.service)
      and a.job_id = coalesce(t.job_id, a.job_id)
      and (t.code, t.message) is distinct from (a.error ->> 'code', a.error ->> 'detail')
    order by a.id
    for update of a skip locked
  ), noted as (
    update millrace.attempts a
    set error = case when h.code is not null then
      jsonb_build_object('code', h.code, 'detail', h.message, 'since', millrace.now(),
        'message', 'the job cannot be asked after or finished just now') end
    from held h
    where a.id = h.id
    returning a.id
  )
  select count(*) into v_noted from noted;
  v_first := (
    select f.value
    from jsonb_array_elements(p_faults) f
    where f.value ->> 'code' is not null
    limit 1);
  if v_first is not null then
    perform millrace.report('error', 'job_fault',
      format('A job of service %s cannot be finished: %s',
        coalesce(nullif(v_first ->> 'service', ''), 'unknown'), v_first ->> 'message'),
      v_first);
  end if;
  return jsonb_build_object('noted', v_noted);
end
$$;
