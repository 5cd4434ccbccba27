-- Shared limits: limits with a name, for stages of any pipelines

-- Returns the JSON Schema of a shared limit. The build writes it from sharedLimit in
-- definition-schema.ts.
create function millrace.shared_limit_schema() returns jsonb
immutable
as $$
select 'the schema of shared limits'::jsonb
$$;

-- Raises MR001 where a stage names a shared limit that does not exist, or has no key for a shared
-- limit with a key rate.
create function millrace.check_shared()
stable
as $$
perform millrace.refuse((
    select format('stage %s: limits.shared names %s, which is no shared limit', s.name, n)
    from millrace.stages s
    cross join jsonb_array_elements_text(s.limits -> 'shared') n
    where not exists (select from millrace.limits l where l.name = n)
    union all
    select format('shared limit %s: limits.key_rate needs a key, but %s has no '
      'limits.concurrency', l.name, string_agg(p.name || '.' || s.name, ', ' order by s.id))
    from millrace.limits l
    join millrace.limited_stages m on m.limit_id = l.id
    join millrace.stages s on s.id = m.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where l.limits ? 'key_rate' and not s.limits ? 'concurrency'
    group by l.id
    limit 1),
  millrace.known_limits() || ' The key is the column of limits.concurrency.');
$$;

-- Returns the names of all shared limits as a sentence for hints.
create function millrace.known_limits() returns text
stable
as $$
select 'Known: ' || coalesce(string_agg(l.name, ', ' order by l.name),
  'none, define it with millrace.define_limit() before the pipeline') || '.'
from millrace.limits l
$$;

-- Locks the shared limit of a name and returns it. Raises MR003 where no limit has the name.
create function millrace.shared_limit_named(p_name text) returns millrace.limits
as $$
  v_limit millrace.limits;

perform millrace.lock_limit(l.id, true) from millrace.limits l where l.name = p_name;
-- Reads the limit under the lock: another transaction may just have changed or dropped it.
select l.* into v_limit from millrace.limits l where l.name = p_name;
if not found then
  raise exception 'MR003: there is no shared limit %', coalesce(p_name, 'null')
    using hint = millrace.known_limits();
end if;
return v_limit;
$$;

-- Applies a change of a locked limit: copies a stage's own limits onto the stage, fills the buckets
-- of all keys, and wakes the limit's stages with ready work. Raises MR001 as check_shared() does.
create function millrace.follow_limit(p_limit_id int)
as $$
perform millrace.check_shared();
delete from millrace.buckets b where b.limit_id = p_limit_id and b.key <> '';
update millrace.stages s
set limits = nullif(l.limits, '{}')
from millrace.limits l
where l.id = p_limit_id and s.id = l.stage_id;
perform millrace.wake(array(
  select m.stage_id
  from millrace.limited_stages m
  where m.limit_id = p_limit_id and millrace.has_ready_work(m.stage_id)
  order by m.stage_id));
$$;

-- Creates or changes a shared limit, which stages of any pipeline may name. Raises MR001 where a
-- field is wrong.
-- p_limits: one or several of {"rate": {"count": 60, "per_seconds": 60}, "max_in_flight": 20,
-- "spending": {"usd": 5, "tokens": 1000000, "per_seconds": 86400}, "key_rate": …}. The last is a
-- rate for each key of its stages, such as a host.
create function millrace.define_limit(p_name text, p_limits jsonb)
as $$
  v_fault text := millrace.schema_fault(
    millrace.shared_limit_schema(), coalesce(p_limits, 'null'), 'limits');
  v_limit millrace.limits;

if coalesce(p_name !~ '^[a-z][a-z0-9_]{0,40}$', true) then
  v_fault := 'its name must be up to 41 lower-case letters, digits and _, a letter first';
end if;
perform millrace.refuse('shared limit ' || coalesce(p_name, 'null') || ': ' || v_fault,
  'Correct it, or leave it out. To let nothing through, pause the stages.');
insert into millrace.limits (name, declared)
values (p_name, p_limits)
on conflict on constraint limits_name_key do nothing;
if not found then
  v_limit := millrace.shared_limit_named(p_name);
  update millrace.limits l set declared = p_limits where l.id = v_limit.id;
  perform millrace.follow_limit(v_limit.id);
