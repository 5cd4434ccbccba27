-- Says what made the result of an attempt: the attempt, its service, model, prompt and cost, and
-- the release that began to work at the stage last before it. by_hand is a person's service. A
-- result that a run took over from the row's former run is followed to the attempt that made it,
-- over at most 50 runs. copy_of: the attempt behind it, which is gone.
create function millrace.made_by(p_of millrace.attempts) returns jsonb
stable
as $$
with recursive way as (
  select p_of as a, 0 as n
  union all
  select f, n + 1
  from way
  join millrace.attempts f on f.id = (a).parent_id
  where n < 50 and (a).number = 1
)
select jsonb_strip_nulls(jsonb_build_object('attempt', a.id, 'run', a.run_id, 'copy_of',
  case a.number when 1 then a.parent_id end, 'service', a.service, 'model', a.usage -> 'model',
  'prompt', a.usage -> 'prompt', 'cached', a.usage -> 'cached', 'cost_usd', a.usage -> 'cost_usd',
  -- The newest comes first.
  'release', (
    select release
    from jsonb_to_recordset(s.seen -> 'releases') r(release text, at timestamptz)
    where at <= a.started_at limit 1)))
from (select (a).* from way order by n desc limit 1) a
join millrace.stages s on s.id = a.stage_id
$$;
