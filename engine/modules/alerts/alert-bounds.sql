-- Alert bounds: a definition changes how long a stage may take

-- Sets late_at of up to so many open attempts whose stage's bound a definition gave, changed or
-- dropped; returns to how many. define() leaves it to the sweep, since it holds the table for which
-- the holders of attempts may wait.
create function millrace.follow_bounds(p_limit int) returns int
language plpgsql
as $$
declare
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
          and o.deadline_at is not null) a
      where a.late_at is distinct from millrace.late_at_of(a, v_stage.sla)
      limit 5000);
    with held as (
      select a.id
      from millrace.attempts a
      where a.id = any (v_ids)
        and a.state in ('queued', 'started', 'waiting')
      order by a.id
      limit p_limit - v_set
      for no key update skip locked
    )
    update millrace.attempts a
    set late_at = millrace.late_at_of(a, v_stage.sla)
    from held h
    where a.id = h.id;
    get diagnostics v_changed = row_count;
    v_set := v_set + v_changed;
    -- For a minute it looks again: whoever queued while the definition was being committed did so
    -- under the former bound.
    update millrace.stages s
    set sla_changed_at = null
    where cardinality(v_ids) = 0
      and v_stage.sla_changed_at <= millrace.now() - interval '1 minute'
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

-- Tells when an attempt is late by a bound, which counts from its first try.
create function millrace.late_at_of(p_attempt millrace.attempts, p_bound interval)
returns timestamptz
language plpgsql stable
as $$
begin
  return p_bound + case p_attempt.retry_count
    when 0 then p_attempt.created_at
    else (
      select a.created_at
      from millrace.attempts a
      where a.run_id = p_attempt.run_id
        and a.stage_id = p_attempt.stage_id
        and a.number = p_attempt.number - p_attempt.retry_count)
  end;
end
$$;
