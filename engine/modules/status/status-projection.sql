-- Writes the statement that shows targets (id, value, phase, stage_id, done_id, via, attempts,
-- retry_at, error): a row once, however many values it passes, and these in the history. "any"
-- finds a row by its key in every plan.
create function millrace.show_statement(
  p_pipeline millrace.pipelines, p_key_type text, p_targets text, p_claim boolean
) returns text
stable
as $write$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  -- A claim sets retry_at alone.
  v_figures text[] := array(
    select n
    from unnest(array['attempts', 'retry_at', 'error']) n
    where p_pipeline.status ->> n is not null and (n = 'retry_at' or not p_claim));
  v_values text[] := array[
    p_pipeline.entity_table::text, quote_ident(p_pipeline.entity_key), p_key_type,
    quote_ident(p_pipeline.status ->> 'column'), millrace.status_type(p_pipeline), p_targets,
    array_to_string(array(
      select format(', %I = t.%I', p_pipeline.status ->> n, n) from unnest(v_figures) n), ''),
    array_to_string(array(
      select format(' or e.%I is distinct from t.%I', p_pipeline.status ->> n, n)
      from unnest(v_figures) n), ''),
    case when p_claim then 'order by e.' || quote_ident(p_pipeline.entity_key)
      || ' for no key update of e skip locked' else '' end];
begin
  if v_history is not null then
    return format($f$
    with seen as materialized (
      select e.ctid as place, e.%4$s::text as was, e.%10$I as began, t.*
      from (%6$s) t
      join %1$s e on e.%2$s = any (array[t.id::%3$s])
      where e.%4$s is distinct from t.value::%5$s%8$s
      %9$s
    ), path as materialized (
      select k.*, p.steps, p.actors
      from (
        select distinct s.was, s.value, s.phase, s.stage_id, s.done_id, s.via
        from seen s) k
      cross join lateral millrace.status_path(
        k.was, k.value, k.phase, k.stage_id, k.done_id, k.via) p
    ), written as (
      update %1$s e set %4$s = t.value::%5$s,
        %10$I = case when t.was is distinct from t.value then v_now else t.began end%7$s
      from seen t
      where e.ctid = t.place
      returning e.%2$s as key, t.was, t.began, t.value, t.phase, t.stage_id, t.done_id, t.via)
    insert into %11$s (%12$I, from_status, to_status, changed_at, changed_by, duration_ms)
    select w.key,
      case when u.place = 1 then w.was else p.steps[u.place - 1] end::%5$s,
      u.value::%5$s, v_now, coalesce(u.actor, millrace.actor(%13$L)),
      case
        when u.place > 1 then 0
        when w.was is not null
          then greatest(0, extract(epoch from v_now - w.began) * 1000)::bigint
      end
    from written w
    join path p on (p.was, p.value, p.phase, p.stage_id, p.done_id, p.via)
      is not distinct from (w.was, w.value, w.phase, w.stage_id, w.done_id, w.via)
    cross join lateral unnest(p.steps, p.actors) with ordinality u(value, actor, place)
    order by w.key, u.place;$f$, variadic v_values || array[
        v_history ->> 'since', to_regclass(v_history ->> 'table')::text, v_history ->> 'key',
        v_values[1]]);
  end if;
  return format($f$
    with seen as (
      select e.ctid as place, t.*
      from (%6$s) t
      join %1$s e on e.%2$s = any (array[t.id::%3$s])
      where e.%4$s is distinct from t.value::%5$s%8$s
      %9$s)
    update %1$s e set %4$s = t.value::%5$s%7$s
    from seen t
    where e.ctid = t.place;$f$, variadic v_values);
end
$write$;

-- Names the type of a pipeline's status column.
create function millrace.status_type(p_pipeline millrace.pipelines) returns text
stable
as $$
begin
  return millrace.column_type(p_pipeline.entity_table, p_pipeline.status ->> 'column');
end
$$;

-- Creates the functions that show a pipeline's runs in one column. Most batches complete a stage
-- and ready the next, or begin a first one, which needs no look at runs.
create function millrace.write_status(p_pipeline millrace.pipelines, p_key_type text)
as $write$
declare
  c_figures constant text := 'null::text as via, 0 as attempts, null::timestamptz as retry_at, '
    'null::text as error';
  v_stage constant text := format($f$
  select s.* into v_stage
  from millrace.stages s
  where s.pipeline_id = %s and s.name = p_stage;$f$, p_pipeline.id);
