-- Chapter 22: from an old pipeline to a new one
--
-- A pipeline may replace another over the same table. Both go on, and a flag says which way an entity goes when it is
-- queued at the new one's first stage: always the same column, whatever the flag. It acts in one place, queue_stage(), which
-- intake and start() call with the entities held. So nobody starts an entity one way while somebody starts it the other, and
-- what is under way stays where it is: an entity with a live run starts over in that, wherever the flag points by now.
--
-- The flag is a row of millrace.cut_overs, set by millrace.set_cut_over(). Until somebody sets it, the setting
-- use_new_pipeline counts.

-- The engine's own configuration never makes a user's write fail.
create or replace function millrace.use_new_pipeline() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_value text;
begin
  begin
    v_value := coalesce(millrace.setting('use_new_pipeline'), 'false');
  exception
    when others then
      if millrace.error_kind(sqlstate) <> 'lasting' then
        raise;
      end if;
      v_value := sqlerrm;
  end;
  if v_value not in ('true', 'false') then
    perform millrace.report('error', 'use_new_pipeline_malformed', format('use_new_pipeline is %L, but must be true or false: it counts as false', v_value),
      jsonb_build_object('hint', 'select vault.update_secret(id, ''true'') from vault.secrets where name = ''millrace_use_new_pipeline'';'));
  end if;
  return v_value = 'true';
end
$$;
comment on function millrace.use_new_pipeline() is 'The setting use_new_pipeline; one that is neither true nor false counts as false and is reported.';

