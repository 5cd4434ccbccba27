-- What there is to sweep
--
-- Most sweeps find nothing, and pg_cron opens a fresh session for each, in which every function
-- that is called is compiled anew and every statement planned anew. So three statements look first,
-- by index probes alone, and a part of the sweep is called only where it has something to do. A
-- part that finds nothing after all does no harm.

-- Lists what there is to sweep pipeline by pipeline (id). Where a lease or a deadline has passed it
-- names all pipelines, since only a walk would tell whose it is.
create function millrace.pipelines_to_sweep() returns table (part text, id bigint)
language plpgsql volatile
set millrace.plan = by_index
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return query
    select k.part, p.id::bigint
    from millrace.pipelines p
    cross join lateral (values
      (1, 'leases', exists (select from millrace.claims c where c.expires_at <= v_now)),
      (2, 'deadlines', exists (select from millrace.attempts a where a.deadline_at <= v_now)),
      (3, 'places', exists (
        select
        from millrace.stages s
        where s.pipeline_id = p.id
          and s.limits is not null
          and (exists (select from millrace.in_flight f where f.stage_id = s.id)
            or exists (select from millrace.arrivals n where n.stage_id = s.id)
            or exists (
              select
              from millrace.attempts a
              where a.stage_id = s.id and a.queue_at is not null)))),
      (4, 'shown', p.projection = 'status' and exists (
        select
        from millrace.stages s
        join millrace.attempts a on a.stage_id = s.id and a.queue_at <= v_now
        where s.pipeline_id = p.id
          and s.shows ->> 'backoff' <> s.shows ->> 'queued')),
      (5, 'bypassed', exists (
        select
        from millrace.stages s
        where s.pipeline_id = p.id and (s.bypassed or s.when_spent = 'bypass'))),
      (6, 'woken', exists (
        select
        from millrace.stages s
        join millrace.attempts a on a.stage_id = s.id and a.queue_at <= v_now
        where s.pipeline_id = p.id
          and a.state = 'queued'
          and s.enabled
          and s.kind <> 'gate'
          and not s.bypassed)),
      (7, 'due', p.due_column is not null and p.enabled)) k(place, part, wanted)
    where k.wanted
    order by k.place, p.id;
end
$$;

-- Lists what else of runs there is to sweep: children, questions, alerts, figures, gates.
create function millrace.rest_to_sweep() returns table (part text, id bigint)
language plpgsql volatile
set millrace.plan = by_index
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return query
    select k.part, null::bigint
    from (values
      (1, 'quotas', exists (select from millrace.quota_uses u where not u.summed)
        or exists (select from millrace.quota_uses u where u.closes_at <= v_now)
        or exists (select from millrace.pipelines p where p.quota_changed_at is not null)),
      (2, 'collected', exists (select from millrace.child_tallies)
        or exists (
          select
          from millrace.attempts a
          join millrace.stages s on s.id = a.stage_id
          where a.deadline_at <= v_now and s.fan_in ->> 'at_deadline' = 'finish')),
      (3, 'cancelled', exists (select from millrace.fan_outs f where f.state = 'abandoned')),
      (4, 'decisions', exists (
        select from public.millrace_decisions d where d.closed_at is null)),
      (5, 'passed', exists (
        select
        from millrace.stages s
        join millrace.attempts a on a.stage_id = s.id and a.queue_at <= v_now
        where s.kind = 'gate' and s.enabled)),
      (6, 'bounds', exists (select from millrace.stages s where s.sla_changed_at is not null)),
      (7, 'alerts', exists (select from millrace.attempts a where a.late_at <= v_now)),
      (8, 'resolved', exists (select from millrace.alerts l where l.resolved_at is null)),
      (9, 'ages', exists (
        select
        from millrace.pipelines p
        join millrace.run_ages g on g.pipeline_id = p.id
        where p.sla is not null
          and (g.counted_at is null or g.last_key <> '' or 0 < any (g.ages) or exists (
            select
            from millrace.stages s
            where s.pipeline_id = p.id
              and (
                exists (select from millrace.bypassed b where b.stage_id = s.id)
                or exists (
                  select
                  from millrace.attempts a
                  where a.stage_id = s.id
                    and (a.queue_at is not null or a.deadline_at is not null))))))),
      (10, 'pulses', exists (select from millrace.pulses))) k(place, part, wanted)
    where k.wanted
    order by k.place;
end
$$;

-- Lists what there is to look after: what is judged or tidied up once a minute, or every ten; jobs
-- of pg_cron; what operators have set; bulks, each by its id.
create function millrace.upkeep_to_sweep() returns table (part text, id bigint)
language plpgsql volatile
set millrace.plan = by_index
as $$
declare
  v_now timestamptz := millrace.now();
  v_new_minute boolean := exists (
    select
    from millrace.settings s
    where s.name = 'rules_judged_at'
      and s.value <> to_char(v_now at time zone 'utc', 'YYYY-MM-DD HH24:MI'));
begin
  return query
    select k.part, null::bigint
    from (values
      (0, 'metadata', exists (select from millrace.dropped_metadata)),
      (1, 'leftovers', v_new_minute),
      (2, 'old', exists (
        select
        from millrace.settings s
        where s.name = 'figures_pruned_at'
          and s.value::timestamptz <= v_now - interval '10 minutes')),
      (3, 'faults', exists (
        select
        from millrace.check_progress c
        where c.after > 0
          or coalesce(c.ended_at <= v_now - interval '1 hour', true))),
      (4, 'limits', exists (select from millrace.limit_uses u where not u.summed)
        or exists (select from millrace.limit_refusals r)
        or exists (select from millrace.limit_keys)
        or exists (
          select
          from millrace.limits l
          where l.until <= v_now
            or (l.bucket).lowered_at is not null
            or (l.bucket).refilled_at > v_now)),
      (5, 'polls', exists (select from millrace.attempts a where a.poll_at is not null)
        or exists (select from cron.job p where p.jobname = 'millrace-poll')),
      (6, 'bulk_job', exists (select from millrace.bulks b where b.state = 'running')
        <> exists (select from cron.job p where p.jobname = 'millrace-bulks')),
      (7, 'rules', v_new_minute),
      (8, 'messages', exists (
        select from millrace.alert_messages m where m.state = 'waiting'))) k(place, part, wanted)
    where k.wanted
    union all
    select 'bulks', b.id from millrace.bulks b where b.state = 'running';
end
$$;
