-- The users who may use the operators' functions with a token.
create table millrace.operators (
  -- The sub of the user's token.
  subject text primary key
    constraint operators_subject_length check (length(subject) between 1 and 500),
  role text not null constraint operators_role_known check (role in ('viewer', 'operator')),
  -- The pipelines that the user sees; null for all.
  pipelines text[],
  -- Whether the user sees results, metadata and the details of errors.
  payloads boolean not null default false,
  note text not null default '',
  added_at timestamptz not null default millrace.now()
);

-- The caller of an operators' function, with role and rights.
create type millrace.caller as (
  subject text,
  key text,
  role text,
  pipelines text[],
  payloads boolean
);

-- A row for each bulk: a verb over all runs that match a filter, in slices. Each slice locks the
-- row.
create table millrace.bulks (
  id bigint generated always as identity primary key,
  state text not null default 'previewed',
  args jsonb not null,
  filter jsonb not null,
  pipeline_id int not null references millrace.pipelines on delete cascade,
  subject text,
  key text not null,
  preview jsonb not null,
  -- The runs before the cursor were looked at, except those in `locked`; 0 at the end. `locked`
  -- lists runs that another transaction had locked, or that the database refused for now.
  cursor text,
  locked bigint[] not null default '{}',
  -- The run that was tried before the rest.
  tried bigint,
  slices int not null default 0,
  done int not null default 0,
  passed_over int not null default 0,
  -- How many runs the verb failed for, and the first 100 of them with the reason.
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