end if;
$$;

-- Drops a shared limit. Raises MR004 where a stage names it.
create function millrace.drop_limit(p_name text)
as $$
  v_limit millrace.limits := millrace.shared_limit_named(p_name);
  v_named_by text;

-- A definition that names the limit has locked its row until the definition's transaction ends.
perform from millrace.limits l where l.id = v_limit.id for update;
v_named_by := (
  select string_agg(p.name || '.' || s.name, ', ' order by s.id)
  from millrace.limited_stages m
  join millrace.stages s on s.id = m.stage_id
  join millrace.pipelines p on p.id = s.pipeline_id
  where m.limit_id = v_limit.id);
if v_named_by is not null then
  raise exception 'MR004: shared limit % cannot be dropped: % names it', p_name, v_named_by
    using hint = 'Take it from limits.shared of each of them first.';
end if;
delete from millrace.limit_uses u where u.limit_id = v_limit.id;
delete from millrace.limits l where l.id = v_limit.id;
$$;

-- Locks the limits and the quota of a pipeline against claims. define() calls this before it locks
-- the pipeline's table, for which a claim may wait while it holds a limit.
create function millrace.lock_limits(p_pipeline text)
as $$
perform millrace.lock_limit(-s.id, true)
from (
  select s.id
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where p.name = p_pipeline and s.limits is not null
  order by s.id) s;
perform pg_advisory_xact_lock(hashtext('millrace.quotas'), p.id)
from millrace.pipelines p
where p.name = p_pipeline and p.quota is not null;
$$;

-- Writes the limits of a pipeline's stages by its definition, and which later stages hold stages
-- back. A throttle stays in force. Raises MR001 as check_shared() does. The column on_the_way gets
-- the stages between a stage and the later one that holds it back. It leaves out other stages that
-- the later one holds back, and the stages before these.
create function millrace.save_limits(p_pipeline_id int, p_version_id int)
as $$
insert into millrace.limits (stage_id, declared)
select s.id, coalesce(s.limits, '{}')
from millrace.stages s
where s.pipeline_id = p_pipeline_id
on conflict on constraint limits_stage_key do update set declared = excluded.declared;
update millrace.stages s
set limits = nullif(l.limits, '{}')
from millrace.limits l
where s.pipeline_id = p_pipeline_id and l.stage_id = s.id and l.throttle is not null;
delete from millrace.limited_stages m
using millrace.stages s, millrace.limits l
where s.id = m.stage_id and s.pipeline_id = p_pipeline_id and l.id = m.limit_id
  and not coalesce(s.limits -> 'shared' ? l.name, l.name is null);
insert into millrace.limited_stages (limit_id, stage_id)
select l.id, s.id
from millrace.stages s
join millrace.limits l on l.stage_id = s.id or s.limits -> 'shared' ? l.name
where s.pipeline_id = p_pipeline_id
on conflict on constraint limited_stages_pkey do nothing;
perform millrace.check_shared();
delete from millrace.back_pressures b
using millrace.stages s
where s.id = b.stage_id and s.pipeline_id = p_pipeline_id;
with pressures as (
  select s.id, l.id as later_id, (b ->> 'backlog')::int as backlog
  from millrace.stages s
  cross join jsonb_path_query(s.limits, '$.back_pressure[*]') b
  join millrace.stages l on l.pipeline_id = s.pipeline_id and l.name = b ->> 'stage'
  where s.pipeline_id = p_pipeline_id
)
insert into millrace.back_pressures (stage_id, later_id, backlog, on_the_way)
select h.id, h.later_id, h.backlog, array(
  select m.stage_id
  from millrace.version_stages f
  join millrace.version_stages m
    on m.version_id = f.version_id and m.stage_id = any (f.dependents)
  where (f.version_id, f.stage_id) = (p_version_id, h.id) and h.later_id = any (m.dependents)
    and not exists (
      select from pressures o
      where o.later_id = h.later_id and (o.id = m.stage_id or o.id = any (m.dependents)))
  order by m.stage_id)
from pressures h;
$$;
