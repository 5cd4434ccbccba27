-- A row for each question to a person at a manual stage, open or answered. Decide by
-- millrace_decide(attempt_id, …) or by writing `decision`; policies say who may.
create table public.millrace_decisions (
  attempt_id bigint primary key,
  pipeline text not null,
  stage text not null,
  run_id bigint not null,
  entity_id text not null,
  schema jsonb not null,
  opened_at timestamptz not null,
  deadline_at timestamptz not null,
  decision jsonb,
  -- auth.uid() of the person; null for service_role and for ids that are no uuid.
  decided_by uuid,
  decided_at timestamptz,
  closed_at timestamptz,
  closed_why text
);
create index millrace_decisions_open on public.millrace_decisions (attempt_id)
  where closed_at is null;
create index millrace_decisions_by_run on public.millrace_decisions (run_id);
create index millrace_decisions_by_entity on public.millrace_decisions (entity_id);

alter table public.millrace_decisions enable row level security;
revoke all on public.millrace_decisions from public, anon, authenticated, service_role;
grant select, update (decision) on public.millrace_decisions to authenticated, service_role;
