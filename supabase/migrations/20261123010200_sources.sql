-- Sources: feeds and sitemaps, each polled by an interval of its own
--
-- The pipeline `sources` polls a row once its next_poll_at is past: one conditional request, and
-- where something has changed, the articles that the queue does not have, a bounded number at a
-- time. They enter ingestion_queue with the poll's completion, or not at all.

create table public.source (
  id uuid constraint source_pkey primary key default gen_random_uuid(),
  address text not null constraint source_address_key unique,
  name text,
  kind text,
  every interval not null default '1 hour',
  enabled boolean not null default true,
  next_poll_at timestamptz,
  etag text,
  last_modified text,
  cursor jsonb,
  last_polled_at timestamptz,
  last_error text,
  found int not null default 0,
  created_at timestamptz not null default now(),

  constraint source_address_length check (octet_length(address) between 1 and 2048),
  constraint source_name_length check (octet_length(name) <= 200),
  constraint source_kind_known
    check (kind in ('rss', 'rdf', 'atom', 'sitemap', 'sitemap_index')),
  constraint source_every_bounds check (every between '1 minute' and '31 days')
);
create index source_by_next_poll on public.source (next_poll_at, id)
  where next_poll_at is not null;
comment on table public.source is
  'Feeds (RSS, Atom, RDF) and sitemaps whose articles enter the queue: insert an address.';
comment on column public.source.kind is
  'What the address turned out to be; null until its first poll.';
comment on column public.source.next_poll_at is
  'When it is polled next; write now() to poll it at once. Null while enabled is false.';
comment on column public.source.cursor is
  'Where a poll that took all it may left off; the next one goes on from there.';
comment on column public.source.last_error is
  'Why the last poll failed or what is wrong, and what to do. Null when all is well.';
comment on column public.source.found is 'How many articles it has brought into the queue.';

alter table public.ingestion_queue add constraint ingestion_queue_source_fkey
  foreign key (source_id) references public.source on delete set null;
create index ingestion_queue_by_source on public.ingestion_queue (source_id)
  where source_id is not null;

-- Prepares a source that is written: one that is switched off is not due, one that is switched on
-- is due at once, and a new address has nothing to do with what the one before has said.
create function public.prepare_source() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'UPDATE' and old.address <> new.address then
    new.kind := null;
    new.etag := null;
    new.last_modified := null;
    new.cursor := null;
    new.last_error := null;
    new.next_poll_at := millrace.now();
  end if;
  new.next_poll_at := case when new.enabled then coalesce(new.next_poll_at, millrace.now()) end;
  return new;
end
$$;
create trigger source_prepare before insert or update of address, enabled, next_poll_at
  on public.source
  for each row execute function public.prepare_source();

-- Says which of these addresses lead to pages that the queue does not have, each page once. The
-- stage poll asks, so that what it has found already costs no write.
create function public.unknown_urls(p_urls text[]) returns text[]
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(u.url), '{}')
  from (
    select distinct on (g.fingerprint) g.url
    from (
      select a.url, a.place, public.url_fingerprint(a.url) as fingerprint
      from unnest(p_urls) with ordinality a(url, place)
      offset 0) g
    where not exists (
      select
      from public.article_fingerprint f
      where f.fingerprint = g.fingerprint)
    order by g.fingerprint, g.place) u
$$;
comment on function public.unknown_urls(text[]) is
  'Those of the addresses that no article in the queue has, each page once.';

-- Puts a source off by its interval, with an error. The stage poll calls it before it tries again:
-- should that never end either, the source still says so, and is due again.
create function public.postpone_source(p_source_id uuid, p_error text) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  update public.source s
  set next_poll_at = millrace.now() + s.every, last_error = p_error
  where s.id = p_source_id and s.enabled
$$;
comment on function public.postpone_source(uuid, text) is
  'Makes a source due by its interval from now on, and says what is wrong.';

