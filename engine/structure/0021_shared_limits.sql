-- Limits that stages of any pipeline share: what they are, which stages they hold for, what was
-- spent under them, and what they learned.

create table millrace.shared_limits (
  id int generated always as identity constraint shared_limits_pkey primary key,
  name text not null constraint shared_limits_name_key unique
    constraint shared_limits_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  declared jsonb not null,
  limits jsonb not null,
  throttle jsonb,
  until timestamptz,
  reason text,
  line bigint,
  throttled_at timestamptz,
  tokens float8 not null default 'infinity',
  refilled_at timestamptz not null default millrace.now(),
  share float8 not null default 1,
  lowered_at timestamptz,
  lowered_since timestamptz,
  heed_from timestamptz,
  refused_until timestamptz,
  refused_by text,
  constraint shared_limits_throttle_whole check (
    num_nulls(throttle, until, reason, line, throttled_at) in (0, 5))
) with (fillfactor = 50);
comment on table millrace.shared_limits is
  'One row a limit that stages share. The claims under it change it one at a time. Read it through '
  'millrace.shared_limit_state.';
comment on column millrace.shared_limits.limits is
  'What holds today: what was declared, with the throttle over it.';
comment on column millrace.shared_limits.tokens is
  'What the token bucket held at refilled_at; never more than the burst.';
comment on column millrace.shared_limits.share is
  'The part of its rate that an adaptive limit had at lowered_at; it grows from there by itself.';
comment on column millrace.shared_limits.lowered_since is
  'Since when it has been below its rate without a break.';
comment on column millrace.shared_limits.heed_from is
  'Refusals before that are of calls that began before the rate was halved, and halve nothing.';
comment on column millrace.shared_limits.refused_until is
  'Nothing is taken before that: a service asked for patience.';

create table millrace.limited_stages (
  limit_id int not null
    constraint limited_stages_limit_fkey references millrace.shared_limits,
  stage_id int not null
    constraint limited_stages_stage_fkey references millrace.stages on delete cascade,
  since timestamptz not null default millrace.now(),
  short_at timestamptz,
  taken_at timestamptz,
  constraint limited_stages_pkey primary key (limit_id, stage_id)
) with (fillfactor = 50);
create index limited_stages_by_stage on millrace.limited_stages (stage_id, limit_id);
comment on table millrace.limited_stages is
  'Which stages name which shared limit, written by define(). Where several of them want more than '
  'there is, their claims note that, and leave one another a share.';
comment on column millrace.limited_stages.short_at is
  'When its last claim would have taken more than its shared limits allowed; null if it got all.';
comment on column millrace.limited_stages.taken_at is
  'When it last took something while another stage was short.';

create table millrace.limit_uses (
  id bigint generated always as identity constraint limit_uses_pkey primary key,
  limit_id int not null,
  at timestamptz not null,
  usd numeric not null,
  tokens numeric not null,
  summed boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0.02);
create index limit_uses_by_time on millrace.limit_uses (limit_id, at);
create index limit_uses_to_sum on millrace.limit_uses (id) where not summed;
comment on table millrace.limit_uses is
  'What attempts that ended say they used, under limits with spending: one row a batch, '
  'insert-only, until the sweep adds up what is of one window.';

create table millrace.limit_refusals (
  id bigint generated always as identity constraint limit_refusals_pkey primary key,
  limit_id int not null,
  at timestamptz not null,
  retry_after interval not null,
  refused_by text not null
);
create index limit_refusals_by_limit on millrace.limit_refusals (limit_id, id);
comment on table millrace.limit_refusals is
  'News for adaptive limits, insert-only: a service asked for patience. The next claim reads and '
  'deletes it.';
