-- A row for each fan-out: the children of one stage run of a stage. `open`: its attempt spawns or
-- waits. `finished`: the attempt has ended. `abandoned`: the sweep is to cancel the children.
-- `closed`: no child is left to cancel.
create table millrace.fan_outs (
  id bigint generated always as identity primary key,
  run_id bigint not null,
  stage_id int not null,
  attempt_id bigint not null,
  child_pipeline_id int not null,
  state text not null default 'open',
  spawned int not null default 0,
  -- How many children there are in all; null until the last one was spawned.
  total int,
  completed int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  first_number int,
  retry_children boolean not null default false,
  created_at timestamptz not null default millrace.now()
) with (fillfactor = 50);
create unique index fan_outs_one_open on millrace.fan_outs (run_id, stage_id) where state = 'open';
create index fan_outs_by_attempt on millrace.fan_outs (attempt_id);
create index fan_outs_by_run on millrace.fan_outs (run_id, stage_id);
create index fan_outs_abandoned on millrace.fan_outs (id) where state = 'abandoned';

-- A row for each stage whose done children a threshold counts.
create table millrace.fan_progress (
  fan_out_id bigint not null,
  stage_id int not null,
  done int not null default 0,
  primary key (fan_out_id, stage_id)
) with (fillfactor = 50);

-- The costs of children whose runs were deleted, or that a later run has overtaken, in US dollars.
create table millrace.former_costs (
  id bigint generated always as identity,
  fan_out_id bigint not null,
  cost_usd numeric not null,
  primary key (fan_out_id, id)
);
