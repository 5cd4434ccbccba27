-- Cut-over: what a definition says of the pipeline that it replaces.

-- Raises MR001 unless a definition replaces no pipeline, or one over the same rows that nothing
-- else is tied to.
create or replace function millrace.check_replaces(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_replaces jsonb := p_definition -> 'replaces';
  v_name text := p_definition ->> 'pipeline';
  v_old millrace.pipelines;
begin
  if coalesce(jsonb_typeof(v_replaces), 'null') = 'null' then
    return;
  elsif jsonb_typeof(v_replaces) <> 'object'
    or coalesce(jsonb_typeof(v_replaces -> 'pipeline'), '') <> 'string'
    or v_replaces - array['pipeline', 'group_by'] <> '{}' then
    raise exception 'replaces is %, but must be an object of pipeline and group_by', v_replaces
      using errcode = 'MR001',
        hint = 'Write {"pipeline": "the_old_one"}; group_by is a key of the metadata.';
  end if;
  select p.*
  into v_old
  from millrace.pipelines p
  where p.name = v_replaces ->> 'pipeline';
  if v_old.id is null or v_old.name = v_name then
    raise exception 'replaces.pipeline is %, which is no other pipeline', v_replaces -> 'pipeline'
      using errcode = 'MR001',
        hint = 'Define the old pipeline before the one that replaces it.';
  elsif v_old.entity_table <> to_regclass(p_definition #>> '{entity,table}')
    or v_old.entity_key <> coalesce(p_definition #>> '{entity,key}', 'id') then
    raise exception 'replaces.pipeline is %, which is over %.%',
      v_replaces -> 'pipeline', v_old.entity_table, v_old.entity_key
      using errcode = 'MR001', hint = 'Both must be over the same table and key.';
  end if;
  perform millrace.check_untied(v_old, v_name);
  if v_replaces ? 'group_by' and (
      coalesce(jsonb_typeof(v_replaces -> 'group_by'), '') <> 'string'
      or p_definition #>> '{entity,metadata}' is null) then
    raise exception 'replaces.group_by is %, but must be a key of the metadata, '
      'whose column entity.metadata names', v_replaces -> 'group_by'
      using errcode = 'MR001',
        hint = 'Name the column in entity.metadata and the key in replaces.group_by, '
          'or leave group_by out.';
  end if;
end
$$;

-- Raises MR001 where one of two pipelines is part of another cut-over, or is started by a stage.
create or replace function millrace.check_untied(p_old millrace.pipelines, p_new text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  select p.* into v_new from millrace.pipelines p where p.name = p_new;
  if p_old.replaces_id is not null or exists (
      select from millrace.pipelines p
      where p.replaces_id = v_new.id
        or (p.replaces_id = p_old.id and p.id is distinct from v_new.id)) then
    raise exception 'pipeline % cannot replace %: one of them is part of another cut-over',
      p_new, p_old.name
      using errcode = 'MR001',
        hint = 'End that first: define the pipeline of it that replaces the other '
          'without "replaces".';
  elsif p_old.is_child or v_new.is_child then
    raise exception 'pipeline % cannot replace %: a stage of another pipeline starts runs of %',
      p_new, p_old.name, case when p_old.is_child then p_old.name else p_new end
      using errcode = 'MR001',
        hint = 'Replace the pipeline that has this stage; only what is started by itself '
          'can go either way.';
  end if;
end
$$;

-- Raises MR001 when a pipeline that another replaces is to change its table or key.
create or replace function millrace.check_replaced(
  p_pipeline text,
  p_table regclass,
  p_key text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new text := (
    select n.name
    from millrace.pipelines p
    join millrace.pipelines n on n.replaces_id = p.id
    where p.name = p_pipeline and (p.entity_table <> p_table or p.entity_key <> p_key));
begin
  if v_new is not null then
    raise exception 'pipeline % cannot move to %.%: pipeline % replaces it, over the same rows',
      p_pipeline, p_table, p_key, v_new
      using errcode = 'MR001', hint = format('Define %s without "replaces" first.', v_new);
  end if;
end
$$;

-- Writes which pipeline a definition replaces, with its flag at the default. A flag that is there
-- stays as somebody set it.
create or replace function millrace.save_cut_over(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new text := p_definition ->> 'pipeline';
  v_old text := p_definition #>> '{replaces,pipeline}';
  v_old_id int := (select p.id from millrace.pipelines p where p.name = v_old);
  v_key text := p_definition #>> '{replaces,group_by}';
  v_both int;
begin
  update millrace.pipelines p
  set replaces_id = v_old_id, group_key = v_key
  where p.id = p_pipeline_id
    and (p.replaces_id is distinct from v_old_id or p.group_key is distinct from v_key);
  if v_old_id is null then
    delete from millrace.cut_overs c where c.pipeline_id = p_pipeline_id;
    return;
  end if;
  v_both := (
    select count(*)
    from millrace.runs n
    join millrace.runs o on o.pipeline_id = v_old_id
      and o.entity_id = n.entity_id
      and o.status = 'running'
    where n.pipeline_id = p_pipeline_id and n.status = 'running');
  if v_both > 0 then
    raise exception 'pipeline % cannot replace % yet: % entities have live runs of both',
      v_new, v_old, v_both
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel those of one: select millrace.cancel(id) '
          'from millrace.runs where status = ''running'' and pipeline_id = ….';
  elsif v_key is null and exists (
      select from millrace.cut_overs c
      where c.pipeline_id = p_pipeline_id and c.mode = 'groups') then
    raise exception 'replaces.group_by is missing, but the flag of pipeline % names groups', v_new
      using errcode = 'MR001',
        hint = format('Set the flag first: select millrace.set_cut_over(%L, ''off'').', v_new);
  end if;
  insert into millrace.cut_overs (pipeline_id, changed_at)
  values (p_pipeline_id, millrace.now())
  on conflict on constraint cut_overs_pkey do nothing;
end
$$;
