create table millrace.turns (
  run_id bigint not null,
  stage_id int not null,
  execution int not null,
  seq int not null,
  kind text not null constraint turns_kind_known check (kind in ('model', 'tool')),
  call_id text,
  content jsonb not null,
  usage jsonb,
  attempt_id bigint not null,
  created_at timestamptz not null,
  constraint turns_pkey primary key (run_id, stage_id, execution, seq)
);
comment on table millrace.turns is
  'The conversations of agent stages, one row a turn; millrace.agent_log shows them readably. Kept '
  'while the stage is not completed, and until the run is pruned where the stage says debug.';
comment on column millrace.turns.content is
  'model: {asked (the first message, in the first turn), output (the items of the response), '
  'discarded (why it is no part of the conversation)}; tool: {name, arguments, output, failed}.';
