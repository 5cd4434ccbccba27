-- How far the invariants have been checked. faulty lists runs found in this round or the last.
create table millrace.check_progress (
  id boolean not null default true primary key constraint check_progress_one_row check (id),
  after bigint not null default 0,
  faulty bigint[] not null default '{}',
  ended_at timestamptz
) with (fillfactor = 50);

-- The findings of doctor() that were not ok when the sweep last called it.
create table millrace.last_findings (
  what text primary key,
  detail text
);

-- One row a pipeline: how far its pruning is, or the result of its last round.
create table millrace.prune_progress (
  pipeline_id int primary key references millrace.pipelines on delete cascade,
  seen_at timestamptz not null default '-infinity',
  seen_id bigint not null default 0,
  removed bigint not null default 0,
  began_at timestamptz not null,
  ended_at timestamptz
) with (fillfactor = 50);
