-- What people do about alerts: silence them for a time, acknowledge them, try a channel, and send
-- again what could not be delivered.

create or replace function millrace.silence(
  p_for interval, p_reason text, p_pipeline text default null, p_stage text default null,
  p_rule text default null
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_id bigint;
begin
  if p_for is null or p_for not between interval '1 minute' and interval '30 days' then
    raise exception 'p_for is %, but must be from 1 minute to 30 days',
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
      using errcode = 'MR003', hint = 'Look it up: select name from millrace.pipelines.';
  end if;
  if p_rule is not null and not exists (
      select from millrace.alert_rules r where r.name = p_rule) then
    raise exception 'there is no rule %', p_rule
      using errcode = 'MR003', hint = 'Look it up: select name from millrace.alert_rules.';
  end if;
  insert into millrace.silences (rule, pipeline, stage, reason, silenced_by, began_at, ends_at)
  values (p_rule, p_pipeline, p_stage, millrace.plain_text(p_reason, 500), session_user, v_now,
    v_now + p_for)
  returning id into v_id;
  return v_id;
end
$$;
comment on function millrace.silence(interval, text, text, text, text) is
  'Tells nobody of the alerts of a pipeline, a stage, a rule or all for so long, and keeps why. '
  'What is still open then is told. Returns the number of the silence.';

create or replace function millrace.unsilence(p_silence bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.silences s
  set ends_at = millrace.now()
  where s.id = p_silence
    and s.ends_at > millrace.now();
  if not found then
    raise exception 'silence % is over, or there was none', coalesce(p_silence::text, 'null')
      using errcode = 'MR003',
        hint = 'Look it up: select * from millrace.silences where ends_at > now().';
  end if;
end
$$;
comment on function millrace.unsilence(bigint) is
  'Ends a silence; what is still open is told within a minute.';

create or replace function millrace.acknowledge(p_alert bigint, p_by text default session_user)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.rule_alerts a
  set acknowledged_at = coalesce(a.acknowledged_at, millrace.now()),
    acknowledged_by = coalesce(a.acknowledged_by, millrace.plain_text(p_by, 200))
  where a.id = p_alert
    and a.resolved_at is null;
  if not found then
    raise exception 'alert % is over, or there was none', coalesce(p_alert::text, 'null')
      using errcode = 'MR003',
        hint = 'Look it up: select * from millrace.rule_alerts where resolved_at is null.';
  end if;
end
$$;
comment on function millrace.acknowledge(bigint, text) is
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
        where c.enabled), 'no channel: nobody is told; see docs/alerts.md'))
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
      select format('rule %s names channel %s, which there is not', r.name, n)
      from millrace.alert_rules r
      cross join unnest(r.channels) n
      where not exists (select from millrace.alert_channels c where c.name = n)
      union all
      select format('rule %s looks at %s of %s, which there is not any more', r.name,
        coalesce('stage ' || r.stage, 'all'), r.pipeline)
      from millrace.alert_rules r
      where r.enabled
        and r.pipeline is not null
        and not exists (select from millrace.rule_targets(r))
    ) f;
end
$$;

-- Removes alerts that were resolved before this time, with silences and messages that ended before
-- it: at most 10,000 of each, and says how many alerts.
create or replace function millrace.prune_rule_alerts(p_before timestamptz) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pruned int;
begin
  delete from millrace.silences s where s.ends_at < p_before;
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
