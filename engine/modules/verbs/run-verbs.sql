-- Lists the verbs that a person does to a run, a row for each.
-- needs: the fields that a request must have.
-- states: the states of the stage in which the verb is allowed; null means any.
-- is_open: whether operators can do the verb by the Data API, and in bulk.
-- in_sets: whether do_to_all() does the verb to many runs at once, where no stage is named.
-- destroys: whether work is lost or left out.
-- does: the call, of the locked run, its stage and the request.
create view millrace.run_verbs as
select v.verb, v.needs::text[], v.states::text[], v.is_open, v.in_sets, v.destroys, v.does
from (values
  -- Queues the failed or cancelled stages of runs that are over; results of other stages stay.
  ('retry', '{}', '{failed,cancelled}', true, true, false,
    'millrace.do_to_all(array[($1).id], ''retry'')'),
  -- Ends runs; the sweep cancels their children.
  ('cancel', '{}', null, true, true, true,
    'millrace.do_to_all(array[($1).id], ''cancel'')'),
  -- Starts a stage and all stages that depend on it over, or the whole run, with new children.
  ('reset', '{}', null, true, false, true, 'millrace.reset_one($1, $2)'),
  -- Retries the failed and cancelled children of a stage, and starts the stages that need it over.
  ('reset_children', '{stage}', null, false, false, false,
    'millrace.reset_failed_children($1, $2)'),
  -- Starts a pending stage whose needs are done, without waiting for its thresholds.
  ('start_stage', '{stage}', '{pending}', false, false, false, 'millrace.start_one($1, $2)'),
  -- Gives a stage another result, or its row other values, and starts the following stages over.
  ('edit', '{stage,attempt}', null, true, false, true, 'millrace.edit_one($1, $2, $3)'),
  -- Completes a queued, started or waiting stage with a result given by hand.
  ('complete', '{stage,result}', '{queued,started,waiting}', false, false, true,
    'millrace.end_stage($1, $2, $3)'),
  -- Fails a queued, started or waiting stage; its policy retries it, unless permanent.
  ('fail', '{stage}', '{queued,started,waiting}', true, false, true,
    'millrace.end_stage($1, $2, $3)'),
  -- Skips a stage that is not done: its result is null, and the run goes on.
  ('skip', '{stage}', '{pending,queued,started,waiting,failed,cancelled}', true, false, true,
    'millrace.skip_one($1, $2)'),
  -- Makes retries in backoff due at once.
  ('hurry', '{}', null, true, false, false, 'millrace.hurry_one($1, $2)')
) v(verb, needs, states, is_open, in_sets, destroys, does);
