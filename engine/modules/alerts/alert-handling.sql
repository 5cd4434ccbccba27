-- What people do about alerts: try a channel, and send again what could not be delivered.

-- Finds the channel of this name, or raises MR003.
create function millrace.channel_named(p_channel text) returns millrace.alert_channels
stable
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

-- Writes a test of a channel, and wakes the function that sends it; returns the message's number.
create function millrace.write_test(p_channel text) returns bigint
as $$
declare
  v_channel millrace.alert_channels := millrace.channel_named(p_channel);
  v_id bigint;
begin
  if not v_channel.enabled then
    raise exception 'channel % is switched off', p_channel
      using errcode = 'MR004', hint = format(
        'update millrace.alert_channels set enabled = true where name = %L.', p_channel);
  end if;
  insert into millrace.alert_messages (channel_id, events, created_at)
  values (v_channel.id, jsonb_build_array(jsonb_build_object(
    'event', 'test', 'message', 'This is a test of channel ' || p_channel || '.')), millrace.now())
  returning id into v_id;
  perform millrace.wake_alerts_send();
  return v_id;
end
$$;

-- Sends again what a channel could not deliver, from a minute after its last try on, and returns
-- how many messages that are.
create function millrace.resend(p_channel text) returns int
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

-- Looks at what people set up to be told, and at what could not be told.
create function millrace.alert_findings() returns setof millrace.finding
stable
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
        coalesce(m.error, 'look at the logs of function millrace'))
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
      select format('rule %s names %s, which there is not: correct it in millrace.alert_rules',
        r.name, string_agg(n.name, ', ' order by n.name))
      from millrace.alert_rules r
      cross join lateral (
        select 'channel ' || u
        from unnest(r.channels) u
        where not exists (select from millrace.alert_channels c where c.name = u)
        union all
        select concat_ws(' of ', 'stage ' || r.stage, 'pipeline ' || r.pipeline)
        where r.enabled
          and r.pipeline is not null
          and not exists (select from millrace.rule_targets(array[r], millrace.now()))) n(name)
      group by r.id, r.name
    ) f;
end
$$;
