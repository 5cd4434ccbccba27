-- A row for each silence: until `until` no channel gets a message about these alerts. Null in
-- pipeline, stage or kind stands for any.
create table millrace.silences (
  id bigint generated always as identity primary key,
  pipeline text,
  stage text,
  kind text,
  until timestamptz not null,
  reason text not null,
  journal_entry bigint not null
);
create index silences_by_end on millrace.silences (until);

-- The rules that the sweep judges each minute. A rule without a pipeline applies to each pipeline
-- that has no rule of the same name. You may write rules here; define() writes those of
-- definitions.
create table millrace.alert_rules (
  id int generated always as identity primary key,
  name text not null constraint alert_rules_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  kind text not null constraint alert_rules_kind_known check (kind in (
      'run_sla', 'error_share', 'backlog', 'dead', 'spend', 'late', 'refused', 'unattended',
      'engine')),
  pipeline text,
  -- * for each stage of the pipeline; null for the pipeline from end to end.
  stage text,
  -- A share for error_share, runs for backlog and dead, US dollars for spend, seconds for refused
  -- and unattended.
  above numeric,
  span interval not null default '10 minutes',
  -- How long the value must be above the bound before an alert is raised. `recover`: how long it
  -- must not be above before the alert is resolved.
  hold interval not null default '0',
  recover interval not null default '5 minutes',
  -- How many tries, or runs where stage is null, must have ended before error_share is judged.
  least int not null default 1,
  channels text[],
  playbook text,
  enabled boolean not null default true,
  source text not null default 'sql'
);
create unique index alert_rules_key on millrace.alert_rules (pipeline, name) nulls not distinct;

-- A row for each stage or pipeline at which a rule is above its bound, or was a moment ago.
-- pipeline_id 0 is the engine.
create table millrace.rule_states (
  rule_id int not null references millrace.alert_rules on delete cascade,
  pipeline_id int not null,
  stage_id int not null,
  over_since timestamptz not null,
  below_since timestamptz,
  value numeric not null,
  above numeric not null,
  detail text,
  primary key (rule_id, pipeline_id, stage_id)
) with (fillfactor = 50);

-- The alerts that rules have raised, open until resolved_at.
create table millrace.alerts (
  id bigint generated always as identity primary key,
  rule_id int not null,
  pipeline_id int not null,
  stage_id int not null,
  rule text not null,
  kind text not null,
  pipeline text,
  stage text,
  value numeric not null,
  above numeric not null,
  detail text,
  span interval not null,
  playbook text,
  channels text[],
  since timestamptz not null,
  raised_at timestamptz not null,
  resolved_at timestamptz,
  notified_at timestamptz,
  settled boolean not null default false
);
create unique index alerts_one_open on millrace.alerts (rule_id, pipeline_id, stage_id)
  where resolved_at is null;
create index alerts_by_rule on millrace.alerts (rule_id, pipeline_id, stage_id, raised_at);
create index alerts_unsettled on millrace.alerts (id) where not settled;
create index alerts_by_end on millrace.alerts (resolved_at);

-- The channels that get messages about alerts. Vault has millrace_channel_<name>_address, which is
-- a URL or e-mail addresses separated by commas. It also has millrace_channel_<name>_secret, which
-- is whsec_… or the key of the e-mail API.
create table millrace.alert_channels (
  id int generated always as identity primary key,
  name text not null unique
    constraint alert_channels_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  kind text not null
    constraint alert_channels_kind_known check (kind in ('webhook', 'slack', 'email')),
  sender text,
  api_url text not null default 'https://api.resend.com/emails',
  enabled boolean not null default true,
  constraint alert_channels_sender_given check (kind <> 'email' or sender is not null)
);

-- A row for each message about alerts to a channel.
create table millrace.alert_messages (
  id bigint generated always as identity primary key,
  webhook_id text not null default 'msg_' || replace(gen_random_uuid()::text, '-', ''),
  channel_id int not null references millrace.alert_channels on delete cascade,
  state text not null default 'waiting',
  events jsonb not null,
  more int not null default 0,
  created_at timestamptz not null,
  first_tried_at timestamptz,
  tried_at timestamptz,
  -- How long after tried_at the next try is due. Each try sets a minute or more, so that no second
  -- call sends a message which the first is still sending.
  wait interval not null default '0',
  tries int not null default 0,
  ended_at timestamptz,
  status int,
  error text
) with (fillfactor = 70);
create index alert_messages_waiting on millrace.alert_messages (channel_id, id)
  where state = 'waiting';
create index alert_messages_dead on millrace.alert_messages (channel_id, id) where state = 'dead';
create index alert_messages_by_end on millrace.alert_messages (ended_at);
