-- Pipelines and stages as they are today, and the graphs that runs keep

-- A row for each pipeline. enabled = false pauses all its stages.
create table millrace.pipelines (
  id int generated always as identity primary key,
  -- The names of the pipeline's triggers and functions begin with this name, unquoted.
  name text not null unique constraint pipelines_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  entity_table regclass not null,
  entity_key text not null,
  projection text not null,
  enabled boolean not null default true,
  -- True where a stage of another pipeline starts runs of this one.
  is_child boolean not null default false,
  -- A jsonb column of the entity that a run copies at its start; null for none.
  metadata_column text,
  -- The quota of each tenant, {starts, spending}; null for none.
  quota jsonb,
  current_version_id int,
  -- The definition's part about the status column; null without one.
  status jsonb,
  -- The column of the entity by which the sweep starts runs; null for none.
  due_column text,
  has_given boolean not null default false,
  -- How long a run should take: {median_seconds, p95_seconds}; null for no bound.
  sla jsonb,
  -- The column of the entity by which people know a row, such as a title; null for none.
  label_column text,
  -- How many days finished runs are kept; null for the setting retention_days.
  retention_days int,
  -- After how many days finished runs lose their results and log lines; null keeps them with the
  -- run.
  outputs_days int,
  -- The id of the journal entry about the last pause or unpause.
  switched_entry bigint,
  -- The column of the entity that holds the trace id of its runs; null for ids of the engine.
  trace_column text,
  -- The digest of the compiled definition, with which a project's folder is compared.
  digest text,
  -- The columns of the entity that the definition names, and those that inputs of its stages
  -- require.
  required_columns text[] not null,
  -- The roles that get the detail of errors by millrace_progress().
  details_to text[] not null
);

-- A row for each stage, with its settings, which apply at once. enabled = false pauses the stage.
create table millrace.stages (
  id int generated always as identity primary key,
  pipeline_id int not null references millrace.pipelines on delete cascade,
  name text not null,
  kind text not null,
  -- The Edge Function that runs the stage; null for the kinds manual, pipeline and gate.
  function_name text,
  batch_size int not null,
  max_workers int not null,
  lease interval not null,
  timeout interval not null,
  retry jsonb not null,
  callback boolean not null,
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
  -- How long after it became ready an attempt should be done; null for no bound.
  sla interval,
  -- True where the stage's limits sort its queue into groups.
  has_groups boolean not null,
  -- True where a threshold of a parent counts the children that have done this stage.
  reports_to_parent boolean not null default false,
  -- True where some version has a conditional stage after this one.
  has_conditional_followers boolean not null default false,
  -- True where a claim has to look at quotas: the pipeline's own or a parent's.
  has_quota boolean not null default false,
  enabled boolean not null default true,
  -- The values that the status column shows for this stage; null where it shows none.
  shows jsonb,
  has_ends boolean not null default false,
  switched_entry bigint,
  -- True while the engine skips the rows that are queued at the stage; millrace.bypasses says why.
  bypassed boolean not null default false,
  -- `wait` or `bypass`: whether rows wait for the next window, or leave the stage out, once the
  -- budget of a window is spent.
  when_spent text not null,
  -- How many rows of the stage may be in work at once. Where it is not null, the engine chooses
  -- batch_size and max_workers.
  concurrency int,
  -- worker: a process of the project's own runs the stage; null: an Edge Function does.
  host text,
  -- The hosts that ran the stage. seen_at, release: of the process that last asked for work. url,
  -- woken_at: the address of the process that is woken, and when it was last known. releases: a
  -- list of {release, at}, the newest first, with the time since when a release claims.
  seen jsonb,
  -- The JSON schemas of the stage's code, {result, row}: of its result, and of the columns that it
  -- reads. Null until the stage's function has sent them.
  form jsonb,
  constraint stages_name_key unique (pipeline_id, name)
);

-- A row for each version: a graph that the pipeline has had. A run keeps the version that it began
-- with.
create table millrace.versions (
  id int generated always as identity primary key,
  pipeline_id int not null references millrace.pipelines on delete cascade,
  number int not null,
  graph jsonb not null,
  created_at timestamptz not null default millrace.now(),
  unique (pipeline_id, number)
);

-- A row for each stage of a version. An unconditional stage is queued as soon as its needs are
-- done. position is the stage's number in a topological order.
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
  after jsonb not null,
  child_pipeline_id int,
  -- A condition on the row. Where it is true, the row brings the stage's output along, and the
  -- row's first run skips the stage.
  given_path jsonpath,
  -- True where only a start by name begins the stage. Any other run ends before the stage.
  on_demand boolean not null,
  -- [{name, when}]: the first condition that is true of the row and the result ends the run.
  ends jsonb,
  -- True where runs begin with the stage.
  is_first boolean not null generated always as (needs = '{}' and after = '[]') stored,
  primary key (version_id, stage_id)
);
create index version_stages_by_stage on millrace.version_stages (stage_id, version_id);
