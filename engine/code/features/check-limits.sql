-- What a definition may say about limits and quotas beyond their shape

-- Raises MR001 unless a stage is held back by one that comes after it, or by one of a pipeline that
-- cannot wait for this one.
create or replace function millrace.check_back_pressure(p_stage jsonb, p_definition jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{limits,back_pressure,stage}';
  v_target text := p_stage #>> v_path;
  v_other text := case when v_target like '%.%' then split_part(v_target, '.', 1) end;
  v_later text[];
begin
  if v_other <> p_definition ->> 'pipeline' then
    if not exists (
        select
        from millrace.stages s
        join millrace.pipelines p on p.id = s.pipeline_id
        where p.name || '.' || s.name = v_target) then
      perform millrace.refuse_value(p_stage, v_path, 'a stage that is defined already',
        'Define the other pipeline before this one.');
    end if;
    -- Two pipelines that hold back one another, or a child its own parent, would wait for ever.
    if millrace.contains_pipeline(
        (select p.id from millrace.pipelines p where p.name = v_other),
        p_definition ->> 'pipeline')
      or exists (
        select
        from millrace.pipelines p
        join millrace.stages s on s.pipeline_id = p.id
        where p.name = v_other
          and s.limits #>> '{back_pressure,stage}' like '%.%'
          and split_part(s.limits #>> '{back_pressure,stage}', '.', 1) <> p.name) then
      perform millrace.refuse_value(p_stage, v_path,
        'a stage of a pipeline that neither starts runs of this one nor is itself held back by '
        'another',
        'They could hold back one another for ever.');
    end if;
    return;
  end if;
  v_later := millrace.stages_after(p_stage ->> 'name', p_definition -> 'stages');
  if regexp_replace(v_target, '^.*\.', '') <> all (v_later) then
    perform millrace.refuse_value(p_stage, v_path, 'a stage that comes after this one', case
      when cardinality(v_later) = 0 then 'No stage comes after this one: leave back_pressure out.'
      else 'After this stage come: ' || array_to_string(v_later, ', ') || '.'
    end);
  end if;
end
$$;

-- Raises MR001 unless the column and the stage that a stage's limits name exist.
create or replace function millrace.check_limits(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{limits,concurrency,column}';
begin
  if p_stage #> v_path is not null and not millrace.has_column(p_definition,
    p_stage #>> v_path) then
    perform millrace.refuse_value(p_stage, v_path, format('a column of %s',
      p_definition #>> '{entity,table}'),
      'Name the column whose value is the key.');
  end if;
  if p_stage #> '{limits,back_pressure}' is not null then
    perform millrace.check_back_pressure(p_stage, p_definition);
  end if;
end
$$;

-- Raises MR001 unless the column of a definition's quota exists.
create or replace function millrace.check_quota(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_definition ? 'quota' and not millrace.has_column(p_definition,
    p_definition #>> '{quota,column}') then
    raise exception 'quota.column is %, but must be a column of %',
      p_definition #> '{quota,column}', p_definition #>> '{entity,table}'
      using errcode = 'MR001', hint = 'Name the column whose value is the tenant.';
  end if;
end
$$;
