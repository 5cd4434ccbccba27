-- Articles: what feeds and sitemaps name becomes scored, summarised, tagged and published articles
--
-- One number, status_code, says where an article stands, and writing it is how people act. The
-- pipeline `articles` fills status_lookup from its definition and writes status_history. Nobody
-- sees or writes any of this but by the rights that follow in a migration of their own.

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

-- Refuses what is too long, by name and size; for the check constraints of the queue.
create function public.too_long(p_field text, p_bytes bigint, p_most bigint) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception '% of an article has % bytes', p_field, p_bytes
    using errcode = 'check_violation',
      hint = format('Shorten it: %s may have %s bytes of UTF-8 at most.', p_field, p_most);
end
$$;
revoke all on function public.too_long(text, bigint, bigint)
  from public, anon, authenticated, service_role;
grant execute on function public.too_long(text, bigint, bigint) to authenticated, service_role;

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
  is_copy boolean not null default false,
  no_duplicate boolean not null default false,
  let_in boolean not null default true,
  status_code smallint,
  status_step smallint generated always as (status_code / 10) stored,
  status_changed_at timestamptz not null default now(),
  status_changes jsonb,
  status text,
  revision int not null default 0,
  added_by uuid default auth.uid(),
  charged_to text generated always as (coalesce(added_by, id)::text) stored,
  created_at timestamptz not null default now(),

  constraint ingestion_queue_entry_type_known
    check (entry_type in ('discovered', 'manual', 'import', 'retry')),
  constraint ingestion_queue_entered_as_known
    check (entered_as in ('discovered', 'manual', 'import')),
  -- Lists carry title and url of each article, the row all of it through every stage.
  constraint ingestion_queue_url_length check (coalesce(octet_length(url), 0) <= 2048
    or public.too_long('url', octet_length(url), 2048)),
  constraint ingestion_queue_canonical_url_length
    check (coalesce(octet_length(canonical_url), 0) <= 2048
      or public.too_long('canonical_url', octet_length(canonical_url), 2048)),
  constraint ingestion_queue_image_url_length check (coalesce(octet_length(image_url), 0) <= 2048
    or public.too_long('image_url', octet_length(image_url), 2048)),
  constraint ingestion_queue_thumbnail_length
    check (coalesce(octet_length(thumbnail_url), 0) <= 2048
      or public.too_long('thumbnail_url', octet_length(thumbnail_url), 2048)),
  constraint ingestion_queue_title_length check (coalesce(octet_length(title), 0) <= 1000
    or public.too_long('title', octet_length(title), 1000)),
  constraint ingestion_queue_summary_length check (coalesce(octet_length(summary), 0) <= 8000
    or public.too_long('summary', octet_length(summary), 8000)),
  constraint ingestion_queue_tags_length check (coalesce(octet_length(tags::text), 0) <= 4000
    or public.too_long('tags', octet_length(tags::text), 4000)),
  constraint ingestion_queue_author_length check (coalesce(octet_length(author), 0) <= 1000
    or public.too_long('author', octet_length(author), 1000)),
  constraint ingestion_queue_language_length check (coalesce(octet_length(language), 0) <= 1000
    or public.too_long('language', octet_length(language), 1000)),
  constraint ingestion_queue_content_length check (coalesce(octet_length(content), 0) <= 1000000
    or public.too_long('content', octet_length(content), 1000000)),
  -- A page shows what stands here as a link and as an image.
  constraint ingestion_queue_url_form check (url ~* '^https?://[^\s/]'),
  constraint ingestion_queue_thumbnail_form
    check (thumbnail_url !~* '^\s*[a-z][a-z0-9+.-]*:' or thumbnail_url ~* '^https?://')
) with (fillfactor = 70);
-- No index on status_code: it would end HOT updates. The stages' queues have their own; lists and
-- counts go by the step, which lasts from one stage to the next.
create index ingestion_queue_by_step on public.ingestion_queue (status_step, created_at);
create index ingestion_queue_by_time on public.ingestion_queue (created_at);
create index ingestion_queue_by_user on public.ingestion_queue (added_by)
  where added_by is not null;
