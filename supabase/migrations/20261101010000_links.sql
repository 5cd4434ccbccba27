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

-- Links: what the stages of the pipeline `links` write, in the transaction that completes them
--
-- Each apply function takes the items of one stage: [{attempt, run, entity_id, result}]. A page is
-- too large for a result: it is drafted while its job is finished, and becomes the link's raw row
-- together with the attempt's completion, or never.

create table public.link_page_drafts (
  link_id bigint not null
    constraint link_page_drafts_link_fkey references public.linkedin_links on delete cascade,
  job_id text not null,
  fetched_at timestamptz not null default millrace.now(),
  http_status smallint not null,
  raw_html bytea not null,
  raw_json jsonb not null,
  fingerprint_hash text not null,
  notes jsonb not null default '{}',

  constraint link_page_drafts_pkey primary key (link_id, job_id)
);
create index link_page_drafts_by_age on public.link_page_drafts (fetched_at);
comment on table public.link_page_drafts is
  'Pages as the jobs of the scraper brought them, until their attempts are completed.';

-- Says whether a link is being fetched.
create function public.awaits_page(p_link_id bigint) returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from millrace.pipelines p
    join millrace.runs r
      on r.pipeline_id = p.id and r.entity_id = p_link_id::text and r.status = 'running'
    join millrace.attempts a
      on a.run_id = r.id and a.state in ('queued', 'started', 'waiting')
    join millrace.stages s on s.id = a.stage_id and s.name in ('scrape_job', 'scrape_post')
    where p.name = 'links')
$$;

-- Drafts a page under the job that brought it; a job that is finished twice has one draft. Does
-- nothing where the link is gone, or its page is no longer awaited: both a callback and a poll may
-- bring it, and the later one finds the link held until the former has made it the raw row.
create function public.draft_link_page(p_link_id bigint, p_job_id text, p_page jsonb)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from public.linkedin_links l where l.id = p_link_id for share;
  if not found or not public.awaits_page(p_link_id) then
    return;
  end if;
  insert into public.link_page_drafts as d
    (link_id, job_id, http_status, raw_html, raw_json, fingerprint_hash, notes)
  values (p_link_id, p_job_id, (p_page ->> 'http_status')::smallint,
    decode(p_page ->> 'html_gzip_base64', 'base64'), p_page -> 'raw_json',
    p_page ->> 'fingerprint', p_page -> 'notes')
  on conflict on constraint link_page_drafts_pkey do update
  set fetched_at = millrace.now(), http_status = excluded.http_status,
    raw_html = excluded.raw_html, raw_json = excluded.raw_json,
    fingerprint_hash = excluded.fingerprint_hash, notes = excluded.notes;
end
$$;
comment on function public.draft_link_page(bigint, text, jsonb) is
  'Keeps a page that the scraper brought until its attempt is completed.';

-- Notes that nobody could tell what a link is. Its attempt fails, so that no apply function runs;
-- what a person said stays.
create function public.note_unknown_link(p_link_id bigint) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('links.applies', 'on', true);
  update public.linkedin_links l
  set classification = 'unknown', classified_by = 'model'
  where l.id = p_link_id and l.classified_by is distinct from 'person';
  perform set_config('links.applies', '', true);
end
$$;
comment on function public.note_unknown_link(bigint) is
  'Writes the classification unknown, unless a person has classified the link.';

