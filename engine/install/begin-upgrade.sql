-- Refuses a database that is not at the level which this upgrade leads on from.
do $level$
declare
  v_from constant int := '{{from}}';
  v_to constant int := '{{to}}';
  v_level int;
begin
  if to_regprocedure('millrace.engine()') is null then
    raise exception 'the upgrade to level % finds no Millrace here', v_to
      using errcode = 'MR004',
        hint = format('Install level %s first: apply the migrations in their order.', v_from);
  end if;
  select e.level into v_level from millrace.engine() e;
  if v_level is distinct from v_from then
    raise exception 'the upgrade leads from level % to level %, but this database is at level %',
      v_from, v_to, v_level
      using errcode = 'MR004',
        hint = 'Apply the migrations in their order, each once. Nothing has been changed.';
  end if;
end
$level$;

-- Takes every lock before it changes anything, in the engine's own order, within 800 ms; else it
-- lets all go and tries again, so that nobody is ended as part of a deadlock, which Postgres looks
-- for after a second.
do $locks$
declare
  v_altered constant text[] := '{{altered}}';
  v_give_up constant timestamptz := clock_timestamp() + coalesce((
    select s.value
    from millrace.settings s
    where s.name = 'upgrade_patience'), '15 seconds')::interval;
  v_until timestamptz;
  v_table record;
begin
  loop
    begin
      v_until := clock_timestamp() + interval '800 milliseconds';
      for v_table in
        select t.name,
          case when t.name = any (v_altered) then 'access exclusive' else t.mode end as mode
        from (
          select 1 as place, 'millrace.workers' as name, 'exclusive' as mode
          union all
          select distinct 2, c.oid::regclass::text, 'share row exclusive'
          from millrace.pipelines p
          join pg_class c on c.oid = p.entity_table
          union all
          values (3, 'millrace.runs', 'exclusive'), (4, 'millrace.attempts', 'exclusive'),
            (5, 'millrace.claims', 'exclusive')
          union all
          select 6, format('%I.%I', n.nspname, c.relname), 'exclusive'
          from pg_class c
          join pg_namespace n on n.oid = c.relnamespace
          where c.relkind = 'r'
            and (n.nspname = 'millrace'
                and c.relname <> all (array['workers', 'runs', 'attempts', 'claims'])
              or format('%I.%I', n.nspname, c.relname) = any ('{{tables}}'))
        ) t
        order by t.place, t.name
      loop
        perform set_config('lock_timeout',
          greatest(1, ceil(extract(epoch from v_until - clock_timestamp()) * 1000))::int || 'ms',
          true);
        execute format('lock table %s in %s mode', v_table.name, v_table.mode);
      end loop;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() >= v_give_up then
        raise exception
          'the database is busy, try again: somebody holds table %. Millrace stays as it was',
          v_table.name
          using errcode = 'lock_not_available',
            hint = 'Run it when less is going on, end the transaction that holds it (select pid, '
              'xact_start, query from pg_stat_activity order by xact_start), or let it wait '
              'longer: update millrace.settings set value = ''5 minutes'' where name = '
              '''upgrade_patience''.';
      end if;
      perform pg_sleep(0.05 + random() * 0.2);
    end;
  end loop;
  perform set_config('lock_timeout', '3s', true);
end
$locks$;

-- Names the functions that somebody has edited since they were installed.
do $edited$
declare
  v_edited text[];
  v_message text;
begin
  v_edited := array(
    select format('%s (%s)', f.oid::regprocedure,
      case when s.signature = any ('{{changed}}') then 'replaced' else 'kept as it is' end)
    from (
      select left(b, 12) as body, substr(b, 14) as signature
      from unnest('{{bodies}}'::text[]) b
    ) s
    join pg_proc f on f.oid = to_regprocedure(s.signature)
    where left(md5(f.prosrc), 12) <> s.body
    order by 1);
  if cardinality(v_edited) > 0 then
    v_message := 'functions of Millrace were edited in this database: '
      || array_to_string(v_edited, ', ');
    raise warning '%', v_message;
    insert into millrace.log (level, code, message, detail) values
      ('warning', 'functions_edited', v_message,
        jsonb_build_object('level', '{{to}}', 'functions', to_jsonb(v_edited)));
  end if;
end
$edited$;

-- Drops objects of the engine; refuses where somebody else's depends on them.
create function pg_temp.drop_own(p_objects text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_detail text;
begin
  execute 'drop ' || p_objects;
exception when dependent_objects_still_exist then
  get stacked diagnostics v_detail = pg_exception_detail;
  raise exception 'the upgrade replaces what others depend on, drop these first: %', v_detail
    using errcode = 'dependent_objects_still_exist',
      hint = 'Keep their text (select pg_get_viewdef(…)), and create them again after it. '
        'Nothing has been changed.';
end
$$;

-- Drops views of the engine, and those of the engine that call these functions or read the views.
create function pg_temp.drop_views(p_functions oid[], p_views oid[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_names text;
begin
  with recursive gone(id) as (
    select unnest(p_views)
    union
    select r.ev_class
    from pg_depend d
    join pg_rewrite r on r.oid = d.objid
    where d.classid = 'pg_rewrite'::regclass
      and d.refclassid = 'pg_proc'::regclass
      and d.refobjid = any (p_functions)
    union
    select r.ev_class
    from gone g
    join pg_depend d on d.refclassid = 'pg_class'::regclass
      and d.refobjid = g.id
      and d.classid = 'pg_rewrite'::regclass
    join pg_rewrite r on r.oid = d.objid
  )
  select string_agg(g.id::regclass::text, ', ') into v_names
  from gone g
  join pg_class c on c.oid = g.id
  where c.relnamespace = 'millrace'::regnamespace;
  if v_names is not null then
    perform pg_temp.drop_own('view ' || v_names);
  end if;
end
$$;

-- Drops functions of the engine with the views that call them.
create function pg_temp.drop_functions(p_signatures text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids oid[] := array(
    select to_regprocedure(s)
    from unnest(p_signatures) s
    where to_regprocedure(s) is not null);
  v_id regprocedure;
begin
  perform pg_temp.drop_views(v_ids, '{}');
  foreach v_id in array v_ids loop
    perform pg_temp.drop_own('routine ' || v_id);
  end loop;
end
$$;

-- Keeps a view whose columns only grow, and all that reads it; makes it anew where they do not.
create function pg_temp.put_view(p_name text, p_changed boolean, p_text text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass(p_name) is not null then
    if not p_changed then
      return;
    end if;
    begin
      execute p_text;
      return;
    exception when invalid_table_definition then
      perform pg_temp.drop_views('{}', array[to_regclass(p_name)]::oid[]);
    end;
  end if;
  execute p_text;
end
$$;
