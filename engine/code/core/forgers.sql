-- Who could forge results

-- The roles of the Data API that may write what only the engine should: results and the other
-- columns of stages but their statuses, on which intake keeps watch. A role that no policy lets
-- write is left out.
create or replace view millrace.forgers as
with role as (
  select r.oid, r.rolname as name
  from pg_roles a
  join pg_roles r on pg_has_role(a.oid, r.oid, 'member')
  where a.rolname = 'authenticator'
    and r.oid <> a.oid
    and not r.rolbypassrls
    and not r.rolsuper
), entity as (
  select c.oid, c.relrowsecurity as guarded, array_agg(n.name) as columns
  from millrace.pipelines p
  join pg_class c on c.oid = p.entity_table
  join millrace.stages s on s.pipeline_id = p.id
  cross join lateral unnest(millrace.stage_columns(s.name)) n(name)
  where p.projection = 'columns'
  group by c.oid, c.relrowsecurity
), forged as (
  select e.oid as table_id, r.oid as role_id, r.name as role, k.name as verb, e.columns
  from entity e
  cross join role r
  cross join (values ('insert', 'a'), ('update', 'w')) k(name, policy)
  where exists (
      select
      from pg_attribute a
      where a.attrelid = e.oid
        and a.attname = any (e.columns)
        and a.attname not like '%\_status'
        and has_column_privilege(r.oid, e.oid, a.attnum, k.name))
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
  select f.table_id, f.role, f.verb,
    has_any_column_privilege('public', f.table_id, f.verb) as by_all,
    string_agg(quote_ident(a.attname), ', ' order by a.attnum) filter (
      where a.attgenerated = ''
        and a.attidentity <> 'a'
        and has_column_privilege(f.role_id, f.table_id, a.attnum, f.verb)
        and (a.attname <> all (f.columns) or (a.attname like '%\_status' and exists (
          select
          from aclexplode(a.attacl) x
          where x.grantee = f.role_id
            and x.privilege_type = upper(f.verb))))) as columns
  from forged f
  join pg_attribute a on a.attrelid = f.table_id and a.attnum > 0 and not a.attisdropped
  group by f.table_id, f.role_id, f.role, f.verb
)
select
  w.table_id::regclass as entity_table,
  w.role::text as role,
  string_agg(w.verb, ', ' order by w.verb) as verbs,
  format('revoke %s on %s from %s;',
    string_agg(w.verb, ', ' order by w.verb),
    w.table_id::regclass,
    case when bool_or(w.by_all) then 'public, ' else '' end || quote_ident(w.role))
  || coalesce(format(' grant %s on %s to %I;',
    string_agg(w.verb || ' (' || w.columns || ')', ', ' order by w.verb),
    w.table_id::regclass,
    w.role), '') as remedy
from allowed w
group by w.table_id, w.role
order by 1, 2;
comment on view millrace.forgers is
  'Which roles of the Data API could write results by hand, with the statements that leave them '
  'their own columns.';
