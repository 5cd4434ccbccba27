-- A child that starts anew takes the place of its former run, while its parent still waits

-- Gives new runs of children the places of their rows' former runs in fan-outs that are open.
create function millrace.inherit_place(p_run_ids bigint[])
as $$
declare
  v_former record;
begin
  for v_former in
    select distinct on (r.id) r.id as run_id, o.id as former_id, o.fan_out_id, o.item_key,
      case when p.metadata_column is null then o.metadata_id else r.metadata_id end as metadata_id
    from millrace.runs r
    join millrace.runs o
      on o.entity_id = r.entity_id and o.pipeline_id = r.pipeline_id and o.id < r.id
    join millrace.fan_outs f on f.id = o.fan_out_id and f.state = 'open'
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.id = any (p_run_ids)
    order by r.id, o.id desc
  loop
    update millrace.runs r
    set fan_out_id = null, item_key = null
    where r.id = v_former.former_id;
    -- Pruned this moment.
    continue when not found;
    update millrace.runs r
    set fan_out_id = v_former.fan_out_id, item_key = v_former.item_key,
      took_place_of = v_former.former_id, metadata_id = v_former.metadata_id
    where r.id = v_former.run_id;
    insert into millrace.child_tallies (fan_out_id, recount) values (v_former.fan_out_id, true);
  end loop;
end
$$;
