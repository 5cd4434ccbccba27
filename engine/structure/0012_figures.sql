-- Figures: the sweep adds pulses up in the statement that deletes them, so that none is lost

-- One row a batch: how attempts of a stage ended, or runs where stage_id is 0.
create table millrace.pulses (
  at timestamptz not null,
  pipeline_id int not null,
  stage_id int not null,
  -- failed: for good. copied: from an earlier run. unstarted: how many of the failed, retried and
  -- cancelled attempts had never been started.
  outcome text not null,
  n int not null,
  run_ms real[],
  -- The waits of first tries alone, in milliseconds.
  wait_ms real[],
  codes text[],
  cost_usd numeric,
  input_tokens numeric,
  output_tokens numeric
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- A publication for all tables refuses deletes without an identity. A primary key would cost each
-- batch an index entry; the full row is logged by the sweep alone, where wal_level is logical.
alter table millrace.pulses replica identity full;

-- Pulses added up by the minute and the hour (UTC), and in all (total, at -infinity).
create table millrace.sums (
  unit text not null,
  pipeline_id int not null,
  stage_id int not null,
  at timestamptz not null,
  outcome text not null,
  n bigint not null,
  cost_usd numeric not null default 0,
  input_tokens numeric not null default 0,
  output_tokens numeric not null default 0,
  -- Milliseconds in all. runs and waits count them by millrace.bucket_bounds().
  run_ms float8 not null default 0,
  wait_ms float8 not null default 0,
  runs bigint[] not null default array_fill(0::bigint, '{16}'),
  waits bigint[] not null default array_fill(0::bigint, '{16}'),
  -- The 20 most frequent codes of failures, and "other".
  codes jsonb,
  primary key (unit, pipeline_id, stage_id, at, outcome)
) with (fillfactor = 70);

-- The figures of a stage, or of a pipeline, in a stretch of time.
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
