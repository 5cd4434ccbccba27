-- The log, and what an error means
--
-- The engine raises SQLSTATEs of its own, so that a caller can tell its errors apart.
--   MR001  a definition that is not valid          MR004  a call that the state does not allow
--   MR002  a call with a bad argument              MR005  a status by hand that is not allowed
--   MR003  something named that does not exist     MR006  a worker's call out of sequence

-- Writes a line into millrace.log, at most one a minute for each code. Never an upsert: a user's
-- transaction would wait for another's row.
create function millrace.report(
  p_level text, p_code text, p_message text, p_detail jsonb default '{}'
) returns void
language plpgsql
as $$
begin
  if not exists (
      select
      from millrace.log
      where code = p_code
        and at > millrace.now() - interval '1 minute') then
    insert into millrace.log (level, code, message, detail)
    values (p_level, p_code, p_message, p_detail);
  end if;
end
$$;

-- Sorts SQLSTATEs, for every handler of the engine, by what they mean for the row that an error
-- came from. fatal: the whole call ends; transient: the row is tried again; lasting: the row fails.
--
-- What the server says of itself (it cancels the call, shuts down, has no room left) is fatal, for
-- a timeout strikes once and would not strike again. Code that raises the same by hand speaks for
-- its row alone: p_context, the PG_EXCEPTION_CONTEXT, tells who raised it.
create function millrace.error_kind(p_sqlstate text, p_context text default null)
returns text
language sql immutable
as $$
  select case
    when left(p_sqlstate, 2) in ('53', '57') and coalesce(p_context, '') !~ '^[^\n]* RAISE(\n|$)'
      then 'fatal'
    when left(p_sqlstate, 2) in ('40', '53', '57') or p_sqlstate in ('55P03', '55006')
      then 'transient'
    else 'lasting'
  end
$$;

-- Reports an error that its caller has caught and outlives. Returns false for a fatal one, which
-- the caller then raises again.
create function millrace.report_caught(
  p_sqlstate text, p_context text, p_code text, p_message text, p_detail jsonb default '{}'
) returns boolean
language plpgsql
as $$
begin
  if millrace.error_kind(p_sqlstate, p_context) = 'fatal' then
    return false;
  end if;
  perform millrace.report('error', p_code, p_message, p_detail);
  return true;
end
$$;

-- Names the pipelines that there are, for whoever named another.
create function millrace.known_pipelines() returns text
language plpgsql stable
as $$
begin
  return coalesce(
    'Those there are: ' || (
      select left(string_agg(p.name, ', ' order by p.name), 1000)
      from millrace.pipelines p)
      || '. A new one comes by npm run pipelines:sync and its migration.',
    'There is none yet: npm run pipelines:sync, then push the migrations.');
end
$$;

-- Finds the pipeline of this name; raises MR003 where there is none.
create function millrace.pipeline_named(p_pipeline text) returns millrace.pipelines
language plpgsql stable
as $$
declare
  v_pipeline millrace.pipelines;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = millrace.known_pipelines();
  end if;
  return v_pipeline;
end
$$;
