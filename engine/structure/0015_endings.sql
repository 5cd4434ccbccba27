-- Beginnings and endings: what a run skips since its row brought it along, what only a person
-- begins, under which name a run ended, and by which column the sweep starts runs.

alter table millrace.pipelines
  add column due_column text,
  add column has_given boolean not null default false;
comment on column millrace.pipelines.due_column is
  'The timestamptz column of the entity by which the sweep starts runs; null where none is '
  'declared.';
comment on column millrace.pipelines.has_given is
  'Whether some version has a stage whose output a row may bring along.';

alter table millrace.stages
  add column has_ends boolean not null default false;
comment on column millrace.stages.has_ends is
  'Whether in some version the completion of the stage may end its run.';

alter table millrace.version_stages
  add column given_path jsonpath,
  add column on_demand boolean not null default false,
  add column ends jsonb;
comment on column millrace.version_stages.given_path is
  'True of a row that brings the stage''s output along: its first run skips the stage.';
comment on column millrace.version_stages.on_demand is
  'Whether only a start by name begins it; a run that comes to it by itself is over.';
comment on column millrace.version_stages.ends is
  'Conditions on the row and the stage''s result, of which the first that holds ends the run: '
  '[{name, when}].';

alter table millrace.runs
  add column ended_as text,
  add column given int[];
comment on column millrace.runs.ended_as is
  'The name under which a stage''s result has ended it, which is no failure; null otherwise.';
comment on column millrace.runs.given is
  'The stages whose output the row brought along, in its first run; null in any other, and where '
  'no stage of the pipeline asks.';

create table millrace.begun_rows (
  pipeline_id int not null,
  entity_id text not null,
  constraint begun_rows_pkey primary key (pipeline_id, entity_id)
);
comment on table millrace.begun_rows is
  'Rows whose first run has been pruned, of pipelines where a row may bring along what a stage '
  'makes: what a row holds by then is mostly the engine''s own work.';

create table millrace.due_progress (
  pipeline_id int constraint due_progress_pkey primary key
    constraint due_progress_pipeline_fkey references millrace.pipelines on delete cascade,
  seen_until timestamptz not null,
  lap_at timestamptz,
  lap_key text
) with (fillfactor = 50);
comment on table millrace.due_progress is
  'How far the sweep has looked for rows that are due: once at each as it becomes due, and round '
  'and round at those that were passed over. Whoever starts due runs of a pipeline holds its row.';

create table millrace.adoptions (
  pipeline_id int constraint adoptions_pkey primary key
    constraint adoptions_pipeline_fkey references millrace.pipelines on delete cascade,
  old_column text not null,
  value_function text not null,
  otherwise text,
  last_key text,
  adopted bigint not null default 0,
  began_at timestamptz not null default millrace.now(),
  ended_at timestamptz
);
comment on table millrace.adoptions is
  'How far rows that were there before a pipeline have been given values of its status column. '
  'last_key: up to which key; ended_at: all have one.';

create table millrace.adopted_values (
  pipeline_id int not null
    constraint adopted_values_pipeline_fkey references millrace.pipelines on delete cascade,
  old_value text not null,
  value text not null,
  rows bigint not null,
  constraint adopted_values_pkey primary key (pipeline_id, old_value, value)
);
comment on table millrace.adopted_values is
  'What the values of an old status column mean, by the rows that had them when they were adopted. '
  'The old column follows by it.';
