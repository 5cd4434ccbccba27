-- Reports of the kernel, which modules add up: pulses for the figures, child tallies for the
-- parents. Transitions only insert them, so that none waits for another.

-- A row for each report of child runs to a fan-out, until a collector adds it up. A child inserts a
-- tally and never writes to its parent.
create table millrace.child_tallies (
  id bigint generated always as identity primary key,
  fan_out_id bigint not null,
  stage_id int,
  done int not null default 0,
  completed int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  recount boolean not null default false
);
create index child_tallies_by_fan_out on millrace.child_tallies (fan_out_id);

-- A row for each batch: how attempts of a stage ended, or runs where stage_id is 0. Cost and tokens
-- have rows of their own, one for each model and tenant, in which n is 0.
create table millrace.pulses (
  at timestamptz not null,
  pipeline_id int not null,
  stage_id int not null,
  -- `failed`: for good. `copied`: from an earlier run. `unstarted`: how many of the failed, retried
  -- and cancelled attempts had never been started.
  outcome text not null,
  n int not null,
  run_ms real[],
  -- The waits of first tries alone, in milliseconds.
  wait_ms real[],
  codes text[],
  model text,
  -- The runs' quota_key.
  tenant text,
  cost_usd numeric,
  input_tokens numeric,
  output_tokens numeric
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- Under a publication for all tables Postgres refuses deletes from a table without a replica
-- identity. A primary key would cost each batch an index entry. With replica identity full, a
-- delete logs the whole row where wal_level is logical, but only the sweep deletes pulses.
alter table millrace.pulses replica identity full;
