-- Constructors: they name the fields of the engine's wider row types, so that no caller fills one
-- by position.

-- Builds what the projection is to show of one stage on one entity.
create function millrace.change_of(
  p_entity_id text,
  p_status text,
  p_job_id text default null,
  p_error text default null,
  p_started_at timestamptz default null,
  p_completed_at timestamptz default null
) returns millrace.change
language plpgsql immutable
as $$
declare
  v_change millrace.change;
begin
  v_change.entity_id := p_entity_id;
  v_change.status := p_status;
  v_change.job_id := p_job_id;
  v_change.error := p_error;
  v_change.retry_count := 0;
  v_change.started_at := p_started_at;
  v_change.completed_at := p_completed_at;
  return v_change;
end
$$;

-- Makes the work item of what the engine itself decides about an attempt: its deadline has passed,
-- its lease has expired, its children have ended, a person has answered.
create function millrace.work_on(
  p_attempt millrace.attempts, p_entity_id text, p_outcome text,
  p_result jsonb default null, p_error jsonb default null, p_ord int default 1
) returns millrace.work
language plpgsql immutable
as $$
declare
  v_work millrace.work;
begin
  v_work.ord := p_ord;
  v_work.attempt_id := p_attempt.id;
  v_work.outcome := p_outcome;
  v_work.result := p_result;
  v_work.error := p_error;
  v_work.service := p_attempt.service;
  v_work.job_id := p_attempt.job_id;
  v_work.run_id := p_attempt.run_id;
  v_work.stage_id := p_attempt.stage_id;
  v_work.entity_id := p_entity_id;
  v_work.was := p_attempt.state;
  return v_work;
end
$$;
