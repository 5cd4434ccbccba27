-- Chapter 9: runs and attempts
--
--   run:      running → completed | failed | cancelled            (failed and cancelled may be retried: → running)
--   attempt:  queued → started → completed | failed | cancelled
--                      started → waiting → completed | failed | cancelled     (an external job or children are under way)
--             skipped  (a condition did not hold, somebody skipped it, or the run goes on without a failed stage; needs are then done)
--                      started → queued                    (released by its worker, costs no attempt;
--                                                           alone from then on after a limit)
--
-- A retry is a new row with parent_id. The attempts table is the queue. Two things keep a transition cheap:
--   * queue_at is set while an attempt is queued or started and null otherwise, and no other changing column is indexed.
--     So a claim is a HOT update, which writes no index entry, as long as its page has room. It passes over the started
--     rows at the head of the index, of which there are no more than the live workers hold.
--   * there are no foreign keys on runs and attempts: their only writers are the transitions, and
--     check_invariants() looks for orphans.

create type pipeline.run_status as enum ('running', 'completed', 'failed', 'cancelled');
create type pipeline.attempt_state as enum ('queued', 'started', 'waiting', 'completed', 'failed', 'cancelled', 'skipped');

create table pipeline.runs (
  id bigint generated always as identity constraint runs_pkey primary key,
  pipeline_id int not null,
  version_id int not null,
  entity_id text not null,
  status pipeline.run_status not null default 'running',
  trace_id uuid not null default gen_random_uuid(),
  fan_out_id bigint,
  item_key text,
  took_place_of bigint,
  priority smallint not null default 0 constraint runs_priority_bounds check (priority between 0 and 9),
  metadata jsonb,
  created_at timestamptz not null,
  finished_at timestamptz
) with (fillfactor = 80);
create unique index runs_one_live on pipeline.runs (pipeline_id, entity_id) where status = 'running';
create index runs_by_entity on pipeline.runs (entity_id, pipeline_id, id);
create unique index runs_by_item on pipeline.runs (fan_out_id, item_key) where fan_out_id is not null;
create index runs_of_live_children on pipeline.runs (fan_out_id) where status = 'running' and fan_out_id is not null;
comment on table pipeline.runs is 'One passage of one entity through one pipeline. An entity has at most one live run a pipeline.';

comment on column pipeline.runs.fan_out_id is 'The fan-out of a parent that this run is a child of, under item_key.';
comment on column pipeline.runs.took_place_of is 'The former run of the same row, whose place in the fan-out this one has taken; its cost still counts for the parent.';
comment on column pipeline.runs.priority is '0 (normal) to 9 (first), for stages that declare priority.';

comment on column pipeline.runs.metadata is 'What the entity''s metadata column held when the run started; a child without such a column has its parent''s. A retry keeps it.';