create or replace function millrace.check_replaces(p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_replaces jsonb := p_definition -> 'replaces';
  v_old millrace.pipelines;
  v_new millrace.pipelines;
begin
  if coalesce(jsonb_typeof(v_replaces), 'null') = 'null' then
    return;
  elsif jsonb_typeof(v_replaces) <> 'object' or coalesce(jsonb_typeof(v_replaces -> 'pipeline'), '') <> 'string' or v_replaces - array['pipeline', 'group_by'] <> '{}' then
    raise exception 'replaces is %, but must be an object of pipeline and group_by', v_replaces using errcode = 'MR001', hint = 'Write {"pipeline": "the_old_one"}; group_by is a key of the metadata.';
  end if;
  select p.* into v_old from millrace.pipelines p where p.name = v_replaces ->> 'pipeline';
  select p.* into v_new from millrace.pipelines p where p.name = p_definition ->> 'pipeline';
  if v_old.id is null or v_old.name = p_definition ->> 'pipeline' then
    raise exception 'replaces.pipeline is %, which is no other pipeline', v_replaces -> 'pipeline' using errcode = 'MR001', hint = 'Define the old pipeline before the one that replaces it.';
  elsif v_old.entity_table <> to_regclass(p_definition #>> '{entity,table}') or v_old.entity_key <> coalesce(p_definition #>> '{entity,key}', 'id') then
    raise exception 'replaces.pipeline is %, which is over %.%', v_replaces -> 'pipeline', v_old.entity_table, v_old.entity_key using errcode = 'MR001', hint = 'Both must be over the same table and key.';
  elsif v_old.replaces_id is not null or exists (select from millrace.pipelines p where p.replaces_id = v_new.id or (p.replaces_id = v_old.id and p.id is distinct from v_new.id)) then
    raise exception 'pipeline % cannot replace %: one of them is part of another cut-over', p_definition ->> 'pipeline', v_old.name
      using errcode = 'MR001', hint = 'End that first: define the pipeline of it that replaces the other without "replaces".';
  elsif v_old.is_child or v_new.is_child then
    raise exception 'pipeline % cannot replace %: a stage of another pipeline starts runs of %', p_definition ->> 'pipeline', v_old.name, case when v_old.is_child then v_old.name else v_new.name end
      using errcode = 'MR001', hint = 'Replace the pipeline that has this stage; only what is started by itself can go either way.';
  elsif v_replaces ? 'group_by' and (coalesce(jsonb_typeof(v_replaces -> 'group_by'), '') <> 'string' or p_definition #>> '{entity,metadata}' is null) then
    raise exception 'replaces.group_by is %, but must be a key of the metadata, whose column entity.metadata names', v_replaces -> 'group_by'
      using errcode = 'MR001', hint = 'Name the column in entity.metadata and the key in replaces.group_by, or leave group_by out.';
  end if;
end
$$;
comment on function millrace.check_replaces(jsonb) is 'Raises MR001 unless a definition replaces none, or a pipeline over the same rows that nothing else is tied to.';

create or replace function millrace.check_replaced(p_pipeline text, p_table regclass, p_key text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_new text := (
    select n.name from millrace.pipelines p join millrace.pipelines n on n.replaces_id = p.id
    where p.name = p_pipeline and (p.entity_table <> p_table or p.entity_key <> p_key));
begin
  if v_new is not null then
    raise exception 'pipeline % cannot move to %.%: pipeline % replaces it, over the same rows', p_pipeline, p_table, p_key, v_new
      using errcode = 'MR001', hint = format('Define %s without "replaces" first.', v_new);
  end if;
end
$$;
comment on function millrace.check_replaced(text, regclass, text) is 'Raises MR001 when a pipeline that another replaces is to change its table or key.';

create or replace function millrace.save_cut_over(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_old_id int := (select p.id from millrace.pipelines p where p.name = p_definition #>> '{replaces,pipeline}');
  v_key text := p_definition #>> '{replaces,group_by}';
  v_both int;
begin
  update millrace.pipelines p set replaces_id = v_old_id, group_key = v_key
  where p.id = p_pipeline_id and (p.replaces_id is distinct from v_old_id or p.group_key is distinct from v_key);
  if v_old_id is null then
    delete from millrace.cut_overs c where c.pipeline_id = p_pipeline_id;
    return;
  end if;
  v_both := (
    select count(*) from millrace.runs n join millrace.runs o on o.pipeline_id = v_old_id and o.entity_id = n.entity_id and o.status = 'running'
    where n.pipeline_id = p_pipeline_id and n.status = 'running');
  if v_both > 0 then
    raise exception 'pipeline % cannot replace % yet: % entities have live runs of both', p_definition ->> 'pipeline', p_definition #>> '{replaces,pipeline}', v_both
      using errcode = 'MR001', hint = 'Let them finish, or cancel those of one: select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id = ….';
  elsif v_key is null and exists (select from millrace.cut_overs c where c.pipeline_id = p_pipeline_id and c.mode = 'groups') then
    raise exception 'replaces.group_by is missing, but the flag of pipeline % names groups', p_definition ->> 'pipeline'
      using errcode = 'MR001', hint = format('Set the flag first: select millrace.set_cut_over(%L, ''off'').', p_definition ->> 'pipeline');
  end if;
  insert into millrace.cut_overs (pipeline_id, changed_at) values (p_pipeline_id, millrace.now()) on conflict on constraint cut_overs_pkey do nothing;
end
$$;
comment on function millrace.save_cut_over(int, jsonb) is 'Writes which pipeline a definition replaces, with its flag at the default; one that is there stays as somebody set it.';

create or replace function millrace.share_of(p_entity_id text) returns numeric
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select ('x' || left(md5(p_entity_id), 8))::bit(32)::bigint / 4294967296.0 $$;
comment on function millrace.share_of(text) is 'Where an entity lies between 0 and 1, for ever: a share that grows only adds entities.';

-- The flag alone, for entities with nothing under way.
create or replace function millrace.new_way_ids(p_new millrace.pipelines, p_entity_ids text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_flag millrace.cut_overs;
begin
  select c.* into v_flag from millrace.cut_overs c where c.pipeline_id = p_new.id;
  case v_flag.mode
    when 'on' then return p_entity_ids;
    when 'off' then return '{}';
    when 'share' then return array(select e from unnest(p_entity_ids) e where millrace.share_of(e) < v_flag.share);
    when 'groups' then return array(
      select e.id from unnest(p_entity_ids, millrace.metadata_of_entities(p_new.id, p_entity_ids)) e(id, metadata) where e.metadata ->> p_new.group_key = any (v_flag.groups));
    else return case when millrace.use_new_pipeline() then p_entity_ids else '{}' end;
  end case;
end
$$;
comment on function millrace.new_way_ids(millrace.pipelines, text[]) is 'Those of the entities that the flag of a pipeline sends its way.';

create or replace function millrace.clear_entities(p_pipeline_id int, p_entity_ids text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.write_entities(p_pipeline_id, 'queued', null, null, p_entity_ids, array(select s.name from millrace.stages s where s.pipeline_id = p_pipeline_id));
end
$$;
comment on function millrace.clear_entities(int, text[]) is 'Shows all stages of a pipeline as pending on these entities; rows that show nothing else are not touched.';

create or replace function millrace.refuse_other_way(p_pipeline_id int, p_stage_id int, p_other_id int, p_entity_ids text[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text := (select p.name from millrace.pipelines p where p.id = p_other_id);
begin
  raise exception 'stage % of pipeline % cannot start for % entities (%, …): a run of pipeline % is under way', (select s.name from millrace.stages s where s.id = p_stage_id),
    (select p.name from millrace.pipelines p where p.id = p_pipeline_id), cardinality(p_entity_ids), p_entity_ids[1], v_other
    using errcode = 'MR005', hint = format('Let it finish, or cancel it first: select millrace.cancel(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id '
      'where p.name = %L and r.entity_id = %L and r.status = ''running'';', v_other, p_entity_ids[1]);
end
$$;
comment on function millrace.refuse_other_way(int, int, int, text[]) is 'Raises MR005 about entities that are under way in the other pipeline of a cut-over.';

-- Without a projection the entities are only locked, not written, so that an older snapshot says nothing of a run that began since.
create or replace function millrace.must_see_both_ways(p_ways int[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    select p.name into v_name from millrace.pipelines p where p.id = any (p_ways) and p.projection = 'none' order by p.id limit 1;
    if found then
      raise exception 'no run of pipeline % can be started or taken up in a transaction that is %', v_name, current_setting('transaction_isolation')
        using errcode = 'MR005', hint = 'It is part of a cut-over and has the projection none: do so in a transaction that is read committed.';
    end if;
  end if;
end
$$;
comment on function millrace.must_see_both_ways(int[]) is 'Raises MR005 where the transaction might not see a run that has begun the other way of a cut-over.';

-- Entities without a live run are parted by the flag at the new pipeline's first stage alone. Who names a later stage of it,
-- or the old one, has said which way it is.
create or replace function millrace.queue_one_way(p_pipeline_id int, p_other_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
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
    select r.entity_id from millrace.runs r where r.pipeline_id = p_other_id and r.entity_id = any (p_entity_ids) and r.status = 'running' order by r.id);
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  if v_pipeline.replaces_id is not null and exists (
      select from millrace.version_stages vs where vs.version_id = v_pipeline.current_version_id and vs.stage_id = p_stage_id and vs.needs = '{}' and vs.after = '[]') then
    v_free := array(
      select e from unnest(p_entity_ids) e
      where e not in (select r.entity_id from millrace.runs r where r.pipeline_id in (p_pipeline_id, p_other_id) and r.entity_id = any (p_entity_ids) and r.status = 'running'));
    v_there := v_there || array(select e from unnest(v_free) e where e not in (select n from unnest(millrace.new_way_ids(v_pipeline, v_free)) n));
  elsif cardinality(v_there) > 0 then
    perform millrace.refuse_other_way(p_pipeline_id, p_stage_id, p_other_id, v_there);
  end if;
  v_here := array(select e from unnest(p_entity_ids) e where e not in (select t from unnest(v_there) t));
  if cardinality(v_here) > 0 then
    perform millrace.clear_entities(p_other_id, v_here);
    v_wake := millrace.queue_here(p_pipeline_id, p_stage_id, v_here, array(select d from unnest(p_dirty_ids) d where d not in (select t from unnest(v_there) t)));
  end if;
  if cardinality(v_there) > 0 then
    perform millrace.clear_entities(p_pipeline_id, v_there);
    v_wake := v_wake || millrace.queue_here(p_other_id, millrace.first_stage(p_other_id), v_there, v_there);
  end if;
  return v_wake;
end
$$;
comment on function millrace.queue_one_way(int, int, int, text[], text[]) is 'queue_here() for a pipeline that replaces another or is replaced: each entity goes one way, and shows nothing of the other. MR005 where it cannot. Returns the stages with work.';

create or replace function millrace.check_flag(p_new millrace.pipelines, p_mode text, p_share numeric, p_groups text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if p_mode is null or p_mode not in ('default', 'off', 'share', 'groups', 'on') then
    raise exception 'p_mode is %, but must be default, off, share, groups or on', coalesce(p_mode, 'null') using errcode = 'MR002', hint = 'default follows the setting use_new_pipeline.';
  elsif (p_mode = 'share') <> (p_share is not null) or p_share not between 0 and 1 then
    raise exception 'p_share is % in the mode %, but must be a number from 0 to 1 in the mode share, and null in the others', coalesce(p_share::text, 'null'), p_mode
      using errcode = 'MR002', hint = format('select millrace.set_cut_over(%L, ''share'', p_share => 0.1);', p_new.name);
  elsif (p_mode = 'groups') <> (p_groups is not null) or cardinality(p_groups) = 0 or array_ndims(p_groups) > 1 or array_position(p_groups, null) is not null then
    raise exception 'p_groups is % in the mode %, but must be a list of groups in the mode groups, and null in the others', coalesce(p_groups::text, 'null'), p_mode
      using errcode = 'MR002', hint = format('select millrace.set_cut_over(%L, ''groups'', p_groups => array[''…'']);', p_new.name);
  elsif p_mode = 'groups' and p_new.group_key is null then
    raise exception 'p_mode is groups, but pipeline % does not say what its groups are', p_new.name using errcode = 'MR002', hint = 'Name a key of the metadata in replaces.groupBy of its definition.';
  end if;
end
$$;
comment on function millrace.check_flag(millrace.pipelines, text, numeric, text[]) is 'Raises MR002 unless these are a mode and what belongs to it.';

create or replace function millrace.replacing_pipeline(p_pipeline text) returns millrace.pipelines
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  select p.* into v_new from millrace.pipelines p where p.name = p_pipeline and p.replaces_id is not null;
  if not found then
    raise exception 'there is no pipeline % that replaces another', coalesce(p_pipeline, 'null') using errcode = 'MR003', hint = coalesce(
      'These do: ' || (select string_agg(p.name, ', ' order by p.name) from millrace.pipelines p where p.replaces_id is not null) || '.', 'Say "replaces" in the definition of the new one.');
  end if;
  return v_new;
end
$$;
comment on function millrace.replacing_pipeline(text) is 'The pipeline of this name; MR003 unless it replaces another.';

create or replace function millrace.set_cut_over(p_pipeline text, p_mode text, p_share numeric default null, p_groups text[] default null) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  -- define() must not end the cut-over, or its groups, between the check and the commit.
  perform from millrace.pipelines p where p.name = p_pipeline for share;
  v_new := millrace.replacing_pipeline(p_pipeline);
  perform millrace.check_flag(v_new, p_mode, p_share, p_groups);
  update millrace.cut_overs c set mode = p_mode, share = p_share, groups = p_groups, changed_at = millrace.now() where c.pipeline_id = v_new.id;
end
$$;
comment on function millrace.set_cut_over(text, text, numeric, text[]) is 'Sets the flag of a pipeline that replaces another: off, share (of entities, by a stable hash), groups (by the metadata), on, or default (the setting use_new_pipeline). What is under way stays where it is.';

-- As start() finds a row: whatever its key is written like.
create or replace function millrace.key_of_row(p_pipeline millrace.pipelines, p_entity_id text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_id text;
begin
  execute format('select e.%1$I::text from %2$s e where e.%1$I = $1::%3$s', p_pipeline.entity_key, p_pipeline.entity_table, (
    select format_type(a.atttypid, a.atttypmod) from pg_attribute a where a.attrelid = p_pipeline.entity_table and a.attname = p_pipeline.entity_key)) into v_id using p_entity_id;
  if v_id is null then
    raise exception 'table % has no row with % %', p_pipeline.entity_table, p_pipeline.entity_key, coalesce(p_entity_id, 'null') using errcode = 'MR003', hint = 'Insert the row first.';
  end if;
  return v_id;
exception
  when data_exception then
    raise exception 'a key of table % cannot be read as one: %', p_pipeline.entity_table, sqlerrm
      using errcode = 'MR002', hint = format('Give values of the column %s.', p_pipeline.entity_key);
end
$$;
comment on function millrace.key_of_row(millrace.pipelines, text) is 'The row''s own spelling of its key, without a lock; MR002 or MR003 where there is no such row.';

create or replace function millrace.cut_over_way(p_pipeline text, p_entity_id text, out way text, out why text)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines := millrace.replacing_pipeline(p_pipeline);
  v_id text := millrace.key_of_row(v_new, p_entity_id);
  v_flag millrace.cut_overs;
begin
  select case when r.pipeline_id = v_new.id then 'new' else 'old' end, format('run %s is under way', r.id) into way, why
  from millrace.runs r where r.pipeline_id in (v_new.id, v_new.replaces_id) and r.entity_id = v_id and r.status = 'running';
  if found then
    return;
  end if;
  select c.* into v_flag from millrace.cut_overs c where c.pipeline_id = v_new.id;
  way := case when millrace.new_way_ids(v_new, array[v_id]) = '{}' then 'old' else 'new' end;
  why := case v_flag.mode
    when 'share' then format('the share is %s, and the row lies at %s', v_flag.share, round(millrace.share_of(v_id), 4))
    when 'groups' then format('its %s is %s', v_new.group_key, coalesce((millrace.metadata_of_entities(v_new.id, array[v_id]))[1] ->> v_new.group_key, 'null'))
    when 'default' then 'the flag is default, and use_new_pipeline is ' || millrace.use_new_pipeline()
    else 'the flag is ' || v_flag.mode end;
end
$$;
comment on function millrace.cut_over_way(text, text) is 'Which way (new or old) a row goes if it is queued at the first stage now, and why.';
