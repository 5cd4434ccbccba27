-- The outbox: messages about alerts, and their channels
--
-- Once a minute, after the rules, one message a channel is written: alerts raised, resolved and to
-- remind of. While a channel cannot be reached its oldest message is tried again, and all that
-- happens meanwhile goes into one more. So an outage costs two messages.
--
-- The sweep wakes the function millrace, which takes messages, sends them and reports. Taking one
-- puts it off by a minute at least: should the function die, it is sent again, never twice within a
-- minute, and always under the same id.

-- Says how long a message waits after so many tries: a minute, then twice as long each time, up to
-- an hour.
create function millrace.delivery_pause(p_tries int) returns interval
language sql immutable
as $$
  select least(interval '1 minute' * 2 ^ least(greatest(p_tries, 1) - 1, 10), interval '1 hour')
$$;

-- Shows an alert as operators and messages have it; at: when its facts were looked at.
create function millrace.alert_json(p_alert millrace.alerts) returns jsonb
language sql immutable
as $$
  select to_jsonb(p_alert)
    - '{rule_id,pipeline_id,stage_id,span,told_at,reminded_at,settled}'::text[]
    || jsonb_build_object('span_seconds', extract(epoch from p_alert.span),
      'at', p_alert.raised_at)
$$;

-- Shows an alert as messages tell it. A reminder says how it stands now.
create function millrace.event_of(
  p_alert millrace.alerts, p_event text, p_now timestamptz
) returns jsonb
language sql stable
as $$
  select millrace.alert_json(p_alert) - 'id'
    || jsonb_build_object('event', p_event, 'alert', p_alert.id)
    || coalesce((
      select jsonb_build_object('value', t.value, 'above', t.above,
        'detail', millrace.alert_detail(r, t, p_now), 'at', p_now)
      from millrace.alert_rules r
      join millrace.rule_states t on t.rule_id = r.id
      where p_event = 'reminder'
        and r.id = p_alert.rule_id
        and t.pipeline_id = p_alert.pipeline_id
        and t.stage_id = p_alert.stage_id), '{}')
$$;

-- Adds so many events, of which the first are given, to the channel's message that nobody has tried
-- yet, or writes a new one. A message lists fifty, and counts the rest.
create function millrace.add_events(p_channel_id int, p_events jsonb, p_count bigint)
as $$
declare
  -- One that is being taken this moment is passed over.
  v_id bigint := (
    select m.id
    from millrace.alert_messages m
    where m.channel_id = p_channel_id
      and m.state = 'waiting'
      and m.tries = 0
      and m.events #>> '{0,event}' <> 'test'
    order by m.id
    limit 1
    for update skip locked);
begin
  if v_id is null then
    insert into millrace.alert_messages (channel_id, events, created_at)
    values (p_channel_id, '[]', millrace.now())
    returning id into v_id;
  end if;
  update millrace.alert_messages m
  set events = e.listed,
    more = m.more + jsonb_array_length(m.events) + p_count - jsonb_array_length(e.listed)
  from (
    select jsonb_path_query_array(o.events || p_events, '$[0 to 49]') as listed
    from millrace.alert_messages o
    where o.id = v_id) e
  where m.id = v_id;
end
$$;

-- Writes down what is to be told now, and notes on each alert that it was.
create function millrace.write_messages(p_now timestamptz)
as $$
declare
  v_channel record;
begin
  -- What a clock that was set back has told in the future is told in the past.
  update millrace.alerts a
  set told_at = least(a.told_at, p_now), reminded_at = least(a.reminded_at, p_now)
  where not a.settled
    and greatest(a.told_at, a.reminded_at) > p_now;
  for v_channel in
    select t.channel_id as id, count(*) as n, array_agg(t.alert_id) as alert_ids,
      jsonb_agg(millrace.event_of(a, t.event, p_now) order by t.place)
        filter (where t.place <= 50) as events
    from (
      select e.*, row_number() over (partition by e.channel_id
        order by array_position('{raised,resolved,reminder}', e.event), e.alert_id) as place
      from (
          select a.id, e.event, c.id
          from millrace.alerts a
          left join millrace.alert_rules r on r.id = a.rule_id
          cross join lateral (
            select case
              when a.resolved_at is not null
                then case when a.told_at is not null then 'resolved' end
              when a.told_at is null then 'raised'
              when a.acknowledged_at is null
                and coalesce(a.reminded_at, a.told_at) + r.remind <= p_now then 'reminder'
            end
          ) e(event)
          join millrace.alert_channels c on c.enabled
            and (r.channels is null or c.name = any (r.channels))
          where not a.settled
            and e.event is not null
            and not millrace.is_silenced(a.pipeline, a.stage, a.kind)
        ) e(alert_id, event, channel_id)
    ) t
    left join millrace.alerts a on a.id = t.alert_id and t.place <= 50
    group by t.channel_id
    order by t.channel_id
  loop
    perform millrace.add_events(v_channel.id, v_channel.events, v_channel.n);
    -- Told by all its channels at once: it was told when the loop began.
    update millrace.alerts a
    set reminded_at = case when a.told_at < p_now then p_now end,
      told_at = coalesce(a.told_at, p_now)
    where a.id = any (v_channel.alert_ids)
      and a.resolved_at is null;
  end loop;
  -- One that came and went while nobody was to hear of it is settled without a word.
  update millrace.alerts a
  set settled = true
  where not a.settled
    and a.resolved_at is not null;
