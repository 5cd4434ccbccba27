-- The projection `status`: what attach() writes to show runs in one column
--
-- Each of the __apply_outcomes, __started and __queued functions is one statement over its batch.
-- It writes a row once, however many values it passes, and these into the history.

-- Writes the statement that shows targets (id, value, phase, stage_id, done_id, via, attempts,
-- retry_at, error) on their entities. "any" finds a row by its key in every plan, also in one of a
-- time when there were few rows.
create function millrace.show_statement(
  p_pipeline millrace.pipelines, p_key_type text, p_targets text, p_claim boolean
) returns text
stable
as $write$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  -- What is set beside the status; a claim sets retry_at alone.
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
    join path p on p.was is not distinct from w.was
      and p.value = w.value
      and p.phase = w.phase
      and p.stage_id is not distinct from w.stage_id
      and p.done_id is not distinct from w.done_id
      and p.via is not distinct from w.via
    cross join lateral unnest(p.steps, p.actors) with ordinality u(value, actor, place)
    order by w.key, u.place;$f$, variadic v_values || array[
        v_history ->> 'since', to_regclass(v_history ->> 'table')::text, v_history ->> 'key',
        v_values[1]]);
  elsif p_claim then
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
  end if;
  return format($f$
    update %1$s e set %4$s = t.value::%5$s%7$s
    from (%6$s) t
    where e.%2$s = any (array[t.id::%3$s])
      and (e.%4$s is distinct from t.value::%5$s%8$s);$f$, variadic v_values);
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

