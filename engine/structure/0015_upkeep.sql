-- How far the sweep is with what it goes round and round at.

-- How far the sweep has checked the invariants, run by run, round and round: up to the run after.
-- ended_at: when it last came to the end. faulty: the first runs in which this round or the one
-- before found something.
create table millrace.check_progress (
  id boolean not null default true
    constraint check_progress_pkey primary key
    constraint check_progress_one_row check (id),
  after bigint not null default 0,
  faulty bigint[] not null default '{}',
  ended_at timestamptz
) with (fillfactor = 50);

-- How far the present round of pruning is with the runs of each pipeline, or what the last one came
-- to.
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
