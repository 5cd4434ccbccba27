-- Figures: the sweep adds pulses up in the statement that deletes them, so that none is lost

-- A row for each entity whose runs were pruned: its last run, and the costs of all of them.
create table millrace.former_runs (
  pipeline_id int not null references millrace.pipelines on delete cascade,
  entity_id text not null,
  run_id bigint not null,
  trace_id uuid,
  status millrace.run_status not null,
  metadata jsonb,
  costs jsonb not null,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  primary key (pipeline_id, entity_id)
);

-- Pulses added up by the minute and the hour (UTC), and in all (total, at -infinity). The outcome
-- ready is no sum. Its n is the most rows that were ready at once, 10,000 a stage at most, and its
-- wait_ms the age of the oldest.
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
  -- The sum in milliseconds. runs and waits have the numbers by millrace.bucket_bounds().
  run_ms float8 not null default 0,
  wait_ms float8 not null default 0,
  runs bigint[] not null default array_fill(0::bigint, '{16}'),
  waits bigint[] not null default array_fill(0::bigint, '{16}'),
  -- The 20 most frequent codes of failures, and "other".
  codes jsonb,
  primary key (unit, pipeline_id, stage_id, at, outcome)
) with (fillfactor = 70);

-- Costs of pulses by model and tenant, added up by the hour and the day (UTC). An empty model or
-- tenant means that none was named.
create table millrace.costs (
  unit text not null,
  at timestamptz not null,
  stage_id int not null,
  model text not null,
  tenant text not null,
  usd numeric not null,
  primary key (unit, at, stage_id, model, tenant)
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
  codes jsonb,
  ready bigint,
  oldest_ms float8
);
