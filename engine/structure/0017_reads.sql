-- What reads ask for, so that none of them walks the history: why a run failed stands on the run,
-- and runs that are over have an index that is written when they end.

alter table millrace.runs
  add column failed_stage_id int,
  add column error_code text;
comment on column millrace.runs.failed_stage_id is
  'The stage whose failure ended it; null unless it is failed.';
comment on column millrace.runs.error_code is
  'The code of the error that ended it, its first 200 characters; null unless it is failed.';

create index runs_ended on millrace.runs (pipeline_id, finished_at, id)
  where finished_at is not null;
create index runs_failed on millrace.runs
  (pipeline_id, failed_stage_id, error_code, finished_at, id)
  where status = 'failed';
create index runs_failed_at on millrace.runs (pipeline_id, finished_at, id)
  where status = 'failed';
create index runs_by_trace on millrace.runs (trace_id);

-- Of the runs that failed before: the last failure that no later attempt of its stage follows.
update millrace.runs r
set failed_stage_id = f.stage_id, error_code = left(coalesce(f.code, 'unknown'), 200)
from (
  select distinct on (o.id) o.id, a.stage_id, a.error ->> 'code' as code
  from millrace.runs o
  join millrace.attempts a on a.run_id = o.id and a.state = 'failed' and not a.superseded
  where o.status = 'failed'
    and not exists (
      select
      from millrace.attempts n
      where n.run_id = a.run_id
        and n.stage_id = a.stage_id
        and n.number > a.number)
  order by o.id, a.finished_at desc, a.id desc
) f
where f.id = r.id;

create table millrace.check_progress (
  id boolean not null default true
    constraint check_progress_pkey primary key
    constraint check_progress_one_row check (id),
  after bigint not null default 0,
  faulty bigint[] not null default '{}',
  faults int not null default 0,
  began_at timestamptz,
  ended_at timestamptz
) with (fillfactor = 50);
insert into millrace.check_progress default values;
comment on table millrace.check_progress is
  'How far the sweep has checked the invariants, run by run, round and round: up to the run after, '
  'in the round that began at began_at. ended_at: when it last came to the end. faulty: the first '
  'runs in which this round or the one before found something.';

create index log_by_time on millrace.log (at);
create index alerts_of_stage on millrace.alerts (stage_id, id) where resolved_at is null;

alter table millrace.pipelines
  add column label_column text,
  add column retention jsonb;
comment on column millrace.pipelines.label_column is
  'The column of the entity by which people know a row, such as a URL or a title; null where none '
  'is declared.';
comment on column millrace.pipelines.retention is
  'How many days its runs are kept, and the rows of which tables: {days, tables: [{name, column, '
  'days}]}; null for the setting retention_days and no tables.';

create table millrace.prune_progress (
  pipeline_id int not null
    constraint prune_progress_pipeline_fkey references millrace.pipelines on delete cascade,
  table_name text not null default '',
  seen_at timestamptz not null default '-infinity',
  seen_id bigint not null default 0,
  seen_row tid not null default '(0,0)',
  removed bigint not null default 0,
  began_at timestamptz not null,
  ended_at timestamptz,
  constraint prune_progress_pkey primary key (pipeline_id, table_name)
) with (fillfactor = 50);
comment on table millrace.prune_progress is
  'How far the present round of pruning is, or what the last one came to: one row for the runs of '
  'a pipeline (table_name is empty), and one for each table that it declares.';

-- What is deleted in bulk is soon given back, so that the table comes to a size and stays there.
alter table millrace.runs set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
