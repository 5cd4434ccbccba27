-- Runs that are later at a stage than its bound

-- Picks the alerts whose execution goes on and is older than the bound of today.
create function millrace.still_late(p_alert_ids bigint[]) returns bigint[]
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return array(
    select l.id
    from millrace.alerts l
    join millrace.stages s on s.id = l.stage_id
    join millrace.attempts f
      on f.run_id = l.run_id and f.stage_id = l.stage_id and f.number = l.execution
    where l.id = any (p_alert_ids)
      and f.created_at + s.sla <= v_now
      and exists (
        select
        from millrace.attempts a
        where a.run_id = l.run_id
          and a.stage_id = l.stage_id
          and a.state in ('queued', 'started', 'waiting')
          and a.number - a.retry_count = l.execution));
end
$$;

-- Counts late runs stage by stage, of the first 10,000 open alerts. It looks whether the first
-- 1,000 still hold, and takes the sweep's word for the others.
create function millrace.late_counts() returns table (stage_id int, late bigint)
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_open bigint[] := array(
    select l.id
    from millrace.alerts l
    where l.resolved_at is null
    order by l.id
    limit 10000);
  v_late bigint[] := millrace.still_late(v_open[:1000]) || v_open[1001:];
begin
  return query
    select o.stage_id, count(*)
    from (
      select l.stage_id, l.run_id
      from millrace.alerts l
      where l.id = any (v_late)
      union
      (select a.stage_id, a.run_id
       from millrace.attempts a
       where a.late_at <= v_now
       limit 10000)) o
    group by o.stage_id;
end
$$;
