-- A row for each stage: the CPU time and memory that one row takes of its isolate, by the estimates
-- of workers.
create table millrace.row_costs (
  stage_id int primary key references millrace.stages on delete cascade,
  cpu_ms real not null,
  memory_bytes bigint,
  -- How many isolates ended without a report while they held rows of the stage.
  lives_cut int not null default 0,
  learned_at timestamptz not null
);
