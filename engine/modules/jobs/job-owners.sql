-- Returns the Edge Function that finishes an external job: {function, service, pipeline, stage,
-- submission, trace_id, entity_id}. By {job_id} alone also `ended`: whether the job's attempt is
-- over. Returns null where no stage or attempt has the job, or where two attempts wait for the same
-- job_id: two services may give out the same id.
-- p_job: the job's metadata, which names its stage, or {job_id} alone.
create function public.millrace_job_owner(p_job jsonb)
stable
as $$
  v_job_id text := p_job ->> 'job_id';

if p_job ? 'stage' then
  -- millrace_resume() checks whether the attempt still waits.
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
  raise exception 'MR002: p_job names neither a stage nor a job_id: %', left(p_job::text, 200)
    using hint = 'Send {pipeline, stage, submission, trace_id, entity_id} or {job_id}.';
end if;
return (
  select (array_agg(j.owner order by j.waits desc, j.id desc))[1]
  from (
    select a.id, a.state = 'waiting' as waits, jsonb_build_object('function', s.function_name,
      'service', a.service, 'pipeline', p.name, 'stage', s.name,
      'submission', coalesce(a.submission_id, a.id), 'trace_id', r.trace_id,
      'entity_id', millrace.key_of(r),
      'ended', r.status <> 'running' or a.state not in ('waiting', 'failed')) as owner
    from (
      select o.*
      from millrace.attempts o
      where hashtextextended(o.job_id, 0) = hashtextextended(v_job_id, 0)
        and o.job_id is not null
        and o.service not in ('children', 'decision', 'by_hand')
        and o.job_id = v_job_id
      -- by key
      order by o.id + 0 desc
      limit 100) a
    join millrace.runs r on r.id = a.run_id
    join millrace.stages s on s.id = a.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id) j
  having count(*) filter (where j.waits) < 2);
$$;

-- Writes faults of jobs into millrace.log.
-- p_faults: a list of {submission, service, job_id, code, message}.
create function public.millrace_note_faults(p_faults jsonb)
as $$
perform millrace.require_list('p_faults', jsonb_typeof(p_faults),
  'Send [{submission, service, job_id, code, message}].');
perform millrace.report('error', 'job_fault',
  format('A job of service %s cannot be finished: %s',
    coalesce(nullif(f ->> 'service', ''), 'unknown'), left(f ->> 'message', 2000)), f)
from jsonb_array_elements(p_faults) f;
return jsonb_build_object('noted', jsonb_array_length(p_faults));
$$;
