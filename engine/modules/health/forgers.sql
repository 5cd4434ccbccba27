-- Who could forge results

-- Which roles of the Data API could write what only the engine should (results, figures and history
-- of a status column, the lookup of its values), with the statements that leave them their own
-- columns.
create view millrace.forgers as
with role as (
  select r.oid, r.rolname as name
  from pg_roles a
  join pg_roles r on pg_has_role(a.oid, r.oid, 'member')
  where a.rolname = 'authenticator'
    and r.oid <> a.oid
    and not r.rolbypassrls
    and not r.rolsuper
), kept as (
  select p.entity_table::oid as table_id, 'results' as what, n.name as name,
    n.name like '%\_status' as by_people
  from millrace.pipelines p
  join millrace.stages s on s.pipeline_id = p.id
  cross join lateral unnest(millrace.stage_columns(s.name)) n(name)
  where p.projection = 'columns'
  union all
  select p.entity_table::oid, 'figures', n.name, false
  from millrace.pipelines p
  cross join unnest(array['attempts', 'retry_at', 'error']) f(field)
  cross join lateral (select p.status ->> f.field) n(name)
  where p.projection = 'status' and n.name is not null
  union all
  select a.attrelid, t.what, a.attname::text, false
  from millrace.pipelines p
  cross join lateral (
    values ('history', p.status #>> '{history,table}'), ('values', p.status ->> 'lookup')
  ) t(what, name)
  join pg_attribute a on a.attrelid = to_regclass(t.name) and a.attnum > 0 and not a.attisdropped
  where p.projection = 'status'
), entity as (
  select c.oid, c.relrowsecurity as guarded, string_agg(distinct k.what, ' and ') as what,
    coalesce(array_agg(k.name) filter (where not k.by_people), '{}') as columns,
    coalesce(array_agg(k.name) filter (where k.by_people), '{}') as statuses,
    bool_or(k.what in ('history', 'values')) as whole
  from kept k
  join pg_class c on c.oid = k.table_id
  group by c.oid, c.relrowsecurity
), forged as (
  select e.oid as table_id, r.oid as role_id, r.name as role, e.what, k.name as verb, e.columns,
    e.statuses
  from entity e
  cross join role r
  cross join (values ('delete', 'd'), ('insert', 'a'), ('update', 'w')) k(name, policy)
  where case k.name
      when 'delete' then e.whole and has_table_privilege(r.oid, e.oid, 'delete')
      else exists (
        select
        from pg_attribute a
        where a.attrelid = e.oid
          and a.attname = any (e.columns)
          and has_column_privilege(r.oid, e.oid, a.attnum, k.name))
    end
    and (not e.guarded or exists (
      select
      from pg_policy y
      where y.polrelid = e.oid
        and y.polpermissive
        and y.polcmd in ('*', k.policy)
        and exists (
          select
          from unnest(y.polroles) o
          where o = 0 or pg_has_role(r.oid, o, 'usage'))))
), allowed as (
  -- What stays to the role: the user's own columns, and statuses that were granted one by one.
  select f.table_id, f.role, f.what, f.verb,
    case f.verb
      when 'delete' then has_table_privilege('public', f.table_id, 'delete')
      else has_any_column_privilege('public', f.table_id, f.verb)
    end as by_all,
    string_agg(quote_ident(a.attname), ', ' order by a.attnum) filter (
      where a.attgenerated = ''
        and a.attidentity <> 'a'
        and a.attname <> all (f.columns)
        and f.verb <> 'delete'
        and has_column_privilege(f.role_id, f.table_id, a.attnum, f.verb)
        and (a.attname <> all (f.statuses) or exists (
          select
          from aclexplode(a.attacl) x
          where x.grantee = f.role_id
            and x.privilege_type = upper(f.verb)))) as columns
  from forged f
  join pg_attribute a on a.attrelid = f.table_id and a.attnum > 0 and not a.attisdropped
  group by f.table_id, f.role_id, f.role, f.what, f.verb
)
select
  w.table_id::regclass as entity_table,
  w.role::text as role,
  string_agg(w.verb, ', ' order by w.verb) as verbs,
  format('revoke %s on %s from %s;',
    string_agg(w.verb, ', ' order by w.verb),
    w.table_id::regclass,
    case when bool_or(w.by_all) then 'public, ' else '' end || quote_ident(w.role))
  || coalesce(' grant ' || string_agg(w.verb || ' (' || w.columns || ')', ', ' order by w.verb)
    || format(' on %s to %I;', w.table_id::regclass, w.role), '') as remedy,
  w.what
from allowed w
group by w.table_id, w.role, w.what
order by 1, 2;
