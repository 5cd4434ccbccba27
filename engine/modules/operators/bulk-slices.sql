-- Bulks: how a slice of one is worked off
--
-- A slice waits for nobody: it takes rows and runs that nobody holds, in the lock order, and comes
-- back to the others. Under the locks it asks the filter again, since runs change meanwhile; those
-- that match no more are passed over.

-- Does the verb of a bulk to runs that the caller holds; returns how many.
create function millrace.do_in_bulk(p_bulk_id bigint, p_run_ids bigint[]) returns int
as $$
declare
  v_do jsonb := (select b.args from millrace.bulks b where b.id = p_bulk_id);
  v_run bigint;
begin
  if v_do ->> 'verb' = 'cancel' then
    perform millrace.end_runs(p_run_ids, 'cancelled');
    perform millrace.project_cancelled(millrace.cancel_attempts(p_run_ids, null));
  elsif v_do ->> 'verb' = 'retry' and not v_do ? 'stage' and cardinality(p_run_ids) > 1 then
    if millrace.retry_runs(p_run_ids) < cardinality(p_run_ids) then
      raise exception 'some of these runs have nothing to retry' using errcode = 'MR004';
    end if;
  else
    foreach v_run in array p_run_ids loop
      perform millrace.do_to_run(v_run, v_do);
    end loop;
  end if;
  return cardinality(p_run_ids);
end
$$;

-- Saves how far a bulk has come with a slice. What somebody has held for ten minutes since its end
-- was reached becomes a fault.
create function millrace.save_slice(
  p_bulk millrace.bulks,
  p_next bigint,
  p_held bigint[],
  p_counts int[])
returns millrace.bulks
as $$
declare
  v_now timestamptz := millrace.now();
  v_at_end_at timestamptz := coalesce(p_bulk.at_end_at, case
    when p_next is null or p_next >= p_bulk.last_run_id then v_now end);
  v_given_up bigint[] := case
    when v_at_end_at <= v_now - interval '10 minutes' then p_held
    else '{}'
  end;
  v_held bigint[] := case when cardinality(v_given_up) > 0 then '{}' else p_held end;
  v_over boolean := v_at_end_at is not null and cardinality(v_held) = 0;
begin
  insert into millrace.bulk_faults (bulk_id, run_id, code, message)
  select p_bulk.id, g, 'busy', 'somebody held its row for ten minutes'
  from unnest(v_given_up) g
  on conflict on constraint bulk_faults_pkey do nothing;
  update millrace.bulks b
  set next_run_id = coalesce(p_next, b.last_run_id), at_end_at = v_at_end_at, held = v_held,
    worked_at = v_now, slices = b.slices + 1, done = b.done + p_counts[1],
    faults = b.faults + p_counts[2] + cardinality(v_given_up),
    passed_over = b.passed_over + p_counts[3],
    state = case when v_over then 'done' else b.state end,
    ended_at = case when v_over then v_now end
  where b.id = p_bulk.id
  returning b.* into p_bulk;
  return p_bulk;
end
$$;

-- Works off the next slice of a bulk, unless somebody else is doing so. It gives way before
-- Postgres looks for deadlocks.
create function millrace.work_slice(p_bulk_id bigint) returns millrace.bulks
set lock_timeout = '200ms'
as $$
declare
  v_bulk millrace.bulks;
  v_found record;
  v_wanted bigint[];
  v_free bigint[];
  v_still bigint[];
  v_apart bigint[];
  v_did record;
  v_busy bigint[];
  v_entities text[];