-- Inserts the articles that polls have found, at 100, and returns their sources. Claims
-- their fingerprints first, in order: another poll that found the same page waits for this one, and
-- then leaves it out.
create function public.add_found_articles(p_items jsonb) returns table (source_id uuid)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_actor text := coalesce(current_setting('millrace.actor', true), '');
  v_claimed uuid[];
  v_pages jsonb := (
    select jsonb_agg(jsonb_build_object('id', gen_random_uuid(), 'source_id', p.source_id,
      'fingerprint', p.fingerprint, 'url', p.url, 'title', p.title,
      'published_at', p.published_at))
    from (
      select distinct on (g.fingerprint) g.*
      from (
        select i ->> 'entity_id' as source_id, public.url_fingerprint(u.url) as fingerprint, u.*
        from jsonb_array_elements(p_items) i
        cross join jsonb_to_recordset(i #> '{result,urls}')
          u(url text, title text, published_at timestamptz)) g
      order by g.fingerprint, g.source_id) p);
begin
  with claimed as (
    insert into public.article_fingerprint as f (fingerprint, queue_id)
    select p.fingerprint, p.id
    from jsonb_to_recordset(v_pages) p(id uuid, fingerprint text)
    order by p.fingerprint
    on conflict on constraint article_fingerprint_pkey do nothing
    returning f.queue_id
  )
  select array_agg(c.queue_id) into v_claimed from claimed c;
  perform set_config('millrace.actor', 'agent:poll', true);
  return query
  insert into public.ingestion_queue as q (id, source_id, url, title, published_at, entry_type)
  select p.id, p.source_id, p.url, p.title, p.published_at, 'discovered'
  from jsonb_to_recordset(v_pages)
    p(id uuid, source_id uuid, url text, title text, published_at timestamptz)
  where p.id = any (v_claimed)
  returning q.source_id;
  perform set_config('millrace.actor', v_actor, true);
end
$$;

-- Writes what polls have found and when their sources are polled next, in the transaction that
-- completes them. Items: [{attempt, run, entity_id, result}].
create function public.apply_polls(p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_added jsonb := (
    select coalesce(jsonb_object_agg(a.source_id, a.count), '{}')
    from (
      select f.source_id, count(*) as count
      from public.add_found_articles(p_items) f
      group by f.source_id) a);
begin
  update public.source s
  set last_polled_at = v_now,
    last_error = p.error ->> 'message',
    found = s.found + coalesce((v_added ->> s.id::text)::int, 0),
    kind = coalesce(p.state ->> 'kind', s.kind),
    etag = case when p.state is null then s.etag else p.state ->> 'etag' end,
    last_modified =
      case when p.state is null then s.last_modified else p.state ->> 'last_modified' end,
    cursor = case when p.state is null then s.cursor else p.state -> 'cursor' end,
    next_poll_at = v_now + case
      when p.more then make_interval(secs => coalesce(p.wait_seconds, 60))
      else greatest(s.every, make_interval(secs => coalesce(p.wait_seconds, 0))) end
  from (
    select (i ->> 'entity_id')::uuid as source_id, r.*
    from jsonb_array_elements(p_items) i
    cross join jsonb_to_record(i -> 'result')
      r(error jsonb, state jsonb, more boolean, wait_seconds float8)) p
  where s.id = p.source_id;
end
$$;
comment on function public.apply_polls(jsonb) is
  'Inserts what polls have found, writes their sources'' state, error and next poll.';

alter table public.source enable row level security;
create policy source_of_curators on public.source for all to authenticated
  using ((select public.is_curator())) with check ((select public.is_curator()));

revoke all on public.source from anon, authenticated, service_role;
grant select, delete on public.source to authenticated;
grant insert (address, name, every, enabled, next_poll_at),
  update (address, name, every, enabled, next_poll_at)
  on public.source to authenticated;
grant select, insert, update, delete on public.source to service_role;
revoke all on function public.prepare_source(), public.unknown_urls(text[]),
  public.postpone_source(uuid, text), public.add_found_articles(jsonb), public.apply_polls(jsonb)
  from public, anon, authenticated, service_role;
grant execute on function public.unknown_urls(text[]), public.postpone_source(uuid, text)
  to service_role;
