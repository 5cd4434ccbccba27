-- The lock order: worker, entities, runs, attempts, claims; rows of one table in id order
--
-- A transition locks entities and runs with skip locked, and answers `busy` where another
-- transaction has them. Only a person's calls wait. A transition reads states after it has locked.
-- Every change of an attempt's state is made under the lock of its run, except by a claim, which
-- may also put attempts back. Since a claim locks queued attempts alone, a transition also locks
-- the queued attempts that it ends. Columns that are no part of the state, such as poll_at, may be
-- written under the attempt's lock alone. Only a claim's own worker and the sweep write the claim.

-- Tells whether transitions of a pipeline may lock its entities. They do where the projection
-- writes rows, a stage of kind pipeline begins child runs, or a stage has an apply function.
create function millrace.writes_entities(p_pipeline_id int) returns boolean
stable
as $$
return (
  select p.projection <> 'none' or exists (
    select from millrace.stages s
    where s.pipeline_id = p.id and (s.kind = 'pipeline' or s.apply is not null))
  from millrace.pipelines p
  where p.id = p_pipeline_id);
$$;

-- Locks the rows of a pipeline in the order of their keys. Returns the keys of the rows that it
-- locked.
-- p_wait: waits for rows that another transaction has locked; false skips them.
-- attach() writes the function, with a branch for each pipeline:
--   create function millrace.lock_entities(p_pipeline_id int, p_ids text[], p_wait boolean)
--   returns text[]

-- Locks the entities that no other transaction has locked, and returns their keys. Deletes the runs
-- of entities whose rows are gone.
create function millrace.lock_present(p_pipeline_id int, p_entity_ids text[]) returns text[]
as $$
  v_locked text[] := millrace.lock_entities(p_pipeline_id, p_entity_ids, false);

if cardinality(v_locked) < cardinality(p_entity_ids) then
  perform millrace.delete_missing(p_pipeline_id, array(
    select i.id
    from unnest(p_entity_ids) i(id)
    where i.id not in (select l.id from unnest(v_locked) l(id))));
end if;
return v_locked;
$$;

-- Locks the entities, runs and queued attempts of a batch. Returns the attempts whose entity and
-- run it could lock. Waits only for queued attempts, which a claim may just be taking.
create function millrace.lock_attempts(p_attempt_ids bigint[]) returns bigint[]
as $$
  v_group record;
  v_entities text[];
  v_locked bigint[] := p_attempt_ids;
  v_runs bigint[];

for v_group in
  select r.pipeline_id, array_agg(distinct r.entity_id collate "C") as entity_ids
  from millrace.attempts a
  -- by key
  cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
  where a.id = any (p_attempt_ids)
  group by r.pipeline_id
  order by r.pipeline_id
loop
  continue when not millrace.writes_entities(v_group.pipeline_id);
  v_entities := millrace.lock_present(v_group.pipeline_id, v_group.entity_ids);
  if cardinality(v_entities) < cardinality(v_group.entity_ids) then
    v_locked := array(
      select a.id
      from millrace.attempts a
      cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
      where a.id = any (v_locked)
        and (r.pipeline_id <> v_group.pipeline_id or millrace.key_of(r) = any (v_entities)));
  end if;
end loop;
v_runs := array(
  select r.id
  from millrace.runs r
  where r.id = any (array(
    select a.run_id from millrace.attempts a where a.id = any (v_locked)))
  order by r.id
  for no key update skip locked);
v_locked := array(
  select a.id
  from millrace.attempts a
  where a.id = any (v_locked) and a.run_id = any (v_runs));
perform from millrace.attempts a
where a.id = any (v_locked) and a.state = 'queued'
order by a.id
for update;
return v_locked;
$$;

-- Locks runs and their entities in the lock order. Waits for both.
create function millrace.lock_runs(p_run_ids bigint[])
as $$
perform millrace.lock_entities(p.id, p.entity_ids, true)
from (
  select r.pipeline_id as id, array_agg(r.entity_id) as entity_ids
  from millrace.runs r
  where r.id = any (p_run_ids)
  group by r.pipeline_id
  order by r.pipeline_id) p;
perform
from millrace.runs r
where r.id = any (p_run_ids)
order by r.id
for no key update;
$$;
