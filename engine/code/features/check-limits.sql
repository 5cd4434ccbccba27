-- What a definition may say about limits and quotas beyond their shape

-- Raises MR001 unless the column and the stages that a stage's limits name exist.
create or replace function millrace.check_limits(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{limits,concurrency,column}';
begin
  if p_stage ? 'concurrency' and p_stage ?| '{batch_size,max_workers}' then
    raise exception 'stage %: concurrency is %, but batch_size or max_workers is given as well',
      p_stage ->> 'name', p_stage ->> 'concurrency'
      using errcode = 'MR001', hint = 'Keep concurrency, for which the engine chooses both, or '
        'give these two alone.';
  end if;
  if p_stage #> v_path is not null and not millrace.has_column(p_definition,
    p_stage #>> v_path) then
    perform millrace.refuse_value(p_stage, v_path, format('a column of %s',
      p_definition #>> '{entity,table}'),
      'Name the column whose value is the key.');
  end if;
  perform millrace.check_back_pressure(p_stage, p_definition);
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
