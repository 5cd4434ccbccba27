-- Articles: what feeds and sitemaps name becomes scored, summarised, tagged and published articles
--
-- One number, status_code, says where an article stands, and writing it is how people act. The
-- pipeline `articles` fills status_lookup from its definition and writes status_history. Curators,
-- whose token says so (app_metadata.role), see and decide all of it; other users add articles by
-- hand and see their own; everybody reads what is published.

-- What curators sort articles by: the subjects that count, and the tags that there are.
create table public.topic (
  id uuid constraint topic_pkey primary key default gen_random_uuid(),
  name text not null constraint topic_name_key unique,
  description text not null,
  created_at timestamptz not null default now(),
  constraint topic_name_length check (octet_length(name) between 1 and 200),
  constraint topic_description_length check (octet_length(description) <= 8000)
);
comment on table public.topic is
  'What articles should be about: the stage score compares each with these rows.';

create table public.tag (
  id uuid constraint tag_pkey primary key default gen_random_uuid(),
  name text not null constraint tag_name_key unique,
  description text,
  created_at timestamptz not null default now(),
  constraint tag_name_length check (octet_length(name) between 1 and 100),
  constraint tag_description_length check (octet_length(description) <= 8000)
);
comment on table public.tag is 'The tags from which the stage tag chooses.';

create table public.ingestion_queue (
  id uuid constraint ingestion_queue_pkey primary key default gen_random_uuid(),
  url text,
  canonical_url text,
  url_fingerprint text,
  text_fingerprint text,
  title text,
  summary text,
  content text,
  author text,
  language text,
  image_url text,
  published_at timestamptz,
  tags text[],
  thumbnail_url text,
  score real,
  topic_id uuid constraint ingestion_queue_topic_fkey references public.topic on delete set null,
  source_id uuid,
  entry_type text not null default 'discovered',
  entered_as text not null,
  duplicate_of uuid
    constraint ingestion_queue_duplicate_fkey references public.ingestion_queue on delete set null,
  no_duplicate boolean not null default false,
  status_code smallint,
  status_changed_at timestamptz not null default now(),
  status_changes jsonb,
  status text,
  revision int not null default 0,
  added_by uuid default auth.uid(),
  created_at timestamptz not null default now(),

  constraint ingestion_queue_entry_type_known
    check (entry_type in ('discovered', 'manual', 'import', 'retry')),
  constraint ingestion_queue_entered_as_known
    check (entered_as in ('discovered', 'manual', 'import')),
  constraint ingestion_queue_url_length check (octet_length(url) <= 8000),
  -- A page shows what stands here as a link and as an image.
  constraint ingestion_queue_url_form check (url ~* '^https?://[^\s/]'),
  constraint ingestion_queue_thumbnail_form
    check (thumbnail_url !~* '^\s*[a-z][a-z0-9+.-]*:' or thumbnail_url ~* '^https?://')
) with (fillfactor = 70);
-- No index on status_code: it would end HOT updates. The stages' queues have their own.
create index ingestion_queue_by_time on public.ingestion_queue (created_at);
create index ingestion_queue_by_user on public.ingestion_queue (added_by)
  where added_by is not null;
create index ingestion_queue_copies on public.ingestion_queue (duplicate_of)
  where duplicate_of is not null;
create unique index ingestion_queue_url_key on public.ingestion_queue (url_fingerprint)
  where url_fingerprint is not null;
create unique index ingestion_queue_text_key on public.ingestion_queue (text_fingerprint)
  where text_fingerprint is not null;
comment on table public.ingestion_queue is
  'One row an article. status_code says where it stands (status_lookup); writing it moves it.';
comment on column public.ingestion_queue.entered_as is
  'How the article entered first; entry_type becomes retry when it is started again.';
comment on column public.ingestion_queue.no_duplicate is
  'A person has looked: this is no copy of another article, whatever its address and text.';
comment on column public.ingestion_queue.status is
  'The column of before, which follows status_code until it is dropped.';
comment on column public.ingestion_queue.revision is
  'Grows with each edit, so that a curator''s write can ask for the text that the curator saw.';

create table public.status_lookup (
  code smallint constraint status_lookup_pkey primary key,
  name text not null constraint status_lookup_name_key unique,
  description text,
  category text not null,
  is_terminal boolean default false,
  sort_order smallint
);
comment on table public.status_lookup is
  'What the codes mean, from the pipeline''s definition. One that is gone stays for the history.';

