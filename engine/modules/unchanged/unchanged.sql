-- Unchanged: a stage whose input is as before takes its former result, without its apply function

-- Queues a stage in these runs, and completes it with its former result where its input is as
-- before. p_shown: the entities show it as queued already. Returns the stages that got work.
create function millrace.begin_unless_unchanged(
  p_stage_id int, p_run_ids bigint[], p_shown boolean
) returns int[]
as $$
declare
  v_asked record;
  v_formers record;
  v_items millrace.work[];
begin
  select array_agg(r.id order by r.id) as runs, array_agg(r.entity_id order by r.id) as entities,
    min(r.pipeline_id) as pipeline_id
  into v_asked
  from millrace.runs r
  where r.id = any (p_run_ids);
  -- "limit 1" leaves a plan no choice.
  select array_agg(u.id) as run_ids, array_agg(u.entity_id) as entity_ids,
    array_agg(f.id) as ids, array_agg(i.hash) as hashes
  into v_formers
  from unnest(v_asked.runs, v_asked.entities, millrace.rows_of_entities(
    v_asked.pipeline_id, v_asked.entities, millrace.batch_bytes())) u(id, entity_id, entity)
  cross join lateral (select o.version_id from millrace.runs o where o.id = u.id limit 1) r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  cross join lateral (
    select jsonb_object_agg(
      (select s.name from millrace.stages s where s.id = d.stage_id), d.output) as needs
    from unnest(vs.needs) i(stage_id)
    cross join lateral (
      select o.stage_id, o.output
      from millrace.done_attempts o
      where o.run_id = u.id
        and o.stage_id = i.stage_id
      limit 1) d) n
  cross join lateral (
    select millrace.digest_at(p_stage_id, jsonb_build_object(
      'entity', u.entity::jsonb, 'needs', coalesce(n.needs, '{}')), vs.unchanged_path) as hash
    offset 0) i
  cross join lateral (
    select a.id, a.input_hash
    from millrace.runs o
    cross join lateral (
      select w.id, w.input_hash
      from millrace.attempts w
      where w.run_id = o.id
        and w.stage_id = p_stage_id
        and w.state = 'completed'
      order by w.number desc
      limit 1) a
    where o.entity_id = any (array[u.entity_id])
      and o.pipeline_id = v_asked.pipeline_id
    order by o.entity_id desc, o.id desc
    limit 1) f
  where u.entity is not null and f.input_hash = i.hash;
  perform millrace.queue_attempts(p_stage_id, p_run_ids);
  if not p_shown then
    perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
  end if;
  -- A user's trigger may have ended one of them there and then.
  with taken as (
    update millrace.attempts a
    set input_hash = f.hash, parent_id = f.former_id, service = 'unchanged'
    from unnest(v_formers.run_ids, v_formers.entity_ids, v_formers.ids, v_formers.hashes)
      f(run_id, entity_id, former_id, hash)
    cross join lateral (
      select o.ctid as place
      from millrace.attempts o
      where o.run_id = f.run_id
        and o.stage_id = p_stage_id
        and o.state = 'queued'
      limit 1) q
    where a.ctid = q.place
    returning a.id, millrace.work_on(a, f.entity_id, 'completed',
      (select o.output from millrace.attempts o where o.id = f.former_id)) as item
  )
  select array_agg(t.item order by t.id) into v_items from taken t;
  return case
      when cardinality(v_items) = cardinality(p_run_ids) then '{}' else array[p_stage_id] end
    || case when v_items is null then '{}'
      else millrace.complete_or_end(p_stage_id, v_items) end;
end
$$;

-- Keeps the digest of the input that a claim gives its worker.
create function millrace.keep_inputs(p_stage millrace.stages, p_batch json)
as $$
begin
  update millrace.attempts a
  set input_hash = millrace.digest_at(p_stage.id, jsonb_build_object(
    'entity', b.item -> 'entity', 'needs', b.item -> 'needs'), vs.unchanged_path)
  from json_array_elements(p_batch) b(item)
  cross join lateral (
    select o.ctid as place
    from millrace.attempts o
    where o.id = (b.item ->> 'attempt')::bigint
      and o.state = 'started'
    limit 1) i
  cross join lateral (
    select o.version_id
    from millrace.runs o
    where o.id = (b.item ->> 'run')::bigint
    limit 1) r
  join millrace.version_stages vs
    on vs.version_id = r.version_id and vs.stage_id = p_stage.id
  where a.ctid = i.place;
end
$$;

-- Makes the digest of what a stage's path finds, with the path and the apply function; null of
-- nothing.
create function millrace.digest_at(
  p_stage_id int, p_document jsonb, p_path jsonpath
) returns uuid
stable
as $$
declare
  v_found jsonb := jsonb_path_query_array_tz(p_document, p_path, '{}', true);
begin
  if jsonb_path_exists(v_found, '$[*] ? (@ != null)') then
    return md5(jsonb_build_array(p_path::text, v_found, (
      select s.apply from millrace.stages s where s.id = p_stage_id))::text)::uuid;
  end if;
  return null;
end
$$;

-- Finds results that were taken over though they cannot have been.
create view millrace.unchanged_faults (rule, run_id, attempt_id, detail) as
select 'a stage that takes its former result uses nothing, and has that result', a.run_id, a.id,
  'stage ' || a.stage_id
from millrace.attempts a
left join millrace.attempts o on o.id = a.parent_id
where a.service = 'unchanged'
  and a.job_id is null
  and (a.state <> 'completed'
    or a.usage is not null
    or a.input_hash is null
    or a.parent_id is null
    or o.output is distinct from a.output and o.id is not null);
