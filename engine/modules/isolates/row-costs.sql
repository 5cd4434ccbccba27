-- Sets batch_size and max_workers of a stage with `concurrency`. A batch has as many rows as an
-- isolate can bear by their estimated CPU time and memory, 50 at most.
create function millrace.choose_slots(p_stage_id int)
as $$
update millrace.stages s
set batch_size = b.batch_size,
  max_workers = least(1000, ceil(s.concurrency::numeric / b.batch_size))
from (
  -- All workers get the same batch size. Otherwise the last one would have slots that it cannot
  -- fill.
  select ceil(m.concurrency::numeric / ceil(m.concurrency::numeric / m.most))::int as batch_size
  from (
    select o.concurrency, greatest(1, least(50, o.concurrency,
      floor(1000 / coalesce(c.cpu_ms, 6)),
      floor(67108864 / greatest(coalesce(c.memory_bytes, 1), 1))))::int as most
    from millrace.stages o
    left join millrace.row_costs c on c.stage_id = o.id
    where o.id = p_stage_id) m) b
where s.id = p_stage_id and s.concurrency is not null
  and s.batch_size <> b.batch_size;
$$;
