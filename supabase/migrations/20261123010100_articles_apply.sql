-- Articles: what the stages of the pipeline `articles` write into the row, in the transaction that
-- completes them
--
-- Each function takes the items of one stage: [{attempt, entity_id, result}].

insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
values ('thumbnails', 'thumbnails', true, 2097152, array['image/jpeg']);

-- What the site is told of, once it stands: the pipeline `site_notices` works these off.
create table public.site_notice (
  id uuid constraint site_notice_pkey primary key default gen_random_uuid(),
  -- No reference: the last one is about a publication that is gone.
  publication_id uuid not null,
  slug text not null,
  type text not null,
  created_at timestamptz not null default millrace.now(),
  told_at timestamptz,
  constraint site_notice_type_known
    check (type in ('publication.published', 'publication.updated', 'publication.removed'))
);
create index site_notice_by_publication on public.site_notice (publication_id);
comment on table public.site_notice is
  'One row for each time that the site at SITE_HOOK_URL is to hear of a publication.';

-- Writes what was found at the article's address and finds out whether it is a copy. A title that a
-- person gave stays; what the page does not say stays as the feed said it.
create function public.articles_apply_fetch(p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update public.ingestion_queue q
  set title = case when q.entered_as = 'manual' then coalesce(q.title, r.title) else r.title end,
    content = r.content,
    canonical_url = r.canonical_url,
    image_url = coalesce(r.image_url, q.image_url),
    author = coalesce(r.author, q.author),
    published_at = coalesce(r.published_at, q.published_at),
    language = coalesce(r.language, q.language)
  from jsonb_array_elements(p_items) i
  cross join lateral jsonb_to_record(i -> 'result') r(title text, content text, canonical_url text,
    image_url text, author text, published_at timestamptz, language text)
  where q.id = (i ->> 'entity_id')::uuid;
  perform from public.claim_articles(array(
    select (i ->> 'entity_id')::uuid
    from jsonb_array_elements(p_items) i));
end
$$;

-- Writes how near articles are to which topic. One whose topic was removed meanwhile keeps its
-- score.
create function public.articles_apply_score(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update public.ingestion_queue q
  set score = (i #>> '{result,score}')::real,
    topic_id = (
      select t.id
      from public.topic t
      where t.id = (i #>> '{result,topic_id}')::uuid)
  from jsonb_array_elements(p_items) i
  where q.id = (i ->> 'entity_id')::uuid
$$;

-- Writes summaries.
create function public.articles_apply_summarize(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update public.ingestion_queue q
  set summary = i #>> '{result,summary}'
  from jsonb_array_elements(p_items) i
  where q.id = (i ->> 'entity_id')::uuid
$$;

-- Writes tags, in the order in which they were chosen.
create function public.articles_apply_tag(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update public.ingestion_queue q
  set tags = array(
    select t.name
    from jsonb_array_elements_text(i #> '{result,tags}') with ordinality t(name, place)
    order by t.place)
  from jsonb_array_elements(p_items) i
  where q.id = (i ->> 'entity_id')::uuid
$$;

-- Writes where thumbnails lie.
create function public.articles_apply_thumbnail(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update public.ingestion_queue q
  set thumbnail_url = i #>> '{result,thumbnail_url}'
  from jsonb_array_elements(p_items) i
  where q.id = (i ->> 'entity_id')::uuid
$$;

-- Writes what the site shows, a new row or over the former one, whose address stays; and puts down
-- what the site is to be told of once this has been committed.
create function public.articles_apply_publish(p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_notice uuid;
begin
  for v_notice in
    with shown as (
      insert into public.publication as p (queue_id, slug, title, summary, tags, thumbnail_url, url,
        published_at, updated_at)
      select (i ->> 'entity_id')::uuid, r.slug, r.title, r.summary, r.tags, r.thumbnail_url, r.url,
        millrace.now(), millrace.now()
      from jsonb_array_elements(p_items) i
      cross join lateral jsonb_to_record(i -> 'result') r(slug text, title text, summary text,
        tags text[], thumbnail_url text, url text)
      on conflict on constraint publication_queue_key do update
      set title = excluded.title, summary = excluded.summary, tags = excluded.tags,
        thumbnail_url = excluded.thumbnail_url, url = excluded.url, updated_at = excluded.updated_at
      returning p.id, p.slug, p.queue_id, p.xmax = 0 as is_new
    )
    insert into public.site_notice (publication_id, slug, type)
    select s.id, s.slug,
      case when s.is_new then 'publication.published' else 'publication.updated' end
    from shown s
    join jsonb_array_elements(p_items) i on s.queue_id = (i ->> 'entity_id')::uuid
    where (i #>> '{result,notify}')::boolean
    order by s.queue_id
    returning id
  loop
    perform millrace.start('site_notices', v_notice::text);
  end loop;
end
$$;

-- Refuses that a publication is deleted while somebody edits it, which would publish it again.
create function public.keep_publication() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_code smallint := (
    select q.status_code
    from public.ingestion_queue q
    where q.id = old.queue_id);
begin
  if v_code in (320, 330) then
    raise exception 'publication % of an article that is being edited (%) was deleted',
      old.id, v_code
      using errcode = 'MR005',
        hint = 'Save the edit (410) or discard it (400), and delete it then.';
  end if;
  return old;
end
$$;
create trigger publication_keep before delete on public.publication
  for each row execute function public.keep_publication();

-- Has the site told that a publication is gone, in the place of what it has not heard of it, and
-- brings the article, where there still is one, before a curator again: it is live no more.
create function public.remove_publication() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_notice uuid;
begin
  delete from public.site_notice n where n.publication_id = old.id;
  insert into public.site_notice (publication_id, slug, type)
  values (old.id, old.slug, 'publication.removed')
  returning id into v_notice;
  perform millrace.start('site_notices', v_notice::text);
  update public.ingestion_queue q
  set status_code = 300
  where q.id = old.queue_id and q.status_code in (400, 410);
  return null;
end
$$;
create trigger publication_remove after delete on public.publication
  for each row execute function public.remove_publication();

-- Takes an article off the site that somebody has written back from there to its review.
create function public.withdraw_article() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.publication p where p.queue_id = new.id;
  return null;
end
$$;
create trigger ingestion_queue_withdraw after update of status_code on public.ingestion_queue
  for each row when (old.status_code in (400, 410) and new.status_code = 300)
  execute function public.withdraw_article();

-- Writes when the site heard of a publication; nothing where there was no site to tell.
create function public.site_notice_told(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update public.site_notice n
  set told_at = millrace.now()
  from jsonb_array_elements(p_items) i
  where n.id = (i ->> 'entity_id')::uuid and (i #>> '{result,told}')::boolean
$$;

alter table public.site_notice enable row level security;
revoke all on public.site_notice from anon, authenticated, service_role;
grant select, delete on public.site_notice to service_role;
revoke all on function public.articles_apply_fetch(jsonb), public.articles_apply_score(jsonb),
  public.articles_apply_summarize(jsonb), public.articles_apply_tag(jsonb),
  public.articles_apply_thumbnail(jsonb), public.articles_apply_publish(jsonb),
  public.keep_publication(), public.remove_publication(), public.withdraw_article(),
  public.site_notice_told(jsonb)
  from public, anon, authenticated, service_role;
