-- Cut-over: from an old pipeline to a new one.
--
-- A pipeline may replace another over the same table. Both go on, and a flag says which way an
-- entity goes when it is queued at the new one's first stage: always the same column, whatever the
-- flag. It acts in one place, queue_stage(), which intake and start() call with the entities held.
-- So nobody starts an entity one way while somebody starts it the other, and what is under way
-- stays where it is: an entity with a live run starts over in that, wherever the flag points by
-- now.
--
-- The flag is a row of millrace.cut_overs, set by millrace.set_cut_over() (cut-over-flag.sql).
-- Until somebody sets it, the setting use_new_pipeline counts.

-- Queues entities at a stage of a pipeline that replaces another or is replaced: each goes one way,
-- and shows nothing of the other. Raises MR005 where one cannot. The flag parts entities without a
-- live run, and only at the new pipeline's first stage: whoever names a later stage of it, or the
-- old one, has said which way it is. Returns the stages with work.
create or replace function millrace.queue_one_way(
  p_pipeline_id int, p_other_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[],
  p_by_name boolean
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_here text[];
  v_there text[];
  v_free text[];
  v_wake int[] := '{}';
begin
  perform millrace.must_see_both_ways(array[p_pipeline_id, p_other_id]);
  v_there := array(
    select r.entity_id
    from millrace.runs r
    where r.pipeline_id = p_other_id and r.entity_id = any (p_entity_ids) and r.status = 'running'
    order by r.id);
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  if v_pipeline.replaces_id is not null and exists (
      select from millrace.version_stages vs
      where vs.version_id = v_pipeline.current_version_id
        and vs.stage_id = p_stage_id
        and vs.needs = '{}' and vs.after = '[]') then
    v_free := array(
      select e
      from unnest(p_entity_ids) e
      where e not in (
        select r.entity_id
        from millrace.runs r
        where r.pipeline_id in (p_pipeline_id, p_other_id)
          and r.entity_id = any (p_entity_ids)
          and r.status = 'running'));
    v_there := v_there || array(
      select e
      from unnest(v_free) e
      where e not in (select unnest(millrace.new_way_ids(v_pipeline, v_free))));
  elsif cardinality(v_there) > 0 then
    perform millrace.refuse_other_way(p_pipeline_id, p_stage_id, p_other_id, v_there);
  end if;
  v_here := array(
    select e from unnest(p_entity_ids) e where e not in (select unnest(v_there)));
  if cardinality(v_here) > 0 then
    perform millrace.clear_entities(p_other_id, v_here);
    v_wake := millrace.queue_here(p_pipeline_id, p_stage_id, v_here, array(
      select d from unnest(p_dirty_ids) d where d not in (select unnest(v_there))), p_by_name);
  end if;
  if cardinality(v_there) > 0 then
    perform millrace.clear_entities(p_pipeline_id, v_there);
    v_wake := v_wake || millrace.queue_here(
      p_other_id, millrace.first_stage(p_other_id), v_there, v_there, false);
  end if;
  return v_wake;
end
$$;

-- Raises MR005 where the transaction might not see a run that has begun the other way of a
-- cut-over. Without a projection the entities are only locked, not written, so that an older
-- snapshot says nothing of a run that began since.
create or replace function millrace.must_see_both_ways(p_ways int[]) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_isolation text := current_setting('transaction_isolation');
  v_name text;
begin
  if v_isolation <> 'read committed' then
    select p.name
    into v_name
    from millrace.pipelines p
    where p.id = any (p_ways) and p.projection = 'none'
    order by p.id
    limit 1;
    if found then
      raise exception
        'no run of pipeline % can be started or taken up in a transaction that is %',
        v_name, v_isolation
        using errcode = 'MR005',
          hint = 'It is part of a cut-over and has the projection none: '
            'do so in a transaction that is read committed.';
    end if;
  end if;
end
$$;

-- Raises MR005 about entities that are under way in the other pipeline of a cut-over.
create or replace function millrace.refuse_other_way(
  p_pipeline_id int,
  p_stage_id int,
  p_other_id int,
  p_entity_ids text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage text;
  v_pipeline text;
  v_other text;
begin
  select s.name, p.name, o.name
  into v_stage, v_pipeline, v_other
  from millrace.stages s, millrace.pipelines p, millrace.pipelines o
  where s.id = p_stage_id and p.id = p_pipeline_id and o.id = p_other_id;
  raise exception 'stage % of pipeline % cannot start for % entities (%, …): '
    'a run of pipeline % is under way',
    v_stage, v_pipeline, cardinality(p_entity_ids), p_entity_ids[1], v_other
    using errcode = 'MR005',
      hint = format('Let it finish, or cancel it first: select millrace.cancel(r.id) '
        'from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id '
        'where p.name = %L and r.entity_id = %L and r.status = ''running'';',
        v_other, p_entity_ids[1]);
end
$$;

-- Shows all stages of a pipeline as pending on these entities. Rows that show nothing else are not
-- touched.
create or replace function millrace.clear_entities(p_pipeline_id int, p_entity_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.write_entities(p_pipeline_id, 'queued', null, null, p_entity_ids, array(
    select s.name from millrace.stages s where s.pipeline_id = p_pipeline_id));
end
$$;
