-- Verbs, by SQL: requests to public.millrace_act in the name of this session

-- Queues what failed or was cancelled in a finished run again, with a fresh allowance of attempts.
create function millrace.retry(p_run bigint, p_stage text default null)
set millrace.verb = retry;

-- Cancels a running run. Its children are cancelled by the sweep.
create function millrace.cancel(p_run bigint)
set millrace.verb = cancel;

-- Puts a stage and all that depends on it, or the whole run, back to pending and goes on from
-- there. Children of a map that is reset are spawned anew.
create function millrace.reset(p_run bigint, p_stage text default null)
set millrace.verb = reset;

-- Lets the failed and cancelled children of a stage go on, each from where it failed, and starts
-- the stages over that need them. Returns how many children.
create function millrace.reset_children(p_run bigint, p_stage text) returns int
set millrace.verb = reset_children, children;

-- Starts a pending stage whose needs are done, without waiting for its thresholds.
create function millrace.start_stage(p_run bigint, p_stage text)
set millrace.verb = start_stage;

-- Completes a queued, started or waiting stage with a result given by hand.
create function millrace.complete_stage(p_run bigint, p_stage text, p_result jsonb)
as $$
begin
  if p_result is null then
    raise exception 'p_result is null, but must be the result of stage %', p_stage
      using errcode = 'MR002', hint = 'Give the result as jsonb; ''null''::jsonb is one.';
  end if;
  perform millrace.act(jsonb_build_object(
    'verb', 'complete', 'run', p_run, 'stage', p_stage, 'result', p_result));
end
$$;

-- Fails a queued, started or waiting stage; it is retried as its policy says, unless permanent.
create function millrace.fail_stage(
  p_run bigint, p_stage text, p_message text, p_permanent boolean default false
)
set millrace.verb = fail;

-- Goes on without a stage that is not done: its result is null to those that need it.
create function millrace.skip(p_run bigint, p_stage text)
set millrace.verb = skip;

-- Makes a retry that waits in backoff due at once, and returns how many attempts those were.
create function millrace.hurry(p_run bigint, p_stage text default null) returns int
set millrace.verb = hurry, attempts;

-- Stops a pipeline, or one stage, from handing out work. What is in work goes on.
create function millrace.pause(p_pipeline text, p_stage text default null)
set millrace.verb = pause;

-- Lets a paused pipeline, or one stage, hand out work again. Returns what is still paused, with
-- the statements that let it go on; null where nothing is.
create function millrace.unpause(p_pipeline text, p_stage text default null) returns text
set millrace.verb = unpause, now;

-- Sets limits of a stage, over its definition, until a time and for a reason:
-- {"rate": {"count": 10, "per_seconds": 60}, "max_in_flight": 5}, one of them or both.
create function millrace.throttle(
  p_pipeline text, p_stage text, p_limits jsonb, p_until timestamptz, p_reason text
)
set millrace.verb = throttle;

-- Takes the throttle of a stage away; the limits of its definition hold again.
create function millrace.unthrottle(p_pipeline text, p_stage text)
set millrace.verb = unthrottle;

-- Sets parts of a shared limit, rate, max_in_flight or spending, over its definition, until a time
-- and for a reason.
create function millrace.throttle_limit(
  p_limit text, p_limits jsonb, p_until timestamptz, p_reason text
)
set millrace.verb = throttle;

-- Takes the throttle of a shared limit away, and the pauses that services asked for.
create function millrace.unthrottle_limit(p_limit text)
set millrace.verb = unthrottle;

-- Leaves a stage out until a time or end_bypass(): what is queued there is skipped and remembered
-- for take_up(). Returns how many it has skipped at once.
create function millrace.bypass(
  p_pipeline text, p_stage text, p_reason text, p_until timestamptz default null
) returns int
set millrace.verb = bypass, skipped;

-- Lets a bypassed stage work again. What it was left out of stays remembered.
create function millrace.end_bypass(p_pipeline text, p_stage text)
set millrace.verb = end_bypass;

-- Starts rows at a stage that a bypass had left out, oldest first and so many at most, and returns
-- how many. Rows whose run is live, or that somebody holds, stay for the next call.
create function millrace.take_up(
  p_pipeline text, p_stage text, p_count int default 1000
) returns int
set millrace.verb = take_up, started;
