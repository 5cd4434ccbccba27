-- Back-pressure: stage_id waits while later_id and the stages between have `backlog` attempts due
-- or in flight.
create table millrace.back_pressures (
  stage_id int not null references millrace.stages on delete cascade,
  later_id int not null references millrace.stages on delete cascade,
  backlog int not null,
  -- The stages between the two from which attempts reach later_id without another check.
  on_the_way int[] not null,
  primary key (stage_id, later_id)
);
create index back_pressures_by_later on millrace.back_pressures (later_id, stage_id);

-- A row for each limit: a stage's own, a shared one, or the quota of a pipeline. Read them
-- through millrace.shared_limit_state, millrace.throttles and millrace.quotas.
create table millrace.limits (
  id int generated always as identity primary key,
  name text unique,
  stage_id int constraint limits_stage_key unique references millrace.stages on delete cascade,
  pipeline_id int constraint limits_pipeline_key unique
    references millrace.pipelines on delete cascade,
  declared jsonb not null,
  throttle jsonb,
  -- The limits that apply now: the declared ones, overridden by the throttle. A stage's own limits
  -- are in stages.limits, too.
  limits jsonb not null generated always as (declared || coalesce(throttle, '{}')) stored,
  until timestamptz,
  reason text,
  journal_entry bigint,
  throttled_at timestamptz,
  -- The group after which the next claim, or the next pass of a gate, begins.
  last_group text not null default '',
  constraint limits_of_one check (num_nonnulls(name, stage_id, pipeline_id) = 1)
) with (fillfactor = 50);

-- A row for each limit and each stage to which it applies.
create table millrace.limited_stages (
  limit_id int not null references millrace.limits on delete cascade,
  stage_id int not null references millrace.stages on delete cascade,
  -- When the stage's last claim would have taken more than the limit allowed; null if it did not.
  short_at timestamptz,
  -- When the stage last took something while another stage was short.
  taken_at timestamptz,
  primary key (limit_id, stage_id)
) with (fillfactor = 50);
create index limited_stages_by_stage on millrace.limited_stages (stage_id, limit_id);

-- The uses of a window: one row a batch, until the sweep adds them up. A row of the kind pause is a
-- stretch of time in which the limit starts nothing, since a service has refused.
create table millrace.limit_uses (
  id bigint generated always as identity primary key,
  limit_id int not null,
  key text not null default '',
  kind text not null,
  during tstzrange not null,
  used numeric not null,
  summed boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0.02);
create index limit_uses_by_key on millrace.limit_uses (limit_id, key, kind, during);
create index limit_uses_to_sum on millrace.limit_uses (id) where not summed;
create index limit_uses_by_end on millrace.limit_uses (upper(during));

-- Tokens left in a bucket; no row means full. key: '' for the whole limit, else '0' and the key.
create table millrace.buckets (
  limit_id int not null references millrace.limits on delete cascade,
  key text not null,
  tokens float8 not null,
  refilled_at timestamptz not null,
  primary key (limit_id, key)
) with (fillfactor = 50);
