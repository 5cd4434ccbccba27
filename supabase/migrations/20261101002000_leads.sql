-- Leads: the first pipeline (scrape → intel → strategy → subject → messaging)
--
-- Each stage keeps seven columns on the row. An account sees its own leads alone; its users write the inputs and the
-- statuses (to 'queued'; the pipeline's definition grants those), never a result.

create table public.leads (
  id uuid constraint leads_pkey primary key default gen_random_uuid(),
  email text not null,
  company_url text not null,
  account_id uuid not null,
  created_at timestamptz not null default now(),

  scrape_status text not null default 'pending',
  scrape_job_id text,
  scrape_result jsonb,
  scrape_error text,
  scrape_retry_count int not null default 0,
  scrape_started_at timestamptz,
  scrape_completed_at timestamptz,

  intel_status text not null default 'pending',
  intel_job_id text,
  intel_result jsonb,
  intel_error text,
  intel_retry_count int not null default 0,
  intel_started_at timestamptz,
  intel_completed_at timestamptz,

  strategy_status text not null default 'pending',
  strategy_job_id text,
  strategy_result jsonb,
  strategy_error text,
  strategy_retry_count int not null default 0,
  strategy_started_at timestamptz,
  strategy_completed_at timestamptz,

  subject_status text not null default 'pending',
  subject_job_id text,
  subject_result jsonb,
  subject_error text,
  subject_retry_count int not null default 0,
  subject_started_at timestamptz,
  subject_completed_at timestamptz,

  messaging_status text not null default 'pending',
  messaging_job_id text,
  messaging_result jsonb,
  messaging_error text,
  messaging_retry_count int not null default 0,
  messaging_started_at timestamptz,
  messaging_completed_at timestamptz,

  -- Only on what people write: what the engine writes must never be refused.
  constraint leads_email_length check (octet_length(email) <= 1000),
  constraint leads_company_url_length check (octet_length(company_url) <= 8000)
) with (fillfactor = 50);
-- No index on a projected column: it would end HOT updates. The queue has its own index in millrace.attempts.
create index leads_by_account on public.leads (account_id, created_at);
comment on table public.leads is 'Write ''queued'' to scrape_status (or a later stage''s) to start the pipeline.';

alter table public.leads enable row level security;
create policy leads_of_own_account on public.leads for all to authenticated
  using (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid)
  with check (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid);
comment on policy leads_of_own_account on public.leads is 'The account is the claim app_metadata.account_id of the user''s token, which users cannot write themselves.';

revoke all on public.leads from anon, authenticated, service_role;
grant select, delete on public.leads to authenticated;
grant insert (email, company_url, account_id), update (email, company_url) on public.leads to authenticated;
grant select, insert, update, delete on public.leads to service_role;

create view public.lead_pipeline_status with (security_invoker = true) as
select l.id, l.email, l.company_url, l.account_id, c.stage as current_stage, c.status as current_status, c.error as current_error,
  l.scrape_status, l.intel_status, l.strategy_status, l.subject_status, l.messaging_status, l.created_at, l.messaging_completed_at as completed_at
from public.leads l
cross join lateral (
  select s.stage, s.status, s.error from (values
    (1, 'scrape', l.scrape_status, l.scrape_error), (2, 'intel', l.intel_status, l.intel_error), (3, 'strategy', l.strategy_status, l.strategy_error),
    (4, 'subject', l.subject_status, l.subject_error), (5, 'messaging', l.messaging_status, l.messaging_error), (6, 'completed', 'completed', null)
  ) s(place, stage, status, error)
  where s.place = 6 or s.status not in ('completed', 'skipped') order by s.place limit 1
) c;
comment on view public.lead_pipeline_status is 'Where each lead stands: current_stage is the first stage that is neither completed nor skipped, or completed. Whether a message was written is in messaging_status.';
revoke all on public.lead_pipeline_status from anon, authenticated, service_role;
grant select on public.lead_pipeline_status to authenticated, service_role;

create view public.lead_costs with (security_invoker = true) as
select e.account_id,
  count(*) as leads,
  count(*) filter (where e.messaging_status = 'completed') as completed,
  millrace_evidence.entity_costs('leads', array_agg(e.id::text)) as cost_usd
from public.leads e
group by e.account_id;
comment on view public.lead_costs is
  'What leads have cost, all their runs together, for each account. '
  'Null where nobody named a price: LLM_PRICE_INPUT, LLM_PRICE_OUTPUT.';
revoke all on public.lead_costs from anon, authenticated, service_role;
grant select on public.lead_costs to authenticated, service_role;
