-- What "done" means
--
-- A stage of a run is done when it was completed or skipped, and nobody has started it over since.
-- Then the stages that need it go on; a skipped one's result is null.

create or replace view millrace.done_attempts as
select a.id, a.run_id, a.stage_id, a.number, a.state, a.retry_count, a.created_at, a.started_at,
  a.finished_at, a.error, a.output, a.input_hash
from millrace.attempts a
where a.state in ('completed', 'skipped')
  and not a.superseded;
comment on view millrace.done_attempts is
  'The attempt by which each stage of a run is done: completed or skipped, and not started over '
  'since.';

-- Says whether an attempt was skipped for what may be otherwise in the next run: nobody asked for
-- the stage, or the run ended before it. No later run takes it over.
create function millrace.was_left_out(p_error jsonb) returns boolean
language sql immutable
as $$
  select coalesce(p_error ?| array['on_demand', 'ended'], false)
$$;

-- Says whether a stage of a run is done.
create function millrace.is_done(p_run_id bigint, p_stage_id int) returns boolean
language plpgsql volatile
as $$
begin
  return exists (
    select
    from millrace.done_attempts a
    where a.run_id = p_run_id
      and a.stage_id = p_stage_id);
end
$$;
