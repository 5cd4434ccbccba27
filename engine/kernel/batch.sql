-- The batch that a claim hands to its worker

-- Builds the batch of claimed attempts with their rows and the results of their needs. The answer
-- is json, not jsonb, since it is read once, as text.
-- p_each: how many bytes an item's row, or its results, may have; null for no bound.
-- p_built: the rows and results that measured_rows() has built. Null: reads them, and returns null
-- if one of them may exceed p_each.
create function millrace.batch_of(
  p_stage millrace.stages, p_token uuid, p_items millrace.claimed[], p_entity_ids text[],
  p_each bigint, p_built millrace.built[] default null
) returns json
as $$
  v_rows json[] := case when p_built is null
    then millrace.rows_of_entities(p_stage.pipeline_id, p_entity_ids, p_each) end;
  v_version record;
  v_within boolean;
  v_batch json;

-- Most batches are of one version, so the needs of the first item's version are read once.
select v.id, v.number, vs.needs, array(
  select s.name
  from unnest(vs.needs) with ordinality n(id, ordinal)
  join millrace.stages s on s.id = n.id
  order by n.ordinal) as names
into v_version
from millrace.version_stages vs
join millrace.versions v on v.id = vs.version_id
where vs.version_id = p_items[1].version_id and vs.stage_id = p_stage.id;
-- Aggregates whole rows. Naming each field in json_build_object costs half as much again.
select json_agg(b), bool_and(b.entity is not null and b.needs is not null)
into v_batch, v_within
from (
  select i.attempt_id as attempt, p_token as token, i.run_id as run, i.trace_id,
    case when i.entity_id ^@ 'copy ' then millrace.row_key(p_stage.pipeline_id, i.entity_id)
      else i.entity_id end as entity_id,
    case when i.version_id = v_version.id then v_version.number
      else (select v.number from millrace.versions v
        where v.id = i.version_id) end as version,
    coalesce(i.entity, i.built_entity) as entity, i.retry_count, i.submission, i.isolated,
    -- The stage run has the id of its first attempt.
    case when i.number = 1 then i.attempt_id else (
      select min(a.id + 0)
      from millrace.attempts a
      where a.run_id = i.run_id and a.stage_id = p_stage.id and not a.superseded)
    end as stage_run,
    case
      when p_built is not null then i.built_needs
      when i.version_id is distinct from v_version.id
        then millrace.needs_of(i.run_id, i.version_id, p_stage.id, p_each)
      else (
        select case when bool_or(z.most > p_each) is not true then coalesce(
          json_object_agg(
            v_version.names[array_position(v_version.needs, n.stage_id)], n.output)
            filter (where (z.most > p_each) is not true), '{}') end
        from millrace.done_attempts n
        -- How many bytes the text has at most, numbers such as 1e100000 aside. The rule is that of
        -- write_rows() in attach-rows.sql.
        cross join lateral (values (pg_column_size(n.output)::bigint
          * case when pg_column_compression(n.output) is null then 8 else 100 end)) z(most)
        where n.run_id = i.run_id and n.stage_id = any (v_version.needs))
    end as needs,
    i.failure
  from rows from (unnest(p_items), unnest(v_rows), unnest(p_built))
    as i(attempt_id, run_id, entity_id, trace_id, version_id, retry_count, submission, number,
      isolated, entity, built_entity, built_needs, failure)
  -- Without offset 0 the planner would compute the needs twice.
  offset 0) b;
return case when v_within then v_batch when p_items = '{}' then '[]' end;
$$;

-- Returns the rows of a pipeline as json, in the order of p_ids.
-- p_each: in bytes; a row that may be longer is null. Null for no bound.
-- attach() writes the function, with a branch for each pipeline:
--   create function millrace.rows_of_entities(p_pipeline_id int, p_ids text[], p_each bigint)
--   returns json[]

-- Returns how many bytes the rows take in storage, in the order of p_ids; null for a row that is
-- gone. attach() writes the function:
--   create function millrace.sizes_of_entities(p_pipeline_id int, p_ids text[]) returns bigint[]

-- Builds the rows and results of the first items that have p_bytes together. An item that alone
-- exceeds p_bytes comes with its failure row_too_large. Reads the stored size of a row before it
-- fetches the row.
create function millrace.measured_rows(
  p_stage millrace.stages, p_items millrace.claimed[], p_entity_ids text[], p_bytes bigint
) returns millrace.built[]
as $$
  c_frame constant int := 500;
  v_stored bigint[] := millrace.sizes_of_entities(p_stage.pipeline_id, p_entity_ids);
  v_used bigint := 0;
  v_size bigint;
  v_row millrace.built;
  v_rows millrace.built[] := '{}';

