-- Lists the values that a stage shows while it is under way.
create function millrace.live_values(p_shows jsonb) returns text[]
immutable
as $$
begin
  return array_remove(array[p_shows ->> 'queued', p_shows ->> 'backoff', p_shows ->> 'started',
    p_shows ->> 'asked'], null)
    || array(select s #>> '{}' from jsonb_array_elements(p_shows -> 'steps') s);
end
$$;

-- Names the value of a done stage: of a manual one the most specific answer that its decision
-- holds.
create function millrace.done_value(p_shows jsonb, p_output jsonb) returns text
immutable
as $$
begin
  return coalesce((
      select a.key
      from jsonb_each(p_shows -> 'answers') a
      where p_output -> 'decision' @> (a.value -> 'decision')
      order by length((a.value -> 'decision')::text) desc, a.key
      limit 1),
    p_shows ->> 'completed');
end
$$;

-- Finds the attempt that decides what an entity's latest run shows, and its phase. done_id: the
-- stage completed right before it; via: what a person's shows; dropped: over without having been in
-- work.
create function millrace.deciding_attempts(
  p_pipeline_id int, p_ids text[], p_was text[] default null, p_now text[] default null
) returns table (
  id text, was text, now text, place bigint, run_id bigint, version_id int, ended_as text,
  began_from text, run_status millrace.run_status, attempt_id bigint, stage_id int,
  stage_place int, shows jsonb, phase text, code text, output jsonb, done_id int, via text,
  retry_count smallint, state millrace.attempt_state, parent_id bigint, held boolean,
  queue_at timestamptz, error jsonb
)
stable
as $$
#variable_conflict use_column
declare v_now timestamptz := millrace.now();
begin
  return query
    select i.id, i.was, i.now, i.place, r.id, r.version_id, r.ended_as, r.began_from, r.status,
      w.id, w.stage_id, w.position, w.shows,
      case
        when r.ended_as is not null then 'ended' when e.discarded then 'discarded'
        when r.status = 'completed' and w.state = 'skipped' then 'bypassed'
        when r.status = 'completed' then 'completed'
        when r.status = 'failed' and w.started_at is not null then 'failed'
        when r.status <> 'running' then 'dropped'
        when w.kind = 'manual' then 'asked'
        when w.state <> 'queued' then 'started'
        when w.shows ? 'backoff' and w.retry_count > 0 and w.queue_at > v_now then 'backoff'
        else 'queued'
      end,
      case r.status when 'failed' then w.error ->> 'code' end,
      case when r.status = 'completed' and w.kind = 'manual' then w.output end,
      d.done_id, d.via, w.retry_count, w.state, w.parent_id, w.held, w.queue_at, w.error
    from unnest(p_ids, p_was, p_now) with ordinality i(id, was, now, place)
    left join lateral (
      select o.* from millrace.runs o
      where o.entity_id = any (array[i.id]) and o.pipeline_id = p_pipeline_id
      order by o.entity_id desc, o.id desc limit 1) r on true
    cross join lateral (
      select r.status = 'completed' and r.began_from is not null and exists (
        select from millrace.attempts a
        where a.run_id = r.id and not a.superseded
          and a.state = 'skipped' and a.error ->> 'code' = 'discarded') as discarded offset 0) e
    left join lateral (
      select a.*, s.kind, s.shows, vs.position, vs.needs
      from millrace.attempts a
      join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
      join millrace.stages s on s.id = a.stage_id
      where a.run_id = r.id
        and not a.superseded
        and case r.status
          when 'running' then a.state in ('queued', 'started', 'waiting')
          when 'completed' then a.state = 'completed'
            or a.state = 'skipped' and a.error ->> 'code' = 'bypassed'
          else a.state in ('failed', 'cancelled')
        end
      order by vs.position desc, a.number desc
      limit 1) w on true
    left join lateral (
      select a.stage_id as done_id,
        case when s.kind = 'manual' then millrace.done_value(s.shows, a.output) end as via
      from millrace.attempts a
      join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
      join millrace.stages s on s.id = a.stage_id
      where (r.status = 'running' or w.state = 'skipped')
        and w.needs <> '{}'
        and a.run_id = r.id
        and not a.superseded
        and a.state = 'completed'
        and vs.position < w.position
      order by vs.position desc
      limit 1) d on true;
end
$$;

-- Lists what the latest runs of entities show. A run in which no stage was done shows its last
-- undemanded stage as completed; one whose last stage was bypassed shows what it had before.
create function millrace.status_states(p_pipeline_id int, p_ids text[])
returns table (
  id text, value text, phase text, stage_id int, done_id int, via text, attempts int,
  retry_at timestamptz, error text
)
stable
as $$
#variable_conflict use_column
begin
  return query
    select d.id,
      case d.phase
        when 'ended' then p.status -> 'ends' ->> d.ended_as
        when 'discarded' then d.began_from
        when 'completed' then coalesce(
          millrace.done_value(d.shows, d.output), d.shows ->> 'asked', (
          select coalesce(s.shows ->> 'completed', s.ready)
          from millrace.stages_of_version(d.version_id) s
          order by s.demanded, s.place desc
          limit 1))
        when 'bypassed' then coalesce(d.via, (
          select s.shows ->> 'completed' from millrace.stages s where s.id = d.done_id),
          d.shows ->> 'queued')
        when 'failed' then coalesce(d.shows -> 'failed' ->> d.code, p.status ->> 'failed')
        when 'dropped' then coalesce(d.shows -> 'failed' ->> d.code, p.status ->> 'failed')
        else d.shows ->> d.phase
      end,
      d.phase,
      case when d.phase not in ('ended', 'discarded', 'bypassed') then d.stage_id end,
      case d.phase when 'ended' then d.stage_id when 'bypassed' then null else d.done_id end,
      case
        when d.phase = 'ended' and d.shows ? 'asked' then millrace.done_value(d.shows, d.output)
        when d.phase <> 'bypassed' then d.via
      end,
      case
        when d.run_status = 'completed' then 0
        else coalesce(d.retry_count, 0) + coalesce(d.state = 'failed', false)::int
      end,
      case
        when d.phase in ('queued', 'backoff') and (d.retry_count > 0 or d.held) then d.queue_at
      end,
      case
        when d.run_status = 'completed' then null
        when d.error is not null then millrace.owner_message(d.error, d.attempt_id)
        when d.retry_count > 0 then (
          select millrace.owner_message(o.error, o.id)
          from millrace.attempts o
          where o.id = d.parent_id)
      end
    from millrace.pipelines p
    cross join lateral millrace.deciding_attempts(p.id, p_ids) d
    where p.id = p_pipeline_id and (d.run_status <> 'running' or d.attempt_id is not null);
end
$$;

-- Lists the values that lead from what a row shows to a value, and who writes each: null for the
-- person at hand. p_done_id: the stage completed before; p_via: its value, if a person's.
create function millrace.status_path(
  p_was text, p_value text, p_phase text, p_stage_id int, p_done_id int, p_via text,
  out steps text[], out actors text[]
)
stable
as $$
declare
  v_at record;
  v_done record;
  v_within boolean;
  v_after boolean;
  v_crosses boolean;
  v_waited boolean;
  v_values text[];
  v_actors text[];
  v_last text := p_was;
begin
  select s.id, s.shows, 'agent:' || s.name as agent, s.kind = 'manual' as asks into v_at
  from millrace.stages s where s.id = p_stage_id;
  select s.id, s.shows, 'agent:' || s.name as agent, s.kind = 'manual' as asks into v_done
  from millrace.stages s where s.id = p_done_id;
  v_within := coalesce(p_was = any (millrace.live_values(v_at.shows)), false);
  v_after := coalesce(not v_within and v_done.id is distinct from v_at.id
    and p_was = any (millrace.live_values(v_done.shows)), false);
  v_crosses := v_at.id is not null
    and v_at.shows -> 'layer' is distinct from v_done.shows -> 'layer';
  v_waited := coalesce(p_was in (v_at.shows ->> 'backoff', v_at.shows ->> 'queued'), false);
  -- What is left of the done stage, layers, what comes first of the other, and the value.
  v_values := array[
    case when v_after and p_was = v_done.shows ->> 'backoff' then v_done.shows ->> 'queued' end,
    case when v_after and p_was in (v_done.shows ->> 'backoff', v_done.shows ->> 'queued')
      then v_done.shows ->> 'started' end,
    case when v_after then coalesce(p_via, v_done.shows ->> 'completed') end,
    case when v_after and v_crosses then v_done.shows ->> 'leave' end,
    case when v_crosses and p_phase <> 'dropped' and (v_after or p_was is null)
      then v_at.shows ->> 'enter' end,
    case when p_phase in ('started', 'completed', 'failed', 'backoff')
      and (not v_within or p_was = v_at.shows ->> 'backoff')
      then coalesce(v_at.shows ->> 'queued', v_at.shows ->> 'asked') end,
    case when p_phase in ('completed', 'failed', 'backoff') and (not v_within or v_waited)
      then v_at.shows ->> 'started' end,
    p_value];
  v_actors := array['system:auto', v_done.agent, case when not v_done.asks then v_done.agent end,
    'system:auto', 'system:auto', 'system:auto', v_at.agent,
    case
      when p_phase = 'completed' and v_at.asks or p_phase = 'discarded' then null
      when p_phase in ('started', 'completed') then v_at.agent
      else 'system:auto'
    end];
  steps := '{}'; actors := '{}';
  for v_place in 1 .. 8 loop
    if v_values[v_place] <> v_last or v_last is null and v_values[v_place] is not null then
      v_last := v_values[v_place];
      steps := steps || v_last;
      actors := actors || v_actors[v_place];
    end if;
  end loop;
end
$$;
