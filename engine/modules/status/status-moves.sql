-- The projection `status`: which value may follow which
--
-- Moves are rows, made when the definition is saved. The engine's are what status_path() says of
-- every state of a stage; people's follow from the stages (a ready value starts its stage, or
-- starts it over) and from what the definition lists. Intake, the view and check_invariants() read
-- them.

-- Lists the stages of a version as moves need them. demanded: on demand, or after one that is.
-- may_skip: a run may go on without it.
create function millrace.stages_of_version(p_version_id int)
returns table (
  id int, name text, place int, shows jsonb, manual boolean, on_demand boolean,
  demanded boolean, may_skip boolean, may_fail boolean, ready text, ends text[]
)
language sql stable
as $$
  select s.id, s.name, vs.position, s.shows, s.kind = 'manual', vs.on_demand,
    vs.on_demand or exists (
      select
      from millrace.version_stages d
      where d.version_id = vs.version_id and d.on_demand and vs.stage_id = any (d.dependents)),
    vs.when_path is not null or vs.given_path is not null or vs.on_demand
      or s.on_failure = 'continue',
    s.on_failure = 'continue',
    coalesce(s.shows ->> 'queued', s.shows ->> 'asked'),
    array(select e ->> 'name' from jsonb_array_elements(vs.ends) e)
  from millrace.version_stages vs
  join millrace.stages s on s.id = vs.stage_id
  where vs.version_id = p_version_id
$$;

-- Lists what a stage that is done may show; null among it where it may show nothing.
create function millrace.done_values(p_shows jsonb, p_manual boolean) returns text[]
language sql immutable
as $$
  select case
    when p_manual then array(select jsonb_object_keys(p_shows -> 'answers'))
      || (p_shows ->> 'completed')
    else array[p_shows ->> 'completed']
  end
$$;

-- Says what a run shows in which no stage was done, and which stages may have been the last that it
-- was at.
create function millrace.nothing_done(p_version_id int)
returns table (value text, before int[])
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  ), last as (
    select s.*
    from stage s
    order by s.demanded, s.place desc
    limit 1
  )
  select coalesce(l.shows ->> 'completed', l.ready), array(
    select s.id
    from stage s
    where s.place <= l.place
      and not exists (
        select
        from stage b
        where b.place > s.place and b.place <= l.place and not b.may_skip))
  from last l
$$;

-- Lists the values that a row keeps where its run ends with a bypassed stage: those of stages
-- before it that do not end the run, with no question between that every run is asked.
create function millrace.kept_values(p_version_id int)
returns table (value text, stage_id int)
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  )
  select distinct d, b.id
  from stage b
  join stage s on s.place < b.place
  join millrace.versions v on v.id = p_version_id
  join millrace.pipelines p on p.id = v.pipeline_id
  cross join lateral unnest(millrace.done_values(s.shows, s.manual)) d
  where not b.manual
    and d is not null
    and not exists (
      select
      from unnest(s.ends) e
      where p.status -> 'ends' ->> e = d)
    and not exists (
      select
      from stage q
      where q.place > s.place and q.manual and not q.may_skip and not q.demanded)
$$;