begin
  select b.* into v_bulk
  from millrace.bulks b
  where b.id = p_bulk_id
  for no key update skip locked;
  if v_bulk.state is distinct from 'running' then
    return (select b from millrace.bulks b where b.id = p_bulk_id);
  elsif v_bulk.key = 'user' and not exists (
      select
      from millrace.operators o
      join millrace.pipelines p on p.id = v_bulk.pipeline_id
      where o.subject = v_bulk.subject
        and o.role in ('operator', 'admin')
        and (o.pipelines is null or p.name = any (o.pipelines))) then
    update millrace.bulks b
    set state = 'aborted', ended_at = millrace.now(),
      why = format('%s may no longer act here', b.subject)
    where b.id = p_bulk_id
    returning b.* into v_bulk;
    return v_bulk;
  end if;
  -- A verb that goes run by run takes longer than the Data API gives 500 of them.
  v_found := millrace.find_runs(v_bulk.conditions, v_bulk.next_run_id,
    case when v_bulk.verb in ('retry', 'cancel') then 500 else 100 end, p_up => true);
  v_wanted := v_bulk.held[:200] || v_found.run_ids;
  v_entities := millrace.lock_entities(v_bulk.pipeline_id, array(
    select r.entity_id from millrace.runs r where r.id = any (v_wanted)), false);
  v_free := array(
    select r.id
    from millrace.runs r
    where r.id = any (v_wanted)
      and r.entity_id = any (v_entities)
    order by r.id
    for no key update skip locked);
  v_still := (millrace.find_runs(v_bulk.conditions || jsonb_build_object('runs', v_free),
    null, cardinality(v_free) + 1, p_up => true)).run_ids;
  -- A run cannot go on whose row has a later run, or whose parent has given it up.
  with apart as (
    insert into millrace.bulk_faults (bulk_id, run_id, code, message)
    select v_bulk.id, r.id, 'MR004', case
      when f.id is null then format('its row %s has a later run', millrace.cut_text(r.entity_id))
      else format('its parent, run %s, has given it up', f.run_id) end
    from millrace.runs r
    left join millrace.fan_outs f on f.id = r.fan_out_id and f.state in ('abandoned', 'closed')
    where r.id = any (v_still)
      and v_bulk.verb not in ('cancel', 'prioritise')
      and (f.id is not null or not millrace.is_latest_run(r.id))
    on conflict on constraint bulk_faults_pkey do update set code = excluded.code
    returning run_id
  )
  select coalesce(array_agg(a.run_id), '{}') into v_apart from apart a;
  v_still := array(
    select i.id
    from unnest(v_still) with ordinality i(id, place)
    where i.id <> all (v_apart)
    order by i.place);
  v_did := millrace.in_halves(v_still::text[],
    format('select millrace.do_in_bulk(%s, $1::bigint[])', p_bulk_id), 'infinity');
  with faulty as (
    insert into millrace.bulk_faults as f (bulk_id, run_id, code, message)
    select p_bulk_id, r.id::bigint, r.code, millrace.cut_text(r.why, 1000)
    from unnest(v_did.refused, v_did.codes, v_did.why, v_did.later) r(id, code, why, later)
    where not r.later
    on conflict on constraint bulk_faults_pkey do update set code = excluded.code
    returning run_id
  )
  select v_apart || coalesce(array_agg(f.run_id), '{}') into v_apart from faulty f;
  v_busy := array(
    select r.id::bigint from unnest(v_did.refused, v_did.later) r(id, later) where r.later);
  if v_did.done + cardinality(v_apart || v_busy) > 0 then
    perform millrace.note(v_bulk.verb, v_bulk.filter ->> 'pipeline', v_bulk.args ->> 'stage',
      array(select i from unnest(v_still) i where i <> all (v_apart || v_busy)),
      jsonb_build_object('subject', v_bulk.subject, 'key', v_bulk.key, 'reason', v_bulk.reason,
        'filter', v_bulk.filter, 'bulk_id', v_bulk.id, 'outcome', jsonb_build_object(
          'faults', cardinality(v_apart), 'held', cardinality(v_busy))));
  end if;
  return millrace.save_slice(v_bulk, v_found.next,
    v_bulk.held[201:] || v_busy || array(
      select r.id
      from millrace.runs r
      where r.id = any (v_wanted)
        and r.id <> all (v_free)
      order by r.id),
    array[v_did.done, cardinality(v_apart),
      cardinality(v_free) - v_did.done - cardinality(v_apart || v_busy)]);
end
$$;
