-- Runs and attempts; ARCHITECTURE.md draws their states
--
-- The attempts table is the queue. queue_at is set while an attempt is queued or started. A claim
-- therefore changes no indexed column, and is a HOT update while its page has room. There are no
-- foreign keys: only transitions write, and check_invariants() looks for orphans.

create type millrace.run_status as enum ('running', 'completed', 'failed', 'cancelled');

-- The live states come first, so that state < 'completed' finds them.
create type millrace.attempt_state as enum (
  'queued', 'started', 'waiting', 'completed', 'failed', 'cancelled', 'skipped');

-- A row for each run: one pass of one entity through one pipeline. An entity has at most one live
-- run in each pipeline.
create table millrace.runs (
  id bigint generated always as identity primary key,
  pipeline_id int not null,
  version_id int not null,
  entity_id text not null,
  status millrace.run_status not null default 'running',
  trace_id uuid not null default gen_random_uuid(),
  -- The fan-out that the run is a child of, under item_key; null for a run without a parent.
  fan_out_id bigint,
  item_key text,
  -- The run's row of run_metadata. A child without a metadata column has its parent's.
  metadata_id bigint,
  -- The pipeline whose quota the run counts against, under quota_key; null for none.
  quota_of int,
  quota_key text,
  created_at timestamptz not null,
  finished_at timestamptz,
  -- The value of the status column at which a person asked a question that may be taken back.
  -- Taking the question back restores the value.
  began_from text,
  -- The name under which a stage's result ended the run; null for any other end.
  ended_as text,
  -- The stages whose output the row brought along. Only an entity's first run has any.
  given int[],
  -- The stage whose failure ended the run; null unless it failed.
  failed_stage_id int,
  error_code text,
  -- The key of the row that a copy reads; null for any other run. A copy's entity_id is its own,
  -- such as copy 3f2a91c4 of 17, so that a query by entities keeps the copy apart.
  copy_key text,
  -- The run that was copied, whose results the copy takes over. Pruning may have deleted it since.
  copy_of bigint,
  -- The columns whose values a person gave to the copy alone.
  edited jsonb
) with (
  fillfactor = 80,
  -- Autovacuum comes early: the space of runs deleted in bulk is used again, and the table keeps
  -- its size.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.05
);
create unique index runs_one_live on millrace.runs (pipeline_id, entity_id)
  where status = 'running';
create index runs_by_entity on millrace.runs (entity_id, pipeline_id, id);
create unique index runs_by_item on millrace.runs (fan_out_id, item_key)
  where fan_out_id is not null;
create index runs_by_metadata on millrace.runs (metadata_id) where metadata_id is not null;
create index runs_of_live_children on millrace.runs (fan_out_id)
  where status = 'running' and fan_out_id is not null;
create index runs_ended on millrace.runs (pipeline_id, finished_at, id)
  where finished_at is not null;
create index runs_failed on millrace.runs
  (pipeline_id, failed_stage_id, error_code, finished_at, id)
  where status = 'failed';
create index runs_failed_at on millrace.runs (pipeline_id, finished_at, id)
  where status = 'failed';
create index runs_by_trace on millrace.runs (trace_id);
create index runs_of_copies on millrace.runs (pipeline_id, copy_key) where copy_key is not null;

-- A row for each attempt: one try of a stage for a run. A retry is a new row with parent_id.
create table millrace.attempts (
  id bigint generated always as identity,
  run_id bigint not null,
  parent_id bigint,
  -- The earlier attempt under whose id the service may have got the job already. Null for this
  -- attempt's own id.
  submission_id bigint,
  -- When the attempt is due; null unless it is queued or started.
  queue_at timestamptz,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  deadline_at timestamptz,
  poll_at timestamptz,
  -- When the service first reported the job as running; null until then.
  job_started_at timestamptz,
  -- When the bound of the stage's sla is reached; null without an sla, and once the attempt has
  -- ended.
  late_at timestamptz,
  token uuid,
  stage_id int not null,
  state millrace.attempt_state not null default 'queued',
  number smallint not null,
  retry_count smallint not null default 0,
  releases smallint not null default 0,
  -- True where the attempt runs alone in its isolate, since the try before lost its lease or
  -- reached a limit.
  isolated boolean not null default false,
  -- True once the stage was started over: the attempt no longer counts.
  superseded boolean not null default false,
  -- True until a claim has charged this start to the tenant's quota.
  uncounted boolean not null default false,
  -- True while the attempt waits for its tenant's quota. error says which part of the quota is used
  -- up.
  quota_blocked boolean not null default false,
  service text,
  job_id text,
  error jsonb,
  -- The concurrency group in which the attempt waits; null at a stage without groups.
  concurrency_group text,
  output jsonb,
  -- The usage that the handler reported, such as tokens and cost.
  usage jsonb,
  -- True where an isolate ended before, while it ran this row alone.
  lost_alone boolean not null default false,
  -- After how many days pruning deleted output and log; null while they are there.
  deleted_after smallint,
  primary key (id) with (fillfactor = 90),
  unique (run_id, stage_id, number)
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.05
);
create index attempts_ready on millrace.attempts (stage_id, queue_at, id)
  where queue_at is not null;
create index attempts_quota_blocked on millrace.attempts (stage_id, queue_at, id)
  where quota_blocked and queue_at is not null;
create index attempts_to_poll on millrace.attempts (poll_at) where poll_at is not null;
create index attempts_by_deadline on millrace.attempts (deadline_at) where deadline_at is not null;
create index attempts_late on millrace.attempts (late_at) where late_at is not null;
create index attempts_by_submission on millrace.attempts (submission_id)
  where submission_id is not null;

-- The index has a hash, since a job id may be longer than an index entry.
create index attempts_by_job on millrace.attempts (hashtextextended(job_id, 0))
  where job_id is not null and service not in ('children', 'decision', 'by_hand');
create index attempts_by_group on millrace.attempts (stage_id, concurrency_group, queue_at, id)
  where concurrency_group is not null and queue_at is not null;
create index attempts_isolated on millrace.attempts (stage_id, queue_at, id)
  where isolated and queue_at is not null;

create index attempts_waiting on millrace.attempts (stage_id, concurrency_group)
  where deadline_at is not null;