create index ingestion_queue_by_topic on public.ingestion_queue (topic_id)
  where topic_id is not null;
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
comment on column public.ingestion_queue.is_copy is
  'Another article has its address or text; duplicate_of names it to whoever may read it.';
comment on column public.ingestion_queue.let_in is
  'Its address and text are known to all articles that come later. What a user has added is let in '
  'once a curator approves it: until then it is compared with what that user adds and what is.';
comment on column public.ingestion_queue.status_step is 'The tens of status_code.';
comment on column public.ingestion_queue.charged_to is
  'Whose quota its runs count against: its user''s, or its own where no user has added it.';
comment on column public.ingestion_queue.no_duplicate is
  'A person has looked: this is no copy of another article, whatever its address and text.';
comment on column public.ingestion_queue.status is
  'The column of before, until it is dropped.';
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

-- The codes that an article passes in one moment must stay in order: ids are numbers.
create sequence public.status_history_order;
create table public.status_history (
  id uuid constraint status_history_pkey primary key default
    lpad(to_hex(nextval('public.status_history_order')), 32, '0')::uuid,
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
-- canonical one, its text), and two that finish together meet here. Those of an article that is not
-- let in begin with its user's id, so that they mean nothing to anybody else's.
create table public.article_fingerprint (
  fingerprint text constraint article_fingerprint_pkey primary key,
  queue_id uuid not null constraint article_fingerprint_queue_fkey
    references public.ingestion_queue on delete cascade deferrable initially deferred
);
create index article_fingerprint_by_article on public.article_fingerprint (queue_id);

alter table public.topic enable row level security;
alter table public.tag enable row level security;
alter table public.ingestion_queue enable row level security;
alter table public.status_lookup enable row level security;
alter table public.status_history enable row level security;
alter table public.publication enable row level security;
alter table public.article_fingerprint enable row level security;
revoke all on public.topic, public.tag, public.ingestion_queue, public.status_lookup,
  public.status_history, public.publication, public.article_fingerprint
  from anon, authenticated, service_role;
revoke all on sequence public.status_history_order from anon, authenticated, service_role;

-- Articles: which of them are copies
--
-- Two addresses of one page, and one text at two addresses, have the same fingerprint. Whoever has
-- it first is the original; of the others, duplicate_of names it.

-- Says by what the same page is known again: without scheme, www, default port, fragment, last
-- slash and what tells where a reader came from (as clean-url.ts has it), its parameters sorted.
-- Null for null.
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
      cross join lateral lower(split_part(g.pair, '=', 1)) n(name)
      where g.pair <> ''
        and n.name !~ '^(utm|pk|mtm|piwik|matomo)_'
        and n.name <> all (string_to_array(
          'fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid twclid ttclid igshid igsh '
          'mc_cid mc_eid mkt_tok oly_anon_id oly_enc_id vero_id wickedid _ga _gl _hsenc _hsmi '
          '__hssc __hstc __hsfp hsctatracking ref_src ref_url guccounter guce_referrer '
          'guce_referrer_sig cmpid ncid sr_share s_cid xtor spm at_medium at_campaign '
          'at_custom1 at_custom2', ' ')));
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

-- Says how an article's fingerprints begin: as they are once it is let in, else with its user's id.
create function public.fingerprint_scope(p_let_in boolean, p_added_by uuid) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when p_let_in then '' else p_added_by || ':' end
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
-- fingerprints of these articles, marks those that are copies, and returns them. What an article
-- that is not let in copies is named where the same user has added it.
create function public.claim_articles(p_queue_ids uuid[]) returns setof uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claims jsonb := (
    select coalesce(jsonb_agg(jsonb_build_object('id', q.id, 'known', g.known,
      'fingerprint', s.scope || g.known) order by s.scope || g.known, q.id), '[]')
    from public.ingestion_queue q
    cross join lateral (values (public.url_fingerprint(q.canonical_url)),
      (public.text_fingerprint(q.content))) g(known)
    cross join lateral public.fingerprint_scope(q.let_in, q.added_by) s(scope)
    where q.id = any (p_queue_ids) and g.known is not null);
