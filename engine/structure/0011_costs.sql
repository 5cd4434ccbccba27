create schema millrace_evidence;
comment on schema millrace_evidence is
  'What views in public call to read the engine''s rows. Not to be exposed by the Data API.';
revoke all on schema millrace_evidence from public;

-- Not to authenticated: a view finds its functions without this right, which its caller needs to
-- name one. So nobody asks after the rows of others.
grant usage on schema millrace_evidence to service_role;
