-- Retrying children: a person retries a parent, and its children go on

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

-- Takes failed children whose rows have had a later run out of the fan-out. One that was started by
-- itself becomes the child; else the item gets a new one.
create function millrace.refile_items(p_fan_out_id bigint, p_item_keys text[])
as $$
declare
  v_overtaken record;
  v_taken int;
begin
  select array_agg(r.id) as ids, array_agg(r.item_key) as keys,
    array_agg(r.entity_id) as entity_ids, array_agg(r.metadata_id) as metadata_ids
  into v_overtaken
  from millrace.runs r
  where r.fan_out_id = p_fan_out_id
    and r.item_key = any (p_item_keys)
    and r.status in ('failed', 'cancelled')
    and not millrace.is_latest_run(r.id);
  if v_overtaken.ids is null then
    return;
  end if;
  perform millrace.keep_costs(v_overtaken.ids);
  update millrace.runs r
  set fan_out_id = null, item_key = null
  where r.id = any (v_overtaken.ids);
  update millrace.runs r
  set fan_out_id = f.id, item_key = c.key, metadata_id = coalesce(r.metadata_id, c.metadata_id)
  from millrace.fan_outs f,
    unnest(v_overtaken.keys, v_overtaken.entity_ids, v_overtaken.metadata_ids)
      c(key, entity_id, metadata_id)
  where f.id = p_fan_out_id
    and r.pipeline_id = f.child_pipeline_id
    and r.entity_id = c.entity_id
    and r.fan_out_id is null
    and millrace.is_latest_run(r.id);
  get diagnostics v_taken = row_count;
  update millrace.fan_outs f
  set spawned = f.spawned - cardinality(v_overtaken.ids) + v_taken
  where f.id = p_fan_out_id;
  insert into millrace.child_tallies (fan_out_id, recount) values (p_fan_out_id, true);
end
$$;