-- Writes that something happened to the links of some items.
create function public.note_link_events(p_event text, p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into public.link_events (link_id, event, trace_id, at)
  select l.id, p_event, l.trace_id, millrace.now()
  from jsonb_array_elements(p_items) i
  join public.linkedin_links l on l.id = (i ->> 'entity_id')::bigint
  order by l.id
$$;

-- Writes what links are; what a person said stays.
create function public.apply_classified(p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('links.applies', 'on', true);
  update public.linkedin_links l
  set classification = r.classification, classified_by = r.by
  from jsonb_array_elements(p_items) i
  cross join jsonb_to_record(i -> 'result') r(classification text, by text)
  where l.id = (i ->> 'entity_id')::bigint
    and l.classified_by is distinct from 'person';
  perform set_config('links.applies', '', true);
  perform public.note_link_events('link.classified', p_items);
end
$$;
comment on function public.apply_classified(jsonb) is 'Writes what links are.';

-- Makes drafts the raw rows of their links, in the table given. Raises MR002 where a result names a
-- draft that is not there.
create function public.apply_drafts(p_table regclass, p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing text;
begin
  v_missing := (
    select i ->> 'entity_id'
    from jsonb_array_elements(p_items) i
    where not exists (
      select
      from public.link_page_drafts d
      where d.link_id = (i ->> 'entity_id')::bigint
        and d.job_id = i #>> '{result,draft}')
    limit 1);
  if v_missing is not null then
    raise exception 'the page of link % has not been drafted', v_missing
      using errcode = 'MR002',
        hint = 'Call public.draft_link_page() before the attempt completes.';
  end if;
  execute format($q$
    insert into %s as t
      (link_id, fetched_at, http_status, raw_html, raw_json, fingerprint_hash, notes)
    select d.link_id, d.fetched_at, d.http_status, d.raw_html, d.raw_json, d.fingerprint_hash,
      d.notes
    from jsonb_array_elements($1) i
    join public.link_page_drafts d
      on d.link_id = (i ->> 'entity_id')::bigint
      and d.job_id = i #>> '{result,draft}'
    order by d.link_id
    on conflict (link_id) do update
    set (fetched_at, http_status, raw_html, raw_json, fingerprint_hash, notes) = (
      excluded.fetched_at, excluded.http_status, excluded.raw_html, excluded.raw_json,
      excluded.fingerprint_hash, excluded.notes)$q$, p_table)
  using p_items;
  delete from public.link_page_drafts d
  using jsonb_array_elements(p_items) i
  where d.link_id = (i ->> 'entity_id')::bigint;
  perform public.note_link_events('raw.persisted', p_items);
end
$$;

-- Says whether a link was once through one of these stages: its latest run was, or has been pruned.
create function public.link_was_at(p_link_id bigint, variadic p_stages text[]) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select exists (
      select
      from millrace.done_attempts d
      join millrace.stages s on s.id = d.stage_id
      where d.run_id = r.id
        and d.state = 'completed'
        and s.name = any (p_stages))
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id and p.name = 'links'
    where r.entity_id = p_link_id::text
    order by r.id desc
    limit 1), true)
$$;

-- Lets a word that a person writes begin where the link's rows still are: what its page says may
-- have been pruned since, and the page too. A stage that the link never came to stays refused.
create function public.begin_where_rows_are() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if new.status = 'staged'
      and not exists (select from public.linkedin_jobs_stage t where t.link_id = new.id)
      and not exists (select from public.linkedin_posts_stage t where t.link_id = new.id)
      and public.link_was_at(new.id, 'stage_job', 'stage_post') then
    new.status := 'scraped';
  end if;
  if new.status = 'scraped'
      and not exists (select from public.linkedin_jobs_raw t where t.link_id = new.id)
      and not exists (select from public.linkedin_posts_raw t where t.link_id = new.id)
      and public.link_was_at(new.id, 'scrape_job', 'scrape_post') then
    new.status := 'queued';
  end if;
  return new;
end
$$;
-- The engine's own statements announce their trigger depth: what they show is how it is.
create trigger linkedin_links_begin_where_rows_are
  before update of status on public.linkedin_links
  for each row
  when (new.status in ('scraped', 'staged')
    and old.status in ('error', 'dead', 'extracted')
    and (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
      or not has_schema_privilege('millrace', 'create')))
  execute function public.begin_where_rows_are();

-- Refuses another address for a link that has come past `new`, unless it begins anew with it: what
-- is under way, or was read, is of the page at the address before. A dead link may wait for its
-- word.
create function public.check_link_address() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_begins_anew boolean := new.status = 'new' and old.status <> 'new';
begin
  if old.status = 'dead' or v_begins_anew
    or public.canonical_url(new.raw_url) = old.canonical_url then
    return new;
  elsif old.status <> 'new' then
    raise exception 'raw_url of link % cannot change while it is %', old.id, old.status
      using errcode = 'MR005', hint = format('Begin anew with it: update linkedin_links '
        || 'set raw_url = …, status = ''new'' where id = %s.', old.id);
  elsif exists (
      select
      from millrace.pipelines p
      join millrace.runs r
        on r.pipeline_id = p.id and r.entity_id = old.id::text and r.status = 'running'
      join millrace.attempts a on a.run_id = r.id and a.state in ('started', 'waiting')
      where p.name = 'links') then
    raise exception 'raw_url of link % cannot change while it is being classified', old.id
      using errcode = 'MR005', hint = format('Once it shows another word, begin anew: update '
        || 'linkedin_links set raw_url = …, status = ''new'' where id = %s.', old.id);
  end if;
  return new;
end
$$;
create trigger linkedin_links_address
  before update of raw_url on public.linkedin_links
  for each row when (new.raw_url is distinct from old.raw_url)
  execute function public.check_link_address();

-- Writes the raw pages of jobs.
create function public.apply_scraped_jobs(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select public.apply_drafts('public.linkedin_jobs_raw', p_items)
$$;
comment on function public.apply_scraped_jobs(jsonb) is 'Writes the raw pages of jobs.';

-- Writes the raw pages of posts.
create function public.apply_scraped_posts(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select public.apply_drafts('public.linkedin_posts_raw', p_items)
$$;
comment on function public.apply_scraped_posts(jsonb) is 'Writes the raw pages of posts.';

-- Writes what pages say, of jobs and of posts.
create function public.apply_staged(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into public.linkedin_jobs_stage as t
    (link_id, title, company, location, description, salary, extras, processed_at)
  select (i ->> 'entity_id')::bigint, r.title, r.company, r.location, r.description, r.salary,
    r.extras, millrace.now()
  from jsonb_array_elements(p_items) i
  cross join jsonb_to_record(i -> 'result') r(kind text, title text, company text, location text,
    description text, salary text, extras jsonb)
  where r.kind = 'job'
  order by 1
  on conflict (link_id) do update
  set (title, company, location, description, salary, extras, processed_at) = (excluded.title,
    excluded.company, excluded.location, excluded.description, excluded.salary, excluded.extras,
    excluded.processed_at);
  insert into public.linkedin_posts_stage as t
    (link_id, author, text, language, extras, processed_at)
  select (i ->> 'entity_id')::bigint, r.author, r.text, r.language, r.extras, millrace.now()
  from jsonb_array_elements(p_items) i
  cross join jsonb_to_record(i -> 'result') r(kind text, author text, text text, language text,
    extras jsonb)
  where r.kind = 'post'
  order by 1
  on conflict (link_id) do update
  set (author, text, language, extras, processed_at) = (excluded.author, excluded.text,
    excluded.language, excluded.extras, excluded.processed_at);
  select public.note_link_events('staged.persisted', p_items)
$$;
comment on function public.apply_staged(jsonb) is 'Writes what pages of jobs and posts say.';

-- Writes the companies that results name, in the order of their folded names; what is known of one
-- stays where a result does not say it.
create function public.save_companies(p_items jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into public.companies as c
    (name, website, linkedin_url, size, sector, created_at, updated_at)
  select distinct on (public.company_key(r.name)) r.name, r.website, r.linkedin_url, r.size,
    r.sector, millrace.now(), millrace.now()
  from jsonb_array_elements(p_items) i
  cross join jsonb_to_record(i #> '{result,company}') r(name text, website text,
    linkedin_url text, size text, sector text)
  where public.company_key(r.name) <> ''
  order by public.company_key(r.name)
  on conflict on constraint companies_name_key do update
  set (website, linkedin_url, size, sector, updated_at) = (
    coalesce(excluded.website, c.website), coalesce(excluded.linkedin_url, c.linkedin_url),
    coalesce(excluded.size, c.size), coalesce(excluded.sector, c.sector), excluded.updated_at)
$$;

-- Writes companies and jobs. A link that turned out to offer no job loses the one that it had.
create function public.apply_extracted(p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform public.save_companies((
    select coalesce(jsonb_agg(i), '[]')
    from jsonb_array_elements(p_items) i
    where jsonb_typeof(i #> '{result,company}') = 'object'));
  insert into public.jobs as j (company_id, link_id, title, location, salary, jd,
    application_url, valid_through, created_at, updated_at)
  select c.id, (i ->> 'entity_id')::bigint, r.title, r.location, r.salary, r.jd,
    r.application_url, r.valid_through, millrace.now(), millrace.now()
  from jsonb_array_elements(p_items) i
  cross join jsonb_to_record(i #> '{result,job}') r(title text, location text, salary text,
    jd text, application_url text, valid_through timestamptz)
  left join public.companies c
    on c.name_key = public.company_key(i #>> '{result,company,name}')
  where jsonb_typeof(i #> '{result,job}') = 'object'
  order by 2
  on conflict on constraint jobs_link_key do update
  set (company_id, title, location, salary, jd, application_url, valid_through, updated_at) = (
    excluded.company_id, excluded.title, excluded.location, excluded.salary, excluded.jd,
    excluded.application_url, excluded.valid_through, excluded.updated_at);
  delete from public.jobs j
  using jsonb_array_elements(p_items) i
  where j.link_id = (i ->> 'entity_id')::bigint
    and i #> '{result,job}' = 'null';
  update public.linkedin_links l
  set finished_at = millrace.now()
  from jsonb_array_elements(p_items) i
  where l.id = (i ->> 'entity_id')::bigint;
end
$$;
comment on function public.apply_extracted(jsonb) is 'Writes companies and jobs.';

-- Counts what is live at the stages of the links, from the queue's own indexes: up to 10,000 a
-- stage. The engine's schema is closed to callers, so that it reads with its owner's rights.
create function millrace_evidence.link_queues()
returns table (
  place int, queue text, ready bigint, in_backoff bigint, in_work bigint, oldest_due_at timestamptz
)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select q.place, q.name, coalesce(sum(c.ready), 0)::bigint,
    coalesce(sum(c.in_backoff), 0)::bigint, coalesce(sum(c.started + c.waiting), 0)::bigint,
    min(c.oldest_due_at)
  from (values
    (1, 'ingest', 'link_sources', 'poll'),
    (2, 'classify', 'links', 'classify'),
    (3, 'route', 'links', 'route_job'),
    (3, 'route', 'links', 'route_post'),
    (4, 'scrape.job', 'links', 'scrape_job'),
    (5, 'scrape.post', 'links', 'scrape_post'),
    (6, 'stage', 'links', 'stage_job'),
    (6, 'stage', 'links', 'stage_post'),
    (7, 'extract', 'links', 'extract')) q(place, name, pipeline, stage)
  left join millrace.pipelines p on p.name = q.pipeline
  left join millrace.stages s on s.pipeline_id = p.id and s.name = q.stage
  left join millrace.live_counts(10000) c on c.stage_id = s.id
  group by q.place, q.name
$$;

-- Counts what the stages of the links have done since the beginning, pruned or not: the figures of
-- attempts that are over, and those that are live, up to 10,000 a stage. A gate starts nothing.
create function millrace_evidence.link_counters()
returns table (
  stage text, enqueued bigint, started bigint, succeeded bigint, failed bigint, retries bigint,
  dead bigint
)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.name, f.completed + f.failed + f.cancelled + coalesce(l.live, 0),
    case when s.kind <> 'gate' then
      f.completed + f.failed + f.cancelled - f.unstarted + coalesce(l.in_work, 0) end,
    f.completed, f.failed, f.retried, f.failed - f.retried
  from millrace.pipelines p
  join millrace.stages s on s.pipeline_id = p.id
  cross join lateral (
    select coalesce(sum(t.n) filter (where t.outcome = 'completed'), 0)::bigint as completed,
      coalesce(sum(t.n) filter (where t.outcome in ('failed', 'retried')), 0)::bigint as failed,
      coalesce(sum(t.n) filter (where t.outcome = 'retried'), 0)::bigint as retried,
      coalesce(sum(t.n) filter (where t.outcome = 'cancelled'), 0)::bigint as cancelled,
      coalesce(sum(t.n) filter (where t.outcome = 'unstarted'), 0)::bigint as unstarted
    from millrace.counted_figures t
    where t.pipeline_id = p.id
      and t.stage_id = s.id) f
  left join lateral (
    select c.ready + c.in_backoff + c.started + c.waiting as live,
      c.started + c.waiting as in_work
    from millrace.live_counts(10000) c
    where c.stage_id = s.id) l on true
  where p.name = 'links'
  order by s.id
$$;

create view public.link_counters with (security_invoker = true) as
select * from millrace_evidence.link_counters();
comment on view public.link_counters is
  'What each stage of the links has done since the beginning: attempts enqueued, started, '
  'succeeded, failed, of those tried again (retries) and given up (dead).';

create view public.link_queues with (security_invoker = true) as
select q.queue, q.ready, q.in_backoff, q.in_work, q.oldest_due_at
from millrace_evidence.link_queues() q
order by q.place;
comment on view public.link_queues is
  'What waits in each queue of the links, what is being tried again, and what is in work; ingest '
  'counts sources.';

-- Raw and staged pages are kept so many days, jobs and companies for ever. A call deletes 10,000
-- rows of a table at most, and passes over what somebody holds: the next one comes ten minutes
-- later.
create function public.delete_old_link_pages(p_days int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept record;
  v_count int;
  v_deleted int := 0;
begin
  for v_kept in
    select *
    from (values
      ('public.linkedin_jobs_raw'::regclass, 'fetched_at', p_days),
      ('public.linkedin_posts_raw', 'fetched_at', p_days),
      ('public.linkedin_jobs_stage', 'processed_at', p_days),
      ('public.linkedin_posts_stage', 'processed_at', p_days),
      -- Pages that no attempt has taken: a day is longer than any job is waited for.
      ('public.link_page_drafts', 'fetched_at', 1)) k(page_table, at, days)
  loop
    execute format('delete from %1$s where ctid = any (array(select ctid from %1$s where %2$I < $1 '
      'order by %2$I limit 10000 for update skip locked))', v_kept.page_table, v_kept.at)
    using millrace.now() - make_interval(days => v_kept.days);
    get diagnostics v_count = row_count;
    v_deleted := v_deleted + v_count;
  end loop;
  return v_deleted;
end
$$;
comment on function public.delete_old_link_pages(int) is
  'Deletes raw and staged pages of links after so many days, and returns how many. pg_cron calls '
  'it every ten minutes; to keep them longer, schedule links-delete-old-pages anew.';
revoke all on function public.delete_old_link_pages(int)
  from public, anon, authenticated, service_role;
select cron.schedule(
  'links-delete-old-pages', '*/10 * * * *',
  'select public.delete_old_link_pages(60) /* pruned by millrace */');

alter table public.link_page_drafts enable row level security;
revoke all on public.link_page_drafts, public.link_queues, public.link_counters
  from anon, authenticated, service_role;
grant select, delete on public.link_page_drafts to service_role;
grant select on public.link_queues, public.link_counters to service_role;
revoke all on function millrace_evidence.link_queues(), millrace_evidence.link_counters()
  from public, anon, authenticated;
grant execute on function millrace_evidence.link_queues(), millrace_evidence.link_counters()
  to service_role;
revoke all on function public.awaits_page(bigint), public.draft_link_page(bigint, text, jsonb),
  public.note_unknown_link(bigint), public.link_was_at(bigint, text[]),
  public.begin_where_rows_are(), public.check_link_address(),
  public.note_link_events(text, jsonb), public.apply_classified(jsonb),
  public.apply_drafts(regclass, jsonb), public.apply_scraped_jobs(jsonb),
  public.apply_scraped_posts(jsonb), public.apply_staged(jsonb), public.save_companies(jsonb),
  public.apply_extracted(jsonb)
  from public, anon, authenticated, service_role;
grant execute on function public.draft_link_page(bigint, text, jsonb),
  public.note_unknown_link(bigint)
  to service_role;
