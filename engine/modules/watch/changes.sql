-- Changes: messages to the clients that watch a row

-- Sends the keys of changed entities to the topics of the clients that watch them. A row is sent
-- again after 200 ms at the earliest. While over 20 rows are watched the gap is longer, so that all
-- rows together cause at most 100 messages a second. Logs an error and never raises.
create function millrace.send_changes(p_pipeline_id int, p_entity_ids text[])
as $$
  v_gap interval := greatest(
    (select count(*) from millrace.watches) * interval '10 ms', interval '200 ms');
  v_due record;

for v_due in
  with due as materialized (
    select w.*
    from unnest(p_entity_ids) e(id)
    -- by key
    cross join lateral (
      select o.ctid, o.topic, o.entity_id
      from millrace.watches o
      where o.pipeline_id = p_pipeline_id and o.entity_id = e.id
        and o.until > v_now and o.sent_at <= v_now - v_gap
      offset 0) w
  ), sent as (
    update millrace.watches w
    set sent_at = v_now
    -- Skips a lease that its client is renewing, so that no transition waits. The message is sent
    -- nonetheless.
    where w.ctid = any (array(
      select o.ctid
      from millrace.watches o
      where o.ctid = any (array(select d.ctid from due d))
      for update skip locked))
  )
  select d.topic, json_agg(d.entity_id) as keys
  from due d
  group by d.topic
loop
  perform realtime.send(jsonb_build_object('pipeline', p.name, 'keys', v_due.keys),
    'progress', v_due.topic, true)
  from millrace.pipelines p
  where p.id = p_pipeline_id;
end loop;
exception when others then
  -- A change does not fail for want of a message, since clients poll, too.
  perform millrace.report('error', 'progress_not_sent',
    'Pages that watch rows learn of changes late: ' || sqlerrm);
$$;
