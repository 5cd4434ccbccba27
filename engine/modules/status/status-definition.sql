-- Raises MR001 where a definition changes the value of a position while a row has the old value, or
-- a run is live, which may write it. A failure may get another value while the definition still has
-- the old one, since rows that have failed keep it.
create function millrace.check_values(p_definition jsonb)
as $$
  v_changed text[] := array(
    select b.value
    from millrace.pipelines p
    cross join jsonb_each_text(p.status -> 'positions') b
    left join jsonb_each_text(p_definition -> 'positions') a on a.key = b.key
    where p.name = p_definition ->> 'pipeline'
      and (a.key is not null or p_definition -> 'graph' ? split_part(b.key, ' ', 1))
      and a.value is distinct from b.value
      and (b.key !~ '^\S+ failed ' or b.value not in (
        select n.value from jsonb_each_text(p_definition -> 'positions') n))
    order by b.value);
  v_rows bigint;
  v_live bigint;

if v_changed = '{}' or p_definition #> '{entity,status}' is null then
  return;
end if;
execute format('select count(*), (select count(*) from millrace.pipelines p join millrace.runs r '
  'on r.pipeline_id = p.id and r.status = ''running'' where p.name = $2) '
  'from %s e where e.%I::text = any ($1)', to_regclass(p_definition #>> '{entity,table}'),
  p_definition #>> '{entity,status,column}')
into v_rows, v_live
using v_changed, p_definition ->> 'pipeline';
perform millrace.refuse(format('entity.status shows another value in place of %s, '
    'but there are rows that show it: %s, and live runs: %s', array_to_string(v_changed, ', '),
    v_rows, v_live), 'Keep the value, or change it while no row shows it and no run is live.')
where v_rows + v_live > 0;
$$;

-- Writes the values of a status column, also into the user's lookup table, and the legal moves.
create function millrace.save_status(
  p_pipeline_id int, p_version_id int, p_definition jsonb
)
as $$
  v_status jsonb := p_definition #> '{entity,status}'
    || jsonb_build_object('positions', p_definition -> 'positions');
  v_lookup regclass := to_regclass(v_status ->> 'lookup');

update millrace.pipelines p
set status = v_status
where p.id = p_pipeline_id and p.status is distinct from v_status;
if v_status is null then
  return;
end if;
-- A value that the definition no longer lists stays as retired, since histories may have it.
delete from millrace.status_values v
using jsonb_array_elements(p_definition -> 'values') n
where v.pipeline_id = p_pipeline_id and v.value = n ->> 'value';
update millrace.status_values v set retired = true where v.pipeline_id = p_pipeline_id;
insert into millrace.status_values
select v.*
from jsonb_array_elements(p_definition -> 'values') n
cross join jsonb_populate_record(null::millrace.status_values, jsonb_build_object('pipeline_id',
  p_pipeline_id, 'retired', false, 'adopted_as', n -> 'value', 'before', '[]'::jsonb) || n) v;
if v_lookup is not null then
  -- A name in the lookup may be unique. A row with a name that another value gets now is renamed.
  execute format($q$
    update %1$s t
    set name = format('%%s (%%s)', t.name, t.code)
    from millrace.status_values v
    where v.pipeline_id = $1
      and not v.retired and v.name = t.name
      and v.value <> t.code::text$q$, v_lookup)
  using p_pipeline_id;
  execute format($q$
    insert into %1$s as t (code, name, description, category, is_terminal, sort_order)
    select v.value::%2$s, v.name, v.description, v.category, v.is_terminal, v.sort_order
    from millrace.status_values v
    where v.pipeline_id = $1 and not v.retired
    order by v.sort_order
    on conflict (code) do update
    set (name, description, category, is_terminal, sort_order) = (excluded.name,
      excluded.description, excluded.category, excluded.is_terminal, excluded.sort_order)
    where (t.name, t.description, t.category, t.is_terminal, t.sort_order)
      is distinct from (excluded.name, excluded.description, excluded.category,
        excluded.is_terminal, excluded.sort_order)$q$,
    v_lookup, millrace.column_type(v_lookup, 'code'))
  using p_pipeline_id;
end if;
update millrace.version_moves m
set retired = true, drawn = false
where m.version_id = p_version_id;
insert into millrace.version_moves
  (version_id, from_value, to_value, by, means, at_stage_id, stage_id, declared, drawn)
select p_version_id, f.value, m."to", m.by, m.means, a.id, s.id,
  bool_or(m.declared is true), bool_or(m.drawn is true)
from jsonb_to_recordset(p_definition -> 'moves') m("from" text[], "to" text, by text, means text,
  at text, stage text, declared boolean, drawn boolean)
cross join unnest(m."from") f(value)
left join millrace.stages a on a.pipeline_id = p_pipeline_id and a.name = m.at
left join millrace.stages s on s.pipeline_id = p_pipeline_id and s.name = m.stage
group by 2, 3, 4, 5, 6, 7
on conflict (version_id, from_value, to_value, by, means, at_stage_id, stage_id) do update
set declared = excluded.declared, drawn = excluded.drawn, retired = false;
$$;

-- The stages of each version with the values that the status column has for them. demanded: the
-- stage is on demand, or after one that is. ready: the value at which the stage is queued or asks.
create view millrace.shown_stages as
select vs.version_id, s.id, s.name, vs.position as ordinal, s.shows,
  vs.on_demand or exists (
    select from millrace.version_stages d
    where d.version_id = vs.version_id and d.on_demand and vs.stage_id = any (d.dependents))
    as demanded, coalesce(s.shows ->> 'queued', s.shows ->> 'asked') as ready
from millrace.version_stages vs
join millrace.stages s on s.id = vs.stage_id;

-- The legal moves of a status column: by the engine as work goes on, by a person who writes the
-- value, or by a call such as start(). from_value is null for a new row.
create view millrace.status_moves as
select distinct p.name as pipeline, m.from_value, m.to_value, m.by, m.drawn, m.means
from millrace.pipelines p
join millrace.version_moves m on m.version_id = p.current_version_id and not m.retired;
