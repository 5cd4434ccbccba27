-- Opens the latest fan-outs of a stage again; a map that spawns retries its failed children.
create function millrace.reopen_fan_outs(p_stage_id int, p_run_ids bigint[])
as $$
begin
  with reopened as (
    update millrace.fan_outs f
    set state = 'open', total = null, retry_children = true,
      -- Rows that were deleted meanwhile are no children any more.
      spawned = (select count(*) from millrace.runs r where r.fan_out_id = f.id)
    where f.id in (
        select max(o.id)
        from millrace.fan_outs o
        where o.run_id = any (p_run_ids)
          and o.stage_id = p_stage_id
        group by o.run_id)
      and f.state <> 'open'
    returning f.id
  )
  insert into millrace.child_tallies (fan_out_id, recount) select o.id, true from reopened o;
end
$$;

-- Lets children go on that failed or were cancelled. Returns those whose rows have had a later run:
-- they leave their fan-outs.
create function millrace.retry_children(p_run_ids bigint[]) returns bigint[]
as $$
declare
  v_failed bigint[] := array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and r.status in ('failed', 'cancelled')
    order by r.id
    for no key update);
  v_overtaken bigint[] := array(
    select id from unnest(v_failed) id where not millrace.is_latest_run(id));
begin
  if v_overtaken <> '{}' then
    perform millrace.keep_costs(v_overtaken);
    insert into millrace.child_tallies (fan_out_id, recount)
    select distinct r.fan_out_id, true
    from millrace.runs r
    where r.id = any (v_overtaken);
    update millrace.runs r
    set fan_out_id = null, item_key = null
    where r.id = any (v_overtaken);
  end if;
  if v_failed <> '{}' then
    perform millrace.retry_runs(v_failed);
  end if;
  return v_overtaken;
end
$$;
