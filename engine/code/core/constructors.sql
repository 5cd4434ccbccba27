-- Constructors: they name the fields of the engine's wider row types, so that no caller fills one
-- by position.

-- Builds what the projection is to show of one stage on one entity.
create or replace function millrace.change_of(
  p_entity_id text,
  p_status text,
  p_job_id text default null,
  p_error text default null,
  p_started_at timestamptz default null,
  p_completed_at timestamptz default null
) returns millrace.change
language plpgsql immutable
set search_path = pg_catalog, pg_temp
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

-- Builds the item that apply_outcomes() records when the engine itself, rather than a worker, says
-- how an attempt ended.
create or replace function millrace.outcome_of(
  p_ord bigint,
  p_attempt millrace.attempts,
  p_entity_id text,
  p_outcome text,
  p_result jsonb default null,
  p_error jsonb default null
) returns millrace.work
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item millrace.work;
begin
  v_item.ord := p_ord;
  v_item.attempt_id := p_attempt.id;
  v_item.outcome := p_outcome;
  v_item.result := p_result;
  v_item.error := p_error;
  v_item.service := p_attempt.service;
  v_item.job_id := p_attempt.job_id;
  v_item.run_id := p_attempt.run_id;
  v_item.stage_id := p_attempt.stage_id;
  v_item.entity_id := p_entity_id;
  v_item.was := p_attempt.state;
  return v_item;
end
$$;
