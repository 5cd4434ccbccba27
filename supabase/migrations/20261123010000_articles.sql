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
