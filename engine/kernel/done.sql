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
