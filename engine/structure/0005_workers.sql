-- Who works: workers with what they hold, and how they are woken.

-- One Edge Function invocation that drains a stage. Live until left_at, or until its heartbeat is
-- 15 seconds old.
create table millrace.workers (
  id uuid constraint workers_pkey primary key,
  stage_id int not null,
  host uuid not null,
  last_seq int not null default 0,
  last_token uuid,
  signed_on_at timestamptz not null,
  heartbeat_at timestamptz not null,
  left_at timestamptz,
  leave_tries smallint not null default 0,
  -- How many attempts it has in work. One that has left finishes what it holds.
  held int not null default 0,
  -- How many attempts it has claimed in all.
  taken int not null default 0
) with (fillfactor = 50);
create index workers_live on millrace.workers (stage_id) where left_at is null or held > 0;

-- The leases: one row a claim, however many attempts it took, so that renewing a lease is one small
-- update. Its worker deletes it once none of its attempts is started any more.
create table millrace.claims (
  token uuid constraint claims_pkey primary key,
  worker_id uuid not null,
  host uuid not null,
  expires_at timestamptz not null,
  isolated boolean not null,
  attempt_ids bigint[] not null
) with (fillfactor = 50);
create index claims_by_worker on millrace.claims (worker_id);
create index claims_by_host on millrace.claims (host);

-- What one row of a stage takes of the isolate that works on it, as its workers have reckoned: the
-- platform does not tell them. Workers choose by it how many rows they begin.
create table millrace.row_costs (
  stage_id int
    constraint row_costs_pkey primary key
    constraint row_costs_stage_fkey references millrace.stages on delete cascade,
  cpu_ms real not null
    constraint row_costs_cpu_bounds check (cpu_ms between 0.1 and 2000),
  memory_bytes bigint,
  -- How many isolates of the stage ended without a word while they held rows.
  lives_cut int not null default 0,
  learned_at timestamptz not null
);

-- Wake-ups that no worker has answered yet. Insert-only, so that nobody waits for another's
-- wake-up.
create table millrace.wake_ups (
  id bigint generated always as identity constraint wake_ups_pkey primary key,
  stage_id int not null,
  woken_at timestamptz not null
);
create index wake_ups_by_stage on millrace.wake_ups (stage_id, woken_at);

-- Which of pg_net's requests are the engine's own: doctor() judges no others. The table is unlogged
-- as pg_net's are, so that the crash which starts pg_net's ids over empties it too; and like them
-- it has the server's time, not the engine's.
create unlogged table millrace.posts (
  request_id bigint not null,
  posted_at timestamptz not null default transaction_timestamp(),
  function_name text
);
create index posts_by_time on millrace.posts (posted_at);
comment on table millrace.posts is 'The last requests that the engine gave to pg_net.';
comment on column millrace.posts.function_name is 'The Edge Function that was to answer.';
