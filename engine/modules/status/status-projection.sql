-- Returns the SQL statement that writes values into the status column, and all values that a row
-- passes into the history. Each row is updated once. "= any" finds a row by its key in every plan.
-- p_targets: a query of (id, value, phase, stage_id, done_id, via, attempts, retry_at, error).
-- p_claim: skips locked rows, and sets retry_at but neither attempts nor error.
create function millrace.show_statement(
  p_pipeline millrace.pipelines, p_key_type text, p_targets text, p_claim boolean
) returns text
stable
as $write$
  v_history jsonb := p_pipeline.status -> 'history';
  v_table text := p_pipeline.entity_table::text;
  v_key text := quote_ident(p_pipeline.entity_key);
  v_column text := quote_ident(p_pipeline.status ->> 'column');
  v_type text := millrace.column_type(
    p_pipeline.entity_table, p_pipeline.status ->> 'column');
  v_set text;
  v_differs text;

select string_agg(format(', %I = t.%I', p_pipeline.status ->> n, n), ''),
  string_agg(format(' or e.%I is distinct from t.%I', p_pipeline.status ->> n, n), '')
into v_set, v_differs
from unnest(array['attempts', 'retry_at', 'error']) n
where p_pipeline.status ->> n is not null and (n = 'retry_at' or not p_claim);
if v_history is not null then
  v_set := concat(v_set, format(
    ', %1$I = case when t.was is distinct from t.value then v_now else t.began end',
    v_history ->> 'since'));
end if;
return format($f$
  with seen as %1$s (
    select e.ctid as row_id, e.%2$s::text as was, e.%3$s as began, t.*
    from (%4$s) t
    join %5$s e on e.%6$s = any (array[t.id::%7$s])
    where e.%2$s is distinct from t.value::%8$s%9$s
    %10$s
  )$f$, case when v_history is not null then 'materialized' end, v_column,
    coalesce(quote_ident(v_history ->> 'since'), v_column), p_targets, v_table, v_key, p_key_type,
    v_type, v_differs, case when p_claim
      then 'order by e.' || v_key || ' for no key update of e skip locked' end)
  || case when v_history is not null then $f$, path as materialized (
    select k.*, p.interim, p.actors
    from (select distinct s.was, s.value, s.phase, s.stage_id, s.done_id, s.via from seen s) k
    cross join millrace.status_path(
      k.was, k.value, k.phase, k.stage_id, k.done_id, k.via) p
  ), written as ($f$ else '' end
  || format($f$
  update %s e set %s = t.value::%s%s
  from seen t
  where e.ctid = t.row_id$f$, v_table, v_column, v_type, v_set)
  || case when v_history is null then '' else format($f$
    returning e.%1$s as key, t.*)
  insert into %2$s (%3$I, from_status, to_status, changed_at, changed_by, duration_ms)
  select w.key,
    case when u.ordinal = 1 then w.was else p.interim[u.ordinal - 1] end::%4$s,
    u.value::%4$s, v_now, coalesce(u.actor, millrace.actor(%5$L)),
    case
      when u.ordinal > 1 then 0
      when w.was is not null
        then greatest(0, extract(epoch from v_now - w.began) * 1000)::bigint
    end
  from written w
  join path p on (p.was, p.value, p.phase, p.stage_id, p.done_id, p.via)
    is not distinct from (w.was, w.value, w.phase, w.stage_id, w.done_id, w.via)
  cross join unnest(p.interim, p.actors) with ordinality u(value, actor, ordinal)
  order by w.key, u.ordinal$f$, v_key, to_regclass(v_history ->> 'table'), v_history ->> 'key',
    v_type, v_table) end || ';';
$write$;

-- Creates the __apply_outcomes, __started and __queued functions of a pipeline with one status
-- column. A batch that completes a stage and readies one other in each run is written without a
-- look at the runs, which saves a seventh of its time.
create function millrace.write_status(p_pipeline millrace.pipelines, p_key_type text)
as $write$
  c_show constant text := $f$
declare
  v_now timestamptz := %s;
  v_stage millrace.stages;
  v_ids text[];
begin
  select s.* into v_stage
  from millrace.stages s
  where s.pipeline_id = %s and s.name = p_stage;
  %s
  return true;
end $f$;
  c_figures constant text := 'null::text as via, 0 as attempts, null::timestamptz as retry_at, '
    'null::text as error';
begin
  perform millrace.write_function(p_pipeline.name,
    'apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean',
    format(c_show, 'millrace.now()', p_pipeline.id, format($f$
  if v_stage.kind <> 'manual' and (
      select bool_and(c.status = 'completed' and coalesce(cardinality(c.queued), 0) = 1)
      from unnest(p_changes) c) then%s
    return true;
  end if;
  v_ids := array(
    select c.entity_id from unnest(p_changes) c where c.status <> 'skipped' order by 1);
  if v_ids <> '{}' then%s
  end if;$f$, millrace.show_statement(p_pipeline, p_key_type, format($t$
        select c.entity_id as id, n.shows ->> 'queued' as value, 'queued'::text as phase,
          n.id as stage_id, v_stage.id as done_id, %s
        from unnest(p_changes) c
        join millrace.stages n on n.pipeline_id = %s and n.name = c.queued[1]
          and n.shows ? 'queued'$t$, c_figures, p_pipeline.id), false),
    millrace.show_statement(p_pipeline, p_key_type, format(
      'select s.* from millrace.status_states(%s, v_ids) s where s.value is not null',
      p_pipeline.id), false))));
  perform millrace.write_function(p_pipeline.name,
    format('%s(p_stage text, %s p_ids text[]) returns boolean', f.phase, f.takes),
    format(c_show, f.now, p_pipeline.id, format(
      E'if %s then\n    return false;\n  end if;', f.hidden)
    || millrace.show_statement(p_pipeline, p_key_type, format($t$
        select i as id, v_stage.shows ->> '%1$s' as value, '%1$s'::text as phase,
          v_stage.id as stage_id, null::int as done_id, %2$s
        from unnest(p_ids) i$t$, f.phase, c_figures), f.claims)))
  from (values
    ('started', 'p_now timestamptz,', 'p_now',
      $f$v_stage.shows is null or v_stage.kind in ('manual', 'gate')$f$, true),
    -- A stage that is not unconditional is written when it begins.
    ('queued', 'p_dependents text[],', 'millrace.now()',
      $f$v_stage.shows ->> 'queued' is null or not exists (
      select from millrace.pipelines p
      join millrace.version_stages vs on vs.version_id = p.current_version_id
      where p.id = v_stage.pipeline_id and vs.stage_id = v_stage.id and vs.unconditional)$f$,
      false)) f(phase, takes, now, hidden, claims);
end
$write$;
