-- Unchanged: a stage whose input is as before takes its former result, without its apply function

-- Queues a stage in these runs, and completes it with its former result where its input is as
-- before. Returns the stages with work.
create function millrace.begin_unless_unchanged(
  p_stage_id int, p_run_ids bigint[], p_shown boolean
) returns int[]
as $$
declare
  v_asked record;
  v_former record;
  v_items millrace.work[];
begin
  select array_agg(r.id order by r.id) as runs, array_agg(r.version_id order by r.id) as versions,
    array_agg(r.entity_id order by r.id) as entities, min(r.pipeline_id) as pipeline_id
  into v_asked
  from millrace.runs r
  where r.id = any (p_run_ids);
  -- "limit 1" leaves a plan no choice.
  select array_agg(u.id) as run_ids, array_agg(u.entity_id) as entity_ids,
    array_agg(f.id) as ids, array_agg(f.input_hash) as hashes
  into v_former
  from unnest(v_asked.runs, v_asked.versions, v_asked.entities, millrace.rows_of_entities(
    v_asked.pipeline_id, v_asked.entities, millrace.batch_bytes()))
    u(id, version_id, entity_id, entity)
  cross join lateral (
    select a.id, a.input_hash
    from millrace.runs o
    cross join lateral (
      select w.id, w.input_hash
      from millrace.attempts w
      where w.run_id = o.id and w.stage_id = p_stage_id and w.state = 'completed'
      order by w.number desc
      limit 1) a
    where o.entity_id = any (array[u.entity_id])
      and o.pipeline_id = v_asked.pipeline_id
    order by o.entity_id desc, o.id desc
    limit 1) f
  where u.entity is not null
    and f.input_hash = millrace.digest_input(u.id, p_stage_id, u.entity,
      millrace.needs_of(u.id, u.version_id, p_stage_id, null));
  perform millrace.queue_attempts(p_stage_id, p_run_ids);
  if not p_shown then
    perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
  end if;
  -- A user's trigger may have ended one of them there and then.
  with taken as (
    update millrace.attempts a
    set input_hash = f.hash, parent_id = f.former_id, service = 'unchanged'
    from unnest(v_former.run_ids, v_former.entity_ids, v_former.ids, v_former.hashes)
      f(run_id, entity_id, former_id, hash)
    cross join lateral (
      select o.ctid as place
      from millrace.attempts o
      where o.run_id = f.run_id and o.stage_id = p_stage_id and o.state = 'queued'
      limit 1) q
    where a.ctid = q.place
    returning a.id, millrace.work_on(a, f.entity_id, 'completed',
      (select o.output from millrace.attempts o where o.id = f.former_id)) as item
  )
  select array_agg(t.item order by t.id) into v_items from taken t;
  return case
      when cardinality(v_items) = cardinality(p_run_ids) then '{}' else array[p_stage_id] end
    || case when v_items is null then '{}'
      else millrace.hook_complete(p_stage_id, v_items) end;
end
$$;

-- Makes the digest of what a stage's path finds in its input, the path and the apply function.
create function millrace.digest_input(
  p_run_id bigint, p_stage_id int, p_entity json, p_needs json
) returns uuid
stable
as $$
return (
  select md5(jsonb_build_array(vs.unchanged_path::text, i.found, s.apply)::text)::uuid
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  join millrace.stages s on s.id = vs.stage_id
  cross join jsonb_path_query_array_tz(
    jsonb_build_object('entity', p_entity, 'needs', p_needs),
    vs.unchanged_path, '{}', true) i(found)
  where r.id = p_run_id
    and jsonb_path_exists(i.found, '$[*] ? (@ != null)'));
$$;
