-- A row for each turn of an agent stage, or step of another stage. The turns of an agent stage are
-- deleted when it is completed, unless its option debug is set. Read them in millrace.agent_log.
create table millrace.turns (
  run_id bigint not null,
  stage_id int not null,
  stage_run int not null,
  seq int not null,
  kind text not null,
  call_id text,
  -- model: {asked, output, discarded: why}; tool: {name, arguments, output, failed}.
  content jsonb not null,
  usage jsonb,
  attempt_id bigint not null,
  created_at timestamptz not null,
  primary key (run_id, stage_id, stage_run, seq)
);
