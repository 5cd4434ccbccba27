-- Raises MR004 in a database at another level than the one from which the upgrade leads.
do $level$
  v_from constant int := '{{from}}';
  v_to constant int := '{{to}}';
  v_level int;

if to_regprocedure('millrace.engine()') is not null then
  select e.level into v_level from millrace.engine() e;
end if;
if v_level is distinct from v_from then
  raise exception
    'MR004: the upgrade leads from level % to level %, but this database is at level %',
    v_from, v_to, coalesce(v_level::text, 'none')
    using hint = 'Apply the migrations in their order, each once. Nothing has been changed.';
end if;
$level$;

-- Takes every lock in the engine's own order within 800 ms, or releases all and tries again.
-- Postgres looks for deadlocks after a second, so no transaction is ended by one.
do $locks$
  v_give_up constant timestamptz := clock_timestamp() + coalesce((
    select s.value
    from millrace.settings s
    where s.name = 'upgrade_patience'), '15 seconds')::interval;
  v_until timestamptz;
  v_table record;

loop
  begin
    v_until := clock_timestamp() + interval '800 milliseconds';
    for v_table in
      select c.oid::regclass as name, case
          when c.oid in (select to_regclass(a) from unnest('{{altered}}'::text[]) a)
            then 'access exclusive'
          when e.is_entity then 'share row exclusive'
          else 'exclusive'
        end as mode
      from pg_class c
      cross join lateral (
        select c.oid in (select p.entity_table from millrace.pipelines p) as is_entity) e
      where c.relkind = 'r'
        and (e.is_entity or c.relnamespace = 'millrace'::regnamespace
          or c.oid in (select to_regclass(o) from unnest('{{tables}}'::text[]) o))
      order by case when e.is_entity then 2 else coalesce(array_position(
        '{millrace.workers,null,millrace.runs,millrace.attempts,millrace.claims}'::regclass[],
        c.oid::regclass), 6) end, 1
    loop
      perform set_config('lock_timeout',
        greatest(1, ceil(extract(epoch from v_until - clock_timestamp()) * 1000))::int || 'ms',
        true);
      execute format('lock table %s in %s mode', v_table.name, v_table.mode);
    end loop;
    -- Locks out attach(). A definition that has this lock may wait for a table that was just
    -- locked.
    v_table := null;
    perform pg_advisory_xact_lock(hashtext('millrace.calls'));
    exit;
  exception when lock_not_available or deadlock_detected then
    if clock_timestamp() >= v_give_up then
      raise exception
        'the database is busy, try again: somebody %. Millrace stays as it was',
        coalesce('holds table ' || v_table.name, 'defines a pipeline')
        using errcode = 'lock_not_available',
          hint = 'End the transaction that holds it (see pg_stat_activity), or let it wait '
            'longer: update millrace.settings set value = ''5 minutes'' where name = '
            '''upgrade_patience''.';
    end if;
    perform pg_sleep(0.05 + random() * 0.2);
  end;
end loop;
perform set_config('lock_timeout', '3s', true);
$locks$;

-- Warns of the functions that were edited since they were installed.
do $edited$
  v_edited text;

select 'functions of Millrace were edited in this database: '
  || string_agg(format('%s (%s)', f.oid::regprocedure, case
    when s.signature = any ('{{changed}}') then 'replaced' else 'kept as it is' end), ', '
    order by f.oid::regprocedure::text)
into v_edited
from (
  select left(b, 12) as body, substr(b, 14) as signature
  from unnest('{{bodies}}'::text[]) b
) s
join pg_proc f on f.oid = to_regprocedure(s.signature)
where left(md5(f.prosrc), 12) <> s.body;
if v_edited is not null then
  raise warning '%', v_edited;
  insert into millrace.log (level, code, message)
  values ('warning', 'functions_edited', v_edited);
end if;
$edited$;

-- Drops functions and views of the engine, and the engine's views that call or read them. Raises
-- where objects of others depend on them.
create function pg_temp.drop_own(p_functions text[], p_views text[]) returns void
set search_path = pg_catalog, pg_temp
as $$
  v_functions regprocedure[] := array(
    select to_regprocedure(s)
    from unnest(p_functions) s
    where to_regprocedure(s) is not null);
  v_drop text;
  v_detail text;

for v_drop in
  with recursive gone(id) as (
    select to_regclass(s)::oid from unnest(p_views) s
    union
    select r.ev_class
    from pg_depend d
    join pg_rewrite r on r.oid = d.objid
    where d.classid = 'pg_rewrite'::regclass
      and d.refclassid = 'pg_proc'::regclass
      and d.refobjid = any (v_functions)
    union
    select r.ev_class
    from gone g
    join pg_depend d on d.refclassid = 'pg_class'::regclass
      and d.refobjid = g.id
      and d.classid = 'pg_rewrite'::regclass
    join pg_rewrite r on r.oid = d.objid
  )
  select 'drop view ' || string_agg(c.oid::regclass::text, ', ')
  from gone g
  join pg_class c on c.oid = g.id and c.relnamespace = 'millrace'::regnamespace
  having count(*) > 0
  union all
  select 'drop routine ' || f from unnest(v_functions) f
loop
  execute v_drop;
end loop;
exception when dependent_objects_still_exist then
  get stacked diagnostics v_detail = pg_exception_detail;
  raise exception 'the upgrade replaces what others depend on, drop these first: %', v_detail
    using errcode = 'dependent_objects_still_exist',
      hint = 'Keep their text (select pg_get_viewdef(…)), and create them again after it. '
        'Nothing has been changed.';
$$;

-- Creates or replaces a view. Drops it first where its columns do not only grow, which Postgres
-- refuses.
-- p_changed: false leaves an existing view as it is.
create function pg_temp.put_view(p_name text, p_changed boolean, p_text text) returns void
set search_path = pg_catalog, pg_temp
as $$
if to_regclass(p_name) is not null then
  if not p_changed then
    return;
  end if;
  begin
    execute p_text;
    return;
  exception when invalid_table_definition then
    perform pg_temp.drop_own('{}', array[p_name]);
  end;
end if;
execute p_text;
$$;
