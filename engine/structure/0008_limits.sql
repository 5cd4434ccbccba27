-- Limits: which stages they hold for, and what was used under them

-- One row a limit: a stage's own, without a name; one that stages share; or the quota of a
-- pipeline. The claims under a stage's change it one at a time. Read them through
-- millrace.shared_limit_state, millrace.throttles and millrace.quotas.
create table millrace.limits (
  id int generated always as identity constraint limits_pkey primary key,
  name text constraint limits_name_key unique
    constraint limits_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  stage_id int constraint limits_stage_key unique
    constraint limits_stage_fkey references millrace.stages on delete cascade,
  pipeline_id int constraint limits_pipeline_key unique
    constraint limits_pipeline_fkey references millrace.pipelines on delete cascade,
  declared jsonb not null,
  throttle jsonb,
  -- What holds today. A stage's own are in stages.limits too.
  limits jsonb not null generated always as (declared || coalesce(throttle, '{}')) stored,
  until timestamptz,
  reason text,
  line bigint,
  throttled_at timestamptz,
  -- The group behind which the next claim or pass of a gate goes on.
  last_group text not null default '',
  constraint limits_of_one check (num_nonnulls(name, stage_id, pipeline_id) = 1),
  constraint limits_throttle_whole check (
    num_nulls(throttle, until, reason, line, throttled_at) in (0, 5))
) with (fillfactor = 50);

-- Which stages a limit holds for. Where several want more than there is, each leaves the others a
-- share.
create table millrace.limited_stages (
  limit_id int not null
    constraint limited_stages_limit_fkey references millrace.limits on delete cascade,
  stage_id int not null
    constraint limited_stages_stage_fkey references millrace.stages on delete cascade,
  -- When its last claim would have taken more than it was allowed; null if it got all.
  short_at timestamptz,
  -- When it last took something while another was short.
  taken_at timestamptz,
  constraint limited_stages_pkey primary key (limit_id, stage_id)
) with (fillfactor = 50);
create index limited_stages_by_stage on millrace.limited_stages (stage_id, limit_id);

-- What was used of budgets and quotas in a window: one row a batch, until the sweep adds them up. A
-- pause is the window in which a service that refused gets nothing.
create table millrace.limit_uses (
  id bigint generated always as identity constraint limit_uses_pkey primary key,
  limit_id int not null,
  -- The tenant of a quota, or what a service refused.
  key text not null default '',
  kind text not null constraint limit_uses_kind_known
    check (kind in ('usd', 'tokens', 'starts', 'spending', 'pause')),
  during tstzrange not null,
  used numeric not null,
  -- Written by the sweep, as the sum of what was there.
  summed boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0.02);
create index limit_uses_by_key on millrace.limit_uses (limit_id, key, kind, during);
create index limit_uses_to_sum on millrace.limit_uses (id) where not summed;
create index limit_uses_by_end on millrace.limit_uses (upper(during));

-- What is left of the rate of a limit (key: ''), or of a key's (0, then the key), where it is less
-- than the whole.
create table millrace.buckets (
  limit_id int not null
    constraint buckets_limit_fkey references millrace.limits on delete cascade,
  key text not null,
  -- What the token bucket held at refilled_at; never more than the burst.
  tokens float8 not null,
  refilled_at timestamptz not null,
  constraint buckets_pkey primary key (limit_id, key)
) with (fillfactor = 50);
