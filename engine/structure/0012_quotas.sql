create table millrace.quota_uses (
  id bigint generated always as identity constraint quota_uses_pkey primary key,
  pipeline_id int not null,
  key text not null,
  kind text not null constraint quota_uses_kind_known check (kind in ('starts', 'spending')),
  closes_at timestamptz not null,
  used numeric not null,
  summed boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0.02);
create index quota_uses_by_key on millrace.quota_uses (pipeline_id, key, kind, closes_at);
create index quota_uses_to_sum on millrace.quota_uses (id) where not summed;
create index quota_uses_by_end on millrace.quota_uses (closes_at);
comment on table millrace.quota_uses is
  'What tenants have started and spent in windows that are not over. Read it through '
  'millrace.quotas.';
comment on column millrace.quota_uses.summed is
  'Written by the sweep, as the sum of what was there; false for what came since.';

-- A tenant: the pipeline whose quota it has, its value of the quota's column, and that quota as it
-- is today.
create type millrace.payer as (pipeline_id int, key text, quota jsonb);