-- Lists the moves within one stage (claimed, tried again, done, failed), and from one stage to
-- another, where stages between may be left out and the run may end.
create function millrace.moves_of_stages(p_version_id int)
returns table (from_value text, to_value text, means text)
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  ), status as (
    select p.status as said
    from millrace.versions v
    join millrace.pipelines p on p.id = v.pipeline_id
    where v.id = p_version_id
  ), target as (
    select null::int as done_id, w as was, null::text as via, t.value, t.phase, s.id
    from stage s
    cross join status p
    cross join lateral unnest(millrace.live_values(s.shows)) w
    cross join lateral (
      select s.ready, 'queued'
      where not s.manual
      union all
      select s.shows ->> k, k
      from unnest(array['backoff', 'started']) k
      union all
      select d, 'completed'
      from unnest(millrace.done_values(s.shows, s.manual)) d
      union all
      select f.value, 'failed'
      from jsonb_each_text(s.shows -> 'failed') f
      union all
      select p.said ->> 'failed', 'failed') t(value, phase)
    where t.value is not null
    union all
    select i.id, w, case when i.manual then d end, j.ready,
      case when j.manual then 'asked' else 'queued' end, j.id
    from stage i
    join stage j on j.place > i.place
      and not exists (
        select
        from stage b
        where b.place > i.place and b.place < j.place and not b.may_skip)
    cross join lateral unnest(millrace.live_values(i.shows)) w
    cross join lateral unnest(millrace.done_values(i.shows, i.manual)) d
    union all
    select i.id, w, case when i.manual then d end, p.said -> 'ends' ->> e, 'ended', null
    from stage i
    cross join status p
    cross join lateral unnest(i.ends) e
    cross join lateral unnest(millrace.live_values(i.shows)) w
    cross join lateral unnest(millrace.done_values(i.shows, i.manual)) d
    union all
    -- A row that waits at the gate of a layer, and a stage that the run goes on without.
    select null, w, null, j.ready, case when j.manual then 'asked' else 'queued' end, j.id
    from stage i
    join stage j on not exists (
      select
      from stage b
      where b.place > i.place and b.place < j.place and not b.may_skip)
    cross join lateral (
      select i.shows ->> 'enter'
      where j.place >= i.place and (j.id = i.id or i.may_skip)
      union all
      select l
      from unnest(millrace.live_values(i.shows)) l
      where j.place > i.place and i.may_fail) w(w)
    where w is not null
    union all
    select null, w, null, d, 'queued', i.id
    from stage i
    join stage k on k.place < i.place
    cross join lateral unnest(millrace.live_values(i.shows)) w
    cross join lateral unnest(millrace.done_values(k.shows, k.manual)) d
    where i.may_fail
  )
  select y.was, y.value,
    case t.phase when 'ended' then 'end' when 'failed' then 'fail' else 'work' end
  from target t
  cross join lateral (
    select lag(s.value, 1, t.was) over (order by s.place) as was, s.value
    from unnest((millrace.status_path(t.was, t.value, t.phase, t.id, t.done_id, t.via)).steps)
      with ordinality s(value, place)) y
$$;

-- Lists the moves to the value of a run in which no stage was done: its last stage failed and it
-- goes on without, or it leaves every stage out.
create function millrace.moves_to_nothing(p_version_id int)
returns table (from_value text, to_value text, means text)
language sql stable
as $$
  select w, n.value, 'work'
  from millrace.nothing_done(p_version_id) n
  join millrace.stages_of_version(p_version_id) s on s.id = any (n.before)
  cross join lateral unnest(millrace.live_values(s.shows)) w
  where s.may_fail
    and w <> n.value
  union
  select w, n.value, 'work'
  from millrace.nothing_done(p_version_id) n
  cross join (
    select s.ready, s.shows
    from millrace.stages_of_version(p_version_id) s
    order by s.place
    limit 1) f
  cross join unnest(array[f.ready, f.shows ->> 'enter']) w
  where w <> n.value
    and not exists (
      select
      from millrace.stages_of_version(p_version_id) s
      where not s.may_skip)
$$;

