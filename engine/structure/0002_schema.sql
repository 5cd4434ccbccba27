-- The schemas, the clock, the log, the settings and the releases.
--
-- Every function sets search_path to pg_catalog, pg_temp. Not to '': then types of the session's
-- temporary schema would come first, and run as owner.

create schema millrace;
comment on schema millrace is
  'Millrace: multi-stage pipelines over your own tables. Start reading at millrace.stage_health '
  'and millrace.doctor().';
revoke all on schema millrace from public;

-- Here, since tables have it in their defaults.
create or replace function millrace.now() returns timestamptz
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return clock_timestamp();
end
$$;
comment on function millrace.now() is
  'The engine''s clock: all time is read here, so that a test can set it by replacing this one '
  'body.';

-- What the engine has to report. Insert-only, pruned with the runs.
create table millrace.log (
  id bigint generated always as identity constraint log_pkey primary key,
  at timestamptz not null default millrace.now(),
  level text not null constraint log_level_known check (level in ('info', 'warning', 'error')),
  code text not null,
  message text not null,
  detail jsonb not null default '{}'
);
create index log_by_code on millrace.log (code, at);
create index log_by_time on millrace.log (at);

-- Settings of the engine; a Vault secret called millrace_<name> goes first.
create table millrace.settings (
  name text constraint settings_pkey primary key,
  value text not null,
  comment text not null default ''
);

-- One row a release that was installed, or upgraded to.
create table millrace.releases (
  level int constraint releases_pkey primary key,
  release text not null,
  installed_at timestamptz not null default millrace.now()
);

create schema millrace_evidence;
comment on schema millrace_evidence is
  'What views in public call to read the engine''s rows. Not to be exposed by the Data API.';
revoke all on schema millrace_evidence from public;

-- Not to authenticated: views find its functions without this right.
grant usage on schema millrace_evidence to service_role;
