-- Adding children to a fan-out: items get runs, new ones or those that their rows have already

-- Cancels what abandoned fan-outs left running on these rows. Raises MR004 when a row is a child of
-- another parent that still waits for it.
create function millrace.clear_the_way(
  p_fan_out millrace.fan_outs, p_entity_ids text[]
) returns void
language plpgsql
as $$
declare
  v_other record;
begin
  select r.entity_id, f.run_id into v_other
  from millrace.runs r
  join millrace.fan_outs f on f.id = r.fan_out_id
  where r.pipeline_id = p_fan_out.child_pipeline_id
    and r.entity_id = any (p_entity_ids)
    and r.status = 'running'
    and r.fan_out_id <> p_fan_out.id
    and f.state = 'open'
  limit 1;
  if found then
    raise exception 'row % is a child of run % already', v_other.entity_id, v_other.run_id
      using errcode = 'MR004',
        hint = 'A row has one live run a pipeline: let that one finish, or cancel it, '
          'then retry this run.';
  end if;
  perform millrace.cancel_given_up(p_fan_out.child_pipeline_id, p_entity_ids);
end
$$;

-- Makes live runs of these rows, which no parent waits for, children of this fan-out; returns how
-- many. They began by themselves, or are late children. What they have done already was tallied for
-- nobody, so the children are counted anew.
create function millrace.adopt_runs(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns int
language plpgsql
as $$
declare
  v_count int;
begin
  with adopted as (
    update millrace.runs r
    set fan_out_id = p_fan_out.id, item_key = i.key,
      metadata_id = case when c.metadata_column is null then o.metadata_id else r.metadata_id end
    from unnest(p_item_keys, p_entity_ids) i(key, entity_id), millrace.pipelines c, millrace.runs o
    where c.id = p_fan_out.child_pipeline_id
      and o.id = p_fan_out.run_id
      and r.pipeline_id = p_fan_out.child_pipeline_id
      and r.entity_id = i.entity_id
      and r.status = 'running'
      and r.fan_out_id is distinct from p_fan_out.id
      and not exists (
        select from millrace.runs o
        where o.fan_out_id = p_fan_out.id and o.item_key = i.key offset 0)
    returning r.id
  ), dropped as (
    -- What they had before: no part of a statement sees what another part writes.
    insert into millrace.dropped_metadata (metadata_id)
    select distinct r.metadata_id
    from adopted a
    join millrace.runs r on r.id = a.id
    where r.metadata_id is not null
  )
  select count(*) into v_count from adopted;
  if v_count > 0 then
    insert into millrace.child_tallies (fan_out_id, recount) values (p_fan_out.id, true);
  end if;
  return v_count;
end
$$;

-- Gives a run to each of the items that has none in this fan-out: adopts one that is live, or makes
-- one. Returns the new runs, and how many joined the fan-out in all.
create function millrace.add_child_runs(
  p_fan_out millrace.fan_outs,
  p_item_keys text[],
  p_entity_ids text[],
  out added bigint[],
  out joined int
)
language plpgsql
as $$
declare
  v_adopted int := 0;
  v_new record;
  v_copied record;
begin
  if exists (
    select
    from unnest(p_entity_ids) i(entity_id)
    cross join lateral (
      select
      from millrace.runs r
      where r.pipeline_id = p_fan_out.child_pipeline_id
        and r.entity_id = i.entity_id
        and r.status = 'running'
        and r.fan_out_id is distinct from p_fan_out.id
      offset 0) r) then
    perform millrace.clear_the_way(p_fan_out, p_entity_ids);
    v_adopted := millrace.adopt_runs(p_fan_out, p_item_keys, p_entity_ids);
  end if;
  select coalesce(array_agg(i.key), '{}') as keys,
    coalesce(array_agg(i.entity_id), '{}') as entity_ids
  into v_new
  from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
  where not exists (
    -- "offset 0" keeps it a look-up for each item: as a join it would read all children again.
    select from millrace.runs o
    where o.fan_out_id = p_fan_out.id and o.item_key = i.key offset 0);
  v_copied := millrace.copy_metadata(p_fan_out.child_pipeline_id, v_new.entity_ids);
  perform millrace.refuse_metadata(v_copied.faults);
  with made as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, fan_out_id, item_key,
      priority, metadata_id, created_at)
    select c.id, c.current_version_id, i.entity_id, r.trace_id, p_fan_out.id, i.key, r.priority,
      case when c.metadata_column is null then r.metadata_id else i.metadata_id end, millrace.now()
    from unnest(v_new.keys, v_new.entity_ids, v_copied.ids) i(key, entity_id, metadata_id),
      millrace.pipelines c, millrace.runs r
    where c.id = p_fan_out.child_pipeline_id and r.id = p_fan_out.run_id
    returning id
  )
  select coalesce(array_agg(m.id order by m.id), '{}') into added from made m;
  joined := v_adopted + cardinality(added);
end
$$;

-- Starts runs for the items that have none in this fan-out; returns the stages with work.
create function millrace.add_children(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns int[]
language plpgsql
as $$
declare
  v_runs record;
  v_spawned int;
begin
  perform millrace.check_rows_differ(p_fan_out, p_item_keys, p_entity_ids);
  v_runs := millrace.add_child_runs(p_fan_out, p_item_keys, p_entity_ids);
  if v_runs.joined = 0 then
    return '{}';
  end if;
  -- What comes after a predecessor's last chunk opens the total again, until this worker's own last
  -- chunk.
  update millrace.fan_outs f
  set total = null,
    spawned = f.spawned + v_runs.joined,
    first_number = least(f.first_number,
      (select min(n) from unnest(millrace.item_numbers(p_item_keys)) n))
  where f.id = p_fan_out.id
  returning f.spawned into v_spawned;
  if v_spawned > 100000 then
    raise exception 'the fan-out has % children, but one may have at most 100000', v_spawned
      using errcode = 'MR002', hint = 'Spawn groups, whose runs spawn their members.';
  end if;
  return millrace.begin_roots(p_fan_out.child_pipeline_id, v_runs.added);
end
$$;