begin
  -- In the order of the fingerprints, so that two batches never wait for each other in a circle.
  insert into public.article_fingerprint (fingerprint, queue_id)
  select c.fingerprint, c.id
  from jsonb_to_recordset(v_claims) c(id uuid, fingerprint text)
  on conflict on constraint article_fingerprint_pkey do nothing;
  update public.ingestion_queue q
  set text_fingerprint = f.fingerprint
  from public.article_fingerprint f
  where f.queue_id = q.id
    and q.id = any (p_queue_ids)
    and f.fingerprint =
      public.fingerprint_scope(q.let_in, q.added_by) || public.text_fingerprint(q.content)
    and q.text_fingerprint is distinct from f.fingerprint;
  if not exists (
      select
      from jsonb_to_recordset(v_claims) c(id uuid, known text, fingerprint text)
      join public.article_fingerprint f on f.fingerprint in (c.fingerprint, c.known)
      where f.queue_id <> c.id) then
    return;
  end if;
  -- Two that name each other as the original: the second must see what became of the first.
  perform pg_advisory_xact_lock(hashtextextended('public.claim_articles', 0));
  return query
  with met as materialized (
    select distinct on (c.id) c.id, coalesce(o.duplicate_of, o.id) as original, o.added_by
    from jsonb_to_recordset(v_claims) c(id uuid, known text, fingerprint text)
    join public.article_fingerprint f on f.fingerprint in (c.fingerprint, c.known)
    join public.ingestion_queue o on o.id = f.queue_id
    where c.id not in (o.id, coalesce(o.duplicate_of, o.id))
    order by c.id, o.created_at, o.id
  )
  update public.ingestion_queue q
  set is_copy = true,
    duplicate_of = case when q.let_in or m.added_by = q.added_by then m.original end
  from met m
  where q.id = m.id
    and not q.no_duplicate
    and not exists (
      select
      from met r
      where r.id = m.original and r.original = m.id and m.id < r.id)
  returning q.id;
end
$$;
comment on function public.claim_articles(uuid[]) is
  'Claims URL and text of fetched articles; marks those that are copies and returns their ids.';

revoke all on function public.url_fingerprint(text), public.text_fingerprint(text),
  public.fingerprint_scope(boolean, uuid), public.claim_fingerprint(text, uuid),
  public.claim_articles(uuid[])
  from public, anon, authenticated, service_role;
grant execute on function public.url_fingerprint(text) to service_role;

-- Articles: how one enters the queue
--
-- Whoever inserts an article may leave its code out: it begins by what it brings.

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

-- Claims URL and text of an article that enters, and marks one whose URL or text is known. What an
-- article that is not let in copies is named where the same user has added it: of others' articles
-- nobody is told.
create function public.claim_entered(p_article public.ingestion_queue)
returns public.ingestion_queue
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := public.fingerprint_scope(p_article.let_in, p_article.added_by);
  v_text text := public.text_fingerprint(p_article.content);
  v_url text := public.url_fingerprint(p_article.url);
  v_copied uuid;
  v_known record;
