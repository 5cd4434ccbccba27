-- Alerts: rules judged each minute, what they raise, and the messages that tell people

-- For how long nobody is told, of what; null stands for any.
create table millrace.silences (
  id bigint generated always as identity constraint silences_pkey primary key,
  pipeline text,
  stage text,
  kind text,
  until timestamptz not null,
  reason text not null,
  line bigint not null
);
create index silences_by_end on millrace.silences (until);

-- What is judged each minute. A rule without a pipeline counts for each that has none of the same
-- name. Write rules as you like; those of definitions are written by define().
create table millrace.alert_rules (
  id int generated always as identity constraint alert_rules_pkey primary key,
  name text not null constraint alert_rules_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  kind text not null
    constraint alert_rules_kind_known check (kind in (
      'run_sla', 'error_share', 'backlog', 'dead', 'spend', 'late', 'refused', 'engine')),
  pipeline text,
  -- * for each of them; null for the pipeline from end to end.
  stage text,
  -- Raised above this: a share from 0 to 1 for error_share, runs for backlog and dead, US dollars
  -- for spend, seconds for refused; null where a kind knows its own bound.
  above numeric,
  -- How far back it looks.
  span interval not null default '10 minutes',
  -- For how long it must be above before an alert is raised.
  hold interval not null default '0',
  -- For how long no longer, before it is resolved.
  recover interval not null default '5 minutes',
  -- How many ends error_share needs at least.
  least int not null default 1,
  -- The channels that hear of it; null for all.
  channels text[],
  -- The page that says what to do.
  playbook text,
  enabled boolean not null default true,
  source text not null default 'sql'
    constraint alert_rules_source_known check (source in ('default', 'definition', 'sql'))
);
create unique index alert_rules_key on millrace.alert_rules (pipeline, name) nulls not distinct;

-- Where a rule is above its bound, or was a moment ago. pipeline_id 0: the engine; stage_id 0: the
-- pipeline.
create table millrace.rule_states (
  rule_id int not null
    constraint rule_states_rule_fkey references millrace.alert_rules on delete cascade,
  pipeline_id int not null,
  stage_id int not null,
  over_since timestamptz not null,
  under_since timestamptz,
  value numeric not null,
  above numeric not null,
  detail text,
  constraint rule_states_pkey primary key (rule_id, pipeline_id, stage_id)
) with (fillfactor = 50);

-- What rules have raised. Open: resolved_at is null.
create table millrace.alerts (
  id bigint generated always as identity constraint alerts_pkey primary key,
  rule_id int not null,
  pipeline_id int not null,
  stage_id int not null,
  rule text not null,
  kind text not null,
  pipeline text,
  stage text,
  value numeric not null,
  above numeric not null,
  -- What else there is to say, such as the code of most failures.
  detail text,
  span interval not null,
  playbook text,
  -- Those of its rule, should that be gone when it is over.
  channels text[],
  since timestamptz not null,
  raised_at timestamptz not null,
  resolved_at timestamptz,
  -- When it was first written into a message.
  told_at timestamptz,
  -- Resolved, and all told.
  settled boolean not null default false
);
create unique index alerts_one_open on millrace.alerts (rule_id, pipeline_id, stage_id)
  where resolved_at is null;
create index alerts_unsettled on millrace.alerts (id) where not settled;
create index alerts_by_end on millrace.alerts (resolved_at);

-- Who is told of alerts. In Vault: millrace_channel_<name>_address, the URL of a webhook or e-mail
-- addresses parted by commas, and millrace_channel_<name>_secret, what a webhook is signed with
-- (whsec_…) or the key of the e-mail API.
create table millrace.alert_channels (
  id int generated always as identity constraint alert_channels_pkey primary key,
  name text not null constraint alert_channels_name_key unique
    constraint alert_channels_name_form check (name ~ '^[a-z][a-z0-9_]{0,40}$'),
  kind text not null
    constraint alert_channels_kind_known check (kind in ('webhook', 'slack', 'email')),
  sender text,
  -- Resend, or what answers as it does.
  api_url text not null default 'https://api.resend.com/emails',
  enabled boolean not null default true,
  constraint alert_channels_sender_given check (kind <> 'email' or sender is not null)
);

-- Messages that are or were to be sent.
create table millrace.alert_messages (
  id bigint generated always as identity constraint alert_messages_pkey primary key,
  webhook_id text not null default 'msg_' || replace(gen_random_uuid()::text, '-', ''),
  channel_id int not null
    constraint alert_messages_channel_fkey references millrace.alert_channels on delete cascade,
  state text not null default 'waiting'
    constraint alert_messages_state_known check (state in ('waiting', 'delivered', 'dead')),
  events jsonb not null,
  -- How many events it does not list.
  more int not null default 0,
  created_at timestamptz not null,
  first_tried_at timestamptz,
  tried_at timestamptz,
  -- Until it may be tried again: a minute at least, so that nobody hears twice.
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
