-- Figures, counted as it happens and kept apart from the attempts
--
-- Who ends attempts or runs writes a pulse in its own transaction; the sweep adds pulses to
-- minutes, hours and totals in one statement, so a late sweep loses none. Stage 0 stands for the
-- run as a whole.

-- What batches of attempts, and runs (stage_id 0), came to: one row a batch, stage and outcome.
create table millrace.pulses (
  at timestamptz not null,
  pipeline_id int not null,
  stage_id int not null,
  outcome text not null
    constraint pulses_outcome_known check (outcome in ('completed', 'ended', 'failed', 'retried',
      'skipped', 'cancelled', 'copied', 'removed', 'dequeued', 'unstarted')),
  n int not null,
  -- Of each attempt, or each run from start to end.
  run_ms real[],
  -- Of each first try.
  wait_ms real[],
  codes text[],
  cost_usd numeric,
  input_tokens numeric,
  output_tokens numeric
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Figures by stage and minute (UTC), kept for minutes_hours. Stage 0: the run as a whole.
create table millrace.minutes (
  pipeline_id int not null,
  stage_id int not null,
  minute timestamptz not null,
  completed bigint not null default 0,
  -- Runs that ended under a name; completed does not count them.
  ended bigint not null default 0,
  -- Failed for good.
  failed bigint not null default 0,
  retried bigint not null default 0,
  skipped bigint not null default 0,
  cancelled bigint not null default 0,
  -- Results taken over from earlier runs.
  copied bigint not null default 0,
  -- Deleted with their runs.
  removed bigint not null default 0,
  -- Of the skipped, at a bypassed stage: had been queued.
  dequeued bigint not null default 0,
  -- Of the failed, retried and cancelled: had not been started.
  unstarted bigint not null default 0,
  cost_usd numeric not null default 0,
  input_tokens numeric not null default 0,
  output_tokens numeric not null default 0,
  -- In all; runs counts them by millrace.bucket_bounds().
  run_ms float8 not null default 0,
  -- First tries in the queue, in all; waits counts them.
  wait_ms float8 not null default 0,
  runs bigint[] not null default array_fill(0::bigint, '{16}'),
  waits bigint[] not null default array_fill(0::bigint, '{16}'),
  -- Failures by code: the 20 most frequent, and "other".
  codes jsonb,
  constraint minutes_pkey primary key (pipeline_id, stage_id, minute)
) with (fillfactor = 80);

create table millrace.hours (like millrace.minutes including defaults) with (fillfactor = 80);
comment on table millrace.hours is
  'As millrace.minutes, by the hour (UTC), kept as long as the setting hours_days says.';

alter table millrace.hours rename column minute to hour;
alter table millrace.hours
  add constraint hours_pkey primary key (pipeline_id, stage_id, hour);

create table millrace.totals (like millrace.minutes including defaults) with (fillfactor = 50);
comment on table millrace.totals is
  'As millrace.minutes, since the beginning. Never pruned, so no figure here ever falls.';
alter table millrace.totals drop column minute;
alter table millrace.totals add constraint totals_pkey primary key (pipeline_id, stage_id);

-- What a stage, or a pipeline's runs, came to in a stretch of time that begins at.
create type millrace.figure as (
  at timestamptz,
  completed bigint,
  ended bigint,
  failed bigint,
  retried bigint,
  skipped bigint,
  cancelled bigint,
  run_p50_ms float8,
  run_p95_ms float8,
  wait_p50_ms float8,
  wait_p95_ms float8,
  cost_usd numeric,
  input_tokens numeric,
  output_tokens numeric,
  codes jsonb
);
