-- Definitions: pipelines and stages as they are today, and the graphs that runs go on by

-- One row a pipeline. Set enabled to false to pause all of its stages.
create table millrace.pipelines (
  id int generated always as identity constraint pipelines_pkey primary key,
  name text not null constraint pipelines_name_key unique
    constraint pipelines_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  entity_table regclass not null,
  entity_key text not null,
  projection text not null
    constraint pipelines_projection_known check (projection in ('columns', 'status', 'none')),
  enabled boolean not null default true,
  -- Whether stages of another pipeline start runs of it.
  is_child boolean not null default false,
  -- A jsonb column of the entity, copied when a run starts; null where none is declared.
  metadata_column text,
  -- What one tenant may start and spend; null for no bound.
  quota jsonb,
  current_version_id int,
  created_at timestamptz not null default millrace.now(),
  -- What the definition says of the status column.
  status jsonb,
  -- The timestamptz column of the entity by which the sweep starts runs.
  due_column text,
  has_given boolean not null default false,
  -- How long its runs should take: {median_seconds, p95_seconds}.
  sla jsonb,
  -- The column of the entity by which people know a row, such as a URL or a title.
  label_column text,
  -- How many days its finished runs are kept; null for the setting retention_days.
  retention_days int,
  -- The line of the journal of the last switch.
  switched_line bigint,
  -- A uuid column of the entity, the trace id of all its runs.
  trace_column text,
  -- Of its compiled definition, to compare a project's folder with.
  digest text
);

-- Settings of each stage; they apply at once. Set enabled to false to pause one stage.
create table millrace.stages (
  id int generated always as identity constraint stages_pkey primary key,
  pipeline_id int not null
    constraint stages_pipeline_fkey references millrace.pipelines on delete cascade,
  name text not null constraint stages_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  kind text not null
    constraint stages_kind_known
      check (kind in (
        'function', 'external', 'manual', 'pipeline', 'map', 'agent', 'gate')),
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
  on_failure text not null
    constraint stages_on_failure_known check (on_failure in ('fail_run', 'continue')),
  child jsonb,
  fan_in jsonb,
  decision jsonb,
  agent jsonb,
  limits jsonb,
  -- How long after it became ready it should be done.
  sla interval,
  -- Whether its limits sort its queue into groups.
  has_groups boolean not null default false,
  -- Whether a threshold of a parent counts the children that have done it.
  counted_by_parent boolean not null default false,
  -- Whether some version has a stage that is not unconditional after it.
  has_conditional_followers boolean not null default false,
  -- Whether a claim looks at quotas, its own pipeline's or a parent's.
  counted boolean not null default false,
  enabled boolean not null default true,
  -- What the status column shows of it, with the values of its layer.
  shows jsonb,
  has_ends boolean not null default false,
  -- The line of the journal of the last switch.
  switched_line bigint,
  -- Left out today: millrace.bypasses says why.
  bypassed boolean not null default false,
  -- What becomes of it while its budget is spent.
  when_spent text not null default 'wait'
    constraint stages_when_spent_known check (when_spent in ('wait', 'bypass')),
  has_unchanged boolean not null default false,
  -- How many of its rows may be in work at once, where the engine chooses batch_size and
  -- max_workers for it.
  concurrency int
    constraint stages_concurrency_bounds check (concurrency between 1 and 5000),
  constraint stages_name_key unique (pipeline_id, name)
);

-- The graphs that a pipeline has had. A run finishes on the version it began with.
create table millrace.versions (
  id int generated always as identity constraint versions_pkey primary key,
  pipeline_id int not null
    constraint versions_pipeline_fkey references millrace.pipelines on delete cascade,
  number int not null,
  graph jsonb not null,
  created_at timestamptz not null default millrace.now(),
  constraint versions_number_key unique (pipeline_id, number)
);

-- One row a stage of a version. dependents: all stages after it; position: a topological order;
-- unconditional: it is queued as soon as its needs are done; is_sink: no stage needs it.
create table millrace.version_stages (
  version_id int not null
    constraint version_stages_version_fkey references millrace.versions on delete cascade,
  stage_id int not null
    constraint version_stages_stage_fkey references millrace.stages on delete cascade,
  position int not null,
  needs int[] not null,
  dependents int[] not null,
  is_sink boolean not null,
  unconditional boolean not null,
  when_path jsonpath,
  otherwise text,
  -- Thresholds: [{map: stage id, stage: id of the children's stage, kind: count | consecutive |
  -- all, n}].
  after jsonb not null default '[]',
  child_pipeline_id int,
  -- True of a row that brings the stage's output along: its first run skips the stage.
  given_path jsonpath,
  -- Only a start by name begins it; a run that comes to it by itself is over.
  on_demand boolean not null default false,
  -- The first that holds of the row and the result ends the run: [{name, when}].
  ends jsonb,
  -- What decides whether its input is as before; null where it always works.
  unchanged_path jsonpath,
  constraint version_stages_pkey primary key (version_id, stage_id)
);

-- The values of a status column, in the order of the present chain; dropped ones stay, retired. A
-- row adopted with a value comes to stand at lands, where begins begins; before: the stages that
-- can say whether it brings their output along.
create table millrace.status_values (
  pipeline_id int not null
    constraint status_values_pipeline_fkey references millrace.pipelines on delete cascade,
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
  constraint status_values_pkey primary key (pipeline_id, value)
);

-- Which value of a status column may follow which, by whom, and what a person's write means.
-- from_value: null for a row without a value; at_stage_id must be live for it, stage_id is begun or
-- answered. declared: listed in the definition, legal wherever the run ended. retired: only
-- histories have it.
create table millrace.version_moves (
  version_id int not null
    constraint version_moves_version_fkey references millrace.versions on delete cascade,
  from_value text,
  to_value text not null,
  by text not null
    constraint version_moves_by_known check (by in ('engine', 'person', 'call')),
  means text not null,
  at_stage_id int,
  stage_id int,
  declared boolean not null default false,
  drawn boolean not null default false,
  retired boolean not null default false
);
create unique index version_moves_key on millrace.version_moves
  (version_id, from_value, to_value, by, means, at_stage_id, stage_id) nulls not distinct;

-- Which stage is held back by which later one. backlog: how many may be unfinished there and on the
-- way.
create table millrace.back_pressures (
  stage_id int not null
    constraint back_pressures_stage_fkey references millrace.stages on delete cascade,
  later_id int not null
    constraint back_pressures_later_fkey references millrace.stages on delete cascade,
  backlog int not null constraint back_pressures_backlog_bounds check (backlog >= 1),
  -- The stages between the two from which work comes without another check.
  on_the_way int[] not null default '{}',
  constraint back_pressures_pkey primary key (stage_id, later_id)
);
create index back_pressures_by_later on millrace.back_pressures (later_id, stage_id);
