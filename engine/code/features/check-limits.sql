-- Chapter 8: what a definition may say about limits
--
-- As in the chapters before, each function raises MR001 with the field, what was found and the remedy.

create or replace function millrace.check_back_pressure(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_target text := p_stage #>> '{limits,back_pressure,stage}';
  v_later text[];
begin
  perform millrace.check_keys(p_stage, '{limits,back_pressure}', array['stage', 'backlog']);
  perform millrace.check_required(p_stage, '{limits,back_pressure,backlog}', 'a whole number from 0 to 100000', 'Set it to how many may be queued at the later stage.');
  perform millrace.check_number(p_stage, '{limits,back_pressure,backlog}', 0, 100000, true);
  perform millrace.check_required(p_stage, '{limits,back_pressure,stage}', 'the name of a later stage', 'Name a stage after this one, or "millrace.stage" of another pipeline.');
  if v_target like '%.%' and split_part(v_target, '.', 1) <> p_definition ->> 'pipeline' then
    if not exists (select from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id where p.name || '.' || s.name = v_target) then
      perform millrace.refuse_value(p_stage, '{limits,back_pressure,stage}', 'a stage that is defined already', 'Define the other pipeline before this one.');
    end if;
    -- Two pipelines that hold back one another, or a child its own parent, would wait for ever.
    if millrace.contains_pipeline((select p.id from millrace.pipelines p where p.name = split_part(v_target, '.', 1)), p_definition ->> 'pipeline') or exists (
      select from millrace.pipelines p join millrace.stages s on s.pipeline_id = p.id
      where p.name = split_part(v_target, '.', 1) and split_part(s.limits #>> '{back_pressure,stage}', '.', 1) <> p.name and s.limits #>> '{back_pressure,stage}' like '%.%') then
      perform millrace.refuse_value(p_stage, '{limits,back_pressure,stage}', 'a stage of a pipeline that neither starts runs of this one nor is itself held back by another', 'They could hold back one another for ever.');
    end if;
    return;
  end if;
  v_later := millrace.stages_after(p_stage ->> 'name', p_definition -> 'stages');
  if not regexp_replace(v_target, '^.*\.', '') = any (v_later) then
    perform millrace.refuse_value(p_stage, '{limits,back_pressure,stage}', 'a stage that comes after this one',
      case when cardinality(v_later) = 0 then 'No stage comes after this one: leave back_pressure out.' else 'After this stage come: ' || array_to_string(v_later, ', ') || '.' end);
  end if;
end
$$;
comment on function millrace.check_back_pressure(jsonb, jsonb) is 'Raises MR001 unless a stage is held back by one that comes after it.';

create or replace function millrace.check_required(p_stage jsonb, p_path text[], p_wanted text, p_hint text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(jsonb_typeof(p_stage #> p_path), 'null') = 'null' then
    perform millrace.refuse_value(p_stage, p_path, p_wanted, p_hint);
  end if;
end
$$;
comment on function millrace.check_required(jsonb, text[], text, text) is 'Raises MR001 when there is no value at this path of a stage.';

create or replace function millrace.check_concurrency(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.check_keys(p_stage, '{limits,concurrency}', array['column', 'part', 'limit']);
  perform millrace.check_required(p_stage, '{limits,concurrency,limit}', 'a whole number from 1 to 1000', 'Set it to how many with the same key may be in work at once.');
  perform millrace.check_number(p_stage, '{limits,concurrency,limit}', 1, 1000, true);
  if coalesce(p_stage #>> '{limits,concurrency,part}', 'value') not in ('value', 'host') then
    perform millrace.refuse_value(p_stage, '{limits,concurrency,part}', 'value or host', 'value takes the column as it is, host the host of a URL.');
  end if;
  if not exists (
    select from pg_attribute a where a.attrelid = to_regclass(p_definition #>> '{entity,table}') and a.attnum > 0 and not a.attisdropped and a.attname = p_stage #>> '{limits,concurrency,column}') then
    perform millrace.refuse_value(p_stage, '{limits,concurrency,column}', format('a column of %s', p_definition #>> '{entity,table}'), 'Name the column whose value is the key.');
  end if;
end
$$;
comment on function millrace.check_concurrency(jsonb, jsonb) is 'Raises MR001 unless a stage''s key is a column of the entity table.';

create or replace function millrace.check_limits(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit text;
begin
  perform millrace.check_keys(p_stage, '{limits}', array['max_in_flight', 'rate', 'concurrency', 'priority', 'back_pressure']);
  if jsonb_typeof(p_stage -> 'limits') <> 'object' or p_stage -> 'limits' = '{}' then
    perform millrace.refuse_value(p_stage, '{limits}', 'an object with at least one limit', 'Set max_in_flight, rate, concurrency, priority or back_pressure, or leave limits out.');
  end if;
  for v_limit in select k from jsonb_object_keys(p_stage -> 'limits') k order by k loop
    if jsonb_typeof(p_stage #> array['limits', v_limit]) <> (case v_limit when 'max_in_flight' then 'number' when 'priority' then 'boolean' else 'object' end) then
      perform millrace.refuse_value(p_stage, array['limits', v_limit], case v_limit when 'max_in_flight' then 'a number' when 'priority' then 'true or false' else 'an object' end, 'Correct it, or leave it out.');
    end if;
  end loop;
  perform millrace.check_number(p_stage, '{limits,max_in_flight}', 1, 10000, true);
  if p_stage -> 'limits' ? 'rate' then
    perform millrace.check_keys(p_stage, '{limits,rate}', array['count', 'per_seconds', 'burst']);
    perform millrace.check_required(p_stage, '{limits,rate,count}', 'a whole number from 1 to 1000000', 'Set it to how many may begin in each interval.');
    perform millrace.check_number(p_stage, '{limits,rate,count}', 1, 1000000, true);
    perform millrace.check_required(p_stage, '{limits,rate,per_seconds}', 'a number from 0.001 to 86400', 'Set it to the length of the interval.');
    perform millrace.check_number(p_stage, '{limits,rate,per_seconds}', 0.001, 86400);
    perform millrace.check_number(p_stage, '{limits,rate,burst}', 1, 1000000, true);
  end if;
  if p_stage -> 'limits' ? 'concurrency' then
    perform millrace.check_concurrency(p_stage, p_definition);
  end if;
  if p_stage -> 'limits' ? 'back_pressure' then
    perform millrace.check_back_pressure(p_stage, p_definition);
  end if;
end
$$;
comment on function millrace.check_limits(jsonb, jsonb) is 'Raises MR001 unless the limits of a stage are well formed.';

create or replace function millrace.refuse_quota(
  p_definition jsonb,
  p_path text[],
  p_wanted text,
  p_hint text)
returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception '% is %, but must be %',
    array_to_string(array['quota'] || p_path, '.'),
    coalesce((p_definition #> (array['quota'] || p_path))::text, 'missing'),
    p_wanted
    using errcode = 'MR001', hint = p_hint;
end
$$;
comment on function millrace.refuse_quota(jsonb, text[], text, text) is
  'Raises MR001 about one value of a definition''s quota.';

-- One of the two amounts, and the seconds that it is for.
create or replace function millrace.check_amount(p_definition jsonb, p_kind text, p_unit text, p_min numeric)
returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_given jsonb := p_definition #> array['quota', p_kind];
  v_field record;
  v_value jsonb;
begin
  if (case when jsonb_typeof(v_given) = 'object'
      then v_given - array[p_unit, 'per_seconds'] <> '{}'
      else true end) then
    perform millrace.refuse_quota(p_definition, array[p_kind],
      format('an object of %s and per_seconds', p_unit),
      'Name both, and nothing else; or leave it out.');
  end if;
  for v_field in
    select *
    from (values
      (p_unit, p_min, 1000000, p_unit = 'count'),
      ('per_seconds', 1, 2678400, true)) f(name, least, most, whole)
  loop
    v_value := v_given -> v_field.name;
    if jsonb_typeof(v_value) is distinct from 'number'
      or (v_value #>> '{}')::numeric not between v_field.least and v_field.most
      or (v_field.whole and (v_value #>> '{}')::numeric % 1 <> 0) then
      perform millrace.refuse_quota(p_definition, array[p_kind, v_field.name],
        format('a %snumber from %s to %s',
          case when v_field.whole then 'whole ' else '' end, v_field.least, v_field.most),
        'Correct it, or leave the whole amount out.');
    end if;
  end loop;
end
$$;
comment on function millrace.check_amount(jsonb, text, text, numeric) is
  'Raises MR001 unless one amount of a quota is well formed.';

create or replace function millrace.check_quota(p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_quota jsonb := p_definition -> 'quota';
begin
  if coalesce(jsonb_typeof(v_quota), 'null') = 'null' then
    return;
  elsif (case when jsonb_typeof(v_quota) = 'object'
      then v_quota - array['column', 'starts', 'spending'] <> '{}'
        or not v_quota ?| array['starts', 'spending']
      else true end) then
    perform millrace.refuse_quota(p_definition, '{}',
      'an object of column, and starts or spending or both',
      'Name what is bounded and by which column, and nothing else; or leave it out.');
  end if;
  if not exists (
      select
      from pg_attribute a
      where a.attrelid = millrace.table_named(p_definition #>> '{entity,table}')
        and a.attnum > 0
        and not a.attisdropped
        and a.attname = v_quota ->> 'column') then
    perform millrace.refuse_quota(p_definition, '{column}',
      format('a column of %s', p_definition #>> '{entity,table}'),
      'Name the column whose value is the tenant.');
  end if;
  if v_quota ? 'starts' then
    perform millrace.check_amount(p_definition, 'starts', 'count', 1);
  end if;
  if v_quota ? 'spending' then
    perform millrace.check_amount(p_definition, 'spending', 'usd', 0.01);
  end if;
end
$$;
comment on function millrace.check_quota(jsonb) is
  'Raises MR001 unless the quota of a definition is absent or well formed.';
