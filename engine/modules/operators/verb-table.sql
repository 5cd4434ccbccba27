-- Lists the verbs that a person does, a row for each. The verbs of a run come from
-- millrace.run_verbs.
-- about: what the verb acts on: run, stage, alert, channel or bulk.
-- needs: the fields that a request must have.
-- is_open: whether operators can do the verb by the Data API.
-- destroys: whether work is lost or left out.
-- does: the call that does a stage's verb. Its arguments: $1 is the pipeline, $2 the stage, $3 the
-- request, $4 the number of the journal entry.
-- acts: the call that finds what a request names and does the verb. Its arguments: $1 is the
-- caller, $2 the request, $3 the number of the journal entry, $4 the column does.
create view millrace.verbs as
select v.verb, v.about, v.needs, v.is_open, v.destroys, v.does, case v.about
    when 'run' then 'millrace.act_on_run($1, $2)'
    when 'stage' then 'millrace.act_on_stage($1, $2, $3, $4)'
    when 'alert' then 'millrace.act_on_alert($1, $2, $3)'
    when 'channel' then 'millrace.act_on_channel($2)'
    else 'millrace.act_in_bulk($1, $2)'
  end as acts
from (
  select r.verb, 'run' as about, r.needs, r.is_open, r.destroys, r.does
  from millrace.run_verbs r
  union all
  select t.verb, t.about, t.needs::text[], true, t.destroys, t.does
  from (values
    -- Stops a pipeline, or one stage, from handing out work; what is in work goes on.
    ('pause', 'stage', '{pipeline}', false, 'millrace.switch($1, $2, $3, $4)'),
    -- Lets a pipeline, or one stage, hand out work again.
    ('unpause', 'stage', '{pipeline}', false, 'millrace.switch($1, $2, $3, $4)'),
    -- Sets other limits in place of a stage's, or of a shared limit's, for a while.
    ('throttle', 'stage', '{pipeline,stage,reason}', false, 'millrace.put_throttle($2, $3, $4)'),
    -- Ends a throttle, and the pauses of a shared limit for which services asked.
    ('unthrottle', 'stage', '{pipeline,stage}', false, 'millrace.end_throttle_of($1, $2, $3)'),
    -- Leaves a stage out: runs go on without it, and take_up starts it later for their rows.
    ('bypass', 'stage', '{pipeline,stage,reason}', true, 'millrace.begin_bypass($2, $3, $4)'),
    -- Ends the bypass of a stage; the rows it left out stay remembered.
    ('end_bypass', 'stage', '{pipeline,stage}', false, 'millrace.finish_bypass($2)'),
    -- Starts rows that a bypass has left out, oldest first.
    ('take_up', 'stage', '{pipeline,stage}', false, 'millrace.take_up_rows($2, $3)'),
    -- Silences alerts of a pipeline, a stage or a kind, or those like a given alert, for a while.
    ('silence', 'alert', '{}', false, null),
    -- Ends a silence.
    ('unsilence', 'alert', '{silence}', false, null),
    -- Sends a test message to a channel of alerts.
    ('test_channel', 'channel', '{channel}', false, null),
    -- Counts the runs that a filter finds, and forecasts a verb's cost; changes no run.
    ('preview', 'bulk', '{do,filter}', false, null),
    -- Does the verb of a previewed bulk to one of its runs, as a trial.
    ('try', 'bulk', '{bulk}', false, null),
    -- Begins a bulk that was previewed.
    ('begin', 'bulk', '{bulk}', false, null),
    -- Does the next slice of a bulk and shows how far the bulk is.
    ('continue', 'bulk', '{bulk}', false, null),
    -- Ends a bulk; runs that it has changed stay as they are.
    ('abort', 'bulk', '{bulk}', true, null)
  ) t(verb, about, needs, destroys, does)) v;
