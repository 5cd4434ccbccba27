-- Link sources: what polls of sheets and data sources write
--
-- The pipeline `link_sources` polls a row once its next_poll_at is past. What a poll reads it saves
-- portion by portion, each with the place where the next read goes on: a poll that dies loses no
-- more than its last portion, and a source of any length takes as many polls as it needs.

-- Prepares a source that is written: one that is switched off is not due, one that is switched on
-- is due at once, and a new address has nothing to do with what was read at the one before.
create function public.prepare_link_source() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'UPDATE' and (old.kind, old.address, old.column_name)
      is distinct from (new.kind, new.address, new.column_name) then
    new.cursor := null;
    new.last_error := null;
    new.next_poll_at := millrace.now();
  end if;
  new.next_poll_at := case when new.enabled then coalesce(new.next_poll_at, millrace.now()) end;
  return new;
end
$$;
create trigger link_sources_prepare
  before insert or update of kind, address, column_name, enabled, next_poll_at
  on public.link_sources
  for each row execute function public.prepare_link_source();

-- Inserts those of some links that are neither known nor too long, each as it was written first;
-- returns how many. Links: [{url, place}].
create function public.insert_links(p_source public.link_sources, p_links jsonb) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found int;
begin
  insert into public.linkedin_links (raw_url, source, source_id, source_place)
  select distinct on (canonical) l.url, p_source.kind, p_source.id, left(l.place, 2048)
  from jsonb_array_elements(p_links) with ordinality o(link, turn)
  cross join lateral jsonb_to_record(o.link) l(url text, place text)
  cross join lateral public.canonical_url(l.url) canonical
  where octet_length(l.url) <= 2048
    and not exists (
      select from public.linkedin_links k where k.canonical_url = canonical)
  order by canonical, o.turn
  on conflict on constraint linkedin_links_canonical_url_key do nothing;
  get diagnostics v_found = row_count;
  return v_found;
end
$$;

-- Takes in the links of one portion, and keeps where the next read goes on. It saves nothing where
-- the source is gone, or was read on by another poll since p_before. The source is held no longer
-- than it takes to say so: a poll that the platform ends meanwhile must be recorded.
create function public.save_links(
  p_source_id uuid, p_links jsonb, p_before jsonb, p_cursor jsonb
) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_source public.link_sources;
  v_before jsonb := nullif(p_before, 'null');
  v_found int := 0;
  v_too_long jsonb;
begin
  select s.* into v_source from public.link_sources s where s.id = p_source_id;
  begin
    if v_source.id is not null then
      v_found := public.insert_links(v_source, p_links);
    end if;
    update public.link_sources s
    set cursor = p_cursor, found = s.found + v_found
    where s.id = p_source_id
      and s.cursor is not distinct from v_before;
    if not found then
      raise exception 'read on by another' using errcode = 'ML001';
    end if;
  exception when sqlstate 'ML001' then
    return jsonb_build_object('saved', false, 'found', 0, 'too_long', null);
  end;
  v_too_long := (
    select to_jsonb(l.place)
    from jsonb_to_recordset(p_links) l(url text, place text)
    where octet_length(l.url) > 2048
    limit 1);
  return jsonb_build_object('saved', true, 'found', v_found, 'too_long', v_too_long);
end
$$;
comment on function public.save_links(uuid, jsonb, jsonb, jsonb) is
  'Takes in the links that a poll has read, and where the next read goes on.';

-- Writes when sources are polled next, and what is wrong with them, in the transaction that
-- completes their polls. Items: [{attempt, run, entity_id, result}].
create function public.apply_link_polls(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update public.link_sources s
  set last_polled_at = millrace.now(),
    last_error = r.error ->> 'message',
    next_poll_at = case
      when not s.enabled then null
      when r.more then millrace.now() + make_interval(secs => coalesce(r.wait_seconds, 0))
      else millrace.now()
        + greatest(s.every, make_interval(secs => coalesce(r.wait_seconds, 0))) end
  from jsonb_array_elements(p_items) i
  cross join jsonb_to_record(i -> 'result') r(error jsonb, more boolean, wait_seconds float8)
  where s.id = (i ->> 'entity_id')::uuid
$$;
comment on function public.apply_link_polls(jsonb) is
  'Writes when sources of links are polled next, and what is wrong with them.';

-- Puts a source off by its interval, with an error. A poll calls it before it is tried again:
-- should that never end either, the source still says so.
create function public.postpone_link_source(p_source_id uuid, p_error text) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  update public.link_sources s
  set next_poll_at = millrace.now() + s.every, last_error = p_error
  where s.id = p_source_id and s.enabled
$$;
comment on function public.postpone_link_source(uuid, text) is
  'Makes a source of links due by its interval from now on, and says what is wrong.';

revoke all on function public.prepare_link_source(),
  public.insert_links(public.link_sources, jsonb),
  public.save_links(uuid, jsonb, jsonb, jsonb), public.apply_link_polls(jsonb),
  public.postpone_link_source(uuid, text)
  from public, anon, authenticated, service_role;
grant execute on function public.save_links(uuid, jsonb, jsonb, jsonb),
  public.postpone_link_source(uuid, text)
  to service_role;
