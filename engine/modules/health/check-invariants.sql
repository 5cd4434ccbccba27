-- A view or function that ends in _faults has a row for each breach of what must always hold. The
-- sweep reads the faults of 500 runs at a time. It begins a new round an hour after the last ended.

-- Returns a row for each run that is stuck, recorded twice or breaks another invariant; no row
-- when all is well. Reads everything in one snapshot and locks nothing.
create function millrace.check_invariants() returns setof millrace.fault
stable
as $$
select * from millrace.run_faults
union all
select * from millrace.row_faults()
union all
select * from millrace.hook_faults()
$$;

-- Returns the breaches of the runs whose ids are above p_after, up to and with p_until.
create function millrace.check_slice(p_after bigint, p_until bigint) returns setof millrace.fault
stable
set plan = by_index
-- Plans anew for each slice. A plan that was made when there were few runs would read all attempts.
set plan_cache_mode = force_custom_plan
as $$
return query
select *
from millrace.run_faults f
where f.run_id > p_after and f.run_id <= p_until
union all
select * from millrace.row_faults(p_after, p_until)
union all
select * from millrace.hook_faults(p_after, p_until, false);
$$;

-- Checks the next p_limit runs, reports their faults and returns how many there were. Returns null
-- without faults, while no round is due, or while another sweep checks.
create function millrace.go_on_checking(p_limit int) returns int
as $$
  -- The last slice ends at this id, so that it includes attempts whose run is gone.
  c_end constant bigint := 9223372036854775807;
  v_progress millrace.check_progress;
  v_until bigint;
  v_found record;

select c.* into v_progress from millrace.check_progress c for update skip locked;
if not found
    or (v_progress.after = 0 and v_progress.ended_at > v_now - interval '1 hour') then
  return null;
end if;
v_until := coalesce((
  select r.id
  from millrace.runs r
  where r.id > v_progress.after
  order by r.id
  offset p_limit - 1
  limit 1), c_end);
select count(*)::int as faults,
  coalesce(array_agg(distinct f.run_id) filter (where f.run_id is not null), '{}') as run_ids,
  min(format('%s: run %s, %s', f.rule, f.run_id, f.detail)) as first
into v_found
from millrace.check_slice(v_progress.after, v_until) f;
perform millrace.report('error', 'invariant_violated',
  format('An invariant is violated (faults: %s). %s', v_found.faults, v_found.first),
  jsonb_build_object('runs', v_found.run_ids[:20]))
where v_found.faults > 0;
update millrace.check_progress c
set after = case when v_until = c_end then 0 else v_until end,
  ended_at = case when v_until = c_end then v_now else c.ended_at end,
  -- Faulty runs of the last round leave the list when the present round has passed them.
  faulty = (array(
    select i from unnest(c.faulty) i where i not between c.after + 1 and v_until
    union
    select i from unnest(v_found.run_ids) i
    order by 1))[:20]
where c.id;
return nullif(v_found.faults, 0);
$$;