create table pipeline.attempts (
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
  state pipeline.attempt_state not null default 'queued',
  number smallint not null,
  retry_count smallint not null default 0,
  releases smallint not null default 0,
  alone boolean not null default false,
  superseded boolean not null default false,
  service text,
  job_id text,
  overtaken_job_id text,
  error jsonb,
  lane text,
  output jsonb,
  usage jsonb,
  constraint attempts_pkey primary key (id) with (fillfactor = 90),
  constraint attempts_number_key unique (run_id, stage_id, number)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
create index attempts_ready on pipeline.attempts (stage_id, queue_at, id) where queue_at is not null;
create index attempts_to_poll on pipeline.attempts (poll_at) where poll_at is not null;
create index attempts_by_deadline on pipeline.attempts (deadline_at) where deadline_at is not null;
create index attempts_late on pipeline.attempts (late_at) where late_at is not null;
create index attempts_of_jobs on pipeline.attempts (stage_id, finished_at)
  where job_id is not null and finished_at is not null;
create index attempts_by_submission on pipeline.attempts (submission_id) where submission_id is not null;
-- A callback may name its job alone. By a digest, since a service's id may be longer than an index entry.
create index attempts_by_job on pipeline.attempts (hashtextextended(job_id, 0))
  where job_id is not null and service not in ('children', 'decision', 'by_hand');
comment on table pipeline.attempts is 'One execution of a stage for a run, and the queue. A retry is a new row with parent_id.';
comment on column pipeline.attempts.queue_at is 'When it is due, while queued or started; null otherwise.';
comment on column pipeline.attempts.job_started_at is 'When its service was first heard to run the job; null while the job waits there, and where nobody asked.';
comment on column pipeline.attempts.overtaken_job_id is 'The job it waited for when the late result of an earlier submission, job_id, completed it; null otherwise.';
comment on column pipeline.attempts.late_at is 'When the sweep is to raise an alert about it; null once it has, once the attempt is over, and where its stage has no bound.';
comment on column pipeline.attempts.submission_id is 'Set on an attempt that follows a lost lease: the attempt under whose id the external job may have been submitted already.';
comment on column pipeline.attempts.alone is
  'Follows a lost lease, or a limit that its function reached, so its worker takes nothing else '
  'beside it: a row that ends its function exhausts only itself.';
comment on column pipeline.attempts.lane is 'The key it waits under at a stage with lanes (chapter limits); null elsewhere.';
comment on column pipeline.attempts.output is 'Its result, once completed; null otherwise.';
comment on column pipeline.attempts.error is 'Why it failed; while it waits for a job, what went wrong the last time that the job was asked after or finished, and since when.';
comment on column pipeline.attempts.usage is 'What it used, such as tokens and cost; null when it did not say.';
comment on column pipeline.attempts.superseded is 'A finished attempt whose stage was started over since; kept as history.';

create table pipeline.workers (
  id uuid constraint workers_pkey primary key,
  stage_id int not null,
  host uuid not null,
  last_seq int not null default 0,
  last_token uuid,
  signed_on_at timestamptz not null,
  heartbeat_at timestamptz not null,
  left_at timestamptz,
  leave_tries smallint not null default 0
) with (fillfactor = 50);
create index workers_live on pipeline.workers (stage_id) where left_at is null;
comment on table pipeline.workers is 'One Edge Function invocation that drains a stage. Live until left_at, or until its heartbeat is 15 seconds old.';

create table pipeline.claims (
  token uuid constraint claims_pkey primary key,
  worker_id uuid not null,
  host uuid not null,
  expires_at timestamptz not null,
  alone boolean not null,
  attempt_ids bigint[] not null
) with (fillfactor = 50);
create index claims_by_worker on pipeline.claims (worker_id);
create index claims_by_host on pipeline.claims (host);
comment on table pipeline.claims is 'The leases: one row a claim, however many attempts it took, so that renewing a lease is one small update. Its worker deletes it once none of its attempts is started any more.';

create table pipeline.rings (
  id bigint generated always as identity constraint rings_pkey primary key,
  stage_id int not null,
  rung_at timestamptz not null
);
create index rings_by_stage on pipeline.rings (stage_id, rung_at);
comment on table pipeline.rings is 'Doorbell rings that no worker has answered yet. Insert-only, so that nobody waits for another''s ring.';

create table pipeline.fan_outs (
  id bigint generated always as identity constraint fan_outs_pkey primary key,
  run_id bigint not null,
  stage_id int not null,
  attempt_id bigint not null,
  child_pipeline_id int not null,
  state text not null default 'open' constraint fan_outs_state_known check (state in ('open', 'finished', 'abandoned', 'closed')),
  spawned int not null default 0,
  total int,
  completed int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  first_number int,
  retry_children boolean not null default false,
  created_at timestamptz not null
) with (fillfactor = 50);
create unique index fan_outs_one_open on pipeline.fan_outs (run_id, stage_id) where state = 'open';
create index fan_outs_by_attempt on pipeline.fan_outs (attempt_id);
create index fan_outs_by_run on pipeline.fan_outs (run_id, stage_id);
create index fan_outs_abandoned on pipeline.fan_outs (id) where state = 'abandoned';
comment on table pipeline.fan_outs is 'The children of one passage of a map or pipeline stage. open: its attempt spawns or waits; finished: it is done; abandoned: children are to be cancelled; closed: none is left.';
comment on column pipeline.fan_outs.total is 'How many children there are; null until the last was spawned.';

create table pipeline.fan_progress (
  fan_out_id bigint not null,
  stage_id int not null,
  done int not null default 0,
  next_number int,
  constraint fan_progress_pkey primary key (fan_out_id, stage_id)
) with (fillfactor = 50);
comment on table pipeline.fan_progress is 'How many children have done a watched stage, and the first number that has not.';

create table pipeline.former_costs (
  fan_out_id bigint not null,
  cost_usd numeric not null
);
create index former_costs_by_fan_out on pipeline.former_costs (fan_out_id);
comment on table pipeline.former_costs is 'What children whose runs have been deleted, or overtaken by those of another parent, had cost, their descendants included: their parent has paid for them all the same. Insert-only, as tallies.';

create table pipeline.tallies (
  id bigint generated always as identity constraint tallies_pkey primary key,
  fan_out_id bigint not null,
  stage_id int,
  done int not null default 0,
  completed int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  recount boolean not null default false
);
create index tallies_by_fan_out on pipeline.tallies (fan_out_id);
comment on table pipeline.tallies is 'What children report to their parent: one row a batch, insert-only, until pipeline.fold() adds it up. A child never touches its parent''s rows.';
