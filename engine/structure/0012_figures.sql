-- Figures, counted as it happens and kept apart from the attempts
--
-- Who ends attempts or runs writes a pulse in its own transaction; the sweep adds pulses up in the
-- statement that deletes them, so a late sweep loses none. Stage 0 stands for the run as a whole.

-- What batches of attempts, and runs (stage_id 0), came to: one row a batch, stage and outcome.
create table millrace.pulses (
  at timestamptz not null,
  pipeline_id int not null,
  stage_id int not null,
  -- ended: runs that ended under a name. failed: for good. copied: results taken over from earlier
  -- runs. removed: deleted with their runs. dequeued: of the skipped, had been queued. unstarted:
  -- of the failed, retried and cancelled, had not been started.
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

-- Pulses of a stage and outcome added up, by the minute and the hour (UTC), kept for the settings
-- minutes_hours and hours_days, and in all (total, at -infinity), which never falls.
create table millrace.sums (
  unit text not null
    constraint sums_unit_known check (unit in ('minute', 'hour', 'total')),
  pipeline_id int not null,
  stage_id int not null,
  at timestamptz not null,
  outcome text not null,
  n bigint not null,
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
  constraint sums_pkey primary key (unit, pipeline_id, stage_id, at, outcome)
) with (fillfactor = 70);

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
