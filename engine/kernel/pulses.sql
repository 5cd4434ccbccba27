-- Pulses: what a batch came to, for the figures
--
-- Every attempt that comes to its end is in one pulse of its stage, and every run that does so is
-- in one of stage 0, written in the transaction that ends it. So figures that add up pulses equal a
-- recount of the attempts; figure_faults() proves it.

-- Writes what happened to attempts that tell no times, one row a stage. p_stage_ids: the stage of
-- each attempt.
create function millrace.note_pulses(p_outcome text, p_stage_ids int[]) returns void
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
begin
  insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n)
  select v_now, s.pipeline_id, s.id, p_outcome, i.n
  from (
    select u.id, count(*) as n
    from unnest(p_stage_ids) u(id)
    group by u.id) i
  join millrace.stages s on s.id = i.id;
end
$$;

-- Adds up what attempts say that they used of one kind, such as cost_usd; null when none says. What
-- is no number, or below zero, is none. Being strict, it costs nothing where no attempt used any.
create function millrace.sum_usage(p_usages jsonb[], p_kind text) returns numeric
language sql immutable strict
as $$
  select sum((u.value ->> p_kind)::numeric)
  from unnest(p_usages) u(value)
  where jsonb_typeof(u.value -> p_kind) = 'number'
    and (u.value ->> p_kind)::numeric > 0
$$;

-- Says how many milliseconds lie between two times.
create function millrace.ms_between(p_from timestamptz, p_to timestamptz) returns real
language sql immutable
as $$
  select (date_part('epoch', p_to - p_from) * 1000)::real
$$;
