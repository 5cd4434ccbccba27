-- A row for each worker: an invocation of a function, or a part of a process, that drains a stage.
-- A worker is live until left_at, or until 15 seconds after its heartbeat.
create table millrace.workers (
  id uuid primary key,
  stage_id int not null,
  host uuid not null,
  last_seq int not null default 0,
  last_token uuid,
  heartbeat_at timestamptz not null,
  left_at timestamptz,
  leave_tries smallint not null default 0,
  -- How many attempts the worker has in work, also after it has left.
  in_work int not null default 0,
  taken int not null default 0,
  -- The index has this column, since an index over in_work would get an entry with each claim.
  working boolean not null generated always as (left_at is null or in_work > 0) stored
) with (fillfactor = 50);
create index workers_working on millrace.workers (stage_id) where working;

-- A row for each claim, with its lease. Renewing the lease is therefore one small update.
create table millrace.claims (
  token uuid primary key,
  worker_id uuid not null,
  stage_id int not null,
  host uuid not null,
  expires_at timestamptz not null,
  isolated boolean not null,
  attempt_ids bigint[] not null
) with (fillfactor = 50);
create index claims_by_worker on millrace.claims (worker_id);
create index claims_by_stage on millrace.claims (stage_id);
create index claims_by_host on millrace.claims (host);

-- A row for each wake-up that no worker has answered yet. Rows are never updated, so no transaction
-- waits for another's.
create table millrace.wake_ups (
  id bigint generated always as identity primary key,
  stage_id int not null,
  woken_at timestamptz not null
);
create index wake_ups_by_stage on millrace.wake_ups (stage_id, woken_at);

-- A row for each request that the engine gave to pg_net. Like pg_net's tables it is unlogged and
-- has the server's time: a crash starts pg_net's ids over.
create unlogged table millrace.posts (
  request_id bigint not null,
  posted_at timestamptz not null default transaction_timestamp(),
  function_name text,
  primary key (posted_at, request_id)
);
