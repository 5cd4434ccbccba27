-- Removes Millrace from a database: all that an install made, and nothing else. It is one
-- statement, which does all of it or nothing. Kept are the columns of your tables with what they
-- show, the extensions and the secrets in Vault. It refuses while runs are live, and where
-- something of yours depends on what would go. Built of engine/ by tools/build.ts; change it there.
do $uninstall$
declare
  v_give_up timestamptz;
  v_functions oid[] := array(
    select to_regprocedure(s)
    from unnest('{{functions}}'::text[]) s
    where to_regprocedure(s) is not null);
  v_relations oid[] := array(
    select to_regclass(s)
    from unnest('{{relations}}'::text[]) s
    where to_regclass(s) is not null);
  v_enums oid[] := array(
    select to_regtype(s)
    from unnest('{{types}}'::text[]) s
    where to_regtype(s) is not null);
  v_types oid[];
  v_until timestamptz;
  v_table record;
  v_live text;
  v_others text[];
  v_count bigint;
  v_name text;
begin
  if to_regprocedure('millrace.engine()') is null then
    raise exception 'there is no Millrace in this database'
      using errcode = 'MR003', hint = 'Nothing has been removed.';
  end if;

  v_give_up := clock_timestamp() + coalesce((
    select s.value
    from millrace.settings s
    where s.name = 'upgrade_patience'), '15 seconds')::interval;
  -- As an upgrade does, it takes all locks within 800 ms or lets all go and tries again.
  loop
    begin
      v_until := clock_timestamp() + interval '800 milliseconds';
      for v_table in
        select t.name
        from (
          select 1 as place, 'millrace.workers' as name
          union all
          select distinct 2, g.tgrelid::regclass::text
          from pg_trigger g
          join pg_proc f on f.oid = g.tgfoid
          join pg_class c on c.oid = g.tgrelid
          where f.pronamespace = 'millrace'::regnamespace
            and c.oid <> all (v_relations)
          union all
          values (3, 'millrace.runs'), (4, 'millrace.attempts'), (5, 'millrace.claims')
          union all
          select 6, c.oid::regclass::text
          from pg_class c
          where c.oid = any (v_relations)
            and c.relkind = 'r'
            and c.relname <> all (array['workers', 'runs', 'attempts', 'claims'])
        ) t
        order by t.place, t.name
      loop
        perform set_config('lock_timeout',
          greatest(1, ceil(extract(epoch from v_until - clock_timestamp()) * 1000))::int || 'ms',
          true);
        execute format('lock table %s in access exclusive mode', v_table.name);
      end loop;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() >= v_give_up then
        raise exception
          'the database is busy, try again: somebody holds table %. Millrace stays as it was',
          v_table.name
          using errcode = 'lock_not_available',
            hint = 'Run it when less is going on, or let it wait longer: update millrace.settings '
              'set value = ''5 minutes'' where name = ''upgrade_patience''.';
      end if;
      perform pg_sleep(0.05 + random() * 0.2);
    end;
  end loop;
  perform set_config('lock_timeout', '3s', true);

  select string_agg(format('%s of %s', l.runs, l.name), ', ' order by l.name)
  into v_live
  from (
    select p.name, count(*) as runs
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.status = 'running'
    group by p.name
  ) l;
  if v_live is not null then
    raise exception 'runs are live: %', v_live
      using errcode = 'MR004',
        hint = 'Let them end, or cancel them: select millrace.cancel(id) from millrace.runs where '
          'status = ''running''. Nothing has been removed.';
  end if;

  -- What attach() has written belongs to it as well.
  v_functions := v_functions || array(
    select f.oid
    from pg_proc f
    where f.pronamespace = 'millrace'::regnamespace
      and (f.proname = any ('{lock_entities,rows_of_entities,show_entities}') or exists (
        select
        from millrace.pipelines p
        where f.proname ^@ (p.name || '__'))));
  v_types := array(
    select t.oid
    from pg_type t
    where t.typrelid = any (v_relations)
      or t.oid = any (v_enums)
      or t.typelem = any (v_enums)
      or t.typelem in (
        select e.oid
        from pg_type e
        where e.typrelid = any (v_relations)));
  for v_table in
    select g.tgname, g.tgrelid::regclass as name
    from pg_trigger g
    where g.tgfoid = any (v_functions)
      and g.tgrelid <> all (v_relations)
  loop
    execute format('drop trigger %I on %s', v_table.tgname, v_table.name);
  end loop;

  v_others := array(
    -- What somebody keeps in the engine's schemas.
    select pg_describe_object('pg_proc'::regclass, f.oid, 0)
    from pg_proc f
    join pg_namespace n on n.oid = f.pronamespace
    where n.nspname = any ('{{schemas}}')
      and f.oid <> all (v_functions)
      -- A range type's constructors go by the name of their type.
      and not exists (
        select
        from pg_depend d
        where d.classid = 'pg_proc'::regclass
          and d.objid = f.oid
          and d.deptype = 'i')
    union
    select pg_describe_object('pg_class'::regclass, c.oid, 0)
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any ('{{schemas}}')
      and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c', 'S')
      and c.oid <> all (v_relations)
      -- The sequence of an identity column goes with its table.
      and not exists (
        select
        from pg_depend d
        where d.classid = 'pg_class'::regclass
          and d.objid = c.oid
          and d.refobjid = any (v_relations)
          and d.deptype in ('i', 'a'))
    union
    select pg_describe_object('pg_collation'::regclass, o.oid, 0)
    from pg_collation o
    join pg_namespace n on n.oid = o.collnamespace
    where n.nspname = any ('{{schemas}}')
    union
    -- What somebody hung on the engine's tables.
    select pg_describe_object('pg_trigger'::regclass, g.oid, 0)
    from pg_trigger g
    where g.tgrelid = any (v_relations)
      and not g.tgisinternal
      and g.tgfoid <> all (v_functions)
    union
    select pg_describe_object('pg_publication_rel'::regclass, b.oid, 0)
    from pg_publication_rel b
    where b.prrelid = any (v_relations)
    union
    select pg_describe_object('pg_type'::regclass, t.oid, 0)
    from pg_type t
    join pg_namespace n on n.oid = t.typnamespace
    where n.nspname = any ('{{schemas}}')
      and t.typtype in ('d', 'e', 'r')
      and t.oid <> all (v_types)
    union
    -- What elsewhere depends on the engine's objects.
    select case when r.oid is null then pg_describe_object(d.classid, d.objid, d.objsubid)
      else pg_describe_object('pg_class'::regclass, r.ev_class, 0) end
    from pg_depend d
    left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass
      and r.oid = d.objid
    left join pg_attrdef a on d.classid = 'pg_attrdef'::regclass
      and a.oid = d.objid
    left join pg_constraint k on d.classid = 'pg_constraint'::regclass
      and k.oid = d.objid
    left join pg_trigger t on d.classid = 'pg_trigger'::regclass
      and t.oid = d.objid
    left join pg_index i on d.classid = 'pg_class'::regclass
      and i.indexrelid = d.objid
    left join pg_policy l on d.classid = 'pg_policy'::regclass
      and l.oid = d.objid
    where d.deptype = 'n'
      and (d.refclassid = 'pg_proc'::regclass and d.refobjid = any (v_functions)
        or d.refclassid = 'pg_class'::regclass and d.refobjid = any (v_relations)
        or d.refclassid = 'pg_type'::regclass and d.refobjid = any (v_types))
      and coalesce(
        r.ev_class, a.adrelid, k.conrelid, t.tgrelid, i.indrelid, l.polrelid, d.objid)
        <> all (v_relations || v_functions || v_types)
    order by 1);
  if cardinality(v_others) > 0 then
    raise exception 'others depend on Millrace, drop these first: %',
      array_to_string(v_others, ', ')
      using errcode = 'dependent_objects_still_exist',
        hint = 'They are not Millrace''s own. Nothing has been removed.';
  end if;

  -- Without pg_cron the jobs have gone with it.
  if to_regclass('cron.job') is not null then
    foreach v_name in array '{{jobs}}'::text[] loop
      if exists (select from cron.job j where j.jobname = v_name) then
        perform cron.unschedule(v_name);
      end if;
    end loop;
  end if;
  execute (
    select string_agg(format('drop function %s cascade;', f::regprocedure), '')
    from unnest(v_functions) f
    join pg_proc p on p.oid = f
    where p.pronamespace = 'public'::regnamespace);
  foreach v_name in array '{{tables}}'::text[] loop
    execute format('drop table if exists %s', v_name);
  end loop;
  foreach v_name in array '{{schemas}}'::text[] loop
    execute format('drop schema %I cascade', v_name);
  end loop;
  perform pg_notify('pgrst', 'reload schema');
  raise notice 'Millrace is gone. The columns that it kept on your tables are still there, and so '
    'are the extensions pg_net, pg_cron and Vault and the secrets in Vault that are called '
    'millrace_….';
end
$uninstall$;
