-- The conversations of agents, a row for each turn: the answer and calls of the model, or the
-- output of a tool.
create view millrace.agent_log as
select p.name as pipeline, s.name as stage, t.run_id, r.entity_id, t.stage_run, t.seq, t.kind,
  case
    when t.content -> 'failed' = 'true' then 'fails'
    when t.content ? 'discarded' then 'discarded: ' || (t.content ->> 'discarded')
    else coalesce('calls ' || m.calls, 'answers')
  end as what,
  coalesce(m.calls, t.content ->> 'name') as tool,
  coalesce(m.arguments, t.content ->> 'arguments') as arguments,
  case t.kind when 'tool' then t.content ->> 'output' else m.said end as output,
  (t.usage ->> 'input_tokens')::numeric + (t.usage ->> 'output_tokens')::numeric as tokens,
  (t.usage ->> 'cost_usd')::numeric as cost_usd,
  t.content ->> 'asked' as asked, t.attempt_id, t.created_at as at
from millrace.turns t
join millrace.stages s on s.id = t.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.runs r on r.id = t.run_id
cross join lateral (
  select string_agg(i ->> 'name', ', ' order by n) as calls,
    string_agg(i ->> 'arguments', ', ' order by n) as arguments,
    string_agg(jsonb_path_query_first(i, '$.content[*].text') #>> '{}', E'\n' order by n) as said
  from jsonb_path_query(case t.kind when 'model' then t.content end, '$.output[*]')
    with ordinality o(i, n)) m
order by t.run_id, t.stage_id, t.stage_run, t.seq;
