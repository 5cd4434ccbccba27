-- Cut-over: the flag, and which way it sends a row.

-- Reads the setting use_new_pipeline. One that is neither true nor false counts as false and is
-- reported, since the engine's own configuration never makes a user's write fail.
create or replace function millrace.use_new_pipeline() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
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
    perform millrace.report('error', 'use_new_pipeline_malformed',
      format('use_new_pipeline is %L, but must be true or false: it counts as false', v_value),
      jsonb_build_object('hint', 'select vault.update_secret(id, ''true'') from vault.secrets '
        'where name = ''millrace_use_new_pipeline'';'));
  end if;
  return v_value = 'true';
end
$$;

-- Says where an entity lies between 0 and 1, for ever: a share that grows only adds entities.
create or replace function millrace.share_of(p_entity_id text) returns numeric
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select ('x' || left(md5(p_entity_id), 8))::bit(32)::bigint / 4294967296.0
$$;

-- Picks those of the entities, none of which has anything under way, that the flag of a pipeline
-- sends its way.
create or replace function millrace.new_way_ids(
  p_new millrace.pipelines,
  p_entity_ids text[])
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_flag millrace.cut_overs;
begin
  select c.* into v_flag from millrace.cut_overs c where c.pipeline_id = p_new.id;
  case v_flag.mode
    when 'on' then
      return p_entity_ids;
    when 'off' then
      return '{}';
    when 'share' then
      return array(
        select e from unnest(p_entity_ids) e where millrace.share_of(e) < v_flag.share);
    when 'groups' then
      return array(
        select e.id
        from unnest(p_entity_ids, millrace.metadata_of_entities(p_new.id, p_entity_ids))
          e(id, metadata)
        where e.metadata ->> p_new.group_key = any (v_flag.groups));
    else
      return case when millrace.use_new_pipeline() then p_entity_ids else '{}' end;
  end case;
end
$$;

-- Finds the pipeline of this name; raises MR003 unless it replaces another.
create or replace function millrace.replacing_pipeline(p_pipeline text) returns millrace.pipelines
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  select p.*
  into v_new
  from millrace.pipelines p
  where p.name = p_pipeline and p.replaces_id is not null;
  if not found then
    raise exception 'there is no pipeline % that replaces another', coalesce(p_pipeline, 'null')
      using errcode = 'MR003',
        hint = coalesce(
          'These do: ' || (
            select string_agg(p.name, ', ' order by p.name)
            from millrace.pipelines p
            where p.replaces_id is not null) || '.',
          'Say "replaces" in the definition of the new one.');
  end if;
  return v_new;
end
$$;

