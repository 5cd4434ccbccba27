-- Removes all that an install created, and nothing else. The columns of your tables, the extensions
-- and the secrets in Vault stay. Raises while runs are live, and where an object of yours depends
-- on one of Millrace's.
do $uninstall$
  v_functions oid[];
  v_relations oid[];
  v_until constant timestamptz := clock_timestamp() + interval '800 milliseconds';
  v_table record;
  v_live text;
  v_others text[];

if to_regprocedure('millrace.engine()') is null then
  raise exception 'MR003: there is no Millrace in this database'
    using hint = 'Nothing has been removed.';
end if;
-- to_regprocedure() of Postgres 15 raises for a type that does not exist. The types are dropped
-- last.
v_functions := array(
  select to_regprocedure(s)
  from unnest('{{functions}}'::text[]) s
  where to_regprocedure(s) is not null);
v_relations := array(
  select to_regclass(s)
  from unnest('{{relations}}'::text[]) s
  where to_regclass(s) is not null);
-- Adds the functions that attach() and `millrace adopt` have written.
v_functions := v_functions || array(
  select f.oid
  from pg_proc f
  where f.pronamespace = 'millrace'::regnamespace
    and (f.proname = any (
      '{adopt,adopt_portion,adopting_pipeline,begin,lock_entities,rows_of_entities,
      sizes_of_entities,values_of_entities,project_entities}') or exists (
      select from millrace.pipelines p where f.proname ^@ (p.name || '__'))));

-- Takes all locks within 800 ms. Postgres looks for deadlocks after a second, so no transaction
-- is ended by one.
begin
  for v_table in
    select c.oid::regclass as name
    from pg_class c
    where c.relkind = 'r'
      and (c.oid = any (v_relations)
        or c.oid in (select g.tgrelid from pg_trigger g where g.tgfoid = any (v_functions)))
  loop
    perform set_config('lock_timeout',
      greatest(1, extract(epoch from v_until - clock_timestamp()) * 1000)::int || 'ms', true);
    execute format('lock table %s in access exclusive mode', v_table.name);
  end loop;
exception when lock_not_available then
  raise exception
    'the database is busy, try again: somebody holds table %. Millrace stays as it was',
    v_table.name
    using errcode = 'lock_not_available', hint = 'Run it when less is going on.';
end;

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
  raise exception 'MR004: runs are live: %', v_live
    using hint = 'Cancel them: select millrace.cancel(id) from millrace.runs where status = '
        '''running''. Nothing has been removed.';
end if;

for v_table in
  select g.tgname, g.tgrelid::regclass as name
  from pg_trigger g
  where g.tgfoid = any (v_functions)
    and g.tgrelid <> all (v_relations)
loop
  execute format('drop trigger %I on %s', v_table.tgname, v_table.name);
end loop;

-- Lists objects of others that depend on the engine's, and raises where there are any.
with recursive own(class, id) as (
  select 'pg_proc'::regclass::oid, unnest(v_functions)
  union
  select 'pg_class'::regclass, unnest(v_relations)
  union
  select 'pg_type'::regclass, t.oid from pg_type t where t.typrelid = any (v_relations)
  union
  select 'pg_type'::regclass, to_regtype(s)::oid from unnest('{{types}}'::text[]) s
  union
  select 'pg_namespace'::regclass, to_regnamespace(s)::oid
  from unnest('{{schemas}}'::text[]) s
  union
  select 'pg_trigger'::regclass, g.oid
  from pg_trigger g
  where g.tgisinternal or g.tgfoid = any (v_functions)
  union
  select d.classid, d.objid
  from own o
  join pg_depend d on d.refclassid = o.class and d.refobjid = o.id
  where d.deptype in ('i', 'a')
    and d.classid not in ('pg_trigger'::regclass, 'pg_publication_rel'::regclass)
)
select array_agg(distinct pg_describe_object(
  coalesce(i.refclassid, d.classid), coalesce(i.refobjid, d.objid),
  case when i.objid is null then d.objsubid else 0 end))
into v_others
from own o
join pg_depend d on d.refclassid = o.class and d.refobjid = o.id
left join pg_depend i
  on i.classid = d.classid and i.objid = d.objid and i.deptype = 'i'
where (d.classid, d.objid) not in (select w.class, w.id from own w);
if v_others <> '{}' then
  raise exception 'others depend on Millrace, drop these first: %',
    array_to_string(v_others, ', ')
    using errcode = 'dependent_objects_still_exist',
      hint = 'They are not Millrace''s own. Nothing has been removed.';
end if;

-- Without pg_cron its jobs are gone, too.
if to_regclass('cron.job') is not null then
  perform cron.unschedule(j.jobname) from cron.job j where j.jobname = any ('{{jobs}}');
end if;
if to_regclass('realtime.messages') is not null then
  execute 'drop policy if exists millrace_progress on realtime.messages';
end if;
execute (
  select string_agg(format('drop function %s cascade;', p.oid::regprocedure), '')
  from pg_proc p
  where p.oid = any (v_functions) and p.pronamespace = 'public'::regnamespace);
execute 'drop table if exists ' || array_to_string('{{tables}}'::text[], ', ');
execute 'drop schema if exists millrace_watch cascade';
execute format('drop schema %s cascade', array_to_string('{{schemas}}'::text[], ', '));
perform pg_notify('pgrst', 'reload schema');
raise notice 'Millrace is gone. Still there are the columns that it kept on your tables, the '
  'extensions pg_net, pg_cron and Vault, and the secrets in Vault that are called millrace_….';
$uninstall$;
