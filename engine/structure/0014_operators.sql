-- Who may use the operators' functions with a user's token.
create table millrace.operators (
  -- The sub of their token.
  subject text primary key
    constraint operators_subject_length check (length(subject) between 1 and 500),
  role text not null constraint operators_role_known check (role in ('viewer', 'operator')),
  -- Null for all.
  pipelines text[],
  -- Whether they see results, metadata and the details of errors.
  payloads boolean not null default false,
  note text not null default '',
  added_at timestamptz not null default millrace.now()
);

-- Who calls, and what they may.
create type millrace.caller as (
  subject text,
  key text,
  role text,
  pipelines text[],
  payloads boolean
);

-- What people did, one line a deed, kept for journal_days.
create table millrace.journal (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  verb text not null,
  pipeline text,
  stage text,
  run_ids bigint[] not null default '{}',
  runs int not null,
  -- The sub of the token, or whom a secret key names.
  subject text,
  -- user: a token; secret: a key; sql: a connection.
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

-- A verb over all runs that match a filter, in slices. Who works on it holds the row.
create table millrace.bulks (
  id bigint generated always as identity primary key,
  state text not null default 'previewed',
  args jsonb not null,
  filter jsonb not null,
  pipeline_id int not null references millrace.pipelines on delete cascade,
  subject text,
  key text not null,
  preview jsonb not null,
  -- All before it were looked at, but for those in held by somebody: 0 at the end.
  cursor text,
  held bigint[] not null default '{}',
  slices int not null default 0,
  done int not null default 0,
  passed_over int not null default 0,
  -- Runs to which the verb could not be done, and the first 100 of them with why.
  faults int not null default 0,
  faults_by_run jsonb[] not null default '{}',
  reason text,
  why text,
  created_at timestamptz not null,
  began_at timestamptz,
  ended_at timestamptz
) with (fillfactor = 50);
create index bulks_running on millrace.bulks (id) where state = 'running';
create index bulks_by_pipeline on millrace.bulks (pipeline_id);
