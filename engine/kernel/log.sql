-- The log, and how errors are sorted
--
-- The engine raises SQLSTATEs of its own, so that a caller can tell its errors apart.
--   MR001  a definition that is not valid          MR004  a call that the state does not allow
--   MR002  a call with a bad argument              MR005  a status by hand that is not allowed
--   MR003  something named that does not exist     MR006  a worker's call out of sequence

-- Writes a row into millrace.log. Does not update an earlier row: two sessions would wait for each
-- other.
-- p_once: writes nothing if a row with p_code is younger than this and its detail contains p_per.
-- p_per: a part of the detail; the default fits every row.
create function millrace.report(
  p_level text, p_code text, p_message text, p_detail jsonb default '{}',
  p_once interval default '1 minute', p_per jsonb default '{}'
)
as $$
if not exists (
    select from millrace.log l
    where l.code = p_code
      and l.at > v_now - p_once
      and l.detail @> p_per) then
  insert into millrace.log (level, code, message, detail)
  values (p_level, p_code, p_message, p_detail);
end if;
$$;

-- Sorts an error. `fatal`: the call ends. `transient`: the row is tried again. `lasting`: the row
-- fails. An error of the server itself is fatal, such as a statement timeout. Code that raises the
-- same SQLSTATE by RAISE speaks for its row alone, so its error is transient.
-- p_context: the error's context, whose first line tells whether RAISE made it.
create function millrace.error_kind(p_sqlstate text, p_context text default null)
returns text
immutable
as $$
select case
  when left(p_sqlstate, 2) in ('53', '57') and coalesce(p_context, '') !~ '^[^\n]* RAISE(\n|$)'
    then 'fatal'
  when left(p_sqlstate, 2) in ('40', '53', '57') or p_sqlstate in ('55P03', '55006')
    then 'transient'
  else 'lasting'
end
$$;

-- Writes an error that the call survives into millrace.log. Returns false for a fatal error and
-- writes nothing; the caller then raises it again.
create function millrace.report_caught(
  p_sqlstate text, p_context text, p_code text, p_message text, p_detail jsonb default '{}'
) returns boolean
as $$
if millrace.error_kind(p_sqlstate, p_context) = 'fatal' then
  return false;
end if;
perform millrace.report('error', p_code, p_message, p_detail);
return true;
$$;

-- Writes into millrace.log that a row is left for later, once an hour for each stage.
-- p_why: the message of the error.
create function millrace.report_passed_over(
  p_pipeline text, p_stage text, p_entity_id text, p_why text
)
as $$
  v_stage jsonb := jsonb_build_object('pipeline', p_pipeline, 'stage', p_stage);

perform millrace.report('warning', 'row_passed_over',
  format('Row %s of pipeline %s is passed over, and perhaps others: %s',
    p_entity_id, p_pipeline, p_why),
  v_stage || jsonb_build_object('entity_id', p_entity_id), '1 hour', v_stage);
$$;