begin
  -- The text first, as claim_articles() has it: so the two never wait for each other in a circle.
  if v_text is not null then
    v_copied := public.claim_fingerprint(v_scope || v_text, p_article.id);
    p_article.text_fingerprint := case when v_copied is null then v_scope || v_text end;
  end if;
  if v_url is not null then
    p_article.duplicate_of := public.claim_fingerprint(v_scope || v_url, p_article.id);
    p_article.url_fingerprint :=
      case when p_article.duplicate_of is null then v_scope || v_url end;
  end if;
  p_article.duplicate_of := coalesce(p_article.duplicate_of, v_copied);
  if not p_article.let_in then
    select coalesce(q.duplicate_of, q.id) as original, q.added_by into v_known
    from public.article_fingerprint f
    join public.ingestion_queue q on q.id = f.queue_id
    where f.fingerprint in (v_text, v_url)
    order by q.added_by = p_article.added_by desc nulls last
    limit 1;
    p_article.is_copy := found;
    if v_known.added_by = p_article.added_by then
      p_article.duplicate_of := coalesce(p_article.duplicate_of, v_known.original);
    end if;
  end if;
  p_article.is_copy := not p_article.no_duplicate
    and (p_article.is_copy or p_article.duplicate_of is not null);
  p_article.duplicate_of := case when p_article.is_copy then p_article.duplicate_of end;
  return p_article;
end
$$;

-- Prepares an article that enters: what is blank counts as not given, how it entered is kept, the
-- code follows from what it brings, and one whose URL or text is known becomes 520. What a user
-- adds who is no curator has yet to be let in.
create function public.enter_article() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
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
  new.is_copy := false;
  new.url_fingerprint := null;
  new.text_fingerprint := null;
  -- Whoever still writes the old column, while it is there, means the code that it stands for.
  if new.status_code is null and to_jsonb(new) ->> 'status' is null then
    new.status_code :=
      case new.entry_type when 'discovered' then 100 else public.article_entry_code(new) end;
  end if;
  new.let_in := auth.uid() is null or public.is_curator();
  new := public.claim_entered(new);
  new.status_code := case when new.is_copy then 520 else new.status_code end;
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

revoke all on function public.article_entry_code(public.ingestion_queue),
  public.article_lacks(public.ingestion_queue), public.claim_entered(public.ingestion_queue),
  public.enter_article(), public.check_claims()
  from public, anon, authenticated, service_role;

