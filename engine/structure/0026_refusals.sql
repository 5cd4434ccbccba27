-- Alerts of services that refuse, and from when a run's time counts.

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
