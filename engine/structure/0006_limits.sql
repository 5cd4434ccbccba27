create table millrace.limiters (
  stage_id int
    constraint limiters_pkey primary key
    constraint limiters_stage_fkey references millrace.stages on delete cascade,
  tokens float8 not null default 'infinity',
  refilled_at timestamptz not null default millrace.now(),
  last_turn bigint not null default 0,
  checked_to bigint not null default 0,
  arrivals_to text not null default ''
) with (fillfactor = 50);
comment on table millrace.limiters is
  'One row a stage with limits. Its claims change it one at a time.';
comment on column millrace.limiters.tokens is
  'What the token bucket held at refilled_at; never more than the burst.';
comment on column millrace.limiters.checked_to is
  'The attempt of in_flight that was looked at last; the next claim goes on behind it.';
comment on column millrace.limiters.arrivals_to is
  'The group whose arrivals were read last; the next claim goes on behind it.';

create table millrace.in_flight (
  attempt_id bigint not null,
  token uuid not null,
  stage_id int not null,
  key text not null,
  worker_id uuid,
  constraint in_flight_pkey primary key (attempt_id, token)
);
create index in_flight_by_key on millrace.in_flight (stage_id, key);
create index in_flight_by_attempt on millrace.in_flight (stage_id, attempt_id);
create index in_flight_by_worker on millrace.in_flight (worker_id);
comment on table millrace.in_flight is
  'Attempts that count against max_in_flight or concurrency. A row is never changed: once its '
  'attempt is no longer started or waiting under this token, anybody may delete it.';
comment on column millrace.in_flight.worker_id is
  'Whose claim took it; null where that was over already when the limit was defined.';

create table millrace.concurrency_groups (
  stage_id int not null
    constraint concurrency_groups_stage_fkey references millrace.stages on delete cascade,
  concurrency_group text not null,
  priority smallint not null,
  turn bigint,
  due_at timestamptz,
  constraint concurrency_groups_pkey primary key (stage_id, concurrency_group),
  constraint concurrency_groups_turn_or_due check ((turn is null) <> (due_at is null))
) with (fillfactor = 50);
create index groups_in_turn on millrace.concurrency_groups (stage_id, priority desc, turn)
  where turn is not null;
create index groups_asleep on millrace.concurrency_groups (stage_id, due_at)
  where due_at is not null;
comment on table millrace.concurrency_groups is
  'The groups of a stage that have something queued, written by its claims alone. The name is the '
  'class of priority, one digit, then the key. turn: its place among those that wait for a turn; '
  'due_at: asleep until then, or parked (infinity) while its key is at its limit.';

create table millrace.arrivals (
  id bigint generated always as identity,
  stage_id int not null,
  concurrency_group text not null,
  due_at timestamptz not null,
  constraint arrivals_pkey primary key (stage_id, concurrency_group, id)
);
comment on table millrace.arrivals is
  'News for the groups, insert-only: a group in which something was queued, or (* before the key) '
  'a key of which a slot was freed. The next claim reads and deletes it.';
create index attempts_by_group on millrace.attempts (stage_id, concurrency_group, queue_at, id)
  where concurrency_group is not null and queue_at is not null;
create index attempts_isolated on millrace.attempts (stage_id, queue_at, id)
  where isolated and queue_at is not null;
