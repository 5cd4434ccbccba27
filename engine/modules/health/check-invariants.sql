-- Views and functions whose names end in _faults each prove some of what must always hold, and have
-- a row for each breach. The sweep reads those of some hundred runs at a time, and begins a round
-- an hour after it ended one.

-- Proves that nothing is stuck or recorded twice: returns no row when all is well. One statement,
-- hence one snapshot; safe in production. It reads all that there is: check_slice() reads part.
create function millrace.check_invariants() returns setof millrace.fault
language sql stable
as $$
  select * from millrace.run_faults
  union all
  select * from millrace.row_faults()
  union all
  select * from millrace.hook_faults()
$$;

-- Finds the last run of a slice of so many; the last slice has no end, for what has lost its run.
create function millrace.slice_end(p_after bigint, p_limit int) returns bigint
language sql stable
set enable_seqscan = off
as $$
  select coalesce((
    select r.id
    from millrace.runs r
    where r.id > p_after
    order by r.id
    offset greatest(p_limit, 1) - 1
    limit 1), 9223372036854775807)
$$;

-- What check_invariants() proves, for the next so many runs after the one with this id: it takes as
-- long in a large database as in a small one. The sweep goes on from slice to slice.
create function millrace.check_slice(p_after bigint, p_limit int) returns setof millrace.fault
stable
set millrace.plan = by_index
as $$
declare
  v_until bigint := millrace.slice_end(p_after, p_limit);
begin
  return query
    select *
    from millrace.run_faults f
    where f.run_id > p_after
      and f.run_id <= v_until
    union all
    select * from millrace.row_faults(p_after, v_until)
    union all
    select * from millrace.hook_faults_between(p_after, v_until);
end
$$;

-- Checks the next slice and reports its faults; returns how many. Null where it is not time, or
-- another sweep is at it.
create function millrace.go_on_checking(p_limit int) returns int
as $$
declare
  v_now timestamptz := millrace.now();
  v_progress millrace.check_progress;
  v_until bigint;
  v_over boolean;
  v_found record;
begin
  select c.* into v_progress from millrace.check_progress c for update skip locked;
  if not found
      or (v_progress.after = 0 and v_progress.ended_at > v_now - interval '1 hour') then
    return null;
  end if;
  v_until := millrace.slice_end(v_progress.after, p_limit);
  v_over := v_until = 9223372036854775807;
  select count(*)::int as faults,
    coalesce(array_agg(distinct f.run_id) filter (where f.run_id is not null), '{}') as run_ids,
    min(format('%s: run %s, %s', f.rule, f.run_id, f.detail)) as first
  into v_found
  from millrace.check_slice(v_progress.after, p_limit) f;
  if v_found.faults > 0 then
    perform millrace.report('error', 'invariant_violated',
      format('An invariant is violated (%s faults). %s', v_found.faults, v_found.first),
      jsonb_build_object('runs', v_found.run_ids[:20]));
  end if;
  update millrace.check_progress c
  set after = case when v_over then 0 else v_until end,
    ended_at = case when v_over then v_now else c.ended_at end,
    -- Those of the round before go when the present one has passed them.
    faulty = (array(
      select i from unnest(c.faulty) i where i not between c.after + 1 and v_until
      union
      select i from unnest(v_found.run_ids) i
      order by 1))[:20]
  where c.id;
  return nullif(v_found.faults, 0);
end
$$;

-- Looks for violated invariants: in the newest runs, in those where the sweep has found something,
-- or everywhere.
create function millrace.invariant_findings(p_deep boolean) returns setof millrace.finding
stable
set enable_seqscan = off
as $$
declare
  v_progress millrace.check_progress := (select c from millrace.check_progress c);
  v_newest bigint := coalesce((
    select r.id
    from millrace.runs r
    order by r.id desc
    offset 100
    limit 1), 0);
begin
  return query
    select 'no invariant is violated', count(*) = 0, coalesce(
      string_agg(distinct f.rule, '; ')
        || ': select * from millrace.check_invariants() names the runs and what is wrong with them',
      'none' || case
        when p_deep then ''
        when v_progress.ended_at is null then '; the sweep has yet to look at all runs'
        else format('; the sweep has looked at all runs, last at %s',
          to_char(v_progress.ended_at, 'YYYY-MM-DD HH24:MI:SS')) end)
    from (
      select f.rule
      from (
        select v_newest, 101
        union all
        select i - 1, 1
        from unnest(v_progress.faulty) i
        where i <= v_newest) s(after, runs)
      cross join lateral millrace.check_slice(s.after, s.runs) f
      where not p_deep
      union all
      select f.rule
      from millrace.check_invariants() f
      where p_deep) f;
end
$$;