-- Creates the __apply_outcomes function of a pipeline. Nearly every batch completes a stage and
-- readies the next, which needs no look at runs; the rest is read from the tables.
create function millrace.write_status_outcomes(
  p_pipeline millrace.pipelines, p_key_type text, p_stages millrace.stages[]
)
as $write$
begin
  perform millrace.write_function(format(
    '%I(p_stage text, p_changes millrace.change[]) returns boolean',
    p_pipeline.name || '__apply_outcomes'), format($f$
#variable_conflict use_variable
declare
  v_now timestamptz := millrace.now();
  v_ready int;
  v_ids text[];
  v_queued boolean := (select bool_and(c.status = 'queued') from unnest(p_changes) c);
begin%4$s
  -- Null where a run readied no stage or several.
  v_ready := (
    select case when bool_and(c.status = 'completed' and c.queued is not null)
        and min(cardinality(c.queued)) = max(cardinality(c.queued))
      then max(cardinality(c.queued)) end
    from unnest(p_changes) c);
  if v_ready = 1 or v_ready = 0 and p_stage = any (%3$L::text[]) then
    case p_stage%1$s else null; end case;
  end if;
  v_ids := array(
    select c.entity_id
    from unnest(p_changes) c
    where c.status <> 'skipped'
    order by c.entity_id);
  if cardinality(v_ids) > 0 then%2$s
  end if;
  return true;
end $f$,
    coalesce((
      select string_agg(format(E'\n    when %L then%s\n    return true;', s.name,
        millrace.show_statement(p_pipeline, p_key_type, (
          select format($t$
        select c.entity_id as id, case c.queued[1] %1$s else %2$L end as value,
          case when c.queued <> '{}' then 'queued' else 'completed' end as phase,
          case c.queued[1] %3$s else %4$s end as stage_id,
          case when c.queued <> '{}' then %4$s end as done_id, null::text as via, 0 as attempts,
          null::timestamptz as retry_at, null::text as error
        from unnest(p_changes) c$t$,
            string_agg(format('when %L then %L', n.name, n.shows ->> 'queued'), ' ' order by n.id),
            s.shows ->> 'completed',
            string_agg(format('when %L then %s', n.name, n.id), ' ' order by n.id), s.id)
          from millrace.stages n
          where n.pipeline_id = s.pipeline_id and n.shows is not null), false)), '' order by s.id)
      from unnest(p_stages) s
      where s.kind <> 'manual'), E'\n    when '''' then null;'),
    millrace.show_statement(p_pipeline, p_key_type,
      format('select s.* from millrace.status_states(%s, v_ids) s', p_pipeline.id), false),
    array(
      select s.name
      from unnest(p_stages) s
      where s.kind <> 'manual'
        and not s.has_ends
        and not exists (
          select
          from millrace.version_stages vs
          join millrace.versions v on v.id = vs.version_id
          where v.pipeline_id = s.pipeline_id
            and vs.stage_id = s.id
            and vs.dependents <> '{}')),
    (
      select string_agg(format(
        E'\n  if p_stage = %L and v_queued then%s\n    return true;\n  end if;',
        s.name, millrace.show_statement(p_pipeline, p_key_type, format($t$
            select c.entity_id as id, %L::text as value, 'queued'::text as phase, %s as stage_id,
              null::int as done_id, null::text as via, 0 as attempts, null::timestamptz as retry_at,
              null::text as error
            from unnest(p_changes) c$t$, s.shows ->> 'queued', s.id), false)), '' order by s.id)
      from unnest(p_stages) s
      -- The first stages of their chains, which show a queued attempt by the value alone.
      where s.kind not in ('manual', 'pipeline')
        and not s.shows ? 'backoff'
        and not p_pipeline.status ?| array['attempts', 'retry_at', 'error']
        and not exists (
          select
          from millrace.version_stages vs
          where vs.stage_id = s.id
            and (vs.needs <> '{}' or vs.after <> '[]')))));
end
$write$;

-- Creates the functions of a pipeline that show its runs in one column.
create function millrace.write_status(p_pipeline millrace.pipelines, p_key_type text)
as $$
declare
  v_stages millrace.stages[] := array(
    select s
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id and s.shows is not null
    order by s.id);
begin
  perform millrace.write_status_outcomes(p_pipeline, p_key_type, v_stages);
  perform millrace.write_function(format(
    '%I(p_stage text, p_now timestamptz, p_ids text[]) returns boolean',
    p_pipeline.name || '__started'), format($f$
#variable_conflict use_variable
declare
  v_now timestamptz := p_now;
begin
  case p_stage%s
  else return false;
  end case;
  return true;
end $f$,
    coalesce((
      select string_agg(format(E'\n  when %L then%s', s.name,
        millrace.show_statement(p_pipeline, p_key_type, format($t$
        select i as id, %L::text as value, 'started'::text as phase, %s as stage_id,
          null::int as done_id, null::text as via, null::timestamptz as retry_at
        from unnest(p_ids) i$t$, s.shows ->> 'started', s.id), true)), '' order by s.id)
      from unnest(v_stages) s
      where s.kind not in ('manual', 'gate')), E'\n  when '''' then null;')));
  -- What begins under a condition, or with a question, shows itself when it begins.
  perform millrace.write_function(format(
    '%I(p_stage text, p_dependents text[], p_ids text[]) returns boolean',
    p_pipeline.name || '__queued'), format($f$
#variable_conflict use_variable
declare
  v_now timestamptz := millrace.now();
  v_value text;
  v_id int;
begin
  select s.id, s.shows ->> 'queued'
  into v_id, v_value
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  join millrace.version_stages vs on vs.version_id = p.current_version_id and vs.stage_id = s.id
  where s.pipeline_id = %s
    and s.name = p_stage
    and vs.unconditional;
  if v_value is null then
    return false;
  end if;%s
  return true;
end $f$,
    p_pipeline.id,
    millrace.show_statement(p_pipeline, p_key_type, $t$
        select i as id, v_value as value, 'queued'::text as phase, v_id as stage_id,
          null::int as done_id, null::text as via, 0 as attempts, null::timestamptz as retry_at,
          null::text as error
        from unnest(p_ids) i$t$, false)));
  perform millrace.write_status_since(p_pipeline);
  perform millrace.write_status_intake(p_pipeline);
end
$$;
