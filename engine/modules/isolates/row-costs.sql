-- Keeps what a worker has reckoned that a row of its stage takes, and chooses the stage's batch and
-- workers anew.
create function millrace.learn_row_cost(
  p_stage_id int, p_cpu_ms real, p_bytes bigint
)
as $$
begin
  insert into millrace.row_costs as c (stage_id, cpu_ms, memory_bytes, learned_at)
  values (p_stage_id, least(greatest(p_cpu_ms, 0.5), 500), greatest(p_bytes, 0), millrace.now())
  on conflict on constraint row_costs_pkey do update
  set cpu_ms = excluded.cpu_ms,
    memory_bytes = coalesce(excluded.memory_bytes, c.memory_bytes),
    learned_at = excluded.learned_at
  -- A change by less than a fifth is chance, and not worth a row.
  where excluded.cpu_ms not between c.cpu_ms * 0.8 and c.cpu_ms * 1.25
    or coalesce(excluded.memory_bytes not between c.memory_bytes * 0.8 and c.memory_bytes * 1.25,
      excluded.memory_bytes is distinct from c.memory_bytes);
  if found then
    perform millrace.choose_places(p_stage_id);
  end if;
end
$$;

-- Learns from isolates that ended without a word while they held rows of a stage: a row takes twice
-- what was thought, but no more than its share of what they had taken.
create function millrace.learn_from_loss(p_stage_id int, p_hosts uuid[])
as $$
declare
  v_lost record;
begin
  select count(*) as lives, 2000.0 / greatest(max(h.taken), 1) as share
  into v_lost
  from (
    select sum(w.taken) as taken
    from millrace.workers w
    where w.stage_id = p_stage_id and w.host = any (p_hosts)
    group by w.host) h;
  insert into millrace.row_costs as c (stage_id, cpu_ms, lives_cut, learned_at)
  select p_stage_id, greatest(least(12, v_lost.share), 0.5), v_lost.lives, millrace.now()
  where v_lost.lives > 0
  on conflict on constraint row_costs_pkey do update
  set cpu_ms = least(500, greatest(c.cpu_ms, least(c.cpu_ms * 2, v_lost.share))),
    lives_cut = c.lives_cut + excluded.lives_cut,
    learned_at = excluded.learned_at
  -- Whatever ends many at once, such as an outage, teaches it once.
  where abs(extract(epoch from excluded.learned_at - c.learned_at)) >= 60;
  perform millrace.choose_places(p_stage_id);
end
$$;

-- Chooses batch and workers of a stage whose definition says how many rows are to be in work at
-- once: as many in a batch, up to fifty, as an isolate bears.
create function millrace.choose_places(p_stage_id int)
as $$
begin
  update millrace.stages s
  set batch_size = b.batch_size,
    max_workers = least(1000, ceil(s.concurrency::numeric / b.batch_size))
  from (
    -- All workers have as many, or the last would have free places that it cannot fill.
    select ceil(m.concurrency::numeric / ceil(m.concurrency::numeric / m.most))::int as batch_size
    from (
      select o.concurrency, greatest(1, least(50, o.concurrency,
        floor(1000 / coalesce(c.cpu_ms, 6)),
        floor(67108864 / greatest(coalesce(c.memory_bytes, 1), 1))))::int as most
      from millrace.stages o
      left join millrace.row_costs c on c.stage_id = o.id
      where o.id = p_stage_id) m) b
  where s.id = p_stage_id
    and s.concurrency is not null
    and s.batch_size <> b.batch_size;
end
$$;
