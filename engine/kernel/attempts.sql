-- Attempts: which of them count, the items that the engine makes, and pulses
--
-- A transition that ends an attempt or a run writes its pulse in the same transaction.

-- The attempts by which a stage of a run is done: completed or skipped, and not started over since.
-- A skipped attempt's output is null.
create view millrace.done_attempts as
select a.id, a.run_id, a.stage_id, a.number, a.state, a.retry_count, a.created_at, a.started_at,
  a.finished_at, a.error, a.output, a.deleted_after
from millrace.attempts a
where a.state in ('completed', 'skipped')
  and not a.superseded;

-- Returns the newest attempt of a stage of a run that is not superseded, which is the stage's
-- state. Returns no row while the stage is pending.
create function millrace.newest_attempt(p_run_id bigint, p_stage_id int)
returns setof millrace.attempts
stable rows 1
as $$
select a.*
from millrace.attempts a
where a.run_id = p_run_id and a.stage_id = p_stage_id and not a.superseded
order by a.number desc
limit 1
$$;

-- Tells whether an attempt is not superseded and no later one of its run and stage exists.
create function millrace.is_newest_attempt(p_attempt millrace.attempts) returns boolean
as $$
return not p_attempt.superseded and not exists (
  select from millrace.attempts n
  where n.run_id = p_attempt.run_id and n.stage_id = p_attempt.stage_id
    and n.number > p_attempt.number);
$$;

-- Builds the item of an outcome that the engine decides, such as a deadline that has passed.
create function millrace.work_on(
  p_attempt millrace.attempts, p_entity_id text, p_outcome text,
  p_result jsonb default null, p_error jsonb default null
) returns millrace.work
immutable
as $$
return row(1, p_attempt.id, p_attempt.token, null, p_outcome, p_result, null, p_error,
  p_attempt.service, p_attempt.job_id, p_attempt.run_id, p_attempt.stage_id, p_entity_id,
  p_attempt.state, null, null, null, null)::millrace.work;
$$;

-- Inserts pulses without run times and waits, one for each stage.
-- p_stage_ids: the stage of each attempt.
create function millrace.note_pulses(p_outcome text, p_stage_ids int[])
as $$
insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n)
select v_now, s.pipeline_id, s.id, p_outcome, i.n
from (
  select u.id, count(*) as n
  from unnest(p_stage_ids) u(id)
  group by u.id) i
join millrace.stages s on s.id = i.id;
$$;

-- Returns the costs and tokens that usages report, a row for each.
-- kind: cost_usd, input_tokens or output_tokens.
-- n: above 0, and below a bound, since a sum without one may overflow and stop all figures.
create function millrace.amounts_of(p_used millrace.used[])
returns table (run_id bigint, outcome text, model text, kind text, n numeric)
immutable
as $$
select u.run_id, u.outcome, u.usage ->> 'model', k, (u.usage ->> k)::numeric
from unnest(p_used) u
cross join unnest('{cost_usd,input_tokens,output_tokens}'::text[]) k
where jsonb_typeof(u.usage -> k) = 'number' and (u.usage ->> k)::numeric between 1e-300 and 1e300
$$;

-- Inserts pulses of what attempts of a stage have used: one for each outcome, model and tenant.
create function millrace.note_usage(p_now timestamptz, p_stage_id int, p_used millrace.used[])
as $$
insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n, model, tenant, cost_usd,
  input_tokens, output_tokens)
select p_now, r.pipeline_id, p_stage_id, u.outcome, 0, left(u.model, 200),
  left(r.quota_key, 400), sum(u.n) filter (where u.kind = 'cost_usd'),
  sum(u.n) filter (where u.kind = 'input_tokens'),
  sum(u.n) filter (where u.kind = 'output_tokens')
from millrace.amounts_of(p_used) u
-- by key
cross join lateral (select o.* from millrace.runs o where o.id = u.run_id offset 0) r
group by 2, 4, 6, 7;
$$;
