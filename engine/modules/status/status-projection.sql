-- The projection `status`: what attach() writes to show runs in one column
--
-- For a pipeline `links` it makes links__apply_outcomes, links__started and links__queued, as for
-- the projection columns. Each is one statement over its batch: rows that show what they should are
-- left alone, a row is written once however many values it passes, and the values go into the
-- history in the same statement. Without a history no path is asked for.

-- Writes the list of what beside the status is set, and the condition that some of it differs.
-- Figures are attempts, retry_at and error; a claim changes none but retry_at.
create function millrace.status_figures(
  p_status jsonb, p_claim boolean, out assigned text, out differs text
)
language sql immutable
as $$
  select
    coalesce(string_agg(format(', %I = t.%I', f.column_name, f.name), '' order by f.place), ''),
    coalesce(string_agg(format(' or e.%I is distinct from t.%I', f.column_name, f.name), ''
      order by f.place), '')
  from (
    select n.name, n.place, p_status ->> n.name as column_name
    from unnest(array['attempts', 'retry_at', 'error']) with ordinality n(name, place)) f
  where f.column_name is not null
    and (not p_claim or f.name = 'retry_at')
$$;

-- Writes the statement that shows targets, rows of (id, value, phase, stage_id, done_id, via,
-- attempts, retry_at, error), on their entities. p_claim: it skips rows that somebody holds; the
-- caller of the others holds them. "any" finds a row by its key in every plan, also in one of a
-- time when there were few rows: as a plain comparison it would let all rows be read for each.
create function millrace.show_statement(
  p_pipeline millrace.pipelines, p_key_type text, p_targets text, p_claim boolean
) returns text
language plpgsql stable
as $write$
declare
  v_figures record := millrace.status_figures(p_pipeline.status, p_claim);
  v_values text[] := array[
    p_pipeline.entity_table::text, quote_ident(p_pipeline.entity_key), p_key_type,
    quote_ident(p_pipeline.status ->> 'column'), millrace.status_type(p_pipeline), p_targets,
    v_figures.assigned, v_figures.differs,
    case when p_claim then 'order by e.' || quote_ident(p_pipeline.entity_key)
      || ' for no key update of e skip locked' else '' end];
begin
  if p_pipeline.status ? 'history' then
    return millrace.show_with_history(p_pipeline.status -> 'history', v_values);
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

-- Writes such a statement with the history: it reads what the rows really show, asks for each kind
-- of way once, and writes the values on the way with the rows. p_values is what show_statement()
-- has to say, in its order.
create function millrace.show_with_history(p_history jsonb, p_values text[])
returns text
language plpgsql stable
as $write$
begin
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
    order by w.key, u.place;$f$, variadic p_values || array[
      p_history ->> 'since', to_regclass(p_history ->> 'table')::text, p_history ->> 'key',
      p_values[1]]);
end
$write$;

-- Names the type of a pipeline's status column.
create function millrace.status_type(p_pipeline millrace.pipelines) returns text
language sql stable
as $$
  select format_type(a.atttypid, a.atttypmod)
  from pg_attribute a
  where a.attrelid = p_pipeline.entity_table and a.attname = p_pipeline.status ->> 'column'
$$;

-- Writes the targets of a batch of which every row completed a stage and readied a later one, or
-- its run's last one.
create function millrace.completed_targets(p_stage millrace.stages) returns text
language sql stable
as $$
  select format($f$
        select c.entity_id as id, case c.queued[1] %s else %L end as value,
          case when c.queued <> '{}' then 'queued' else 'completed' end as phase,
          case c.queued[1] %s else %s end as stage_id,
          case when c.queued <> '{}' then %s end as done_id, null::text as via, 0 as attempts,
          null::timestamptz as retry_at, null::text as error
        from unnest(p_changes) c$f$,
    string_agg(format('when %L then %L', s.name, s.shows ->> 'queued'), ' ' order by s.id),
    p_stage.shows ->> 'completed',
    string_agg(format('when %L then %s', s.name, s.id), ' ' order by s.id), p_stage.id, p_stage.id)
  from millrace.stages s
  where s.pipeline_id = p_stage.pipeline_id
    and s.shows is not null
$$;

