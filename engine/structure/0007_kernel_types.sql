-- An item of a batch.
-- reported_token: the token that the report brought.
-- was: the state of the attempt before.
-- verdict: null while the item may be recorded.
-- claimed_stage, claimed_trace: the stage and the trace that a job's metadata names.
create type millrace.work as (
  ord int,
  attempt_id bigint,
  token uuid,
  reported_token text,
  outcome text,
  result jsonb,
  usage jsonb,
  error jsonb,
  service text,
  job_id text,
  run_id bigint,
  stage_id int,
  entity_id text,
  was millrace.attempt_state,
  verdict text,
  reason text,
  claimed_stage text,
  claimed_trace text
);

-- A change that the projection writes for one stage. queued names the stages that became ready.
create type millrace.change as (
  entity_id text,
  status text,
  job_id text,
  result jsonb,
  error text,
  retry_count int,
  started_at timestamptz,
  completed_at timestamptz,
  queued text[]
);

-- A stage of a run that became ready.
create type millrace.ready as (run_id bigint, stage_id int);

-- The usage of an attempt that ended, with its outcome as pulses name it.
create type millrace.used as (run_id bigint, outcome text, usage jsonb);

-- A cancelled attempt that the projection has yet to write.
create type millrace.cancelled as (stage_id int, change millrace.change);

-- A claimed attempt as its worker gets it.
create type millrace.claimed as (
  attempt_id bigint,
  run_id bigint,
  entity_id text,
  trace_id uuid,
  version_id int,
  retry_count int,
  submission bigint,
  number int,
  isolated boolean
);

-- The row of a claimed attempt with the results of its needs, or the failure to build them.
create type millrace.built as (entity json, needs json, failure json);

-- A status that a user wrote.
-- dirty: some column of the stage is not clear.
create type millrace.written as (entity_id text, status text, dirty boolean);

-- The values that a start reads of its rows, each list in the order of the rows.
create type millrace.row_values as (
  metadata jsonb[],
  traces uuid[],
  payers text[],
  keys text[]
);

-- The values that call_of() reads for a call of a worker.
create type millrace.call as (
  worker millrace.workers,
  stage millrace.stages,
  open boolean,
  is_child boolean,
  sweep_due boolean,
  row_cpu_ms real
);

-- Keys of a portion for which a statement raised an error, as where a user's trigger refuses a row.
-- key: the first of the keys.
-- others: how many further keys there are.
-- later: the database said to try again.
create type millrace.refusal as (key text, others int, code text, why text, later boolean);

-- A finding: one line of doctor().
create type millrace.finding as (what text, ok boolean, detail text);

-- A breach of an invariant.
create type millrace.fault as (rule text, run_id bigint, attempt_id bigint, detail text);