end
$$;

-- Wakes the function that sends, if a message is due. Those that were tried in the future, before
-- the clock was set back, wait from now on.
create function millrace.send_messages()
as $$
declare
  v_now timestamptz := millrace.now();
begin
  update millrace.alert_messages m
  set tried_at = v_now, first_tried_at = least(m.first_tried_at, v_now)
  where m.id in (
    select o.id
    from millrace.alert_messages o
    where o.state = 'waiting'
      and o.tried_at > v_now
    for update skip locked);
  perform millrace.wake_alerts_send();
end
$$;

-- Finds the message of each channel whose turn it is: its oldest, once it may be tried.
create function millrace.due_messages() returns bigint[]
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return array(
    select m.id
    from millrace.alert_channels c
    cross join lateral (
      select o.id, o.tried_at, o.wait
      from millrace.alert_messages o
      where o.channel_id = c.id
        and o.state = 'waiting'
      order by o.id
      limit 1
    ) m
    where c.enabled
      and (m.tried_at is null or m.tried_at + m.wait <= v_now)
    order by m.id);
end
$$;

-- Wakes the function that sends, if a message is due; else it costs an index probe a channel.
create function millrace.wake_alerts_send() returns boolean
as $$
begin
  if cardinality(millrace.due_messages()) > 0 then
    return millrace.post('millrace/alerts', '{}');
  end if;
  return false;
end
$$;

-- Ends a message as dead, after a day at the latest, and reports it as a warning: an error would be
-- a finding of the engine's, and so an alert about alerts.
create function millrace.bury_message(
  p_message millrace.alert_messages, p_status int, p_error text
)
as $$
declare
  v_channel text := (
    select c.name from millrace.alert_channels c where c.id = p_message.channel_id);
begin
  update millrace.alert_messages m
  set state = 'dead', ended_at = millrace.now(), status = p_status, error = p_error
  where m.id = p_message.id;
  perform millrace.report('warning', 'alert_not_delivered', format(
    'Message %s could not be delivered by channel %s: %s', p_message.id, v_channel, p_error),
    jsonb_build_object('channel', v_channel, 'message', p_message.id, 'tries', p_message.tries));
end
$$;

-- Hands messages about alerts to the function that sends them.
create function public.millrace_take_messages(p_limit int) returns jsonb
as $$
declare
  v_now timestamptz := millrace.now();
  v_message millrace.alert_messages;
  v_taken bigint[] := '{}';
begin
  if p_limit is null or p_limit not between 1 and 100 then
    raise exception 'p_limit is %, but must be from 1 to 100', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Send how many messages to take.';
  end if;
  for v_message in
    select m.*
    from millrace.alert_messages m
    where m.id = any (millrace.due_messages())
    order by m.id
    limit p_limit
    for update skip locked
  loop
    -- Under the lock: somebody may just have taken it.
    continue when v_message.state <> 'waiting'
      or v_message.tried_at + v_message.wait > v_now;
    if v_message.first_tried_at + interval '1 day' <= v_now then
      perform millrace.bury_message(v_message, v_message.status,
        coalesce(v_message.error, 'nobody said what became of it'));
      continue;
    end if;
    update millrace.alert_messages m
    set tries = m.tries + 1,
      tried_at = v_now,
      first_tried_at = coalesce(m.first_tried_at, v_now),
      wait = millrace.delivery_pause(m.tries + 1)
    where m.id = v_message.id;
    v_taken := v_taken || v_message.id;
  end loop;
  return jsonb_build_object('messages', (
    select coalesce(jsonb_agg(jsonb_build_object(
      'message', m.id,
      'try', m.tries,
      'webhook_id', m.webhook_id,
      'created_at', m.created_at,
      'channel', c.name,
      'kind', c.kind,
      'address', millrace.setting('channel_' || c.name || '_address'),
      'secret', millrace.setting('channel_' || c.name || '_secret'),
      'sender', c.sender,
      'api_url', c.api_url,
      'project', millrace.setting('project_url'),
      'playbooks_url', millrace.setting('playbooks_url'),
      'events', m.events,
      'more', m.more) order by m.id), '[]')
    from millrace.alert_messages m
    join millrace.alert_channels c on c.id = m.channel_id
    where m.id = any (v_taken)));
