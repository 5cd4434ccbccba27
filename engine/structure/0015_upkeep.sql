-- How far the sweep is with what it goes round and round at

-- How far the invariants have been checked: up to the run after. ended_at: the end of the last
-- round; faulty: the first runs found in this round or the last.
create table millrace.check_progress (
  id boolean not null default true
    constraint check_progress_pkey primary key
    constraint check_progress_one_row check (id),
  after bigint not null default 0,
  faulty bigint[] not null default '{}',
  ended_at timestamptz
) with (fillfactor = 50);

-- How far the present round of pruning is with each pipeline, or what the last one came to.
create table millrace.prune_progress (
  pipeline_id int
    constraint prune_progress_pkey primary key
    constraint prune_progress_pipeline_fkey references millrace.pipelines on delete cascade,
  seen_at timestamptz not null default '-infinity',
  seen_id bigint not null default 0,
  removed bigint not null default 0,
  began_at timestamptz not null,
  ended_at timestamptz
) with (fillfactor = 50);
