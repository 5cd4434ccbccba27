create table millrace.alerts (
  id bigint generated always as identity constraint alerts_pkey primary key,
  kind text not null constraint alerts_kind_known check (kind in ('sla')),
  pipeline text not null,
  stage text not null,
  run_id bigint not null,
  attempt_id bigint not null,
  entity_id text not null,
  message text not null,
  raised_at timestamptz not null,
  resolved_at timestamptz,
  stage_id int not null,
  execution int not null
);
create unique index alerts_one_open on millrace.alerts (run_id, stage_id, execution)
  where resolved_at is null;
create index alerts_open on millrace.alerts (id) where resolved_at is null;
create index alerts_by_run on millrace.alerts (run_id);
comment on table millrace.alerts is
  'What somebody should look at. sla: a stage of a run is older than its bound; the sweep raises '
  'it once an execution, and resolves it when that is over. Open ones: where resolved_at is null.';
comment on column millrace.alerts.attempt_id is
  'The attempt that was open when the alert was raised; a later retry of it belongs to the same '
  'alert.';
comment on column millrace.alerts.execution is
  'The number of the first attempt of the execution that is late.';

-- As with decisions, the sweep looks at some open ones each time, going round and round, since
-- nothing tells it which ended.
insert into millrace.settings (name, value, comment) values
  ('alerts_seen', '0',
    'Written by millrace.resolve_alerts(): the open alert that it looked at last.');
