create table millrace.pipelines (
  id int generated always as identity constraint pipelines_pkey primary key,
  name text not null constraint pipelines_name_key unique
    constraint pipelines_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  entity_table regclass not null,
  entity_key text not null,
  projection text not null
    constraint pipelines_projection_known check (projection in ('columns', 'none')),
  enabled boolean not null default true,
  is_child boolean not null default false,
  metadata_column text,
  quota jsonb,
  quota_changed_at timestamptz,
  current_version_id int,
  created_at timestamptz not null default millrace.now()
);
comment on table millrace.pipelines is
  'One row a pipeline. Set enabled to false to pause all of its stages.';

create table millrace.stages (
  id int generated always as identity constraint stages_pkey primary key,
  pipeline_id int not null
    constraint stages_pipeline_fkey references millrace.pipelines on delete cascade,
  name text not null constraint stages_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  kind text not null
    constraint stages_kind_known
      check (kind in ('function', 'external', 'manual', 'pipeline', 'map', 'agent')),
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
  deadline_from text not null default 'start'
    constraint stages_deadline_from_known check (deadline_from in ('submission', 'start')),
  apply text,
  result_limit_bytes int not null,
  on_failure text not null
    constraint stages_on_failure_known check (on_failure in ('fail_run', 'continue')),
  child jsonb,
  fan_in jsonb,
  decision jsonb,
  agent jsonb,
  limits jsonb,
  sla interval,
  sla_changed_at timestamptz,
  has_groups boolean not null default false,
  counted_by_parent boolean not null default false,
  has_conditional_followers boolean not null default false,
  counted boolean not null default false,
  enabled boolean not null default true,
  constraint stages_name_key unique (pipeline_id, name)
);
comment on table millrace.stages is
  'Settings of each stage; they apply at once. Set enabled to false to pause one stage.';
comment on column millrace.pipelines.is_child is
  'Whether a map or pipeline stage of another pipeline starts runs of it.';
comment on column millrace.pipelines.metadata_column is
  'A jsonb column of the entity, copied into runs.metadata when a run starts; null where none is '
  'declared.';
comment on column millrace.pipelines.quota is
  'What one tenant may start and spend in a while; null for no bound.';
comment on column millrace.pipelines.quota_changed_at is
  'Set when a definition changes quota, until the sweep has let go what the former held back.';
comment on column millrace.stages.counted is
  'Whether a claim looks at quotas: that of its pipeline, or of one whose runs start runs of it.';
comment on column millrace.stages.function_name is
  'The Edge Function that runs it; null for the kinds manual and pipeline, which none runs.';
comment on column millrace.stages.deadline_from is
  'What the deadline of an external job counts from: its submission, or its start at the service, '
  'as far as the poller hears that the job still waits there.';
comment on column millrace.stages.has_groups is
  'Whether its limits sort its queue into groups: by key, by priority, or both.';
comment on column millrace.stages.sla is
  'How long after it became ready the stage should be done, waits and retries included; null for '
  'no bound.';
comment on column millrace.stages.sla_changed_at is
  'Set when a definition changes sla, until the sweep has applied it to the attempts that were '
  'open.';
comment on column millrace.stages.has_conditional_followers is
  'Whether some version has a stage that is not unconditional right after it.';
comment on column millrace.stages.counted_by_parent is
  'Whether a threshold of a parent pipeline counts the children that have done it.';

create table millrace.versions (
  id int generated always as identity constraint versions_pkey primary key,
  pipeline_id int not null
    constraint versions_pipeline_fkey references millrace.pipelines on delete cascade,
  number int not null,
  graph jsonb not null,
  created_at timestamptz not null default millrace.now(),
  constraint versions_number_key unique (pipeline_id, number)
);
comment on table millrace.versions is
  'The graphs a pipeline has had. A run finishes on the version it began with.';

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
  after jsonb not null default '[]',
  child_pipeline_id int,
  constraint version_stages_pkey primary key (version_id, stage_id)
);
comment on table millrace.version_stages is
  'One row a stage of a version: needs are its direct needs, dependents all stages that come after '
  'it, position a topological order. unconditional: it is queued as soon as its needs are done, '
  'without another look. is_sink: no stage needs it.';
comment on column millrace.version_stages.after is
  'Thresholds: [{map: stage id, stage: id of the children''s stage, kind: count | consecutive | '
  'all, n}].';
