-- What a row costs its worker, how many rows a worker holds, and what ran alone and was lost.

alter table millrace.stages
  add column concurrency int
    constraint stages_concurrency_bounds check (concurrency between 1 and 5000);
comment on column millrace.stages.concurrency is
  'How many of its rows may be in work at once, as its definition says; the engine chooses '
  'batch_size and max_workers for it. Null where the definition gives these two itself.';

create table millrace.row_costs (
  stage_id int
    constraint row_costs_pkey primary key
    constraint row_costs_stage_fkey references millrace.stages on delete cascade,
  cpu_ms real not null
    constraint row_costs_cpu_bounds check (cpu_ms between 0.1 and 2000),
  memory_bytes bigint,
  lives_cut int not null default 0,
  learned_at timestamptz not null
);
comment on table millrace.row_costs is
  'What one row of a stage takes of the isolate that works on it, as its workers have reckoned: '
  'the platform does not tell them. Workers choose by it how many rows they begin.';
comment on column millrace.row_costs.lives_cut is
  'How many isolates of the stage ended without a word while they held rows.';

alter table millrace.workers
  add column held int not null default 0,
  add column taken int not null default 0;
comment on column millrace.workers.held is
  'How many attempts it has in work. One that has left finishes what it holds.';
comment on column millrace.workers.taken is
  'How many attempts it has claimed in all.';

drop index millrace.workers_live;
create index workers_live on millrace.workers (stage_id) where left_at is null or held > 0;

alter table millrace.attempts add column lost_alone boolean not null default false;
comment on column millrace.attempts.lost_alone is
  'Whether an isolate ended while it ran this row alone: the next one runs it first of all.';

alter type millrace.call add attribute row_cpu_ms real;