-- Articles: what people change in them, and what of it the history tells

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
    select string_agg(n.key, ', ' order by n.key)
    from jsonb_each(v_new) n
    where n.value is distinct from v_old -> n.key);
  v_emptied text := (
    select string_agg(n.key, ', ' order by n.key)
    from jsonb_each(v_new) n
    where n.value is distinct from v_old -> n.key
      and coalesce(btrim(n.value #>> '{}', E' []\n\t'), '') = '');
  v_owned boolean := (
    select pg_has_role(current_user, c.relowner, 'usage')
    from pg_class c
    where c.oid = tg_relid);
begin
  if old.status_code is distinct from 320 then
    if v_owned and (old.status_code between 300 and 499) is not true then
      return new;
    end if;
    raise exception '% of article % was edited at %', v_fields, old.id, coalesce((
        select format('%s (%s)', l.code, l.name)
        from public.status_lookup l
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

-- Prepares an article for its next code: an edit that is discarded (400) takes its text back, what
-- changed belongs to the code after 320 alone, and what had ended and begins again is a retry. An
-- article that was 410 becomes 410 again: saved as it was, since its last edit may not be on the
-- site yet.
create function public.move_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lacks text := concat_ws(', ', case when new.summary is null then 'summary' end,
    case when new.tags is null then 'tags' end,
    case when new.thumbnail_url is null then 'thumbnail_url' end);
begin
  if old.status_code = 320 and new.status_code = 400 then
    new := jsonb_populate_record(new, coalesce((
      select jsonb_object_agg(c.key, c.value -> 'old')
      from jsonb_each(new.status_changes) c), '{}'));
    new.status_changes := null;
    new.status_code := case
      when (
          select h.from_status
          from public.status_history h
          where h.queue_id = new.id and h.to_status = 320
          order by h.id desc
          limit 1) = 410 then 410
      else 400
    end;
  elsif old.status_code is distinct from 320 then
    new.status_changes := null;
  end if;
  if old.status_code in (500, 540) and new.status_code = 300 and v_lacks <> '' then
    raise exception '300 needs summary, tags, thumbnail_url: article % at % lacks %', new.id,
      old.status_code, v_lacks
      using errcode = 'MR005',
        hint = 'Begin it earlier: write 110, or the code of the step that makes what it lacks.';
  elsif old.status_code >= 500 and new.status_code < 500 then
    new.entry_type := 'retry';
    new.no_duplicate := new.no_duplicate or old.status_code = 520;
    new.duplicate_of := null;
    new.is_copy := false;
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

-- Refuses to fetch what has no address: it would end at 510, from where nothing leads on. What
-- waits at a gate goes past the fetch by itself.
create function public.refuse_fetch() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'article % has no url that could be fetched', old.id
    using errcode = 'MR005',
      hint = 'Write the code of a later step, such as 120 or 210: only what has a url is fetched.';
end
$$;
create trigger ingestion_queue_2_fetch before update of status_code on public.ingestion_queue
  for each row
  when (new.status_code = 110 and new.url is null and old.status_code not in (100, 110, 111, 200))
  execute function public.refuse_fetch();

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

-- Refuses that a person approves what has no title: a publication has one. Whoever approves past
-- this trigger (the tables' owner, and a decision through millrace_decide) hears of it at 500.
create function public.approve_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if (
      select pg_has_role(current_user, c.relowner, 'usage')
      from pg_class c
      where c.oid = tg_relid) then
    return new;
  end if;
  raise exception 'article % was approved without a title', old.id
    using errcode = 'MR005', hint = 'Write 320 and its title, then 330.';
end
$$;
create trigger ingestion_queue_5_approve before update of status_code on public.ingestion_queue
  for each row
  when (old.status_code in (310, 320) and new.status_code = 330
    and coalesce(btrim(new.title), '') = '')
  execute function public.approve_article();

-- Lets an article in once a curator has approved it: from now on its address and its text are
-- known, but for what another article has had before.
create function public.let_article_in() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  new.let_in := true;
  insert into public.article_fingerprint (fingerprint, queue_id)
  select distinct g.known, new.id
  from (values (public.url_fingerprint(new.url)), (public.url_fingerprint(new.canonical_url)),
    (public.text_fingerprint(new.content))) g(known)
  where g.known is not null
  order by g.known
  on conflict on constraint article_fingerprint_pkey do nothing;
  return new;
end
$$;
create trigger ingestion_queue_6_let_in before update of status_code on public.ingestion_queue
  for each row when (new.status_code = 330 and not old.let_in)
  execute function public.let_article_in();

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
  v_actor text := coalesce(current_setting('millrace.actor', true), '');
  v_article public.ingestion_queue;
  v_edited public.ingestion_queue;
  v_new jsonb := (
    select coalesce(jsonb_object_agg(n.key, n.value), '{}')
    from jsonb_each(p_new) n
    where n.value is distinct from p_old -> n.key);
  v_unknown text := (
    select string_agg(k.key, ', ' order by k.key)
    from jsonb_object_keys(v_new) k(key)
    where k.key not in ('title', 'summary', 'tags', 'thumbnail_url'));
begin
  if v_unknown is not null then
    raise exception '% is no field of a publication that people edit', v_unknown
      using errcode = 'MR002', hint = 'Give title, summary, tags or thumbnail_url.';
  end if;
  select q.* into v_article
  from public.ingestion_queue q
  join public.publication p on p.queue_id = q.id and p.id = p_publication_id
  where q.id = p_queue_id
  for update of q;
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
  perform set_config('millrace.actor', v_actor, true);
  return (
    select h.id
    from public.status_history h
    where h.queue_id = p_queue_id
      and h.from_status = 320
      and h.to_status = 410
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

revoke all on public.publication_edit_history from anon, authenticated, service_role;
revoke all on function public.edit_article(), public.move_article(), public.refuse_fetch(),
  public.keep_article(), public.approve_article(), public.let_article_in(),
  public.track_publication_edit(uuid, uuid, jsonb, jsonb, text)
  from public, anon, authenticated, service_role;
grant select on public.publication_edit_history to authenticated, service_role;
grant execute on function public.track_publication_edit(uuid, uuid, jsonb, jsonb, text)
  to authenticated, service_role;

-- Articles: who sees and writes what
--
-- Curators, whose token says so (app_metadata.role), see and decide all of it; other users add
-- articles by hand and see their own; everybody reads what is published.

-- Says whether the signed-in user decides about articles: users cannot write app_metadata.
create function public.is_curator() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(auth.jwt() #>> '{app_metadata,role}' = 'curator', false)
$$;
comment on function public.is_curator() is
  'Whether the token''s app_metadata.role is curator.';

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

grant select, insert, update, delete on public.topic, public.tag to authenticated;
grant select, delete on public.ingestion_queue to authenticated;
grant insert (id, url, title, summary, content, author, language, image_url, published_at, tags,
    thumbnail_url, entry_type, status_code),
  update (title, summary, tags, thumbnail_url, status_code, duplicate_of)
  on public.ingestion_queue to authenticated;
grant select on public.status_lookup, public.status_history, public.publication to authenticated;
grant select on public.publication to anon;
grant select, insert, update, delete
  on public.topic, public.tag, public.ingestion_queue, public.publication to service_role;
grant select on public.status_lookup, public.status_history, public.article_fingerprint
  to service_role;

revoke all on function public.is_curator() from public, anon, authenticated, service_role;
grant execute on function public.is_curator() to authenticated, service_role;

-- Articles: where they stand, for whoever watches the queue

-- Of each step it counts the thousand that entered first: so much a page can ask for time and
-- again, however many there are. Whoever is no curator has their own articles to count.
create view public.article_backlog with (security_invoker = true) as
with asked as (
  select (select public.is_curator()) or current_user <> 'authenticated' as for_all
), seen as (
  select q.*
  from asked a
  join (select distinct k.code / 10 as step from public.status_lookup k) s on a.for_all
  cross join lateral (
    select f.*, row_number() over () as place
    from (
      select e.id, e.status_code, e.status_changed_at
      from public.ingestion_queue e
      -- No equality, by which an index on the time alone would do as well.
      where e.status_step between s.step and s.step
      order by e.status_step, e.created_at
      limit 1001) f) q
  union all
  select q.*
  from asked a
  cross join lateral (
    select e.id, e.status_code, e.status_changed_at, row_number() over () as place
    from public.ingestion_queue e
    where e.added_by = (select auth.uid())
    limit 1001) q
  where not a.for_all
), counted as (
  select s.*, max(s.place) over (partition by s.status_code / 10) > 1000 as more
  from seen s
)
select l.code, l.name, l.category, count(*) as articles, min(c.status_changed_at) as oldest_since,
  (array_agg(c.id order by c.status_changed_at, c.id))[1] as oldest_id, bool_or(c.more) as more
from counted c
join public.status_lookup l on l.code = c.status_code
where c.place <= 1000
group by l.code;
comment on view public.article_backlog is
  'Where articles pile up: how many stand at each code, and since when the oldest does; of a step '
  'with more than 1,000 those that entered first. Users who are no curators see their own.';
comment on column public.article_backlog.more is
  'Whether there are more at this step (the tens of the code) than the 1,000 that were counted.';

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
where q.status_step in (11, 12, 21, 22, 23, 33)
  and q.status_code in (110, 120, 210, 220, 230, 330);
comment on view public.article_ready is
  'The articles that a stage can take: no gate (100, 200), no review, nothing published.';

revoke all on public.article_backlog, public.article_state_times, public.article_ready
  from anon, authenticated, service_role;
grant select on public.article_backlog, public.article_state_times, public.article_ready
  to authenticated, service_role;

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
