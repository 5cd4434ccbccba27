-- A row for each pipeline: the position of its pruning, or the result of its last round.
create table millrace.prune_progress (
  pipeline_id int primary key references millrace.pipelines on delete cascade,
  seen_at timestamptz not null default '-infinity',
  seen_id bigint not null default 0,
  removed bigint not null default 0,
  -- The outputs of all runs that ended before this position are deleted. The position outlasts a
  -- round.
  outputs_at timestamptz not null default '-infinity',
  outputs_id bigint not null default 0,
  began_at timestamptz not null,
  ended_at timestamptz
) with (fillfactor = 50);
