-- The outbox: each minute writes one message a channel. Taking a message puts it off by a minute at
-- least, so that it is sent again should the function die; the next of its channel waits for it and
-- takes in what comes meanwhile.

-- Returns the folder of the playbooks: the setting playbooks_url, or the package of this release.
create function millrace.playbooks_url() returns text
stable
as $$
select coalesce(nullif(millrace.setting('playbooks_url'), ''), format(
  'https://app.unpkg.com/millrace@%s/files/docs/playbooks',
  (select e.release from millrace.engine() e)))
$$;

-- Shows an alert as operators and messages have it, with how its rule stands now.
-- at: when its facts were looked at.
-- cause: what alerts of one cause share by what its rule measured last: the error code of most
-- failures, or the limits at which a service refuses, whatever time it names. Null: the alert
-- stands for itself.
-- value_now, detail_now: of an open alert whose rule is above its bound.
-- below_since: since when the rule of an open alert is no longer above. ends_at: when the alert
-- ends if it stays so.
create function millrace.alert_json(p_alert millrace.alerts) returns jsonb
stable
as $$
select to_jsonb(p_alert)
    - '{rule_id,pipeline_id,stage_id,span,channels,notified_at,settled}'::text[]
  || jsonb_build_object('span_seconds', extract(epoch from p_alert.span),
    'at', p_alert.raised_at,
    'cause', case
      when p_alert.kind in ('error_share', 'dead') then d.detail
      when p_alert.kind = 'unattended' then substring(d.detail from ' (.*)')
      when p_alert.kind = 'refused'
        then regexp_replace(d.detail, ' until [-0-9]+ [0-9]+:[0-9]+:[0-9]+', '', 'g') end,
    'value_now', case when t.below_since is null then t.value end,
    'detail_now', case when t.below_since is null then t.detail end,
    'below_since', t.below_since, 'ends_at', t.below_since + r.recover)
from (select) one
left join millrace.rule_states t on p_alert.resolved_at is null
  and (t.rule_id, t.pipeline_id, t.stage_id)
    = (p_alert.rule_id, p_alert.pipeline_id, p_alert.stage_id)
left join millrace.alert_rules r on r.id = t.rule_id
cross join lateral (select coalesce(t.detail, p_alert.detail)) d(detail)
$$;

-- Tells whether somebody has silenced alerts like this one.
create function millrace.is_silenced(p_alert millrace.alerts, p_now timestamptz) returns boolean
stable
as $$
select exists (
  select from millrace.silences s
  where s.until > p_now
    and (s.pipeline is null or s.pipeline = p_alert.pipeline)
    and (s.stage is null or s.stage = p_alert.stage)
    and (s.kind is null or s.kind = p_alert.kind))
$$;

-- Writes down what is to be told now, into a message that nobody has tried yet where there is one.
-- A message lists fifty events, the engine's own and else the newest, and counts the rest. An alert
-- waits for up to five minutes after another of its cause was told, so that one broken service is
-- not a message a minute. An alert whose rule is no longer above its bound is not told, and is
-- settled if it ends so.
create function millrace.write_messages(p_now timestamptz)
as $$
with unsettled as materialized (
  select a.*, millrace.is_silenced(a, p_now) as silenced, millrace.alert_json(a) - 'id' as facts
  from millrace.alerts a
  where not a.settled
), event as materialized (
  select c.id as channel_id, a.id as alert_id,
    a.facts || jsonb_build_object('event', e.event, 'alert', a.id) as event,
    row_number() over (
      partition by c.id order by a.kind = 'engine' desc, e.event, a.id) as ordinal
  from unsettled a
  left join millrace.alert_rules r on r.id = a.rule_id
  join millrace.alert_channels c on c.enabled
    and coalesce(c.name = any (case when r.id is null then a.channels else r.channels end), true)
  cross join lateral (
    select case when a.resolved_at is null then 'raised' else 'resolved' end) e(event)
  where (a.notified_at is null) = (a.resolved_at is null)
    and not a.silenced
    and a.facts ->> 'below_since' is null
    and (a.resolved_at is not null or not exists (
      select from unsettled o
      where o.resolved_at is null
        and o.notified_at > p_now - interval '5 minutes'
        and o.channels is not distinct from a.channels
        and o.facts ->> 'cause' = a.facts ->> 'cause'))
), fresh as (
  select e.channel_id,
    (json_agg(e.event order by e.ordinal) filter (where e.ordinal <= 50))::jsonb as events,
    greatest(count(*) - 50, 0) as more
  from event e
  group by e.channel_id
), joined as (
  update millrace.alert_messages m
  set events = (
      select json_agg(k.event order by k.ordinal)::jsonb
      from (
        select e.event, e.ordinal
        from jsonb_array_elements(m.events || n.events) with ordinality e(event, ordinal)
        order by e.event -> 'kind' = '"engine"' desc nulls last, e.ordinal desc
        limit 50) k),
    more = m.more + n.more
      + greatest(jsonb_array_length(m.events) + jsonb_array_length(n.events) - 50, 0)
  from fresh n
  cross join lateral (
    select o.id
    from millrace.alert_messages o
    where o.channel_id = n.channel_id and o.state = 'waiting'
    order by o.id desc
    limit 1
    for update skip locked) l
  where m.id = l.id and m.tries = 0
  returning m.channel_id
), written as (
  insert into millrace.alert_messages (channel_id, events, more, created_at)
  select n.channel_id, n.events, n.more, p_now
  from fresh n
  where n.channel_id not in (select j.channel_id from joined j)
  order by n.channel_id
)
update millrace.alerts a
set notified_at = case when a.resolved_at is null then p_now else a.notified_at end,
  settled = a.resolved_at is not null