for v_i in 1 .. cardinality(p_items) loop
  v_size := c_frame + coalesce(v_stored[v_i], 0)
    + millrace.size_of_needs(p_items[v_i].run_id, p_items[v_i].version_id, p_stage.id);
  if v_size <= p_bytes then
    exit when v_used + v_size > p_bytes;
    begin
      v_row := row(
        coalesce((millrace.rows_of_entities(
          p_stage.pipeline_id, array[p_items[v_i].entity_id], null))[1], '{}'),
        millrace.needs_of(p_items[v_i].run_id, p_items[v_i].version_id, p_stage.id, null),
        null)::millrace.built;
      v_size := c_frame + octet_length(v_row.entity::text)::bigint
        + octet_length(v_row.needs::text);
    exception
      -- The text of the number 1e100000 has 100,001 bytes: some thousand of them in a small row
      -- have over a gigabyte.
      when program_limit_exceeded or out_of_memory then
        v_size := 1073741824;
    end;
  end if;
  if v_size > p_bytes then
    v_row := row('{}', '{}', json_build_object('code', 'row_too_large', 'message', format(
      'the row and the results that stage %s needs have %s bytes, '
      'but a worker takes %s (setting batch_bytes); shorten the row, then retry it',
      p_stage.name, v_size, p_bytes)))::millrace.built;
    v_size := c_frame;
  end if;
  exit when v_used + v_size > p_bytes;
  v_used := v_used + v_size;
  v_rows[v_i] := v_row;
end loop;
return v_rows;
$$;

-- Builds the batch of the first items that fit into p_bytes. Nearly all batches are small and need
-- one statement; measuring each row would cost up to a tenth more.
-- p_items, p_entity_ids: come back in another order where rows are gone, whose items then stand
-- last.
-- kept: how many of the items are in the batch.
create function millrace.fill_batch(
  p_stage millrace.stages, p_token uuid, inout p_items millrace.claimed[],
  inout p_entity_ids text[], p_bytes bigint, out batch json, out kept int
)
as $$
  v_built millrace.built[];
  v_gone text[];

kept := cardinality(p_items);
batch := millrace.batch_of(
  p_stage, p_token, p_items, p_entity_ids, p_bytes / (2 * greatest(kept, 1)));
if (pg_column_size(batch) <= p_bytes) is not true then
  v_gone := millrace.delete_missing(p_stage.pipeline_id, p_entity_ids);
  p_items := array(select i from unnest(p_items) i where i.entity_id <> all (v_gone))
    || array(select i from unnest(p_items) i where i.entity_id = any (v_gone));
  p_entity_ids := array(select i.entity_id from unnest(p_items) i);
  kept := kept - cardinality(v_gone);
  v_built := millrace.measured_rows(p_stage, p_items[:kept], p_entity_ids[:kept], p_bytes);
  kept := cardinality(v_built);
  batch := millrace.batch_of(
    p_stage, p_token, p_items[:kept], p_entity_ids[:kept], null, v_built);
end if;
$$;

-- Returns the results that a stage of a run needs, by stage.
-- p_each: returns null where their text may have more bytes; null for no bound.
create function millrace.needs_of(
  p_run_id bigint, p_version_id int, p_stage_id int, p_each bigint
) returns json
stable
as $$
if 100 * millrace.size_of_needs(p_run_id, p_version_id, p_stage_id) > p_each then
  return null;
end if;
return coalesce((
  select json_object_agg(s.name, n.output)
  from millrace.version_stages vs
  join millrace.done_attempts n on n.run_id = p_run_id and n.stage_id = any (vs.needs)
  join millrace.stages s on s.id = n.stage_id
  where vs.version_id = p_version_id and vs.stage_id = p_stage_id), '{}');
$$;

-- Returns how many bytes the results that a stage of a run needs take in storage.
create function millrace.size_of_needs(
  p_run_id bigint, p_version_id int, p_stage_id int
) returns bigint
stable
as $$
return (
  select coalesce(sum(pg_column_size(n.output)), 0)
  from millrace.version_stages vs
  join millrace.done_attempts n on n.run_id = p_run_id and n.stage_id = any (vs.needs)
  where vs.version_id = p_version_id and vs.stage_id = p_stage_id);
$$;
