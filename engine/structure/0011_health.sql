-- The position of the check of invariants, in one row. faulty lists the runs with a breach in this
-- round or the last.
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