where not a.settled
  and (a.resolved_at is not null or a.id in (select e.alert_id from event e));
$$;

-- The oldest waiting message of each channel, where it is due.
create view millrace.due_messages as
select m.id
from millrace.alert_channels c
cross join lateral (
  select o.id, o.tried_at + o.wait as next_at
  from millrace.alert_messages o
  where o.channel_id = c.id and o.state = 'waiting'
  order by o.id
  limit 1) m
where c.enabled
  and coalesce(m.next_at <= (select millrace.now()), true);

-- Hands messages about alerts to the function that sends them. A message that was first tried a day
-- ago is dead, or it would block all others of its channel.
create function public.millrace_take_messages() returns jsonb
as $$
declare
  v_messages jsonb;

with due as (
  select m.id, m.first_tried_at + interval '1 day' <= v_now is true as is_old
  from millrace.alert_messages m
  where m.id = any (array(select d.id from millrace.due_messages d))
    -- Once more, under the lock: somebody may just have taken it.
    and m.state = 'waiting'
    and coalesce(m.tried_at + m.wait <= v_now, true)
  order by m.id
  for update skip locked
), taken as (
  update millrace.alert_messages m
  set tries = m.tries + 1, tried_at = v_now, first_tried_at = coalesce(m.first_tried_at, v_now),
    -- A minute, then twice as long each time, up to an hour.
    wait = least(interval '1 minute' * 2 ^ least(m.tries, 10), interval '1 hour'),
    state = case when d.is_old then 'dead' else 'waiting' end,
    ended_at = case when d.is_old then v_now end,
    error = case when d.is_old then coalesce(m.error, 'nobody said what became of it')
      else m.error end
  from due d
  where m.id = d.id
    and m.id = any (array(select o.id from due o))
  returning m.*
)
select json_agg(k order by k.message)::jsonb
into v_messages
from (
  select m.id as message, m.tries as try, m.webhook_id, m.created_at, c.name as channel, c.kind,
    millrace.setting('channel_' || c.name || '_address') as address,
    millrace.setting('channel_' || c.name || '_secret') as secret, c.sender, c.api_url,
    millrace.setting('project_url') as project,
    nullif(millrace.setting('page_url'), '') as page_url, millrace.playbooks_url(), (
      -- With how their alerts stand now.
      select json_agg(e.event || coalesce(millrace.alert_json(a) - 'id', '{}') order by e.ordinal)
      from jsonb_array_elements(m.events) with ordinality e(event, ordinal)
      left join millrace.alerts a on a.id = (e.event -> 'alert')::bigint) as events, m.more
  from taken m
  join millrace.alert_channels c on c.id = m.channel_id
  where m.state = 'waiting') k;
return jsonb_build_object('messages', coalesce(v_messages, '[]'));
$$;

-- Notes which messages about alerts were delivered, and why others were not. A delivered message
-- stays delivered. A failure counts for the last try alone.
create function public.millrace_note_deliveries(p_deliveries jsonb) returns jsonb
as $$
declare
  v_noted int;

perform millrace.require_list('p_deliveries', jsonb_typeof(p_deliveries),
  'Send [{"message": 1, "try": 1, "ok": true}].');
with given as materialized (
  select *
  from jsonb_to_recordset(p_deliveries) as d(
    message bigint, try int, ok boolean, status int, error text, permanent boolean,
    retry_after_ms float8)
), said as (
  select o.id, d.*, case when d.ok then 'delivered' when d.permanent then 'dead'
    else 'waiting' end as state
  from given d
  join millrace.alert_messages o on o.id = d.message
  -- by key
  where o.id = any (array(select g.message from given g))
    and o.state <> 'delivered'
    and (d.ok or o.state = 'waiting' and o.tries = d.try)
  order by o.id
  for update of o
), noted as (
  update millrace.alert_messages m
  set state = s.state, status = s.status,
    error = case when s.ok is not true
      then millrace.plain_text(coalesce(s.error, 'no reason given'), 500) end,
    wait = greatest(m.wait, make_interval(
      secs => least(coalesce(s.retry_after_ms, 0) / 1000, 21600))),
    ended_at = case when s.state <> 'waiting' then v_now end,
    tried_at = case s.state when 'waiting' then v_now else m.tried_at end
  from said s
  where m.id = s.id
    and m.id = any (array(select o.id from said o))
  returning m.id
)
select count(*) into v_noted from noted;
return jsonb_build_object('noted', v_noted);
$$;
