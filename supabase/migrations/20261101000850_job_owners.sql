-- Chapter 17: whose a job is, and what went wrong with it
--
-- The function job-complete verifies a callback and hands it to the function of the stage whose job it is about; this chapter
-- tells which that is. What keeps a job from being asked after or finished is an operator's business: it stands on the
-- attempt that waits, in pipeline.log and in doctor(), and goes when the service answers again.

create function public.pipeline_job_owner(p_job jsonb) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_found jsonb;
begin
  if p_job ? 'stage' then
    -- Whether the attempt still waits is judged when the job is recorded.
    return (
      select p_job || jsonb_build_object('function', s.function_name, 'service', p_job ->> 'service')
      from pipeline.pipelines p
      join pipeline.stages s on s.pipeline_id = p.id
      where p.name = p_job ->> 'pipeline'
        and s.name = p_job ->> 'stage'
        and s.function_name is not null);
  end if;
  if p_job ->> 'job_id' is null then
    raise exception 'p_job names neither a stage nor a job_id: %', left(p_job::text, 200)
      using errcode = 'MR002', hint = 'Send {pipeline, stage, submission, trace_id, entity_id} or {job_id}.';
  end if;
  select jsonb_build_object('function', s.function_name, 'service', a.service, 'pipeline', p.name,
    'stage', s.name, 'submission', coalesce(a.submission_id, a.id), 'trace_id', r.trace_id,
    'entity_id', r.entity_id)
  into strict v_found
  from pipeline.attempts a
  join pipeline.runs r on r.id = a.run_id
  join pipeline.stages s on s.id = a.stage_id
  join pipeline.pipelines p on p.id = s.pipeline_id
  -- A job whose attempt was given up may still end well. One that was bought once is waited for once, at most.
  where a.job_id = p_job ->> 'job_id'
    and a.state in ('waiting', 'failed')
    and a.service not in ('children', 'decision')
    and not exists (
      select from pipeline.attempts n
      where n.run_id = a.run_id and n.stage_id = a.stage_id and n.number > a.number and n.job_id = a.job_id
    );
  return v_found;
exception
  -- Two services that give the same id: neither may have the other's job.
  when no_data_found or too_many_rows then
    return null;
end
$$;
comment on function public.pipeline_job_owner(jsonb) is 'Whose an external job is, and which Edge Function finishes it: {function, service, pipeline, stage, submission, trace_id, entity_id}. By the stage that its metadata names, or by {job_id} alone; null when nobody waits for it.';
revoke all on function public.pipeline_job_owner(jsonb) from public, anon, authenticated;
grant execute on function public.pipeline_job_owner(jsonb) to service_role;

-- Nothing is locked but rows that wait, and of those only what nobody holds: the next poll says it again.
create function public.pipeline_note_faults(p_faults jsonb) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_noted int;
  v_first jsonb := (
    select f.value from jsonb_array_elements(p_faults) f where f.value ->> 'code' is not null limit 1);
begin
  with told as (
    select coalesce((select max(a.id) from pipeline.attempts a where a.submission_id = f.submission),
      f.submission) as attempt_id, f.service, f.job_id, f.code, left(f.message, 2000) as message
    from jsonb_to_recordset(p_faults)
      as f(submission bigint, service text, job_id text, code text, message text)
  ), held as (
    select a.id, t.code, t.message
    from told t
    join pipeline.attempts a on a.id = t.attempt_id
    where a.state = 'waiting'
      and (t.service = '' or a.service = t.service)
      and a.job_id = coalesce(t.job_id, a.job_id)
      and (t.code, t.message) is distinct from (a.error ->> 'code', a.error ->> 'message')
    order by a.id
    for update of a skip locked
  ), noted as (
    update pipeline.attempts a
    set error = case when h.code is not null then
      jsonb_build_object('code', h.code, 'message', h.message, 'since', pipeline.now()) end
    from held h
    where a.id = h.id
    returning a.id
  )
  select count(*) into v_noted from noted;
  if v_first is not null then
    perform pipeline.report('error', 'job_fault', format('A job of service %s cannot be finished: %s',
      coalesce(nullif(v_first ->> 'service', ''), 'unknown'), v_first ->> 'message'), v_first);
  end if;
  return jsonb_build_object('noted', v_noted);
end
$$;
comment on function public.pipeline_note_faults(jsonb) is 'What went wrong with jobs that attempts wait for: [{submission, service, job_id, code, message}]; a null code says that it is over. Shown by the timeline, doctor() and pipeline.log; noted: how many attempts that changed.';
revoke all on function public.pipeline_note_faults(jsonb) from public, anon, authenticated;
grant execute on function public.pipeline_note_faults(jsonb) to service_role;

create function pipeline.faulty_jobs() returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select string_agg(format('%s of stage %s of %s since %s: %s', g.jobs, g.stage, g.pipeline,
      to_char(g.since, 'YYYY-MM-DD HH24:MI:SS'), g.message), '; ' order by g.since)
    from (
      select count(*) as jobs, s.name as stage, p.name as pipeline, a.error ->> 'message' as message,
        min((a.error ->> 'since')::timestamptz) as since
      from pipeline.attempts a
      join pipeline.stages s on s.id = a.stage_id
      join pipeline.pipelines p on p.id = s.pipeline_id
      where a.deadline_at is not null
        and a.state = 'waiting'
        and a.error is not null
      group by p.name, s.id, s.name, a.error ->> 'message'
      order by min((a.error ->> 'since')::timestamptz)
      limit 10) g);
end
$$;
comment on function pipeline.faulty_jobs() is 'What keeps jobs from being asked after or finished, by stage and reason, the oldest first; null when nothing does.';

revoke all on all functions in schema pipeline from public;
