-- A row for each stage that a person has bypassed, until `until` or until a person ends it.
create table millrace.bypasses (
  stage_id int primary key references millrace.stages on delete cascade,
  reason text not null,
  until timestamptz,
  journal_entry bigint not null,
  began_at timestamptz not null
);

-- A row for each entity whose run has left a bypassed stage out, until the row is taken up or
-- pruning finds the stage done.
create table millrace.bypassed (
  stage_id int not null references millrace.stages on delete cascade,
  entity_id text not null,
  run_id bigint not null,
  at timestamptz not null,
  reason text not null,
  primary key (stage_id, entity_id)
);
create index bypassed_in_order on millrace.bypassed (stage_id, at, run_id);
create index bypassed_by_run on millrace.bypassed (run_id);