end
$$;

-- Notes which messages about alerts were delivered, and why others were not. more: others are due.
-- What was delivered stays so, whoever says otherwise; a failure counts for the last try alone.
create function public.millrace_note_deliveries(p_deliveries jsonb) returns jsonb
as $$
declare
  v_now timestamptz := millrace.now();
  v_said jsonb;
  v_message millrace.alert_messages;
  v_error text;
  v_wait interval;
  v_noted int := 0;
begin
  if jsonb_typeof(p_deliveries) is distinct from 'array' then
    raise exception 'p_deliveries is %, but must be a list',
      coalesce(jsonb_typeof(p_deliveries), 'null')
      using errcode = 'MR002', hint = 'Send [{"message": 1, "try": 1, "ok": true}].';
  end if;
  for v_said in
    select l.value
    from jsonb_array_elements(p_deliveries) l
    order by (l.value ->> 'message')::bigint
  loop
    select m.*
    into v_message
    from millrace.alert_messages m
    where m.id = (v_said ->> 'message')::bigint
    for update;
    v_error := case when (v_said ->> 'ok')::boolean is not true then
      millrace.plain_text(coalesce(v_said ->> 'error', 'no reason given'), 500) end;
    continue when not found
      or v_message.state = 'delivered'
      or v_error is not null and (
        v_message.state = 'dead' or v_message.tries <> (v_said ->> 'try')::int);
    v_noted := v_noted + 1;
    v_wait := greatest(millrace.delivery_pause(v_message.tries), make_interval(
      secs => least(coalesce((v_said ->> 'retry_after_ms')::float8, 0) / 1000, 21600)));
    if v_error is not null and (coalesce((v_said ->> 'permanent')::boolean, false)
        or v_message.first_tried_at + interval '1 day' <= v_now + v_wait) then
      perform millrace.bury_message(v_message, (v_said ->> 'status')::int, v_error);
      continue;
    end if;
    update millrace.alert_messages m
    set state = case when v_error is null then 'delivered' else m.state end,
      ended_at = case when v_error is null then v_now end,
      tried_at = case when v_error is null then m.tried_at else v_now end,
      wait = v_wait, status = (v_said ->> 'status')::int, error = v_error
    where m.id = v_message.id;
  end loop;
  return jsonb_build_object('noted', v_noted, 'more', cardinality(millrace.due_messages()) > 0);
end
$$;

-- Messages about alerts, the newest first: by which channel, how often they were tried, and what
-- came of it.
create view millrace.deliveries as
select m.id as message, c.name as channel, c.kind, m.state, m.tries, m.status, m.error,
  case when m.state = 'waiting' then coalesce(m.tried_at + m.wait, m.created_at) end as next_try_at,
  jsonb_array_length(m.events) + m.more as events,
  concat_ws(' ', m.events #>> '{0,event}', m.events #>> '{0,rule}', m.events #>> '{0,stage}',
    m.events #>> '{0,pipeline}') as first_event, m.created_at, m.ended_at
from millrace.alert_messages m
join millrace.alert_channels c on c.id = m.channel_id
order by m.id desc;

-- Tells whether somebody has silenced a rule's pipeline, stage or kind.
create function millrace.is_silenced(p_pipeline text, p_stage text, p_kind text)
returns boolean
stable
as $$
begin
  return exists (
    select
    from millrace.silences s
    where s.until > millrace.now()
      and (s.pipeline is null or s.pipeline = p_pipeline)
      and (s.stage is null or s.stage = p_stage)
      and (s.kind is null or s.kind = p_kind));
end
$$;
