-- Schemas, clock, log, settings and releases. No function sets search_path to ''. Types of the
-- session's temporary schema would then come first, and their code would run as the owner.

create schema millrace;
comment on schema millrace is
  'Millrace: multi-stage pipelines over your own tables. Start reading at millrace.stage_health '
  'and millrace.doctor().';
revoke all on schema millrace from public;

create or replace function millrace.now() returns timestamptz
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return clock_timestamp();
end
$$;
comment on function millrace.now() is
  'The engine''s clock, which a test sets by replacing this body.';

-- A row for each message of the engine, such as an error that it caught. Pruning deletes old rows.
create table millrace.log (
  id bigint generated always as identity primary key,
  at timestamptz not null default millrace.now(),
  level text not null,
  code text not null,
  message text not null,
  detail jsonb not null default '{}'
);
create index log_by_code on millrace.log (code, at);
create index log_by_time on millrace.log (at);

-- The settings of the engine. A Vault secret called millrace_<name> overrides the row.
create table millrace.settings (
  name text primary key,
  value text not null
);

-- A row for each release that was installed or upgraded to.
create table millrace.releases (
  level int primary key,
  release text not null,
  installed_at timestamptz not null default millrace.now()
);

create schema millrace_evidence;
comment on schema millrace_evidence is
  'What views in public call to read the engine''s rows. Not to be exposed by the Data API.';
revoke all on schema millrace_evidence from public;

-- The role authenticated gets no usage, since a view calls its functions without this right.
grant usage on schema millrace_evidence to service_role;
