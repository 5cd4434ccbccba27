-- Alert bounds: a definition changes how long a stage may take

-- Says when an execution of a stage became ready.
create function millrace.execution_began(
  p_run_id bigint, p_stage_id int, p_execution int
) returns timestamptz
language plpgsql
as $$
begin
  return (
    select a.created_at
    from millrace.attempts a
    where a.run_id = p_run_id
      and a.stage_id = p_stage_id
      and a.number = p_execution);
end
$$;

-- Sets late_at of up to so many open attempts whose stage's bound a definition gave, changed or
-- dropped; returns to how many. define() leaves it to the sweep, since it holds the table for which
-- the holders of attempts may wait.
create function millrace.follow_bounds(p_limit int) returns int
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_stage record;
  v_ids bigint[];
  v_changed int;
  v_set int := 0;
begin
  for v_stage in
    select s.id, s.sla, s.sla_changed_at
    from millrace.stages s
    where s.sla_changed_at is not null
    order by s.id
  loop
    exit when v_set >= p_limit;
    v_ids := array(
      select a.id
      from (
        select o.*
        from millrace.attempts o
        where o.stage_id = v_stage.id
          and o.queue_at is not null
        union all
        select o.*
        from millrace.attempts o
        where o.stage_id = v_stage.id
          and o.deadline_at is not null
      ) a
      cross join lateral (
        select v_stage.sla + case a.retry_count
          when 0 then a.created_at
          else millrace.execution_began(a.run_id, a.stage_id, a.number - a.retry_count)
        end as late_at
      ) d
      where a.late_at is distinct from d.late_at
        -- What was reported stays so, unless it is no longer late.
        and not (a.late_at is null and d.late_at <= v_now and exists (
          select
          from millrace.alerts l
          where l.run_id = a.run_id
            and l.stage_id = a.stage_id
            and l.execution = a.number - a.retry_count
            and l.resolved_at is null))
      limit 5000);
    with held as (
      select a.id, a.run_id, a.number - a.retry_count as execution
      from millrace.attempts a
      where a.id = any (v_ids)
        and a.state in ('queued', 'started', 'waiting')
      order by a.id
      limit p_limit - v_set
      for no key update skip locked
    )
    update millrace.attempts a
    set late_at = millrace.execution_began(h.run_id, v_stage.id, h.execution) + v_stage.sla
    from held h
    where a.id = h.id;
    get diagnostics v_changed = row_count;
    v_set := v_set + v_changed;
    -- For a minute it looks again: whoever queued while the definition was being committed did so
    -- under the former bound.
    update millrace.stages s
    set sla_changed_at = null
    where cardinality(v_ids) = 0
      and v_stage.sla_changed_at <= v_now - interval '1 minute'
      and s.id in (
        select o.id
        from millrace.stages o
        where o.id = v_stage.id
          and o.sla_changed_at = v_stage.sla_changed_at
        for update skip locked);
  end loop;
  return v_set;
end
$$;
