-- Bypasses: a stage is left out for a while, with memory

-- The stages that a person has bypassed.
create table millrace.bypasses (
  stage_id int
    constraint bypasses_pkey primary key
    constraint bypasses_stage_fkey references millrace.stages on delete cascade,
  reason text not null,
  -- Null until a person ends it.
  until timestamptz,
  line bigint not null,
  began_at timestamptz not null
);

-- Rows whose run has left a bypassed stage out, until it is made good.
create table millrace.bypassed (
  stage_id int not null
    constraint bypassed_stage_fkey references millrace.stages on delete cascade,
  entity_id text not null,
  -- The last one; it may have been pruned since.
  run_id bigint not null,
  at timestamptz not null,
  reason text not null,
  constraint bypassed_pkey primary key (stage_id, entity_id)
);
create index bypassed_in_order on millrace.bypassed (stage_id, at, run_id);
create index bypassed_by_run on millrace.bypassed (run_id);
