-- The invariants
--
-- Views and functions whose names end in _faults each prove some of what must always hold, and have
-- a row for each breach. check_invariants() reads all of them whole, in one snapshot; check_slice()
-- asks for the runs between two ids.

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