-- Lists the moves of the engine after a person's call: any stage may be started, and work may be
-- cancelled, or left out.
create function millrace.moves_of_calls(p_version_id int)
returns table (from_value text, to_value text, means text)
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  ), known as (
    select v.value
    from millrace.status_values v
    join millrace.versions o on o.pipeline_id = v.pipeline_id
    where o.id = p_version_id
    union all
    select null
  )
  select k.value, s.ready, 'start'
  from known k
  cross join stage s
  where k.value is distinct from s.ready
  union
  select null, s.shows ->> 'enter', 'start'
  from stage s
  where s.shows ? 'enter'
  union
  select w, p.status ->> 'failed', 'cancel'
  from stage s
  join millrace.versions v on v.id = p_version_id
  join millrace.pipelines p on p.id = v.pipeline_id
  cross join lateral unnest(millrace.live_values(s.shows)) w
  union
  select w, n.value, 'skip'
  from stage s
  join millrace.nothing_done(p_version_id) n on s.id = any (n.before)
  cross join lateral unnest(millrace.live_values(s.shows)) w
  where w <> n.value
  union
  select k.value, d, 'skip'
  from known k
  cross join stage s
  cross join lateral unnest(millrace.done_values(s.shows, s.manual)) d
  where k.value <> d
    and not exists (
      select
      from stage b
      where b.place <= s.place and k.value = any (millrace.live_values(b.shows)))
  union
  select w, k.value, 'skip'
  from millrace.kept_values(p_version_id) k
  join stage b on b.id = k.stage_id
  cross join lateral unnest(millrace.live_values(b.shows)) w
  where w <> k.value
$$;

-- Lists the values at which a run may rest, with the last stage that may start from there. After a
-- done stage the next begins by a condition or a person; a bypassed last stage leaves the value of
-- one before it.
create function millrace.resting_values(p_version_id int)
returns table (value text, live_id int, until int, done boolean)
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  )
  select w, s.id, s.place, false
  from stage s
  cross join lateral unnest(millrace.live_values(s.shows)) w
  union
  select d, null, s.place, true
  from stage s
  cross join lateral unnest(millrace.done_values(s.shows, s.manual)) d
  where d is not null
    and not exists (select
      from stage l
      where l.place > s.place and not l.may_skip and not l.demanded)
  union
  select k.value, b.id, b.place, false
  from millrace.kept_values(p_version_id) k
  join stage b on b.id = k.stage_id
  union
  select f.value, null, s.place, false
  from stage s
  join millrace.versions v on v.id = p_version_id
  join millrace.pipelines p on p.id = v.pipeline_id
  cross join lateral (
    select e.value from jsonb_each_text(s.shows -> 'failed') e
    union
    select p.status ->> 'failed'
    union
    select p.status -> 'ends' ->> e from unnest(s.ends) e) f
$$;

