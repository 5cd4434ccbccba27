-- Verbs by SQL: each function does the request that millrace_act() takes, for this session's user

-- Queues the failed or cancelled stages of a run that is over, with the full number of attempts.
-- p_stage: null means all of them.
create function millrace.retry(p_run bigint, p_stage text default null)
set verb = retry;

-- Cancels a running run. The sweep cancels its children.
create function millrace.cancel(p_run bigint)
set verb = cancel;

-- Starts a stage and all stages that depend on it over. Children are spawned anew.
-- p_stage: null means the whole run.
create function millrace.reset(p_run bigint, p_stage text default null)
set verb = reset;

-- Retries the failed and cancelled children of a stage, and starts the stages that need it over.
-- Returns how many children it retried.
create function millrace.reset_children(p_run bigint, p_stage text) returns int
set verb = reset_children, children;

-- Starts a pending stage whose needs are done, without waiting for its thresholds.
create function millrace.start_stage(p_run bigint, p_stage text)
set verb = start_stage;

-- Completes a queued, started or waiting stage with a result given by hand.
create function millrace.complete_stage(p_run bigint, p_stage text, p_result jsonb)
set verb = complete;

-- Fails a queued, started or waiting stage. Its policy retries it, unless p_permanent.
create function millrace.fail_stage(
  p_run bigint, p_stage text, p_message text, p_permanent boolean default false
)
set verb = fail;

-- Skips a stage that is not done: its result is null, and the run goes on.
create function millrace.skip(p_run bigint, p_stage text)
set verb = skip;

-- Makes the run's retries in backoff due at once, and returns how many there were.
-- p_stage: null means those of all stages.
create function millrace.hurry(p_run bigint, p_stage text default null) returns int
set verb = hurry, attempts;

-- Stops a pipeline, or one stage, from handing out work. Work that a worker has taken goes on.
create function millrace.pause(p_pipeline text, p_stage text default null)
set verb = pause;

-- Lets a pipeline, or one stage, hand out work again. Returns the statements that end the pauses
-- which still hold back some of its work; null where none does.
create function millrace.unpause(p_pipeline text, p_stage text default null) returns text
set verb = unpause, now;

-- Sets a stage's rate, max_in_flight or both in place of its definition's: {"max_in_flight": 5}.
-- p_until: the throttle ends by itself then.
create function millrace.throttle(
  p_pipeline text, p_stage text, p_limits jsonb, p_until timestamptz, p_reason text
)
set verb = throttle;

-- Ends the throttle of a stage: the limits of its definition hold again.
create function millrace.unthrottle(p_pipeline text, p_stage text)
set verb = unthrottle;

-- Sets a shared limit's rate, max_in_flight or spending in place of its definition's.
-- p_until: the throttle ends by itself then.
create function millrace.throttle_limit(
  p_limit text, p_limits jsonb, p_until timestamptz, p_reason text
)
set verb = throttle;

-- Ends the throttle of a shared limit, and the pauses for which services asked.
create function millrace.unthrottle_limit(p_limit text)
set verb = unthrottle;

-- Skips the rows that are queued at a stage, now and until the bypass ends. take_up() starts them
-- there later. Returns how many rows this call skipped; the sweep skips the others.
-- p_until: null means until end_bypass().
create function millrace.bypass(
  p_pipeline text, p_stage text, p_reason text, p_until timestamptz default null
) returns int
set verb = bypass, skipped;

-- Ends the bypass of a stage. The rows that it left out stay remembered for take_up().
create function millrace.end_bypass(p_pipeline text, p_stage text)
set verb = end_bypass;

-- Starts rows that a bypass has left out, the oldest first, and returns how many. Rows that have a
-- live run, or that another transaction has locked, stay for the next call.
create function millrace.take_up(
  p_pipeline text, p_stage text, p_count int default 1000
) returns int
set verb = take_up, started;
