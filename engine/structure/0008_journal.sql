-- A row for each action of a person, or slice of a bulk. Rows are kept for journal_days.
create table millrace.journal (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  verb text not null,
  pipeline text,
  stage text,
  run_ids bigint[] not null default '{}',
  runs int not null,
  -- The sub of the token, or the name that a caller with a secret key gives.
  subject text,
  -- How the caller was known: `user` by a token, `secret` by a secret key, `sql` by a connection.
  key text not null,
  session jsonb not null,
  filter jsonb,
  reason text,
  bulk_id bigint,
  outcome jsonb not null default '{}'
);
create index journal_by_pipeline on millrace.journal (pipeline, id);
create index journal_by_run on millrace.journal using gin (run_ids) with (fastupdate = off);
create index journal_by_time on millrace.journal (at);
