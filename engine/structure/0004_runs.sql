-- Runs and attempts
--
--   run:      running → completed | failed | cancelled
--             failed, cancelled → running    (retried)
--
--   attempt:  queued → started → completed | failed | cancelled
--                      started → waiting     (an external job or children are under way)
--                                waiting → completed | failed | cancelled
--                      started → queued      (released by its worker, costs no attempt; isolated
--                                            from then on after a limit)
--             skipped                        (a condition did not hold, somebody skipped it, or
--                                            the run goes on without a failed stage; then the
--                                            stages that need it go on)
--
-- A retry is a new row with parent_id. The attempts table is the queue. Two things keep a
-- transition cheap:
--   * queue_at is set while an attempt is queued or started and null otherwise, and no other
--     changing column is indexed. So a claim is a HOT update, which writes no index entry, as long
--     as its page has room. It passes over the started rows at the head of the index, of which
--     there are no more than the live workers hold.
--   * there are no foreign keys on runs and attempts: their only writers are the transitions, and
--     check_invariants() looks for orphans.

create type millrace.run_status as enum ('running', 'completed', 'failed', 'cancelled');

create type millrace.attempt_state as enum (
  'queued', 'started', 'waiting', 'completed', 'failed', 'cancelled', 'skipped');

create table millrace.runs (
  id bigint generated always as identity constraint runs_pkey primary key,
  pipeline_id int not null,
  version_id int not null,
  entity_id text not null,
  status millrace.run_status not null default 'running',
  trace_id uuid not null default gen_random_uuid(),
  fan_out_id bigint,
  item_key text,
  took_place_of bigint,
  priority smallint not null default 0
    constraint runs_priority_bounds check (priority between 0 and 9),
  metadata_id bigint,
  quota_of int,
  quota_key text,
  created_at timestamptz not null,
  finished_at timestamptz,
  began_from text,
  ended_as text,
  given int[],
  failed_stage_id int,
  error_code text,
  since timestamptz
) with (
  -- What is deleted in bulk is soon given back, so that the table comes to a size and stays there.
  fillfactor = 80,
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
comment on table millrace.runs is
  'One pass of one entity through one pipeline. An entity has at most one live run a '
  'pipeline.';
comment on column millrace.runs.fan_out_id is
  'The fan-out of a parent that this run is a child of, under item_key.';
comment on column millrace.runs.took_place_of is
  'The former run of the same row, whose place in the fan-out this one has taken; its cost still '
  'counts for the parent.';
comment on column millrace.runs.priority is
  '0 (normal) to 9 (first), for stages that declare priority.';
comment on column millrace.runs.metadata_id is
  'Its row of run_metadata; a child without a metadata column has its parent''s. A retry keeps it.';
comment on column millrace.runs.quota_of is
  'The pipeline whose quota it counts against, under quota_key.';
comment on column millrace.runs.began_from is
  'The value of the status column at which a person began the run; null elsewhere. Taking the '
  'question back leads to it again.';
comment on column millrace.runs.ended_as is
  'The name under which a stage''s result has ended it, which is no failure; null otherwise.';
comment on column millrace.runs.given is
  'The stages whose output the row brought along, in its first run; null in any other, and where '
  'no stage of the pipeline asks.';
comment on column millrace.runs.failed_stage_id is
  'The stage whose failure ended it; null unless it is failed.';
comment on column millrace.runs.error_code is
  'The code of the error that ended it, its first 200 characters; null unless it is failed.';
comment on column millrace.runs.since is
  'Since when its row has been on its way, where that is before created_at: a former run failed, '
  'was cancelled, or left a stage out by a bypass. Kept for pipelines with bounds for their runs.';

create table millrace.run_metadata (
  id bigint generated by default as identity constraint run_metadata_pkey primary key,
  value jsonb not null
);
comment on table millrace.run_metadata is
  'What an entity''s metadata column held when its run started: one row for that run and all its '
  'descendants, whichever of them are deleted first. Never changed.';

create table millrace.dropped_metadata (
  id bigint generated always as identity constraint dropped_metadata_pkey primary key,
  metadata_id bigint not null
);
comment on table millrace.dropped_metadata is
  'Metadata that a run no longer has. The sweep deletes it once no run has it. Insert-only, so '
  'that nobody who deletes a row waits for another who does.';

create table millrace.attempts (
  id bigint generated always as identity,
  run_id bigint not null,
  parent_id bigint,
  submission_id bigint,
  queue_at timestamptz,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  deadline_at timestamptz,
  poll_at timestamptz,
  job_started_at timestamptz,
  late_at timestamptz,
  token uuid,
  stage_id int not null,
  state millrace.attempt_state not null default 'queued',
  number smallint not null,
  retry_count smallint not null default 0,
  releases smallint not null default 0,
  isolated boolean not null default false,
  superseded boolean not null default false,
  uncounted boolean not null default false,
  held boolean not null default false,
  service text,
  job_id text,
  overtaken_job_id text,
  error jsonb,
  concurrency_group text,
  output jsonb,
  usage jsonb,
  input_hash uuid,
  lost_alone boolean not null default false,
  constraint attempts_pkey primary key (id) with (fillfactor = 90),
  constraint attempts_number_key unique (run_id, stage_id, number)
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.05
);
create index attempts_ready on millrace.attempts (stage_id, queue_at, id)
  where queue_at is not null;
create index attempts_held on millrace.attempts (stage_id, queue_at, id)
  where held and queue_at is not null;
create index attempts_to_poll on millrace.attempts (poll_at) where poll_at is not null;
create index attempts_by_deadline on millrace.attempts (deadline_at) where deadline_at is not null;
create index attempts_late on millrace.attempts (late_at) where late_at is not null;
create index attempts_by_submission on millrace.attempts (submission_id)
  where submission_id is not null;

-- A callback may name its job alone. By a digest, since a service's id may be longer than an index
-- entry.
create index attempts_by_job on millrace.attempts (hashtextextended(job_id, 0))
  where job_id is not null and service not in ('children', 'decision', 'by_hand');
create index attempts_by_group on millrace.attempts (stage_id, concurrency_group, queue_at, id)
  where concurrency_group is not null and queue_at is not null;
create index attempts_isolated on millrace.attempts (stage_id, queue_at, id)
  where isolated and queue_at is not null;

-- What waits at a stage, for back pressure to count.
create index attempts_waiting on millrace.attempts (stage_id) where deadline_at is not null;
comment on table millrace.attempts is
  'One try of a stage for a run, and the queue. A retry is a new row with parent_id.';
comment on column millrace.attempts.queue_at is
  'When it is due, while queued or started; null otherwise.';
comment on column millrace.attempts.job_started_at is
  'When its service was first heard to run the job; null while the job waits there, and where '
  'nobody asked.';
comment on column millrace.attempts.overtaken_job_id is
  'The job it waited for when the late result of an earlier submission, job_id, completed it; null '
  'otherwise.';
comment on column millrace.attempts.late_at is
  'When its stage''s bound is over; null once the attempt is, and where the stage has no bound.';
comment on column millrace.attempts.submission_id is
  'Set on an attempt that follows a lost lease: the attempt under whose id the external job may '
  'have been submitted already.';
comment on column millrace.attempts.isolated is
  'Follows a lost lease, or a limit that its function reached, so its worker takes nothing else '
  'beside it: a row that ends its function exhausts only itself.';
comment on column millrace.attempts.uncounted is
  'Part of a start that its tenant has not been charged with: that is done when it is claimed.';
comment on column millrace.attempts.held is
  'Queued until its tenant''s quota has room again; error says why and until when.';
comment on column millrace.attempts.concurrency_group is
  'The key it waits under at a stage with groups; null elsewhere.';
comment on column millrace.attempts.output is 'Its result, once completed; null otherwise.';
comment on column millrace.attempts.error is
  'Why it failed; while it waits for a job, what went wrong the last time that the job was asked '
  'after or finished, and since when.';
comment on column millrace.attempts.usage is
  'What it used, such as tokens and cost; null when it did not say.';
comment on column millrace.attempts.superseded is
  'A finished attempt whose stage was started over since; kept as history.';
comment on column millrace.attempts.input_hash is
  'The digest of the input that its worker was given, where its stage declares unchanged.';
comment on column millrace.attempts.lost_alone is
  'Whether an isolate ended while it ran this row alone: the next one runs it first of all.';

create table millrace.former_runs (
  pipeline_id int not null
    constraint former_runs_pipeline_fkey references millrace.pipelines on delete cascade,
  entity_id text not null,
  run_id bigint not null,
  trace_id uuid,
  status millrace.run_status not null,
  metadata jsonb,
  costs jsonb not null,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  constraint former_runs_pkey primary key (pipeline_id, entity_id)
);
comment on table millrace.former_runs is
  'One row for each entity whose runs were pruned: the last of these, and what all of them cost, '
  'by stage in US dollars. It goes with the entity.';

create table millrace.begun_rows (
  pipeline_id int not null,
  entity_id text not null,
  constraint begun_rows_pkey primary key (pipeline_id, entity_id)
);
comment on table millrace.begun_rows is
  'Rows whose first run has been pruned, of pipelines where a row may bring along what a stage '
  'makes: what a row holds by then is mostly the engine''s own work.';
