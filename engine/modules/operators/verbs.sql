-- Verbs, by SQL: requests to public.millrace_act in the name of this session

-- Queues what failed or was cancelled in a run that is over again, with all its attempts anew.
create function millrace.retry(p_run bigint, p_stage text default null)
set millrace.verb = retry;

-- Cancels a running run; its children are cancelled by the sweep.
create function millrace.cancel(p_run bigint)
set millrace.verb = cancel;

-- Starts a stage and all that depends on it over, or the whole run; children are spawned anew.
create function millrace.reset(p_run bigint, p_stage text default null)
set millrace.verb = reset;

-- Retries the failed and cancelled children of a stage, whose needing stages start over. Returns
-- how many.
create function millrace.reset_children(p_run bigint, p_stage text) returns int
set millrace.verb = reset_children, children;

-- Starts a pending stage whose needs are done, without waiting for its thresholds.
create function millrace.start_stage(p_run bigint, p_stage text)
set millrace.verb = start_stage;

-- Completes a queued, started or waiting stage with a result given by hand.
create function millrace.complete_stage(p_run bigint, p_stage text, p_result jsonb)
set millrace.verb = complete;

-- Fails a queued, started or waiting stage; it is retried as its policy says, unless permanent.
create function millrace.fail_stage(
  p_run bigint, p_stage text, p_message text, p_permanent boolean default false
)
set millrace.verb = fail;

-- Goes on without a stage that is not done: its result is null.
create function millrace.skip(p_run bigint, p_stage text)
set millrace.verb = skip;

-- Makes retries in backoff due at once. Returns how many.
create function millrace.hurry(p_run bigint, p_stage text default null) returns int
set millrace.verb = hurry, attempts;

-- Stops a pipeline, or one stage, from handing out work; what is in work goes on.
create function millrace.pause(p_pipeline text, p_stage text default null)
set millrace.verb = pause;

-- Lets a pipeline, or one stage, hand out work again. Returns what is still paused, and how that
-- goes on.
create function millrace.unpause(p_pipeline text, p_stage text default null) returns text
set millrace.verb = unpause, now;

-- Sets rate, max_in_flight or both over a stage's definition: {"max_in_flight": 5}.
create function millrace.throttle(
  p_pipeline text, p_stage text, p_limits jsonb, p_until timestamptz, p_reason text
)
set millrace.verb = throttle;

-- Ends the throttle of a stage.
create function millrace.unthrottle(p_pipeline text, p_stage text)
set millrace.verb = unthrottle;

-- Sets rate, max_in_flight or spending over a shared limit's definition.
create function millrace.throttle_limit(
  p_limit text, p_limits jsonb, p_until timestamptz, p_reason text
)
set millrace.verb = throttle;

-- Ends the throttle of a shared limit, and the pauses that services asked for.
create function millrace.unthrottle_limit(p_limit text)
set millrace.verb = unthrottle;

-- Skips what is queued at a stage, for take_up() to start later. Returns how many at once.
create function millrace.bypass(
  p_pipeline text, p_stage text, p_reason text, p_until timestamptz default null
) returns int
set millrace.verb = bypass, skipped;

-- Ends the bypass of a stage; the rows it left out stay remembered.
create function millrace.end_bypass(p_pipeline text, p_stage text)
set millrace.verb = end_bypass;

-- Starts rows that a bypass has left out, oldest first. Returns how many; live ones and those that
-- somebody holds stay for the next call.
create function millrace.take_up(
  p_pipeline text, p_stage text, p_count int default 1000
) returns int
set millrace.verb = take_up, started;
