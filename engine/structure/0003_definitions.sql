-- Pipelines and stages as they are today, and the graphs that runs go on by

-- One row a pipeline; enabled = false pauses its stages.
create table millrace.pipelines (
  id int generated always as identity primary key,
  -- The names of triggers and functions that are written for a pipeline begin with it, unquoted.
  name text not null unique constraint pipelines_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  entity_table regclass not null,
  entity_key text not null,
  projection text not null,
  enabled boolean not null default true,
  -- Stages of another pipeline start runs of it.
  is_child boolean not null default false,
  -- A jsonb column of the entity, copied when a run starts.
  metadata_column text,
  -- What one tenant may start and spend.
  quota jsonb,
  current_version_id int,
  -- What the definition says of the status column.
  status jsonb,
  -- The column of the entity by which the sweep starts runs.
  due_column text,
  has_given boolean not null default false,
  -- How long its runs should take: {median_seconds, p95_seconds}.
  sla jsonb,
  -- The column of the entity by which people know a row, such as a title.
  label_column text,
  -- How long its finished runs are kept; null for the setting retention_days.
  retention_days int,
  -- The journal's line of the last switch.
  switched_line bigint,
  -- A column of the entity, the trace id of its runs.
  trace_column text,
  -- Of its compiled definition, to compare a project's folder with.
  digest text,
  -- The columns of the entity that the definition names and that inputs of its stages require.
  required_columns text[] not null default '{}'
);

-- Settings of each stage; they apply at once. enabled = false pauses it.
create table millrace.stages (
  id int generated always as identity primary key,
  pipeline_id int not null references millrace.pipelines on delete cascade,
  name text not null,
  kind text not null,
  -- The Edge Function that runs it; null for the kinds manual, pipeline and gate.
  function_name text,
  batch_size int not null constraint stages_batch_size_bounds check (batch_size between 1 and 500),
  max_workers int not null
    constraint stages_max_workers_bounds check (max_workers between 1 and 1000),
  lease interval not null,
  timeout interval not null,
  retry jsonb not null,
  callback boolean not null default false,
  poll_every interval,
  deadline interval,
  apply text,
  result_limit_bytes int not null,
  on_failure text not null,
  child jsonb,
  fan_in jsonb,
  decision jsonb,
  agent jsonb,
  limits jsonb,
  -- How long after it became ready it should be done.
  sla interval,
  -- Its limits sort its queue into groups.
  has_groups boolean not null default false,
  -- A threshold of a parent counts the children that have done it.
  counted_by_parent boolean not null default false,
  -- Some version has a stage after it that is not unconditional.
  has_conditional_followers boolean not null default false,
  -- A claim looks at quotas, its own pipeline's or a parent's.
  counted boolean not null default false,
  enabled boolean not null default true,
  -- What the status column shows of it.
  shows jsonb,
  has_ends boolean not null default false,
  switched_line bigint,
  -- Left out today: millrace.bypasses says why.
  bypassed boolean not null default false,
  -- What becomes of it while its budget is spent: wait or bypass.
  when_spent text not null default 'wait',
  has_unchanged boolean not null default false,
  -- How many of its rows may be in work at once; the engine then chooses batch_size and
  -- max_workers.
  concurrency int constraint stages_concurrency_bounds check (concurrency between 1 and 5000),
  constraint stages_name_key unique (pipeline_id, name)
);

-- The graphs that a pipeline has had. A run finishes on the version it began with.
create table millrace.versions (
  id int generated always as identity primary key,
  pipeline_id int not null references millrace.pipelines on delete cascade,
  number int not null,
  graph jsonb not null,
  created_at timestamptz not null default millrace.now(),
  unique (pipeline_id, number)
);

-- One row a stage of a version. unconditional: queued as soon as its needs are done; position: a
-- topological order.
create table millrace.version_stages (
  version_id int not null references millrace.versions on delete cascade,
  stage_id int not null references millrace.stages on delete cascade,
  position int not null,
  needs int[] not null,
  dependents int[] not null,
  is_sink boolean not null,
  unconditional boolean not null,
  when_path jsonpath,
  otherwise text,
  -- Thresholds: [{map, stage: of the children, kind: count | consecutive | all, n}].
  after jsonb not null default '[]',
  child_pipeline_id int,
  -- True of a row that brings the stage's output along: its first run skips the stage.
  given_path jsonpath,
  -- Only a start by name begins it; a run that comes to it by itself is over.
  on_demand boolean not null default false,
  -- The first that holds of the row and the result ends the run: [{name, when}].
  ends jsonb,
  -- Decides whether its input is as before.
  unchanged_path jsonpath,
  primary key (version_id, stage_id)
);
create index version_stages_by_stage on millrace.version_stages (stage_id, version_id);

-- The values of a status column; dropped ones stay, retired. A row adopted with a value comes to
-- stand at lands and begins begins; before: stages that can say whether it brings their output.
create table millrace.status_values (
  pipeline_id int not null references millrace.pipelines on delete cascade,
  value text not null,
  name text not null,
  description text not null,
  category text not null,
  is_terminal boolean not null,
  sort_order int not null,
  lands text not null,
  begins text,
  before text[] not null,
  retired boolean not null default false,
  primary key (pipeline_id, value)
);

-- Which value of a status column may follow which, by whom, and what a person's write means:
-- at_stage_id must be live for it, stage_id is begun or answered. declared: by the definition,
-- legal wherever the run ended. retired: only histories have it.
create table millrace.version_moves (
  id int generated always as identity primary key,
  version_id int not null references millrace.versions on delete cascade,
  from_value text,
  to_value text not null,
  by text not null,
  means text not null,
  at_stage_id int,
  stage_id int,
  declared boolean not null default false,
  drawn boolean not null default false,
  retired boolean not null default false
);
create unique index version_moves_key on millrace.version_moves
  (version_id, from_value, to_value, by, means, at_stage_id, stage_id) nulls not distinct;

-- Which stage is held back by which later one, while backlog are unfinished there and on the way.
create table millrace.back_pressures (
  stage_id int not null references millrace.stages on delete cascade,
  later_id int not null references millrace.stages on delete cascade,
  backlog int not null,
  -- The stages between the two from which work comes without another check.
  on_the_way int[] not null default '{}',
  primary key (stage_id, later_id)
);
create index back_pressures_by_later on millrace.back_pressures (later_id, stage_id);
