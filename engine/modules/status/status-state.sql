-- Returns the values that the status column may have while a stage is under way.
create function millrace.live_values(p_shows jsonb) returns text[]
immutable
as $$
return array_remove(array[p_shows ->> 'queued', p_shows ->> 'backoff', p_shows ->> 'started',
  p_shows ->> 'asked'], null)
  || array(select s #>> '{}' from jsonb_array_elements(p_shows -> 'interim') s);
$$;

-- Returns the value of a done stage. For a manual stage it is the value of the most specific answer
-- that its decision contains.
create function millrace.done_value(p_shows jsonb, p_output jsonb) returns text
immutable
as $$
return coalesce((
    select a.key
    from jsonb_each(p_shows -> 'answers') a
    where p_output -> 'decision' @> (a.value -> 'decision')
    order by length((a.value -> 'decision')::text) desc, a.key
    limit 1),
  p_shows ->> 'completed');
$$;

-- Returns what the status column shows of the latest runs of entities, in the order of p_ids.
-- value: null without a run. A run in which no stage was completed shows its last undemanded stage
-- as completed. A run whose last stage was bypassed shows what it had before.
-- phase: queued, backoff, started, asked, completed, failed, dropped, ended, discarded or bypassed.
-- `dropped`: the run was cancelled, or failed before its stage was started.
-- stage_id: the stage that the value is about; null for an end of the whole run.
-- done_id: the stage that was completed right before it.
-- via: the value of that stage's decision, where a person decided.
-- at_id: the stage whose attempt decides the value.
create function millrace.status_states(p_pipeline_id int, p_ids text[])
returns table (
  id text, value text, phase text, stage_id int, done_id int, via text, attempts int,
  retry_at timestamptz, error text, run_id bigint, run_status millrace.run_status, version_id int,
  began_from text, at_id int
)
stable
as $$
#variable_conflict use_column
return query
select i.id,
  case
    when f.phase = 'ended' then p.status -> 'ends' ->> r.ended_as
    when f.phase = 'discarded' then r.began_from
    when f.phase = 'completed' then coalesce(
      millrace.done_value(w.shows, w.output), w.shows ->> 'asked', (
      select coalesce(s.shows ->> 'completed', s.ready)
      from millrace.shown_stages s
      where s.version_id = r.version_id
      order by s.demanded, s.ordinal desc
      limit 1))
    when f.phase = 'bypassed'
      then coalesce(d.via, d.shows ->> 'completed', w.shows ->> 'queued')
    when r.status <> 'running' then coalesce(
      w.shows -> 'failed' ->> case r.status when 'failed' then w.error ->> 'code' end,
      p.status ->> 'failed')
    else w.shows ->> f.phase
  end, f.phase,
  case when f.phase not in ('ended', 'discarded', 'bypassed') then w.stage_id end,
  case
    when f.phase = 'ended' then w.stage_id
    when f.phase not in ('discarded', 'bypassed') then d.stage_id
  end,
  case
    when f.phase = 'ended' and w.shows ? 'asked' then millrace.done_value(w.shows, w.output)
    when f.phase not in ('discarded', 'bypassed') then d.via
  end,
  case
    when r.status = 'completed' then 0
    else coalesce(w.retry_count, 0) + coalesce(w.state = 'failed', false)::int
  end,
  case when f.phase in ('queued', 'backoff') and (w.retry_count > 0 or w.quota_blocked)
    then w.queue_at end,
  case
    when r.status = 'completed' then null
    when w.error is not null then millrace.owner_message(w.error, w.id)
    when w.retry_count > 0 then (
      select millrace.owner_message(o.error, o.id)
      from millrace.attempts o
      where o.id = w.parent_id)
  end, r.id, r.status, r.version_id, r.began_from, w.stage_id
from millrace.pipelines p
cross join unnest(p_ids) with ordinality i(id, ordinal)
left join lateral (
  select o.* from millrace.runs o
  where o.entity_id = any (array[i.id]) and o.pipeline_id = p_pipeline_id
  order by o.entity_id desc, o.id desc limit 1) r on true
left join lateral (
  select a.*, s.kind, s.shows, vs.position, vs.needs
  from millrace.attempts a
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
  join millrace.stages s on s.id = a.stage_id
  where a.run_id = r.id
    and not a.superseded and case r.status
      when 'running' then a.state < 'completed'
      when 'completed' then a.state = 'completed'
        or a.state = 'skipped' and a.error ->> 'code' in ('bypassed', 'discarded')
      else a.state in ('failed', 'cancelled')
    end
  order by vs.position desc, a.number desc
  limit 1) w on true
left join lateral (
  select a.stage_id, s.shows,
    case when s.kind = 'manual' then millrace.done_value(s.shows, a.output) end as via
  from millrace.attempts a
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
  join millrace.stages s on s.id = a.stage_id
  where (r.status = 'running' or w.state = 'skipped')
    and w.needs <> '{}' and vs.position < w.position
    and a.run_id = r.id and not a.superseded and a.state = 'completed'
  order by vs.position desc limit 1) d on true
cross join lateral (
  select case
      when r.ended_as is not null then 'ended'
      when w.state = 'skipped' then w.error ->> 'code'
      when r.status = 'completed' then 'completed'
      when r.status = 'failed' and w.started_at is not null then 'failed'
      when r.status <> 'running' then 'dropped'
      when w.kind = 'manual' then 'asked'
      when w.state <> 'queued' then 'started'
      when w.shows ? 'backoff' and w.retry_count > 0 and w.queue_at > v_now then 'backoff'
      else 'queued'
    end as phase offset 0) f
where p.id = p_pipeline_id
order by i.ordinal;
$$;

-- Returns the values that lead from a row's value to another, and who writes each.
-- p_done_id: the stage that was completed right before.
-- p_via: the value of that stage's decision, where a person decided.
-- actors: null stands for the person who writes at this moment.
create function millrace.status_path(
  p_was text, p_value text, p_phase text, p_stage_id int, p_done_id int, p_via text,
  out interim text[], out actors text[]
)
stable
as $$
select array_agg(s.value order by s.ordinal), array_agg(s.actor order by s.ordinal)
into interim, actors
from (
  select v.*, lag(v.value, 1, p_was) over (order by v.ordinal) as last
  from (select) one
  left join millrace.stages a on a.id = p_stage_id
  left join millrace.stages d on d.id = p_done_id
  cross join lateral (
    -- The ordinal below at which the row stands: in its stage, in the one before, or in neither.
    select a.shows -> 'layer' is distinct from d.shows -> 'layer' as crosses, case
        when p_was = any (millrace.live_values(a.shows)) then
          case p_was when a.shows ->> 'backoff' then 5 when a.shows ->> 'queued' then 6 else 7 end
        when a.id is distinct from d.id and p_was = any (millrace.live_values(d.shows)) then
          case p_was when d.shows ->> 'backoff' then 0 when d.shows ->> 'queued' then 1 else 2 end
        when p_was is null then 4
        else 5
      end as ordinal) t
  cross join lateral (values
    (1, d.shows ->> 'queued', 'system:auto'),
    (2, d.shows ->> 'started', 'agent:' || d.name),
    (3, coalesce(p_via, d.shows ->> 'completed'),
      case when d.kind <> 'manual' then 'agent:' || d.name end),
    (4, case when t.crosses and a.id is not null then d.shows ->> 'leave' end, 'system:auto'),
    (5, case when t.crosses and p_phase <> 'dropped' then a.shows ->> 'enter' end,
      'system:auto'),
    (6, case when p_phase in ('started', 'completed', 'failed', 'backoff')
      then coalesce(a.shows ->> 'queued', a.shows ->> 'asked') end, 'system:auto'),
    (7, case when p_phase in ('completed', 'failed', 'backoff') then a.shows ->> 'started' end,
      'agent:' || a.name),
    (8, p_value, case
      when p_phase = 'completed' and a.kind = 'manual' or p_phase = 'discarded' then null
      when p_phase in ('started', 'completed') then 'agent:' || a.name
      else 'system:auto'
    end)) v(ordinal, value, actor)
  where v.ordinal > t.ordinal and v.value is not null) s
where s.value is distinct from s.last;
$$;