-- Raises MR002 unless these are a mode of the flag and what belongs to it.
create or replace function millrace.check_flag(
  p_new millrace.pipelines,
  p_mode text,
  p_share numeric,
  p_groups text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_mode is null or p_mode not in ('default', 'off', 'share', 'groups', 'on') then
    raise exception 'p_mode is %, but must be default, off, share, groups or on',
      coalesce(p_mode, 'null')
      using errcode = 'MR002', hint = 'default follows the setting use_new_pipeline.';
  elsif (p_mode = 'share') <> (p_share is not null) or p_share not between 0 and 1 then
    raise exception 'p_share is % in the mode %, but must be a number from 0 to 1 '
      'in the mode share, and null in the others', coalesce(p_share::text, 'null'), p_mode
      using errcode = 'MR002',
        hint = format(
          'select millrace.set_cut_over(%L, ''share'', p_share => 0.1);', p_new.name);
  elsif (p_mode = 'groups') <> (p_groups is not null)
    or cardinality(p_groups) = 0
    or array_ndims(p_groups) > 1
    or array_position(p_groups, null) is not null then
    raise exception 'p_groups is % in the mode %, but must be a list of groups '
      'in the mode groups, and null in the others', coalesce(p_groups::text, 'null'), p_mode
      using errcode = 'MR002',
        hint = format(
          'select millrace.set_cut_over(%L, ''groups'', p_groups => array[''…'']);', p_new.name);
  elsif p_mode = 'groups' and p_new.group_key is null then
    raise exception 'p_mode is groups, but pipeline % does not say what its groups are',
      p_new.name
      using errcode = 'MR002',
        hint = 'Name a key of the metadata in replaces.groupBy of its definition.';
  end if;
end
$$;

create or replace function millrace.set_cut_over(
  p_pipeline text,
  p_mode text,
  p_share numeric default null,
  p_groups text[] default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  -- define() must not end the cut-over, or its groups, between the check and the commit.
  perform from millrace.pipelines p where p.name = p_pipeline for share;
  v_new := millrace.replacing_pipeline(p_pipeline);
  perform millrace.check_flag(v_new, p_mode, p_share, p_groups);
  update millrace.cut_overs c
  set mode = p_mode, share = p_share, groups = p_groups, changed_at = millrace.now()
  where c.pipeline_id = v_new.id;
  perform millrace.note('set_cut_over', p_pipeline, null, '{}', jsonb_build_object(
    'outcome', jsonb_build_object('mode', p_mode, 'share', p_share, 'groups', p_groups)));
end
$$;
comment on function millrace.set_cut_over(text, text, numeric, text[]) is
  'Sets the flag of a pipeline that replaces another: off, share (of entities, by a stable hash), '
  'groups (by the metadata), on, or default (the setting use_new_pipeline). What is under way '
  'stays where it is.';

-- Finds the row's own spelling of its key, as start() does, without a lock. Raises MR002 or MR003
-- where there is no such row.
create or replace function millrace.key_of_row(p_pipeline millrace.pipelines, p_entity_id text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table regclass := p_pipeline.entity_table;
  v_key text := p_pipeline.entity_key;
  v_type text := (
    select format_type(a.atttypid, a.atttypmod)
    from pg_attribute a
    where a.attrelid = v_table and a.attname = v_key);
  v_id text;
begin
  execute format(
    'select e.%1$I::text from %2$s e where e.%1$I = $1::%3$s', v_key, v_table, v_type)
  into v_id
  using p_entity_id;
  if v_id is null then
    raise exception 'table % has no row with % %', v_table, v_key, coalesce(p_entity_id, 'null')
      using errcode = 'MR003', hint = 'Insert the row first.';
  end if;
  return v_id;
exception
  when data_exception then
    raise exception 'a key of table % cannot be read as one: %', v_table, sqlerrm
      using errcode = 'MR002', hint = format('Give values of the column %s.', v_key);
end
$$;

create or replace function millrace.cut_over_way(
  p_pipeline text,
  p_entity_id text,
  out way text,
  out why text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines := millrace.replacing_pipeline(p_pipeline);
  v_id text := millrace.key_of_row(v_new, p_entity_id);
  v_flag millrace.cut_overs;
begin
  select case when r.pipeline_id = v_new.id then 'new' else 'old' end,
    format('run %s is under way', r.id)
  into way, why
  from millrace.runs r
  where r.pipeline_id in (v_new.id, v_new.replaces_id)
    and r.entity_id = v_id
    and r.status = 'running';
  if found then
    return;
  end if;
  select c.* into v_flag from millrace.cut_overs c where c.pipeline_id = v_new.id;
  way := case when millrace.new_way_ids(v_new, array[v_id]) = '{}' then 'old' else 'new' end;
  why := case v_flag.mode
    when 'share' then format('the share is %s, and the row lies at %s',
      v_flag.share, round(millrace.share_of(v_id), 4))
    when 'groups' then format('its %s is %s', v_new.group_key, coalesce(
      (millrace.metadata_of_entities(v_new.id, array[v_id]))[1] ->> v_new.group_key, 'null'))
    when 'default' then
      'the flag is default, and use_new_pipeline is ' || millrace.use_new_pipeline()
    else 'the flag is ' || v_flag.mode
  end;
end
$$;
comment on function millrace.cut_over_way(text, text) is
  'Which way (new or old) a row goes if it is queued at the first stage now, and why.';
