-- Channels of alerts: test messages, and messages that could not be delivered

-- Writes a test message to a channel of alerts, and wakes the function that sends it. Raises MR003
-- where no enabled channel has the name.
create function millrace.act_on_channel(p_request jsonb) returns jsonb
as $$
  v_id bigint;

insert into millrace.alert_messages (channel_id, events, created_at)
select c.id, jsonb_build_array(jsonb_build_object(
  'event', 'test', 'message', 'This is a test of channel ' || c.name || '.')), v_now
from millrace.alert_channels c
where c.name = p_request ->> 'channel' and c.enabled
returning id into v_id;
if v_id is null then
  raise exception 'MR003: there is no channel % that is enabled', p_request ->> 'channel'
    using hint = 'Those there are: select * from millrace.alert_channels.';
end if;
perform millrace.post('millrace/alerts', '{}');
return jsonb_build_object('outcome', jsonb_build_object(
  'channel', p_request -> 'channel', 'message', v_id));
$$;

-- Returns two findings. The first names messages that could not be delivered, channels with a
-- message that waits for over five minutes, and rules that name an unknown channel. The second is
-- always ok, and says whether messages can link to the operator's page.
create view millrace.alert_findings (what, ok, detail) as
select 'alerts reach somebody', count(*) = 0,
  coalesce(string_agg(f.detail, '; ' order by f.detail), (
    select string_agg(c.name, ', ' order by c.name)
    from millrace.alert_channels c
    where c.enabled), 'no channel: nobody is told; see docs/alerting.md')
from (
  select format('messages that channel %s could not deliver: %s, the last because: %s; correct it, '
    'then update millrace.alert_messages set state = ''waiting'', first_tried_at = null, '
    'ended_at = null where state = ''dead''', c.name, count(*),
    (array_agg(m.error order by m.id desc))[1]) as detail
  from millrace.alert_messages m
  join millrace.alert_channels c on c.id = m.channel_id
  where m.state = 'dead'
  group by c.name
  union all
  select format('channel %s has a message that waits since %s: %s', c.name,
    date_trunc('second', m.created_at),
    coalesce(m.error, millrace.answer_remedy('millrace', 500)))
  from millrace.alert_channels c
  cross join lateral (
    select o.created_at, o.error
    from millrace.alert_messages o
    where o.channel_id = c.id and o.state = 'waiting'
    order by o.id
    limit 1) m
  where c.enabled
    and m.created_at <= v_now - interval '5 minutes'
  union all
  select format('rule %s names channel %s, which there is not: correct it in '
    'millrace.alert_rules', r.name, u)
  from millrace.alert_rules r
  cross join unnest(r.channels) u
  where not exists (select from millrace.alert_channels c where c.name = u)) f
union all
select 'messages link to the operator''s page', true, coalesce(
  (select nullif(s.value, '') from millrace.settings s where s.name = 'page_url'),
  'page_url is empty, so they name commands alone: npx millrace connect --page=URL writes it');
