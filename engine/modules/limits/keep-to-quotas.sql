-- Quotas: how claims keep to them.

-- Puts back the attempts of a claim whose tenants have no room, with what they took of the stage's
-- limits. Returns the others.
create function millrace.keep_to_quotas(
  p_stage millrace.stages,
  p_token uuid,
  p_attempt_ids bigint[])
returns millrace.claimed[]
language plpgsql
as $$
declare
  v_group record;
  v_over bigint[];
  v_kept millrace.claimed[];
begin
  for v_group in
    select row(p.id, r.quota_key, p.quota)::millrace.payer as payer,
      array_agg(a.id order by a.queue_at, a.id) as attempt_ids
    from unnest(p_attempt_ids) i
    join millrace.attempts a on a.id = i
    join millrace.runs r on r.id = a.run_id
    join millrace.pipelines p on p.id = r.quota_of
    group by p.id, r.quota_key
    order by p.id, r.quota_key
  loop
    v_over := '{}';
    if (v_group.payer).quota ? 'spending' and millrace.used_by(v_group.payer, 'spending')
      >= ((v_group.payer).quota #>> '{spending,usd}')::numeric then
      perform millrace.hold_back(p_stage, v_group.payer, 'spending', v_group.attempt_ids);
      continue;
    elsif (v_group.payer).quota ? 'starts' then
      v_over := millrace.charge_starts(p_stage, v_group.payer, v_group.attempt_ids);
    end if;
    perform millrace.show_released(p_stage, array(
      select a.id
      from millrace.attempts a
      where a.id = any (v_group.attempt_ids) and a.id <> all (v_over) and a.held));
  end loop;
  v_kept := millrace.held_items(p_token, p_attempt_ids);
  if p_stage.limits is not null and cardinality(v_kept) < cardinality(p_attempt_ids) then
    perform millrace.give_back_room(p_stage, array(
      select i from unnest(p_attempt_ids) i
      except
      select k.attempt_id from unnest(v_kept) k));
  end if;
  if cardinality(v_kept) = 0 then
    delete from millrace.claims c where c.token = p_token;
  end if;
  return v_kept;
end
$$;

-- Charges a tenant with the starts among attempts, as far as it has room; puts back and returns the
-- others. Two claims never wait for each other over a tenant: the second puts its starts back for a
-- second.
create function millrace.charge_starts(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_attempt_ids bigint[])
returns bigint[]
language plpgsql
as $$
declare
  v_marked bigint[] := array(
    select a.id
    from unnest(p_attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.uncounted
    order by i.place);
  v_runs bigint[];
  v_over bigint[];
begin
  if cardinality(v_marked) = 0 then
    return '{}';
  elsif not pg_try_advisory_xact_lock(hashtext('millrace.quota'),
      hashtext(p_payer.pipeline_id || ':' || p_payer.key)) then
    perform millrace.put_back(p_stage, v_marked, millrace.now() + interval '1 second');
    return v_marked;
  end if;
  v_runs := array(
    select a.run_id
    from unnest(v_marked) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    group by a.run_id
    order by min(i.place)
    limit greatest(
      (p_payer.quota #>> '{starts,count}')::numeric - millrace.used_by(p_payer, 'starts'), 0)::int);
  if cardinality(v_runs) > 0 then
    insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used)
    values (p_payer.pipeline_id, p_payer.key, 'starts',
      millrace.window_end(p_payer.quota -> 'starts'), cardinality(v_runs));
    -- One start, one charge, however many stages it begins with. What another claim is just taking
    -- is its own to charge.
    update millrace.attempts a
    set uncounted = false
    where a.id in (
      select o.id
      from millrace.attempts o
      where o.run_id = any (v_runs) and o.uncounted
      for update skip locked);
  end if;
  v_over := array(
    select a.id
    from unnest(v_marked) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.run_id <> all (v_runs)
    order by i.place);
  if cardinality(v_over) > 0 then
    perform millrace.hold_back(p_stage, p_payer, 'starts', v_over);
  end if;
  return v_over;
end
$$;