begin
  perform millrace.write_function(format('%I(p_stage text, p_changes millrace.change[]) '
    'returns boolean', p_pipeline.name || '__apply_outcomes'), format($f$
#variable_conflict use_variable
declare
  v_now timestamptz := millrace.now();
  v_stage millrace.stages;
  v_least int;
  v_most int;
  v_ids text[];
  v_queued boolean;
begin%1$s
  -- How many stages each run readied; null where one did anything else.
  select case when bool_and(c.status = 'completed' and c.queued is not null)
      then max(cardinality(c.queued)) end,
    min(cardinality(c.queued)), bool_and(c.status = 'queued')
  into v_most, v_least, v_queued
  from unnest(p_changes) c;
  if v_stage.kind <> 'manual' and v_stage.shows is not null and (
      v_most = 1 and v_least = 1
      or v_most = 0 and not v_stage.has_ends and not exists (
        select
        from millrace.version_stages vs
        where vs.stage_id = v_stage.id and vs.dependents <> '{}')
      or v_queued and v_stage.kind <> 'pipeline' and not v_stage.shows ? 'backoff' and %2$L
        and not exists (
        select
        from millrace.version_stages vs
        where vs.stage_id = v_stage.id and (vs.needs <> '{}' or vs.after <> '[]'))) then%3$s
    return true;
  end if;
  v_ids := array(
    select c.entity_id from unnest(p_changes) c where c.status <> 'skipped' order by 1);
  if cardinality(v_ids) > 0 then%4$s
  end if;
  return true;
end $f$, v_stage, not p_pipeline.status ?| array['attempts', 'retry_at', 'error'],
    millrace.show_statement(p_pipeline, p_key_type, format($t$
        select c.entity_id as id, case
            when n.id is not null then n.shows ->> 'queued'
            when v_queued then v_stage.shows ->> 'queued'
            else v_stage.shows ->> 'completed'
          end as value, case when n.id is not null or v_queued then 'queued' else 'completed'
          end as phase, coalesce(n.id, v_stage.id) as stage_id,
          case when n.id is not null then v_stage.id end as done_id, %s
        from unnest(p_changes) c
        left join millrace.stages n
          on not v_queued and n.pipeline_id = %s and n.name = c.queued[1]$t$,
      c_figures, p_pipeline.id), false),
    millrace.show_statement(p_pipeline, p_key_type,
      format('select s.* from millrace.status_states(%s, v_ids) s', p_pipeline.id), false)));
  perform millrace.write_function(format('%I(p_stage text, p_now timestamptz, p_ids text[]) '
    'returns boolean', p_pipeline.name || '__started'), format($f$
#variable_conflict use_variable
declare
  v_now timestamptz := p_now;
  v_stage millrace.stages;
begin%s
  if v_stage.shows is null or v_stage.kind in ('manual', 'gate') then
    return false;
  end if;%s
  return true;
end $f$, v_stage, millrace.show_statement(p_pipeline, p_key_type, $t$
        select i as id, v_stage.shows ->> 'started' as value, 'started'::text as phase,
          v_stage.id as stage_id, null::int as done_id, null::text as via,
          null::timestamptz as retry_at
        from unnest(p_ids) i$t$, true)));
  -- What begins under a condition, or with a question, shows itself when it begins.
  perform millrace.write_function(format('%I(p_stage text, p_dependents text[], p_ids text[]) '
    'returns boolean', p_pipeline.name || '__queued'), format($f$
#variable_conflict use_variable
declare
  v_now timestamptz := millrace.now();
  v_stage millrace.stages;
begin%s
  if v_stage.shows ->> 'queued' is null or not exists (
      select
      from millrace.pipelines p
      join millrace.version_stages vs on vs.version_id = p.current_version_id
      where p.id = v_stage.pipeline_id and vs.stage_id = v_stage.id and vs.unconditional) then
    return false;
  end if;%s
  return true;
end $f$, v_stage, millrace.show_statement(p_pipeline, p_key_type, $t$
        select i as id, v_stage.shows ->> 'queued' as value, 'queued'::text as phase,
          v_stage.id as stage_id, null::int as done_id, $t$ || c_figures || $t$
        from unnest(p_ids) i$t$, false)));
end
$write$;
