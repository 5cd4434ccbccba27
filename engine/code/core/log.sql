-- The log, and what an error means.
--
-- Error codes: the engine raises SQLSTATEs of its own, so that a caller can tell them apart.
--   MR001  a definition that is not valid          MR004  a call that the state does not allow
--   MR002  a call with a bad argument              MR005  a status written by hand that is not allowed
--   MR003  something named that does not exist     MR006  a worker's call out of sequence

create or replace function millrace.report(p_level text, p_code text, p_message text, p_detail jsonb default '{}') returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  -- One row a minute and code is enough. Never an upsert: a user's transaction would wait for another's row.
  if not exists (select from millrace.log where code = p_code and at > millrace.now() - interval '1 minute') then
    insert into millrace.log (level, code, message, detail) values (p_level, p_code, p_message, p_detail);
  end if;
end
$$;
comment on function millrace.report(text, text, text, jsonb) is 'Writes one line into millrace.log, at most one a minute for each code.';

-- The one place that sorts SQLSTATEs. What the server says of itself (it cancels the call, shuts down, has no room left) ends the
-- call, for a timeout strikes once and would not strike again. Code that raises the same by hand speaks for its row alone.
create or replace function millrace.error_kind(p_sqlstate text, p_context text default null) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select case
    when left(p_sqlstate, 2) in ('53', '57') and coalesce(p_context, '') !~ '^[^\n]* RAISE(\n|$)'
      then 'fatal'
    when left(p_sqlstate, 2) in ('40', '53', '57') or p_sqlstate in ('55P03', '55006')
      then 'transient'
    else 'lasting'
  end
$$;
comment on function millrace.error_kind(text, text) is
  'What an error means for the row that it came from. fatal: the whole call ends; transient: the row is tried again; '
  'lasting: the row fails. p_context: the PG_EXCEPTION_CONTEXT, which tells who raised it.';
