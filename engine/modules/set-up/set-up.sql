-- The settings that a database must have, with their defaults. This is a view, since a squashed
-- migration has every function and view, but no row of a table.
create view millrace.default_settings as
select *
from (values
  -- Seconds that a worker may run, which is also the longest timeout of a stage.
  ('worker_seconds', '60'),
  -- The most bytes of rows and results in the batch of a claim. A row with more fails.
  ('batch_bytes', '12582912'),
  -- Days after which prune() deletes finished runs.
  ('retention_days', '90'),
  -- Gigabytes of history above which doctor() warns.
  ('history_gb', '50'),
  -- When the last sweep ended. The sweep writes it, and doctor() reads it.
  ('last_sweep_at', '-infinity'),
  -- How long an upgrade tries to get its locks before it gives up.
  ('upgrade_patience', '15 seconds'),
  -- The last minute in which evaluate_rules() has judged the rules.
  ('rules_judged_at', ''),
  -- How many hours the sweep keeps figures by the minute, and how many days figures by the hour.
  ('minutes_hours', '48'),
  ('hours_days', '400'),
  -- true: an operator who acts with a user's token needs a second factor (aal2).
  ('operators_need_aal2', 'false'),
  -- Days after which the sweep deletes journal entries.
  ('journal_days', '400'),
  -- The address of the operator's page, to which messages about alerts link.
  ('page_url', ''),
  -- The folder of the playbooks to which messages link. Empty: those of this release.
  ('playbooks_url', '')) s(name, value);

-- The settings, rows, policies and cron jobs that are missing and that set_up() would write. Alert
-- rules are not among them, since a person may have deleted some.
create view millrace.missing_set_up as
select 'setting ' || d.name as what
from millrace.default_settings d
where not exists (select from millrace.settings s where s.name = d.name)
union all
select 'release ' || e.release
from millrace.engine() e
where not exists (select from millrace.releases r where r.level = e.level)
union all
select 'the progress of the invariants'' check'
where not exists (select from millrace.check_progress)
union all
select 'policy millrace_progress'
where to_regclass('realtime.messages') is not null
  and not exists (select from pg_policy p where p.polname = 'millrace_progress')
union all
select 'cron job ' || j.name
from millrace.schedules j
where not exists (select from cron.job c where c.jobname = j.name);

-- Writes missing settings, the release, default alert rules, cron jobs and the policy of Realtime.
-- Returns what was missing. An install and each upgrade end with it; call it after a migration
-- squash.
create function millrace.set_up() returns text[]
as $$
  v_missing text[] := array(select m.what from millrace.missing_set_up m);

insert into millrace.settings (name, value)
select d.name, d.value
from millrace.default_settings d
on conflict (name) do nothing;
insert into millrace.releases (level, release)
select e.level, e.release from millrace.engine() e on conflict (level) do nothing;
insert into millrace.check_progress default values on conflict (id) do nothing;
-- Inserts the default rules only if none exists: an operator may have deleted some on purpose.
insert into millrace.alert_rules (name, kind, stage, above, span, hold, recover, least, source)
select r.name, r.kind, r.stage, r.above, r.span::interval, r.hold::interval,
  case when r.name in ('engine', 'unattended') then interval '0' else '5 minutes' end, r.least,
  'default'
from (values
  ('sla', 'run_sla', null, null, '10 minutes', '15 minutes', 1),
  ('errors', 'error_share', '*', 0.1, '10 minutes', '0', 20),
  ('backlog', 'backlog', '*', 1000, '10 minutes', '15 minutes', 1),
  ('dead', 'dead', null, 10, '1 hour', '0', 1),
  ('late', 'late', '*', null, '10 minutes', '0', 1),
  ('engine', 'engine', null, null, '10 minutes', '5 minutes', 1),
  ('refused', 'refused', '*', 600, '10 minutes', '0', 1),
  ('unattended', 'unattended', '*', 45, '10 minutes', '0', 1)
) r(name, kind, stage, above, span, hold, least)
where not exists (select from millrace.alert_rules o where o.source = 'default');
if found then
  v_missing := v_missing || 'the alert rules'::text;
end if;
-- A job that exists keeps its schedule, which an operator may have chosen.
perform cron.schedule(j.name, coalesce(c.schedule, j.schedule), j.command)
from millrace.schedules j
left join cron.job c on c.jobname = j.name
where c.command is distinct from j.command;
if 'policy millrace_progress' = any (v_missing) then
  -- Clients may join the topics that begin with their token's user. Realtime checks the policy at
  -- each join and for each new token.
  create policy millrace_progress on realtime.messages for select to anon, authenticated
  using (extension = 'broadcast' and (select starts_with(realtime.topic(), concat('millrace:',
    nullif((select current_setting('request.jwt.claims', true)), '')::json ->> 'sub', ':'))));
end if;
return v_missing;
$$;
