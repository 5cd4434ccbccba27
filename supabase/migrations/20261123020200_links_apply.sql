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

create view public.link_queues with (security_invoker = true) as
select q.queue, q.ready, q.in_backoff, q.in_work, q.oldest_due_at
from millrace_evidence.link_queues() q
order by q.place;
comment on view public.link_queues is
  'What waits in each queue of the links, what is being tried again, and what is in work; ingest '
  'counts sources.';

alter table public.link_page_drafts enable row level security;
revoke all on public.link_page_drafts, public.link_queues
  from anon, authenticated, service_role;
grant select, delete on public.link_page_drafts to service_role;
grant select on public.link_queues to service_role;
revoke all on function millrace_evidence.link_queues() from public, anon, authenticated;
grant execute on function millrace_evidence.link_queues() to service_role;
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