-- Lists what people may write: they begin rows, start stages over, give rows up; and while a
-- question is open, they go from step to step, answer it, and take it back.
create function millrace.moves_of_people(p_version_id int)
returns table (
  from_value text, to_value text, means text, at_stage_id int, stage_id int, declared boolean
)
language sql stable
as $$
  with stage as materialized (
    select * from millrace.stages_of_version(p_version_id)
  ), status as (
    select p.status as said, array(
      select c #>> '{}' from jsonb_array_elements(p.status -> 'closed') c) as closed
    from millrace.versions v
    join millrace.pipelines p on p.id = v.pipeline_id
    where v.id = p_version_id
  ), gate as (
    select distinct on (s.shows ->> 'enter') s.*
    from stage s
    where s.shows ? 'enter'
    order by s.shows ->> 'enter', s.place
  )
  select null, s.ready, 'start', null::int, s.id, false
  from stage s
  where not s.demanded
  union
  select null, g.shows ->> 'enter', 'enter', null, g.id, false
  from gate g
  union
  select g.shows ->> 'enter', s.ready, 'start', null, s.id, false
  from gate g
  join stage s on not exists (
    select
    from stage b
    where b.place >= g.place and b.place < s.place and not b.may_skip)
  where not s.demanded
  union
  select r.value, s.ready, 'start', r.live_id, s.id, false
  from millrace.resting_values(p_version_id) r
  join stage s on s.place <= r.until or r.done and s.on_demand
  cross join status t
  where r.value <> s.ready
    and (r.value <> all (t.closed) or r.done and s.on_demand)
  union
  select m ->> 0, m ->> 1, 'step', s.id, s.id, false
  from stage s
  cross join lateral jsonb_array_elements(s.shows -> 'step_moves') m
  union
  select v #>> '{}', a.key, 'answer', s.id, s.id, false
  from stage s
  cross join lateral jsonb_each(s.shows -> 'answers') a
  cross join lateral jsonb_array_elements(a.value -> 'from') v
  union
  select w, r.value, 'discard', s.id, s.id, false
  from stage s
  cross join lateral unnest(millrace.live_values(s.shows)) w
  join millrace.resting_values(p_version_id) r on r.done
  where s.shows -> 'discard' = 'true'
    and r.value <> w
    and (s.shows -> 'answers' ? r.value) is not true
  union
  select m ->> 0, m ->> 1,
    case when g.id is not null then 'enter' when s.id is null then 'give_up' else 'start' end,
    null, coalesce(g.id, s.id), true
  from status t
  cross join lateral jsonb_array_elements(t.said -> 'moves') m
  left join gate g on g.shows ->> 'enter' = m ->> 1
  left join stage s on s.ready = m ->> 1
  where coalesce(g.id, s.id) is not null or m ->> 1 = t.said ->> 'failed'
  union
  select null, e #>> '{}', 'step', null, null, true
  from status t
  cross join lateral jsonb_array_elements(t.said -> 'entries') e
$$;

-- Writes the moves of a version.
create function millrace.save_moves(p_version_id int) returns void
language plpgsql
as $$
begin
  update millrace.version_moves m
  set retired = true, drawn = false
  where m.version_id = p_version_id;
  insert into millrace.version_moves
    (version_id, from_value, to_value, by, means, at_stage_id, stage_id, declared)
  select p_version_id, m.*
  from (
    select e.from_value, e.to_value, 'engine', e.means, null::int, null::int, false
    from millrace.moves_of_stages(p_version_id) e
    union
    select e.from_value, e.to_value, 'engine', e.means, null, null, false
    from millrace.moves_to_nothing(p_version_id) e
    union
    select e.from_value, e.to_value, 'person', e.means, e.at_stage_id, e.stage_id,
      bool_or(e.declared)
    from millrace.moves_of_people(p_version_id) e
    group by 1, 2, 4, 5, 6) m
  on conflict (version_id, from_value, to_value, by, means, at_stage_id, stage_id) do update
  set declared = excluded.declared, retired = false;
  insert into millrace.version_moves (version_id, from_value, to_value, by, means)
  select p_version_id, c.from_value, c.to_value, 'call', c.means
  from millrace.moves_of_calls(p_version_id) c
  where not exists (
    select
    from millrace.version_moves m
    where m.version_id = p_version_id
      and m.by = 'engine'
      and not m.retired
      and m.from_value is not distinct from c.from_value
      and m.to_value = c.to_value)
  on conflict (version_id, from_value, to_value, by, means, at_stage_id, stage_id) do update
  set retired = false;
  -- A chain may begin at nothing.
  with drawn as (
    select distinct on (m.from_value, m.to_value) m.ctid as place
    from millrace.versions v
    join millrace.pipelines p on p.id = v.pipeline_id
    cross join lateral jsonb_array_elements(p.status -> 'drawn') c
    cross join lateral jsonb_array_elements_text(c) with ordinality d(value, place)
    join millrace.version_moves m
      on m.version_id = v.id
      and not m.retired
      and m.from_value is not distinct from d.value
      and m.to_value = c ->> d.place::int
    where v.id = p_version_id
    order by m.from_value, m.to_value, m.by <> 'person', m.by <> 'engine', m.means desc
  )
  update millrace.version_moves m
  set drawn = true
  from drawn d
  where m.ctid = d.place;
end
$$;

-- Which value of a status column may follow which: by the engine as work goes on, by a person who
-- writes it, or by a call such as start(). from_value is null for a new row. Intake judges by the
-- same rows.
create or replace view millrace.status_moves as
select distinct p.name as pipeline, m.from_value, m.to_value, m.by, m.drawn, m.means
from millrace.pipelines p
join millrace.version_moves m on m.version_id = p.current_version_id and not m.retired;
