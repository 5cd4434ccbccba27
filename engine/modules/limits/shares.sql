-- Shared limits: a share for each stage that wants more than there is
--
-- For a while the others leave a stage that is short a share: of places as many as each short stage
-- may have, and of a rate an equal part, the odd token for the stage that has waited longest.

-- Notes that a claim got less of a shared limit than it would have taken (p_short_of), and that it
-- took something while another stage was short.
create function millrace.note_share(p_stage_id int, p_room int, p_short_of int, p_taken int)
as $$
declare
  v_now timestamptz := millrace.now();
  v_short_of int := case
    when p_short_of is not null and p_taken >= p_room and (p_room > 0 or exists (
      select
      from millrace.attempts a
      where a.stage_id = p_stage_id and a.queue_at <= v_now and a.state = 'queued'))
      then p_short_of
  end;
begin
  update millrace.limited_stages m
  set short_at = case when m.limit_id = v_short_of then v_now end,
    taken_at = case when p_taken > 0 then v_now else m.taken_at end
  where m.stage_id = p_stage_id
    and (m.short_at is not null or m.limit_id = v_short_of or p_taken > 0)
    and exists (
      select
      from millrace.limited_stages o
      where o.limit_id = m.limit_id
        and o.stage_id <> p_stage_id
        and (m.limit_id = v_short_of
          or m.short_at is not null
          or o.short_at > v_now - interval '15 seconds'));
end
$$;
