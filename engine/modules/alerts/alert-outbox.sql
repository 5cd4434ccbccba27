-- The outbox. The sweep writes one message a channel at most each minute. A message that a function
-- has taken is due again after a minute or more, in case the function dies. Meanwhile the channel's
-- next message waits and takes in further events.

-- Returns the address of the playbooks: the setting playbooks_url, or without one the folder in the
-- package of this release.
create function millrace.playbooks_url() returns text
stable
as $$
select coalesce(nullif(millrace.setting('playbooks_url'), ''), format(
  'https://app.unpkg.com/millrace@%s/files/docs/playbooks',
  (select e.release from millrace.engine() e)))
$$;

-- Returns an alert as operators and messages have it, with the present state of its rule.
-- at: when the facts of the alert were measured.
-- cause: equal for alerts of one cause, by what the rule measured last: the code of most failures,
-- the answer of an unattended stage's function, or the limits that a service refuses, without the
-- time. Null: the alert has no cause in common with others.
-- value_now, detail_now: what the rule measured last, while an open alert is above its bound.
-- below_since: since when the rule of an open alert is no longer above its bound.
-- ends_at: when the alert ends unless the rule is above its bound again.
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

-- Returns whether a silence applies to an alert.
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

-- Writes messages about alerts that were raised or resolved, one a channel, or adds these events to
-- a message that no function has taken yet. A message lists fifty events, the engine's own first,
-- and counts the rest. If an alert of the same cause was told to the same channels within the last
-- five minutes, another one waits: otherwise one broken service would send a message each minute.
-- An open alert that is silenced, or no longer above its bound, is not told. If it resolves untold,
-- its end is not told either.
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

-- Lists the oldest waiting message of each enabled channel, where the message is due.
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
  and coalesce(m.next_at <= v_now, true);

-- Returns the due messages about alerts to the function that sends them. A message that was first
-- tried a day ago becomes dead, since it would block all later messages of its channel.
create function public.millrace_take_messages()
as $$
  v_messages jsonb;

with due as (
  select m.id, m.first_tried_at + interval '1 day' <= v_now is true as is_old
  from millrace.alert_messages m
  where m.id = any (array(select d.id from millrace.due_messages d))
    -- Checks again under the lock: another call may just have taken the message.
    and m.state = 'waiting'
    and coalesce(m.tried_at + m.wait <= v_now, true)
  order by m.id
  for update skip locked
), taken as (
  update millrace.alert_messages m
  set tries = m.tries + 1, tried_at = v_now, first_tried_at = coalesce(m.first_tried_at, v_now),
    -- The wait is a minute, and doubles with each try up to an hour.
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
      -- Each event has the present state of its alert.
      select json_agg(e.event || coalesce(millrace.alert_json(a) - 'id', '{}') order by e.ordinal)
      from jsonb_array_elements(m.events) with ordinality e(event, ordinal)
      left join millrace.alerts a on a.id = (e.event -> 'alert')::bigint) as events, m.more
  from taken m
  join millrace.alert_channels c on c.id = m.channel_id
  where m.state = 'waiting') k;
return jsonb_build_object('messages', coalesce(v_messages, '[]'));
$$;

-- Writes which messages about alerts were delivered, and why others were not. Returns how many
-- reports it wrote. A delivered message stays delivered. Ignores the failure of a
-- try after which another has begun.
create function public.millrace_note_deliveries(p_deliveries jsonb)
as $$
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
