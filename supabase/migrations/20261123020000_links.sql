-- Links: job and post links from sheets and Notion, each to be read into clean tables
--
-- A link is a row of linkedin_links, known by its canonical URL however it is spelt. What is read
-- from it lies in three layers: raw as it was fetched, staged as it was understood, and jobs and
-- companies as people use them. The pipeline `links` writes all of them; nobody else needs to.

-- Tells the part of a web address that says what it leads to: the host without the names that mean
-- the same, the path without what is added to share it, the parameters that are not known to track,
-- and a fragment that names a page (#/jobs/7). What is no web address comes back as it is.
create function public.canonical_url(p_text text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := btrim(p_text, E' \t\r\n');
  v_parts text[];
  v_host text;
  v_path text;
  v_query text;
begin
  if v_text ~ '^[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+(:\d+)?(/\S*)?$' then
    v_text := 'https://' || v_text;
  end if;
  v_parts := regexp_match(v_text,
    '^[hH][tT][tT][pP][sS]?://(?:[^/?#]*@)?([^/?#:@\s]+)(:\d+)?((?:/[^?#\s]*)?)(\?[^#\s]*)?'
      || '(#\S*)?$');
  if v_parts is null then
    return v_text;
  end if;
  v_host := public.canonical_host(v_parts[1]);
  v_path := regexp_replace(v_parts[3], '/+$', '');
  v_query := coalesce(substr(v_parts[4], 2), '');
  return coalesce(
    public.board_url(v_host, v_path, v_query),
    'https://' || v_host
      || case when v_parts[2] in (':80', ':443') then '' else coalesce(v_parts[2], '') end
      || case when v_path = '' then '/' else v_path end
      || public.canonical_query(v_host, v_query)
      || case when v_parts[5] ~ '^#!?/.' then v_parts[5] else '' end);
end
$$;
comment on function public.canonical_url(text) is
  'The one spelling of a web address, by which links are told apart: canonical_url(raw_url).';

-- Writes a host in lower case, without its closing dot and the names that mean the same.
create function public.canonical_host(p_host text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case
    when h.name ~ '(^|\.)linkedin\.com$' then 'www.linkedin.com'
    when h.name ~ '(^|\.)indeed\.com$' then 'www.indeed.com'
    when h.name = 'job-boards.greenhouse.io' then 'boards.greenhouse.io'
    else h.name
  end
  from (
    select regexp_replace(
      rtrim(lower(p_host), '.'), '^((www|m|mobile)\.)+(?=[^.]+\.)', '') as name) h
$$;

-- Names the parameters of a host that say how somebody came to a page, in lower case, as a regular
-- expression: those that track wherever they stand, and those that this host is known to add.
-- Others of the same name may say what the page shows, such as ref, source or position.
create function public.tracking_parameters(p_host text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select '^(utm_.*|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|twclid|ttclid|li_fat_id|igshid'
    || '|yclid|mc_cid|mc_eid|mkt_tok|_hsenc|_hsmi|_ga|_gl|gh_src|lever-source.*'
    || case p_host
      when 'www.linkedin.com' then '|trk.*|refid|trackingid|lipi|licu|originalsubdomain|position'
        || '|pagenum|eb[cp]|midtoken|midsig|otptoken'
      when 'www.indeed.com' then '|from|tk|advn|adid|sjdu|xkcb|vjs'
      when 'x.com' then '|s|t|ref_src'
      when 'youtube.com' then '|si|feature'
      else ''
    end || ')$'
$$;

-- Keeps the parameters that say what a page of a host shows, in the order of their names.
create function public.canonical_query(p_host text, p_query text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select coalesce('?' || string_agg(q.part, '&' order by q.part collate "C"), '')
  from unnest(string_to_array(p_query, '&')) q(part)
  where q.part <> ''
    and lower(split_part(q.part, '=', 1)) !~ public.tracking_parameters(p_host)
$$;

-- Writes the address of a posting at a known board from its id; null for any other address.
create function public.board_url(p_host text, p_path text, p_query text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id text;
begin
  case p_host
    when 'www.linkedin.com' then
      v_id := coalesce(
        substring(p_path from '^/jobs/view/(?:[^/]*-)?(\d{5,})(?:/|$)'),
        substring(p_query from '(?:^|&)currentJobId=(\d{5,})'));
      if v_id is not null and p_path ~ '^/jobs(/|$)' then
        return 'https://www.linkedin.com/jobs/view/' || v_id;
      end if;
      v_id := coalesce(
        substring(p_path from '^/posts/\S*[-_]activity-(\d{5,})'),
        substring(replace(lower(p_path), '%3a', ':')
          from '^/feed/update/urn:li:activity:(\d{5,})'));
      return 'https://www.linkedin.com/feed/update/urn:li:activity:' || v_id;
    when 'www.indeed.com' then
      v_id := substring(p_query from '(?:^|&)(?:jk|vjk)=([0-9a-fA-F]+)');
      return 'https://www.indeed.com/viewjob?jk=' || lower(v_id);
    when 'boards.greenhouse.io' then
      return 'https://boards.greenhouse.io' || substring(p_path from '^(/[^/]+/jobs/\d+)');
    when 'jobs.lever.co', 'jobs.eu.lever.co', 'jobs.ashbyhq.com' then
      return 'https://' || p_host || substring(lower(p_path) from '^(/[^/]+/[0-9a-f-]{36})');
    else
      return null;
  end case;
end
$$;

-- Folds a company's name, so that one that is written twice is one company.
create function public.company_key(p_name text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select btrim(regexp_replace(
    regexp_replace(lower(normalize(p_name, nfkc)),
      '[\s,.]+(inc|llc|ltd|limited|gmbh|ag|se|plc|corp|corporation|co|s\.?a|b\.?v|oy|ab|as)\.?$',
      ''),
    '[^[:alnum:]]+', ' ', 'g'))
$$;

create table public.link_sources (
  id uuid constraint link_sources_pkey primary key default gen_random_uuid(),
  kind text not null,
  address text not null,
  column_name text,
  every interval not null default '4 hours',
  enabled boolean not null default true,
  next_poll_at timestamptz,
  cursor jsonb,
  last_polled_at timestamptz,
  last_error text,
  found int not null default 0,
  created_at timestamptz not null default now(),

  constraint link_sources_address_key unique nulls not distinct (address, column_name),
  constraint link_sources_kind_known check (kind in ('sheet', 'notion')),
  constraint link_sources_address_length check (octet_length(address) between 1 and 2048),
  constraint link_sources_column_length check (octet_length(column_name) between 1 and 500),
  constraint link_sources_every_bounds check (every between '1 minute' and '31 days')
);
create index link_sources_by_next_poll on public.link_sources (next_poll_at, id)
  where next_poll_at is not null;
comment on table public.link_sources is
  'Google sheets and Notion data sources whose links are taken in: insert a kind and an address.';
comment on column public.link_sources.column_name is
  'The column or property that has the links; null where any cell may have some.';
comment on column public.link_sources.next_poll_at is
  'When it is polled next; write now() to poll it at once. Null while enabled is false.';
comment on column public.link_sources.cursor is 'Where reading left off.';
comment on column public.link_sources.last_error is
  'What is wrong with the source, and what to do. Null when all is well.';
comment on column public.link_sources.found is 'How many links it has brought.';

create table public.linkedin_links (
  id bigint generated always as identity constraint linkedin_links_pkey primary key,
  raw_url text not null,
  canonical_url text not null generated always as (public.canonical_url(raw_url)) stored,
  source text not null default 'manual',
  source_id uuid
    constraint linkedin_links_source_fkey references public.link_sources on delete set null,
  source_place text,
  classification text,
  classified_by text,
  status text not null default 'new',
  attempt_count int not null default 0,
  next_attempt_at timestamptz,
  last_error text,
  status_since timestamptz,
  note jsonb,
  trace_id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,

  constraint linkedin_links_canonical_url_key unique (canonical_url),
  constraint linkedin_links_url_length check (octet_length(raw_url) between 1 and 2048),
  constraint linkedin_links_source_known check (source in ('sheet', 'notion', 'manual')),
  constraint linkedin_links_classification_known
    check (classification in ('job', 'post', 'unknown')),
  constraint linkedin_links_classified_by_known
    check (classified_by in ('rule', 'model', 'person'))
);
create index linkedin_links_by_source on public.linkedin_links (source_id)
  where source_id is not null;
comment on table public.linkedin_links is
  'Links to jobs and posts. Insert a raw_url; status says in a word where it is.';
comment on column public.linkedin_links.canonical_url is
  'The one spelling of raw_url, by public.canonical_url(). A text that is no URL stays as it is.';
comment on column public.linkedin_links.classification is
  'job, post or unknown. One that a person writes stays.';
comment on column public.linkedin_links.status_since is 'Since when it shows its word.';
comment on column public.linkedin_links.note is
  'Why a person writes the next word: {"why": "the board is back"}. It goes into link_history.';
comment on column public.linkedin_links.trace_id is
  'In every log line about it and every request for it, whichever run it is.';

create table public.link_history (
  id bigint generated always as identity constraint link_history_pkey primary key,
  link_id bigint not null
    constraint link_history_link_fkey references public.linkedin_links on delete cascade,
  from_status text,
  to_status text not null,
  changed_at timestamptz not null,
  changed_by text not null,
  changes jsonb,
  duration_ms bigint
);
create index link_history_by_link on public.link_history (link_id, id);
comment on table public.link_history is
  'Every word that a link has shown, written by the engine: since when, by whom, and why where a '
  'person wrote it.';

create table public.link_events (
  id bigint generated always as identity constraint link_events_pkey primary key,
  link_id bigint not null
    constraint link_events_link_fkey references public.linkedin_links on delete cascade,
  event text not null
    constraint link_events_event_known check (
      event in ('link.new', 'link.classified', 'raw.persisted', 'staged.persisted')),
  trace_id uuid not null,
  at timestamptz not null
);
create index link_events_by_link on public.link_events (link_id, id);
comment on table public.link_events is
  'What happened to links: they came, were classified, their pages were kept, and were understood. '
  'Written once, in the transaction in which it happened, and kept as long as the link.';

create table public.linkedin_jobs_raw (
  link_id bigint constraint linkedin_jobs_raw_pkey primary key
    constraint linkedin_jobs_raw_link_fkey references public.linkedin_links on delete cascade,
  fetched_at timestamptz not null,
  http_status smallint not null,
  raw_html bytea,
  raw_json jsonb,
  fingerprint_hash text,
  notes jsonb not null default '{}'
);
comment on column public.linkedin_jobs_raw.raw_html is 'The page as it was sent, gzipped.';
comment on column public.linkedin_jobs_raw.raw_json is
  'Its JSON-LD, OpenGraph and meta tags: {"json_ld": [...], "open_graph": {...}, "meta": {...}}.';
comment on column public.linkedin_jobs_raw.fingerprint_hash is
  'Of what matters on it, so that another advertisement beside it is no change.';
create index linkedin_jobs_raw_by_age on public.linkedin_jobs_raw (fetched_at);
create table public.linkedin_posts_raw (like public.linkedin_jobs_raw including all);
alter table public.linkedin_posts_raw add constraint linkedin_posts_raw_link_fkey
  foreign key (link_id) references public.linkedin_links on delete cascade;

create table public.linkedin_jobs_stage (
  link_id bigint constraint linkedin_jobs_stage_pkey primary key
    constraint linkedin_jobs_stage_link_fkey references public.linkedin_links on delete cascade,
  title text,
  company text,
  location text,
  description text,
  salary text,
  extras jsonb not null default '{}',
  processed_at timestamptz not null
);
create index linkedin_jobs_stage_by_age on public.linkedin_jobs_stage (processed_at);
create table public.linkedin_posts_stage (
  link_id bigint constraint linkedin_posts_stage_pkey primary key
    constraint linkedin_posts_stage_link_fkey references public.linkedin_links on delete cascade,
  author text,
  text text,
  language text,
  extras jsonb not null default '{}',
  processed_at timestamptz not null
);
create index linkedin_posts_stage_by_age on public.linkedin_posts_stage (processed_at);

create table public.companies (
  id bigint generated always as identity constraint companies_pkey primary key,
  name text not null,
  name_key text not null generated always as (public.company_key(name)) stored,
  website text,
  linkedin_url text,
  size text,
  sector text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),

  constraint companies_name_key unique (name_key)
);
comment on column public.companies.name_key is 'Its folded name, by which spellings meet.';

-- Gold outlives the link that it came from.
create table public.jobs (
  id bigint generated always as identity constraint jobs_pkey primary key,
  company_id bigint constraint jobs_company_fkey references public.companies,
  link_id bigint constraint jobs_link_key unique
    constraint jobs_link_fkey references public.linkedin_links on delete set null,
  title text not null,
  location text,
  salary text,
  jd text,
  application_url text,
  valid_through timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index jobs_by_company on public.jobs (company_id);
comment on column public.jobs.jd is 'The description of the job.';

-- Whoever writes a classification by hand is a person, whose word stays.
create function public.note_classifier() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('links.applies', true) is distinct from 'on' then
    new.classified_by := case when new.classification is not null then 'person' end;
  end if;
  return new;
end
$$;
create trigger linkedin_links_classifier
  before update of classification on public.linkedin_links
  for each row execute function public.note_classifier();
-- Most links come without one, by the thousand.
create trigger linkedin_links_classifier_first
  before insert on public.linkedin_links
  for each row when (new.classification is not null or new.classified_by is not null)
  execute function public.note_classifier();

-- Says when a link was last changed.
create function public.note_link_update() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  new.updated_at := millrace.now();
  return new;
end
$$;
create trigger linkedin_links_updated
  before update on public.linkedin_links
  for each row execute function public.note_link_update();

-- Writes that links have come.
create function public.note_new_links() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into public.link_events (link_id, event, trace_id, at)
  select l.id, 'link.new', l.trace_id, millrace.now()
  from added l
  order by l.id;
  return null;
end
$$;
create trigger linkedin_links_new
  after insert on public.linkedin_links
  referencing new table as added
  for each statement execute function public.note_new_links();

alter table public.link_sources enable row level security;
alter table public.linkedin_links enable row level security;
alter table public.link_history enable row level security;
alter table public.link_events enable row level security;
alter table public.linkedin_jobs_raw enable row level security;
alter table public.linkedin_posts_raw enable row level security;
alter table public.linkedin_jobs_stage enable row level security;
alter table public.linkedin_posts_stage enable row level security;
alter table public.companies enable row level security;
alter table public.jobs enable row level security;
revoke all on public.link_sources, public.linkedin_links, public.link_history,
  public.link_events, public.linkedin_jobs_raw, public.linkedin_posts_raw,
  public.linkedin_jobs_stage, public.linkedin_posts_stage, public.companies, public.jobs
  from anon, authenticated, service_role;
grant select, insert, update, delete on public.link_sources, public.linkedin_links,
  public.linkedin_jobs_raw, public.linkedin_posts_raw, public.linkedin_jobs_stage,
  public.linkedin_posts_stage, public.companies, public.jobs
  to service_role;
grant select on public.link_history, public.link_events to service_role;
revoke all on sequence public.linkedin_links_id_seq, public.link_history_id_seq,
  public.link_events_id_seq, public.companies_id_seq, public.jobs_id_seq
  from anon, authenticated, service_role;
revoke all on function public.canonical_url(text), public.canonical_host(text),
  public.tracking_parameters(text), public.canonical_query(text, text),
  public.board_url(text, text, text), public.company_key(text), public.note_classifier(),
  public.note_link_update(), public.note_new_links()
  from public, anon, authenticated, service_role;
grant execute on function public.canonical_url(text), public.canonical_host(text),
  public.tracking_parameters(text), public.canonical_query(text, text),
  public.board_url(text, text, text), public.company_key(text)
  to service_role;
