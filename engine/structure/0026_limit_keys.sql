-- Shared limits with a rate for each key: what is left of it, and what was learned of the key.

create table millrace.limit_keys (
  limit_id int not null
    constraint limit_keys_limit_fkey references millrace.shared_limits on delete cascade,
  key text not null,
  tokens float8 not null default 'infinity',
  refilled_at timestamptz not null default millrace.now(),
  share float8 not null default 1,
  lowered_at timestamptz,
  lowered_since timestamptz,
  heed_from timestamptz,
  refused_until timestamptz,
  refused_by text,
  constraint limit_keys_pkey primary key (limit_id, key)
) with (fillfactor = 50);
comment on table millrace.limit_keys is
  'One row a key that has less than its whole rate, such as a host: its columns are those of '
  'millrace.shared_limits. Read it through millrace.learned_limits.';

alter table millrace.limit_refusals add column key text;
comment on column millrace.limit_refusals.key is
  'Which key refused, where the limit has a rate for each; null where it is the limit as a whole.';

alter table millrace.alert_rules
  drop constraint alert_rules_kind_known,
  add constraint alert_rules_kind_known check (kind in (
    'run_sla', 'p95', 'error_share', 'backlog', 'oldest_ready', 'dead', 'spend', 'late',
    'refused', 'engine'));
comment on column millrace.alert_rules.above is
  'Raised above this: seconds for p95, oldest_ready and refused, a share from 0 to 1 for '
  'error_share, runs for backlog and dead, US dollars for spend. run_sla, late and engine know '
  'their own bounds.';
insert into millrace.alert_rules (name, kind, stage, above, source) values
  ('refused', 'refused', '*', 600, 'default');

-- From when a run's time counts, where a former run of its row did not come to its end.

alter table millrace.runs add column since timestamptz;
comment on column millrace.runs.since is
  'Since when its row has been on its way, where that is before created_at: a former run failed, '
  'was cancelled, or left a stage out by a bypass. Kept for pipelines with bounds for their runs.';
create index bypassed_by_run on millrace.bypassed (run_id);
