-- What people do about alerts: silence them for a time, acknowledge them, try a channel, and send
-- again what could not be delivered.

create or replace function millrace.silence(
  p_for interval, p_reason text, p_pipeline text default null, p_stage text default null,
  p_kind text default null
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz := millrace.now() + p_for;
  v_line bigint := nextval('millrace.journal_id_seq');
  v_id bigint;
begin
  if p_for is null or p_for not between interval '1 minute' and interval '400 days' then
    raise exception 'p_for is %, but must be from 1 minute to 400 days',
      coalesce(p_for::text, 'null')
      using errcode = 'MR002', hint = 'Say for how long: interval ''2 hours''.';
  elsif coalesce(millrace.plain_text(p_reason, 500), '') = '' then
    raise exception 'p_reason is empty'
      using errcode = 'MR002', hint = 'Say why: whoever looks next will want to know.';
  elsif p_stage is not null then
    perform millrace.stage_named(p_pipeline, p_stage);
  elsif p_pipeline is not null and not exists (
      select from millrace.pipelines p where p.name = p_pipeline) then
    raise exception 'there is no pipeline %', p_pipeline
      using errcode = 'MR003', hint = millrace.known_pipelines();
  end if;
  if p_kind is not null and not exists (
      select from millrace.alert_rules r where r.kind = p_kind) then
    raise exception 'there is no rule of kind %', p_kind
      using errcode = 'MR003', hint = 'Look it up: select kind from millrace.alert_rules.';
  end if;
  insert into millrace.silences (pipeline, stage, kind, until, reason, line)
  values (p_pipeline, p_stage, p_kind, v_until, millrace.plain_text(p_reason, 500), v_line)
  returning id into v_id;
  perform millrace.note('silence', p_pipeline, p_stage, p_said => jsonb_build_object(
    'id', v_line, 'reason', p_reason,
    'outcome', jsonb_build_object('silence', v_id, 'until', v_until)));
  return v_id;
end
$$;
comment on function millrace.silence(interval, text, text, text, text) is
  'Tells nobody of the alerts of a pipeline, a stage, a kind or all for so long, and keeps why. '
  'What is still open then is told. Returns the number of the silence.';

create or replace function millrace.unsilence(p_silence bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_silence millrace.silences;
begin
  update millrace.silences s
  set until = millrace.now()
  where s.id = p_silence
    and s.until > millrace.now()
  returning s.* into v_silence;
  if not found then
    raise exception 'silence % is over, or there was none', coalesce(p_silence::text, 'null')
      using errcode = 'MR003',
        hint = 'Look it up: select * from millrace.silences where until > now().';
  end if;
  perform millrace.note('unsilence', v_silence.pipeline, v_silence.stage,
    p_said => jsonb_build_object('outcome', jsonb_build_object('silence', p_silence)));
end
$$;
comment on function millrace.unsilence(bigint) is
  'Ends a silence; what is still open is told within a minute.';

-- Both kinds of alerts, under numbers of their own, as the operators' functions list them.
create or replace view millrace.all_alerts as
select l.id, l.kind, null as rule, l.pipeline, l.stage, l.run_id, l.attempt_id, l.entity_id,
  l.message, null as playbook, l.raised_at, l.resolved_at, l.acknowledged_at, l.acknowledged_by
from millrace.alerts l
union all
select a.id, a.kind, a.rule, a.pipeline, a.stage, null, null, null, a.message, a.playbook,
  a.raised_at, a.resolved_at, a.acknowledged_at, a.acknowledged_by
from millrace.rule_alerts a;
comment on view millrace.all_alerts is
  'What somebody should look at: stages of runs that are late (sla), and what rules have raised. '
  'Open ones: where resolved_at is null.';

-- Notes on an open alert of either kind who looks after it.
create or replace function millrace.mark_acknowledged(p_alert bigint, p_by text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.alerts l
  set acknowledged_at = coalesce(l.acknowledged_at, millrace.now()),
    acknowledged_by = coalesce(l.acknowledged_by, p_by)
  where l.id = p_alert
    and l.resolved_at is null;
  update millrace.rule_alerts a
  set acknowledged_at = coalesce(a.acknowledged_at, millrace.now()),
    acknowledged_by = coalesce(a.acknowledged_by, p_by)
  where a.id = p_alert
    and a.resolved_at is null;
end
$$;

create or replace function millrace.acknowledge(p_alert bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alert record;
begin
  perform millrace.mark_acknowledged(
    p_alert, coalesce((millrace.caller()).subject, session_user));
  select l.* into v_alert from millrace.all_alerts l where l.id = p_alert;
  if v_alert.id is null or v_alert.resolved_at is not null then
    raise exception 'alert % is over, or there was none', coalesce(p_alert::text, 'null')
      using errcode = 'MR003',
        hint = 'Look it up: select * from millrace.all_alerts where resolved_at is null.';
  end if;
  perform millrace.note('acknowledge', v_alert.pipeline, v_alert.stage,
    array_remove(array[v_alert.run_id], null),
    jsonb_build_object('outcome', jsonb_build_object('alert', p_alert)));
end
$$;
comment on function millrace.acknowledge(bigint) is
  'Says that somebody sees to an open alert: nobody is reminded of it any more. Its end is told.';

-- Finds the channel of this name, or raises MR003.
create or replace function millrace.channel_named(p_channel text) returns millrace.alert_channels
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_channel millrace.alert_channels;
begin
  select c.* into v_channel from millrace.alert_channels c where c.name = p_channel;
  if not found then
    raise exception 'there is no channel %', coalesce(p_channel, 'null')
      using errcode = 'MR003', hint = 'Channels are: ' || coalesce((
        select string_agg(c.name, ', ' order by c.name) from millrace.alert_channels c), 'none')
        || '.';
  end if;
  return v_channel;
end
$$;

create or replace function millrace.test_channel(p_channel text) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_channel millrace.alert_channels := millrace.channel_named(p_channel);
  v_now timestamptz := millrace.now();
  v_id bigint;
begin
  if not v_channel.enabled then
    raise exception 'channel % is switched off', p_channel
      using errcode = 'MR004', hint = format(
        'update millrace.alert_channels set enabled = true where name = %L.', p_channel);
  end if;
  -- Calls of the same minute are one message.
  select m.id
  into v_id
  from millrace.alert_messages m
  where m.channel_id = v_channel.id
    and m.events #>> '{0,event}' = 'test'
    and m.created_at > v_now - interval '1 minute'
    and m.created_at <= v_now
  order by m.id desc
  limit 1;
  if not found then
    insert into millrace.alert_messages (channel_id, events, created_at)
    values (v_channel.id, jsonb_build_array(jsonb_build_object(
      'event', 'test', 'message', 'This is a test of channel ' || p_channel || '.')), v_now)
    returning id into v_id;
  end if;
  perform millrace.note('test_channel', null, p_said => jsonb_build_object(
    'outcome', jsonb_build_object('channel', p_channel, 'message', v_id)));
  perform millrace.wake_alerts_send();
  return v_id;
end
$$;
comment on function millrace.test_channel(text) is
  'Sends a test by a channel at once, and returns the number of the message: see '
  'millrace.deliveries for what came of it.';

create or replace function millrace.resend(p_channel text) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_channel millrace.alert_channels := millrace.channel_named(p_channel);
  v_count int;
begin
  update millrace.alert_messages m
  set state = 'waiting', ended_at = null, first_tried_at = null, wait = interval '1 minute'
  where m.channel_id = v_channel.id
    and m.state = 'dead';
  get diagnostics v_count = row_count;
  perform millrace.note('resend', null, p_said => jsonb_build_object(
    'outcome', jsonb_build_object('channel', p_channel, 'messages', v_count)));
  return v_count;
end
$$;
comment on function millrace.resend(text) is
  'Sends again what a channel could not deliver, from a minute after its last try on, and returns '
  'how many messages that are.';

-- Looks at what people set up to be told, and at what could not be told.
create or replace function millrace.alert_findings()
returns table (what text, ok boolean, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select 'alerts reach somebody', count(*) = 0,
      coalesce(string_agg(f.detail, '; ' order by f.detail), coalesce((
        select string_agg(c.name, ', ' order by c.name)
        from millrace.alert_channels c
        where c.enabled), 'no channel: nobody is told; see docs/alerting.md'))
    from (
      select format('channel %s could not deliver %s messages, the last because: %s; correct it, '
        'then select millrace.resend(%L)', c.name, count(*),
        (array_agg(m.error order by m.id desc))[1], c.name) as detail
      from millrace.alert_messages m
      join millrace.alert_channels c on c.id = m.channel_id
      where m.state = 'dead'
      group by c.name
      union all
      select format('channel %s has a message that waits since %s: %s', c.name,
        to_char(m.created_at, 'YYYY-MM-DD HH24:MI:SS'),
        coalesce(m.error, 'look at the logs of function alerts-send'))
      from millrace.alert_channels c
      cross join lateral (
        select o.created_at, o.error
        from millrace.alert_messages o
        where o.channel_id = c.id
          and o.state = 'waiting'
        order by o.id
        limit 1
      ) m
      where c.enabled
        and m.created_at <= millrace.now() - interval '5 minutes'
      union all
      select format('rule %s names channel %s, which there is not: insert that into '
        'millrace.alert_channels, or correct the rule in millrace.alert_rules', r.name, n)
      from millrace.alert_rules r
      cross join unnest(r.channels) n
      where not exists (select from millrace.alert_channels c where c.name = n)
      union all
      select format('rule %s looks at %s of %s, which there is not any more: correct or delete it '
        'in millrace.alert_rules', r.name,
        coalesce('stage ' || r.stage, 'all'), r.pipeline)
      from millrace.alert_rules r
      where r.enabled
        and r.pipeline is not null
        and not exists (select from millrace.rule_targets(array[r], millrace.now()))
    ) f;
end
$$;

-- Removes alerts of rules that were resolved before this time, and messages that ended before it:
-- at most 10,000 of each, and says how many alerts.
create or replace function millrace.prune_rule_alerts(p_before timestamptz) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pruned int;
begin
  delete from millrace.alert_messages m
  where m.id in (
    select o.id
    from millrace.alert_messages o
    where o.ended_at < p_before
    limit 10000
    for update skip locked);
  delete from millrace.rule_alerts a
  where a.id in (
    select o.id
    from millrace.rule_alerts o
    where o.resolved_at < p_before
      and o.settled
    limit 10000
    for update skip locked);
  get diagnostics v_pruned = row_count;
  return v_pruned;
end
$$;