-- The codes that an article passes in one moment must stay in order: ids begin with a number.
create sequence public.status_history_order;
create table public.status_history (
  id uuid constraint status_history_pkey primary key default (
    lpad(to_hex(nextval('public.status_history_order')), 12, '0')
    || substr(gen_random_uuid()::text, 15))::uuid,
  queue_id uuid constraint status_history_queue_fkey
    references public.ingestion_queue on delete cascade,
  from_status smallint constraint status_history_from_fkey references public.status_lookup,
  to_status smallint constraint status_history_to_fkey references public.status_lookup,
  changed_at timestamptz default now(),
  changed_by text,
  changes jsonb,
  -- A month of waiting does not fit into an int.
  duration_ms bigint
);
create index idx_status_history_queue on public.status_history (queue_id);
create index idx_status_history_time on public.status_history (changed_at);
alter sequence public.status_history_order owned by public.status_history.id;
comment on table public.status_history is
  'Every code that an article had: who, when, after how long, and which fields differ.';
comment on column public.status_history.id is 'Sorts by when the row was written.';

create table public.publication (
  id uuid constraint publication_pkey primary key default gen_random_uuid(),
  queue_id uuid not null constraint publication_queue_key unique
    constraint publication_queue_fkey references public.ingestion_queue on delete cascade,
  slug text not null constraint publication_slug_key unique,
  title text not null,
  summary text,
  tags text[] not null default '{}',
  thumbnail_url text,
  url text,
  published_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index publication_by_time on public.publication (published_at);
comment on table public.publication is
  'What the site shows. An edit shows here once the article is 410.';

-- Whose a fingerprint is: the first article with it. One article holds several (its URL, the
-- canonical one, its text), and two that finish together meet here.
create table public.article_fingerprint (
  fingerprint text constraint article_fingerprint_pkey primary key,
  queue_id uuid not null constraint article_fingerprint_queue_fkey
    references public.ingestion_queue on delete cascade deferrable initially deferred
);
create index article_fingerprint_by_article on public.article_fingerprint (queue_id);

-- Says by what the same page is known again: without scheme, www, default port, fragment, last
-- slash and what campaigns add, its parameters sorted. Null for null.
create function public.url_fingerprint(p_url text) returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := regexp_match(btrim(p_url), '^[a-z]+://([^/?#]*)([^?#]*)(?:\?([^#]*))?', 'i');
  v_query text;
begin
  if v_parts[3] <> '' then
    v_query := (
      select string_agg(g.pair, '&' order by g.pair collate "C")
      from regexp_split_to_table(v_parts[3], '&') g(pair)
      where g.pair <> ''
        and g.pair !~*
          '^(utm_[^=]*|fbclid|gclid|dclid|msclkid|mc_cid|mc_eid|igshid|yclid|_ga)(=|$)');
  end if;
  return 'url:' || encode(sha256(convert_to(
    regexp_replace(regexp_replace(lower(v_parts[1]), '^www\.', ''), ':(80|443)$', '')
      || rtrim(v_parts[2], '/') || coalesce('?' || v_query, ''), 'utf8')), 'hex');
end
$$;

-- Says by what the same text is known again, however it is set. Null for one too short to tell.
create function public.text_fingerprint(p_text text) returns text
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
  select case when length(w.words) >= 40
    then 'text:' || encode(sha256(convert_to(w.words, 'utf8')), 'hex') end
  -- Blanks first: replace() takes a twentieth of the pattern's time.
  from (
    select regexp_replace(replace(replace(replace(lower(p_text), ' ', ''), ',', ''), '.', ''),
      '[^[:alnum:]]+', '', 'g') as words) w
$$;

-- Gives a fingerprint to an article unless another holds it, and says which: the original, where
-- that is a copy itself. Waits for a transaction that is about to take the same one.
create function public.claim_fingerprint(p_fingerprint text, p_queue_id uuid) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_owner uuid;
begin
  while v_owner is null loop
    insert into public.article_fingerprint as f (fingerprint, queue_id)
    values (p_fingerprint, p_queue_id)
    on conflict on constraint article_fingerprint_pkey do nothing
    returning f.queue_id into v_owner;
    if v_owner is null then
      select coalesce(q.duplicate_of, f.queue_id) into v_owner
      from public.article_fingerprint f
      left join public.ingestion_queue q on q.id = f.queue_id
      where f.fingerprint = p_fingerprint;
    end if;
  end loop;
  return nullif(v_owner, p_queue_id);
end
$$;

-- Called by the apply function of fetch once it has written canonical_url and content: claims the
-- fingerprints of these articles, sets duplicate_of of those that are copies, and returns them.
create function public.claim_articles(p_queue_ids uuid[]) returns setof uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claims jsonb := (
    select coalesce(jsonb_agg(jsonb_build_object('id', q.id, 'fingerprint', g.fingerprint)
      order by g.fingerprint, q.id), '[]')
    from public.ingestion_queue q
    cross join lateral (values (public.url_fingerprint(q.canonical_url)),
      (public.text_fingerprint(q.content))) g(fingerprint)
    where q.id = any (p_queue_ids) and g.fingerprint is not null);
begin
  -- In the order of the fingerprints, so that two batches never wait for each other in a circle.
  insert into public.article_fingerprint (fingerprint, queue_id)
  select c.fingerprint, c.id
  from jsonb_to_recordset(v_claims) c(id uuid, fingerprint text)
  on conflict on constraint article_fingerprint_pkey do nothing;
  update public.ingestion_queue q set text_fingerprint = f.fingerprint
  from public.article_fingerprint f
  where f.queue_id = q.id and q.id = any (p_queue_ids) and f.fingerprint like 'text:%'
    and f.fingerprint = public.text_fingerprint(q.content)
    and q.text_fingerprint is distinct from f.fingerprint;
  if not exists (
      select from jsonb_to_recordset(v_claims) c(id uuid, fingerprint text)
      join public.article_fingerprint f using (fingerprint)
      where f.queue_id <> c.id) then
    return;
  end if;
  -- Two that name each other as the original: the second must see what became of the first.
  perform pg_advisory_xact_lock(hashtextextended('public.claim_articles', 0));
  return query
  with met as materialized (
    select distinct on (c.id) c.id, coalesce(o.duplicate_of, o.id) as original
    from jsonb_to_recordset(v_claims) c(id uuid, fingerprint text)
    join public.article_fingerprint f using (fingerprint)
    join public.ingestion_queue o on o.id = f.queue_id
    where c.id not in (o.id, coalesce(o.duplicate_of, o.id))
    order by c.id, o.created_at, o.id
  )
  update public.ingestion_queue q set duplicate_of = m.original
  from met m
  where q.id = m.id and not q.no_duplicate
    and not exists (select from met r where r.id = m.original and r.original = m.id and m.id < r.id)
  returning q.id;
end
$$;
comment on function public.claim_articles(uuid[]) is
  'Claims URL and text of fetched articles; sets duplicate_of of copies and returns their ids.';

-- Says at which code an article begins by what it brings: at the first step that is not given.
create function public.article_entry_code(p_article public.ingestion_queue) returns smallint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_article.entry_type = 'discovered' then 100
    when p_article.summary is not null then coalesce(
      (
        select e.code
        from (values (210, null, 1), (220, array_to_string(p_article.tags, ','), 2),
          (230, p_article.thumbnail_url, 3)) e(code, given, place)
        left join public.status_lookup l on l.code = e.code
        where e.code <> 210 and e.given is null
        order by l.sort_order, e.place
        limit 1
      ), 300)
    when p_article.content is null then 110
    when p_article.entered_as = 'import' then 120
    else 200
  end::smallint
$$;

-- Names what an article at 300 must have and this one lacks; null when it lacks nothing.
create function public.article_lacks(p_article public.ingestion_queue) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select string_agg(n.name, ', ' order by n.place)
  from (values ('summary', p_article.summary, 1), ('tags', array_to_string(p_article.tags, ','), 2),
    ('thumbnail_url', p_article.thumbnail_url, 3)) n(name, given, place)
  where n.given is null
$$;

-- Prepares an article that enters: what is blank counts as not given, how it entered is kept, the
-- code follows from what it brings, and one whose URL or text is known becomes 520.
create function public.enter_article() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_copied uuid;
  v_lacks text;
begin
  new.url := nullif(btrim(new.url), '');
  new.title := nullif(btrim(new.title), '');
  new.summary := nullif(btrim(new.summary), '');
  new.content := nullif(btrim(new.content), '');
  new.thumbnail_url := nullif(btrim(new.thumbnail_url), '');
  new.tags := nullif(new.tags, '{}');
  v_lacks := case when new.status_code = 300 then public.article_lacks(new) end;
  new.entered_as := case when new.entry_type = 'retry' then new.entered_as else new.entry_type end;
  if new.entered_as is null then
    raise exception 'a new article''s entry_type is "retry"'
      using errcode = 'MR005',
        hint = 'Write "manual", "import" or "discovered": an article becomes "retry" by itself.';
  elsif new.url is null
    and (new.entry_type = 'discovered' or new.content is null and new.summary is null)
  then
    raise exception 'a new article (%) has no url', new.entry_type
      using errcode = 'MR005',
        hint = 'Give its url; or enter it as "manual" or "import" with a content or a summary.';
  elsif v_lacks is not null then
    raise exception '300 needs summary, tags, thumbnail_url: a new article lacks %', v_lacks
      using errcode = 'MR005',
        hint = 'Leave status_code out: the article begins at '
          || public.article_entry_code(new) || '.';
  elsif new.status_code = 520 then
    raise exception 'a new article was set to % by hand', new.status_code
      using errcode = 'MR005',
        hint = 'Leave status_code out: one whose url or text is known becomes 520 by itself.';
  end if;
  new.status_changes := null;
  new.duplicate_of := null;
  -- Whoever still writes the old column means the code that it stands for.
  if new.status_code is null and new.status is null then
    new.status_code :=
      case new.entry_type when 'discovered' then 100 else public.article_entry_code(new) end;
  end if;
  new.url_fingerprint := public.url_fingerprint(new.url);
  if new.url_fingerprint is not null then
    new.duplicate_of := public.claim_fingerprint(new.url_fingerprint, new.id);
    new.url_fingerprint := case when new.duplicate_of is null then new.url_fingerprint end;
  end if;
  new.text_fingerprint := public.text_fingerprint(new.content);
  if new.text_fingerprint is not null then
    v_copied := public.claim_fingerprint(new.text_fingerprint, new.id);
    new.text_fingerprint := case when v_copied is null then new.text_fingerprint end;
  end if;
  new.duplicate_of :=
    case when not new.no_duplicate then coalesce(new.duplicate_of, v_copied) end;
  new.status_code := case when new.duplicate_of is null then new.status_code else 520 end;
  return new;
end
$$;
create trigger ingestion_queue_enter before insert on public.ingestion_queue
  for each row execute function public.enter_article();

-- Has the articles found that claim fingerprints, as soon as they stand: by their key, also in a
-- session that planned how when there were few articles.
create function public.check_claims() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $$
begin
  set constraints public.article_fingerprint_queue_fkey immediate;
  set constraints public.article_fingerprint_queue_fkey deferred;
  return null;
end
$$;
create trigger ingestion_queue_claims after insert on public.ingestion_queue
  for each statement execute function public.check_claims();

-- Lets people edit the text at 320 alone, and collects the old and new of what differs since then
-- for the history. The stages' apply functions, which run as the tables' owner, write before 300.
create function public.edit_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old jsonb := jsonb_build_object('title', old.title, 'summary', old.summary, 'tags', old.tags,
    'thumbnail_url', old.thumbnail_url);
  v_new jsonb := jsonb_build_object('title', new.title, 'summary', new.summary, 'tags', new.tags,
    'thumbnail_url', new.thumbnail_url);
  v_fields text := (
    select string_agg(n.key, ', ' order by n.key) from jsonb_each(v_new) n
    where n.value is distinct from v_old -> n.key);
  v_emptied text := (
    select string_agg(n.key, ', ' order by n.key) from jsonb_each(v_new) n
    where n.value is distinct from v_old -> n.key
      and coalesce(btrim(n.value #>> '{}', E' []\n\t'), '') = '');
  v_owned boolean := (
    select pg_has_role(current_user, c.relowner, 'usage') from pg_class c where c.oid = tg_relid);
begin
  if old.status_code is distinct from 320 then
    if v_owned and (old.status_code between 300 and 499) is not true then
      return new;
    end if;
    raise exception '% of article % was edited at %', v_fields, old.id, coalesce((
        select format('%s (%s)', l.code, l.name) from public.status_lookup l
        where l.code = old.status_code), old.status_code::text, 'no code')
      using errcode = 'MR005',
        hint = case
          when old.status_code = 300 then 'Write 310, then 320, and edit then.'
          when old.status_code in (310, 400, 410) then 'Write 320 first, and edit then.'
          else 'title, summary, tags and thumbnail_url are edited at 320 alone: during the review '
            'or, of a published article, after writing 320.'
        end;
  elsif v_emptied is not null then
    raise exception '% of article % was emptied', v_emptied, old.id
      using errcode = 'MR005',
        hint = 'Write what it should be; to end the edit write 310, or 400 where it is published.';
  end if;
  new.status_changes := (
    select jsonb_object_agg(f.key, jsonb_build_object('old', f.was, 'new', f.now))
    from (
      select n.key, n.value as now, case when old.status_changes ? n.key
        then old.status_changes #> array[n.key, 'old'] else v_old -> n.key end as was
      from jsonb_each(v_new) n) f
    where f.now is distinct from f.was);
  new.revision := old.revision + 1;
  return new;
end
$$;
create trigger ingestion_queue_1_edit
  before update of title, summary, tags, thumbnail_url on public.ingestion_queue
  for each row
  when (old.title is distinct from new.title or old.summary is distinct from new.summary
    or old.tags is distinct from new.tags or old.thumbnail_url is distinct from new.thumbnail_url)
  execute function public.edit_article();

-- Prepares an article for its next code: an edit that is discarded takes its text back, what
-- changed belongs to the code after 320 alone, and what had ended and begins again is a retry.
create function public.move_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if old.status_code = 320 and new.status_code = 400 and new.status_changes is not null then
    new := jsonb_populate_record(new, (
      select jsonb_object_agg(c.key, c.value -> 'old') from jsonb_each(new.status_changes) c));
    new.status_changes := null;
  elsif old.status_code is distinct from 320 then
    new.status_changes := null;
  end if;
  if old.status_code >= 500 and new.status_code < 500 then
    new.entry_type := 'retry';
    new.no_duplicate := new.no_duplicate or old.status_code = 520;
    new.duplicate_of := null;
  end if;
  return new;
end
$$;
create trigger ingestion_queue_2_move before update of status_code on public.ingestion_queue
  for each row
  when (old.status_code is distinct from new.status_code
    and (320 in (old.status_code, new.status_code) or old.status_code >= 500
      or old.status_changes is not null))
  execute function public.move_article();

-- Refuses what would make the history untrue: another first entry, and the removal of an article
-- that somebody is reviewing.
create function public.keep_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'article % is under review (%)', old.id, old.status_code
      using errcode = 'MR005',
        hint = 'Put it back (300) or reject it (540); it can be deleted then.';
  end if;
  raise exception 'entered_as of article % was changed from % to %',
    old.id, old.entered_as, coalesce(new.entered_as, 'null')
    using errcode = 'MR005',
      hint = 'Leave it alone: it says how the article entered first.';
end
$$;
create trigger ingestion_queue_3_entered before update of entered_as on public.ingestion_queue
  for each row when (old.entered_as is distinct from new.entered_as)
  execute function public.keep_article();
create trigger ingestion_queue_4_delete before delete on public.ingestion_queue
  for each row when (old.status_code in (310, 320))
  execute function public.keep_article();

-- Carries the edit of a published article: opens it (320), writes the fields that differ and saves
-- it (410). Returns the id of the history row, or null when nothing differs. The name counts for
-- the project's own key and the owner alone; a signed-in curator acts under the token's name.
create function public.track_publication_edit(
  p_publication_id uuid, p_queue_id uuid, p_old jsonb, p_new jsonb, p_changed_by text
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_article public.ingestion_queue;
  v_edited public.ingestion_queue;
  v_new jsonb := (
    select coalesce(jsonb_object_agg(n.key, n.value), '{}') from jsonb_each(p_new) n
    where n.value is distinct from p_old -> n.key);
  v_unknown text := (
    select string_agg(k.key, ', ' order by k.key) from jsonb_object_keys(v_new) k(key)
    where k.key not in ('title', 'summary', 'tags', 'thumbnail_url'));
begin
  if v_unknown is not null then
    raise exception '% is no field of a publication that people edit', v_unknown
      using errcode = 'MR002', hint = 'Give title, summary, tags or thumbnail_url.';
  end if;
  select q.* into v_article from public.ingestion_queue q
  where q.id = p_queue_id and exists (
    select from public.publication p where p.id = p_publication_id and p.queue_id = q.id)
  for update;
  if not found then
    raise exception 'there is no publication % of an article % that you may edit',
      p_publication_id, p_queue_id
      using errcode = 'MR003', hint = 'Give publication.id and publication.queue_id of one row.';
  elsif v_article.status_code not in (400, 410) then
    raise exception 'article % is not published, or somebody is editing it: it is %',
      p_queue_id, v_article.status_code
      using errcode = 'MR005', hint = 'Wait until it is 400 or 410, then call this again.';
  end if;
  v_edited := jsonb_populate_record(v_article, v_new);
  if (v_edited.title, v_edited.summary, v_edited.tags, v_edited.thumbnail_url) is not distinct from
      (v_article.title, v_article.summary, v_article.tags, v_article.thumbnail_url) then
    return null;
  end if;
  perform set_config('millrace.actor', p_changed_by, true);
  update public.ingestion_queue q set status_code = 320 where q.id = p_queue_id;
  update public.ingestion_queue q
  set title = v_edited.title, summary = v_edited.summary, tags = v_edited.tags,
    thumbnail_url = v_edited.thumbnail_url
  where q.id = p_queue_id;
  update public.ingestion_queue q set status_code = 410 where q.id = p_queue_id;
  return (
    select h.id from public.status_history h
    where h.queue_id = p_queue_id and h.from_status = 320 and h.to_status = 410
    order by h.id desc
    limit 1);
end
$$;
comment on function public.track_publication_edit(uuid, uuid, jsonb, jsonb, text) is
  'Saves an edit of a published article (400, 410) with its history; null when nothing differs.';

create view public.publication_edit_history with (security_invoker = true) as
select p.id as publication_id, h.queue_id, h.id as history_id, h.changed_at, h.changed_by,
  h.changes as field_changes
from public.status_history h
join public.publication p on p.queue_id = h.queue_id
where h.from_status = 320 and h.to_status = 410 and h.changes is not null;
comment on view public.publication_edit_history is
  'What people changed in published articles: {"title": {"old": …, "new": …}}.';

create view public.article_backlog with (security_invoker = true) as
select l.code, l.name, l.category, q.articles, q.oldest_since, min(o.id::text)::uuid as oldest_id
from (
  select i.status_code, count(*) as articles, min(i.status_changed_at) as oldest_since
  from public.ingestion_queue i
  group by i.status_code) q
join public.status_lookup l on l.code = q.status_code
join public.ingestion_queue o
  on o.status_code = q.status_code and o.status_changed_at = q.oldest_since
group by l.code, q.articles, q.oldest_since;
comment on view public.article_backlog is
  'Where articles pile up: how many stand at each code, and since when the oldest does.';

create view public.article_state_times with (security_invoker = true) as
select l.code, l.name, count(*) as left_it,
  percentile_cont(0.5) within group (order by h.duration_ms) as p50_ms,
  percentile_cont(0.95) within group (order by h.duration_ms) as p95_ms,
  max(h.duration_ms) as longest_ms
from public.status_history h
join public.status_lookup l on l.code = h.from_status
where h.changed_at > (select max(n.changed_at) from public.status_history n) - interval '7 days'
group by l.code;
comment on view public.article_state_times is
  'How long articles stood at each code that they left in the last seven days, in milliseconds.';

create view public.article_ready with (security_invoker = true) as
select q.id, q.status_code, l.name, q.title, q.url, q.status_changed_at as ready_since
from public.ingestion_queue q
join public.status_lookup l on l.code = q.status_code
where q.status_code in (110, 120, 210, 220, 230, 330);
comment on view public.article_ready is
  'The articles that a stage can take: no gate (100, 200), no review, nothing published.';

-- Says whether the signed-in user decides about articles: users cannot write app_metadata.
create function public.is_curator() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(auth.jwt() #>> '{app_metadata,role}' = 'curator', false)
$$;
comment on function public.is_curator() is
  'Whether the token''s app_metadata.role is curator.';

alter table public.topic enable row level security;
alter table public.tag enable row level security;
alter table public.ingestion_queue enable row level security;
alter table public.status_lookup enable row level security;
alter table public.status_history enable row level security;
alter table public.publication enable row level security;
alter table public.article_fingerprint enable row level security;

create policy topic_read on public.topic for select to authenticated
  using ((select public.is_curator()));
create policy topic_add on public.topic for insert to authenticated
  with check ((select public.is_curator()));
create policy topic_change on public.topic for update to authenticated
  using ((select public.is_curator())) with check ((select public.is_curator()));
create policy topic_remove on public.topic for delete to authenticated
  using ((select public.is_curator()));
create policy tag_read on public.tag for select to authenticated using (true);
create policy tag_add on public.tag for insert to authenticated
  with check ((select public.is_curator()));
create policy tag_change on public.tag for update to authenticated
  using ((select public.is_curator())) with check ((select public.is_curator()));
create policy tag_remove on public.tag for delete to authenticated
  using ((select public.is_curator()));

create policy article_seen on public.ingestion_queue for select to authenticated
  using ((select public.is_curator()) or added_by = (select auth.uid()));
create policy article_added on public.ingestion_queue for insert to authenticated
  with check (added_by = (select auth.uid())
    and entered_as = any (case when (select public.is_curator())
      then array['manual', 'import'] else array['manual'] end));
create policy article_decided on public.ingestion_queue for update to authenticated
  using ((select public.is_curator())) with check ((select public.is_curator()));
create policy article_removed on public.ingestion_queue for delete to authenticated
  using ((select public.is_curator()));
comment on policy article_added on public.ingestion_queue is
  'Users add articles by hand, in their own name; feeds and sitemaps are the pipeline''s.';

create policy codes_seen on public.status_lookup for select to authenticated using (true);
create policy history_of_seen_articles on public.status_history for select to authenticated
  using (exists (select from public.ingestion_queue q where q.id = queue_id));
create policy published on public.publication for select to anon, authenticated using (true);

create policy articles_asked on public.millrace_decisions for select to authenticated
  using (pipeline = 'articles' and (select public.is_curator()));
create policy articles_answered on public.millrace_decisions for update to authenticated
  using (pipeline = 'articles' and (select public.is_curator()));

revoke all on public.topic, public.tag, public.ingestion_queue, public.status_lookup,
  public.status_history, public.publication, public.article_fingerprint,
  public.publication_edit_history, public.article_backlog, public.article_state_times,
  public.article_ready
  from anon, authenticated, service_role;
grant select, insert, update, delete on public.topic, public.tag to authenticated;
grant select, delete on public.ingestion_queue to authenticated;
grant insert (id, url, title, summary, content, author, language, image_url, published_at, tags,
    thumbnail_url, entry_type, status_code),
  update (title, summary, tags, thumbnail_url, status_code, duplicate_of)
  on public.ingestion_queue to authenticated;
grant select on public.status_lookup, public.status_history, public.publication to authenticated;
grant select on public.publication to anon;
grant select on public.publication_edit_history, public.article_backlog,
  public.article_state_times, public.article_ready
  to authenticated, service_role;
grant select, insert, update, delete
  on public.topic, public.tag, public.ingestion_queue, public.publication to service_role;
grant select on public.status_lookup, public.status_history, public.article_fingerprint
  to service_role;

revoke all on function public.url_fingerprint(text), public.text_fingerprint(text),
  public.claim_fingerprint(text, uuid), public.claim_articles(uuid[]),
  public.article_entry_code(public.ingestion_queue), public.article_lacks(public.ingestion_queue),
  public.enter_article(), public.check_claims(), public.edit_article(), public.move_article(),
  public.keep_article(),
  public.track_publication_edit(uuid, uuid, jsonb, jsonb, text), public.is_curator()
  from public, anon, authenticated, service_role;
grant execute on function public.is_curator() to authenticated;
grant execute on function public.track_publication_edit(uuid, uuid, jsonb, jsonb, text)
  to authenticated, service_role;
revoke all on sequence public.status_history_order from anon, authenticated, service_role;
grant execute on function public.url_fingerprint(text) to service_role;
