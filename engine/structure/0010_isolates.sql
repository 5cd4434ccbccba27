-- A row for each stage: the CPU time and memory that one row takes of its isolate, as workers have
-- reckoned.
create table millrace.row_costs (
  stage_id int primary key references millrace.stages on delete cascade,
  cpu_ms real not null constraint row_costs_cpu_bounds check (cpu_ms between 0.1 and 2000),
  memory_bytes bigint,
  -- How many isolates ended without a report while they held rows of the stage.
  lives_cut int not null default 0,
  learned_at timestamptz not null
);
