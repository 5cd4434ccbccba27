-- Finds rows whose status column does not have the value of their run, for runs with ids above
-- p_after and up to p_until. Without ids finds histories that are no chain of legal moves to the
-- row's value. Four differences are no faults: a locked row that does not show its claim, a due
-- retry that the sweep has yet to write, an open question whose value a person has changed, and a
-- failure with a former value of its code.
create function millrace.status_faults(
  p_after bigint default null, p_until bigint default null
) returns setof millrace.fault
stable
set jit = off
set plan_cache_mode = force_generic_plan
as $$
  v_pipeline millrace.pipelines;
  v_history jsonb;

for v_pipeline in
  select p.*
  from millrace.pipelines p
  join pg_class c on c.oid = p.entity_table
  where p.projection = 'status'
  order by p.id
loop
  return query execute format($q$
    select 'a row shows where its run stands', s.run_id, null::bigint,
      format('row %%s of %%s shows %%s, but its run is at %%s', s.id, %1$L,
        coalesce(e.%3$I::text, 'nothing'), s.value)
    from millrace.status_states($1, array(
      select distinct r.entity_id
      from millrace.runs r
      where r.pipeline_id = $1 and r.copy_key is null
        and r.id > $3
        and r.id <= $4)) s
    join %1$s e on e.%2$I = s.id::%4$s
    left join millrace.stages t on t.id = s.stage_id
    where s.value is not null
      and e.%3$I::text is distinct from s.value
      and case
        when s.phase in ('failed', 'dropped') then e.%3$I::text in (
          select $2 ->> 'failed'
          union all
          select f.value
          from millrace.stages o
          cross join jsonb_each_text(o.shows -> 'failed') f
          where o.pipeline_id = $1)
        when s.phase in ('queued', 'backoff')
          then e.%3$I::text in (t.shows ->> 'backoff', t.shows ->> 'queued')
        else s.phase in ('started', 'asked')
          and e.%3$I::text = any (millrace.live_values(t.shows))
      end is not true$q$,
    v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.status ->> 'column',
    millrace.key_type(v_pipeline))
  using v_pipeline.id, v_pipeline.status, p_after, p_until;
  v_history := v_pipeline.status -> 'history';
  continue when v_history is null or p_after is not null;
  return query execute format($q$
    select f.rule, null::bigint, null::bigint,
      format('row %%s of %%s went from %%s to %%s, but %%s', s.key, %1$L,
        coalesce(s.was, 'nothing'), s.now, f.why)
    from (
      select h.%3$I as key, h.from_status::text as was, h.to_status::text as now,
        lag(h.to_status::text) over w as before, lag(h.id) over w is null as first,
        lead(h.id) over w is null as last
      from %2$s h
      window w as (partition by h.%3$I order by h.id)) s
    join %1$s e on e.%4$I = s.key
    left join (
      select distinct coalesce(m.from_value, '') as was, m.to_value as now
      from millrace.version_moves m
      join millrace.versions v on v.id = m.version_id
      where v.pipeline_id = $1) m on m.was = coalesce(s.was, '') and m.now = s.now
    cross join lateral (values
      ('a history is a chain of legal moves', not s.first and s.was is distinct from s.before,
        'was at ' || coalesce(s.before, 'nothing')),
      ('a history is a chain of legal moves',
        m.now is null and not (s.first and s.was is null), 'no such move is legal'),
      ('a history ends at the value of its row', s.last and e.%5$I::text is distinct from s.now,
        'now shows ' || coalesce(e.%5$I::text, 'nothing'))) f(rule, broken, why)
    where f.broken$q$,
    v_pipeline.entity_table, to_regclass(v_history ->> 'table'), v_history ->> 'key',
    v_pipeline.entity_key, v_pipeline.status ->> 'column')
  using v_pipeline.id;
end loop;
$$;