-- Says whether a stage ends each run that completes it, in every version.
create function millrace.is_last(p_stage millrace.stages) returns boolean
language sql stable
as $$
  select not p_stage.has_ends and not exists (
    select
    from millrace.version_stages vs
    join millrace.versions v on v.id = vs.version_id
    where v.pipeline_id = p_stage.pipeline_id
      and vs.stage_id = p_stage.id
      and vs.dependents <> '{}')
$$;

-- Says whether a stage is the first of its chain in every version, and shows whatever is queued
-- there alike, without figures: then nothing needs to be asked about it.
create function millrace.is_plain_root(p_stage millrace.stages, p_status jsonb)
returns boolean
language sql stable
as $$
  select p_stage.kind not in ('manual', 'pipeline')
    and not p_stage.shows ? 'backoff'
    and not p_status ?| array['attempts', 'retry_at', 'error']
    and not exists (
      select
      from millrace.version_stages vs
      where vs.stage_id = p_stage.id
        and (vs.needs <> '{}' or vs.after <> '[]'))
$$;

-- Writes the branch for a batch that is queued at the first stage, as all do that begin.
create function millrace.begun_branch(
  p_pipeline millrace.pipelines, p_key_type text, p_stage millrace.stages
) returns text
language sql stable
as $$
  select format(E'\n  if p_stage = %L and v_queued then%s\n    return true;\n  end if;',
    p_stage.name, millrace.show_statement(p_pipeline, p_key_type, format($t$
        select c.entity_id as id, %L::text as value, 'queued'::text as phase, %s as stage_id,
          null::int as done_id, null::text as via, 0 as attempts, null::timestamptz as retry_at,
          null::text as error
        from unnest(p_changes) c$t$, p_stage.shows ->> 'queued', p_stage.id), false))
$$;

-- Creates the __apply_outcomes function of a pipeline. Nearly every batch completes a stage and
-- readies the next, which needs no look at any run; whatever else it is asked of the tables.
create function millrace.write_status_outcomes(
  p_pipeline millrace.pipelines, p_key_type text, p_stages millrace.stages[]
) returns void
language plpgsql
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
    case p_stage%1$s
    else null;
    end case;
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
        millrace.show_statement(p_pipeline, p_key_type, millrace.completed_targets(s), false)), ''
        order by s.id)
      from unnest(p_stages) s
      where s.kind <> 'manual'), E'\n    when '''' then null;'),
    millrace.show_statement(p_pipeline, p_key_type,
      format('select s.* from millrace.status_states(%s, v_ids) s', p_pipeline.id), false),
    array(
      select s.name
      from unnest(p_stages) s
      where s.kind <> 'manual' and millrace.is_last(s)),
    (
      select string_agg(millrace.begun_branch(p_pipeline, p_key_type, s), '' order by s.id)
      from unnest(p_stages) s
      where millrace.is_plain_root(s, p_pipeline.status))));
end
$write$;

-- Creates the __started function of a pipeline: what a claim shows on rows that nobody holds.
create function millrace.write_status_started(
  p_pipeline millrace.pipelines, p_key_type text, p_stages millrace.stages[]
) returns void
language plpgsql
as $write$
begin
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
      from unnest(p_stages) s
      where s.kind not in ('manual', 'gate')), E'\n  when '''' then null;')));
end
$write$;

-- Creates the __queued function of a pipeline: a stage that starts over. What begins under a
-- condition, or with a question, shows itself when it begins.
create function millrace.write_status_queued(
  p_pipeline millrace.pipelines, p_key_type text
) returns void
language plpgsql
as $write$
begin
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
end
$write$;

-- Creates the functions of a pipeline that show its runs in one column.
create function millrace.write_status(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
as $$
declare
  v_stages millrace.stages[] := array(
    select s
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id and s.shows is not null
    order by s.id);
begin
  perform millrace.write_status_outcomes(p_pipeline, p_key_type, v_stages);
  perform millrace.write_status_started(p_pipeline, p_key_type, v_stages);
  perform millrace.write_status_queued(p_pipeline, p_key_type);
  perform millrace.write_status_since(p_pipeline);
  perform millrace.write_status_intake(p_pipeline);
end
$$;
