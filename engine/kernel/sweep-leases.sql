-- Sweeping leases: what dead workers left behind

-- Fails those of the attempts whose lease expired and whose rows are free, as lost_lease; returns
-- how many. A worker may have renewed meanwhile: the claims are locked too and read once more. One
-- that its worker is renewing or dropping this very moment is not lost.
create function millrace.fail_lost(p_ids bigint[]) returns int
language plpgsql
as $$
declare
  v_ids bigint[] := millrace.lock_attempts(p_ids);
  v_tokens uuid[];
  v_done record;
begin
  v_tokens := array(
    select c.token
    from millrace.claims c
    where c.expires_at <= millrace.now()
    for update skip locked);
  v_done := millrace.apply_outcomes_guarded(array(
    select jsonb_populate_record(null::millrace.work, jsonb_build_object(
      'ord', row_number() over (order by a.id),
      'attempt_id', a.id,
      'token', a.token,
      'outcome', 'failed',
      'error', case
        -- Only of an isolate that has worked on nothing else is it known whose doing it was. But a
        -- row that has no further try has been alone often enough.
        when a.lost_alone and (
            1 >= (select sum(w.taken) from millrace.workers w where w.host = c.host)
            or millrace.retry_due(a.stage_id, '{"code": "lost_lease"}', a.retry_count) is null)
          then jsonb_build_object('code', 'resource_limit',
          'message', 'its function ended without a word while it ran this row alone, a second '
            'time: the row takes more CPU or memory than the platform allows')
        else jsonb_build_object('code', 'lost_lease',
          'message', 'the worker ended without a word and its lease expired') end,
      'run_id', a.run_id,
      'stage_id', a.stage_id,
      'entity_id', r.entity_id,
      'was', a.state))
    from millrace.attempts a
    join millrace.claims c on c.token = a.token
    join millrace.runs r on r.id = a.run_id
    where a.id = any (v_ids)
      and a.state = 'started'
      and c.token = any (v_tokens)));
  perform millrace.hook_lost(l.stage_id, l.hosts)
  from (
    select i.stage_id, array_agg(distinct c.host) as hosts
    from unnest(v_done.items) i
    join millrace.claims c on c.token = i.token and not c.isolated
    where i.verdict is distinct from 'busy'
    group by i.stage_id
    order by i.stage_id) l;
  perform millrace.wake(v_done.ready);
  return (
    select count(*)
    from unnest(v_done.items) i
    where i.verdict is distinct from 'busy');
end
$$;

-- Fails started attempts of a pipeline whose lease expired; returns how many. It goes page after
-- page, so that rows which somebody holds, or which refuse to be written, keep it from none of the
-- others.
create function millrace.sweep_leases(p_pipeline_id int, p_limit int) returns int
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(
    select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id);
  v_ids bigint[];
  v_failed int := 0;
begin
  loop
    v_ids := array(
      select a.id
      from millrace.claims c
      cross join lateral (
        select t.id, t.stage_id
        from millrace.attempts t
        where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started'
        offset 0) a
      where c.expires_at <= v_now
        and a.stage_id = any (v_stages)
        and a.id > coalesce(v_ids[cardinality(v_ids)], 0)
      order by a.id
      limit p_limit);
    exit when cardinality(v_ids) = 0;
    v_failed := v_failed + millrace.fail_lost(v_ids);
    exit when cardinality(v_ids) < p_limit or v_failed >= p_limit;
  end loop;
  return v_failed;
end
$$;
