-- Links: they are known by the canonical form of their address, and companies by a better key
--
-- Rows that become equal are merged: the one that got furthest, then a living one, then the oldest,
-- is kept, and what the others had goes over to it. What has no place there stands in its event
-- link.merged. The engine ends the runs of the others with their rows.

-- Tells the one spelling of an address, by which links are told apart: that of a posting where a
-- known board has it under several. What is no web address comes back without blanks around it.
create or replace function public.canonical_url(p_text text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_url text := public.canonical_address(p_text);
  v_parts text[] := regexp_match(v_url, '^https://([^/?#]+)([^?#]*)\??([^#]*)');
begin
  return case
    when v_url is null then btrim(p_text, E' \t\r\n')
    else coalesce(
      public.board_url(v_parts[1], rtrim(v_parts[2], '/'), v_parts[3]), v_url)
  end;
end
$$;

-- Writes the address of a posting at a known board from its id; null for any other address. Boards
-- serve a posting in mails (/comm/) and in other sites' pages (/embed/) too.
create or replace function public.board_url(p_host text, p_path text, p_query text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text := regexp_replace(p_path, '^/(comm|embed)(?=/)', '');
  v_id text;
  v_parts text[];
begin
  case p_host
    when 'www.linkedin.com' then
      v_id := coalesce(
        substring(v_path from '^/jobs/view/(?:[^/]*-)?(\d{5,})(?:/|$)'),
        substring(v_path from '^/jobs-guest/jobs/api/jobPosting/(\d{5,})'),
        substring(p_query from '(?:^|&)currentJobId=(\d{5,})'));
      if v_id is not null and v_path ~ '^/jobs(-guest)?(/|$)' then
        return 'https://www.linkedin.com/jobs/view/' || v_id;
      end if;
      v_id := coalesce(
        'activity:' || substring(v_path from '^/posts/\S*[-_]activity-(\d{5,})'),
        substring(replace(v_path, '%3A', ':')
          from '^/feed/update/urn:li:((?:activity|share|ugcPost):\d{5,})'));
      return 'https://www.linkedin.com/feed/update/urn:li:' || v_id;
    when 'www.indeed.com' then
      v_id := substring(p_query from '(?:^|&)(?:jk|vjk)=([0-9a-fA-F]+)');
      return 'https://www.indeed.com/viewjob?jk=' || lower(v_id);
    when 'boards.greenhouse.io', 'boards.eu.greenhouse.io' then
      if v_path = '/job_app' then
        v_parts := array[substring(p_query from '(?:^|&)for=([^&]+)'),
          substring(p_query from '(?:^|&)token=(\d+)')];
        return 'https://' || p_host || '/' || v_parts[1] || '/jobs/' || v_parts[2];
      end if;
      return 'https://' || p_host || substring(p_path from '^(/[^/]+/jobs/\d+)');
    when 'jobs.lever.co', 'jobs.eu.lever.co', 'jobs.ashbyhq.com' then
      return 'https://' || p_host || substring(lower(p_path) from '^(/[^/]+/[0-9a-f-]{36})');
    else
      return null;
  end case;
end
$$;

-- Folds a company's name, so that one that is written twice is one company: without its legal form,
-- which may have several parts (GmbH & Co. KG, GmbH und Co. KG). The signs of C++ and C# stay, and
-- a name of nothing but signs is itself.
create or replace function public.company_key(p_name text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    nullif(btrim(regexp_replace(
      regexp_replace(n.name,
        '([\s,.&+]+((and|und|et|y)\s+)?(inc|llc|ltd|limited|gmbh|mbh|ag|se|plc|corp|corporation'
          || '|co|kg|kgaa|ohg|ug|s\.?a|b\.?v|oy|ab|as))+\.?$', ''),
      '((?<![[:alnum:]+#])[+#]+|[+#]+(?=[[:alnum:]])|[^[:alnum:]+#]+)+', ' ', 'g')), ''),
    n.name)
  from (select btrim(lower(normalize(p_name, nfkc))) as name) n
$$;

alter table public.link_events add column details jsonb;
comment on column public.link_events.details is
  'Of link.merged: the rows that were merged into this link, as they were.';
alter table public.link_events drop constraint link_events_event_known;
alter table public.link_events add constraint link_events_event_known check (
  event in ('link.new', 'link.classified', 'link.merged', 'raw.persisted', 'staged.persisted'));
alter table public.companies add column merged jsonb;
comment on column public.companies.merged is
  'Companies that were merged into this one when names were folded further, as they were.';

-- Merges links whose addresses have become one. Returns how many rows went into others.
create function public.merge_links() returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_merged int;
  v_job bigint;
begin
  create temp table merged_links on commit drop as
  select m.id, m.kept
  from (
    select l.id, first_value(l.id) over (
      partition by public.canonical_url(l.raw_url)
      order by (exists (select from public.jobs j where j.link_id = l.id)) desc,
        (exists (select from public.linkedin_jobs_stage t where t.link_id = l.id)) desc,
        (exists (select from public.linkedin_posts_stage t where t.link_id = l.id)) desc,
        l.classified_by = 'person' desc nulls last, l.status = 'dead', l.id) as kept
    from public.linkedin_links l) m
  where m.id <> m.kept;
  update public.jobs j
  set link_id = m.kept
  from pg_temp.merged_links m
  where j.link_id = m.id
    and m.id = (
      select min(o.id)
      from pg_temp.merged_links o
      join public.jobs other on other.link_id = o.id
      where o.kept = m.kept)
    and not exists (select from public.jobs k where k.link_id = m.kept);
  insert into public.link_events (link_id, event, trace_id, at, details)
  select m.kept, 'link.merged', l.trace_id, millrace.now(), jsonb_strip_nulls(jsonb_build_object(
    'link', to_jsonb(l), 'jobs_raw', to_jsonb(jr), 'posts_raw', to_jsonb(pr),
    'jobs_stage', to_jsonb(js), 'posts_stage', to_jsonb(ps), 'job', to_jsonb(j),
    -- The engine holds a link's history to a chain of moves, in which another's has no place.
    'history', (
      select jsonb_agg(to_jsonb(h) order by h.id)
      from public.link_history h
      where h.link_id = m.id)))
  from pg_temp.merged_links m
  join public.linkedin_links l on l.id = m.id
  left join public.linkedin_jobs_raw jr on jr.link_id = m.id
  left join public.linkedin_posts_raw pr on pr.link_id = m.id
  left join public.linkedin_jobs_stage js on js.link_id = m.id
  left join public.linkedin_posts_stage ps on ps.link_id = m.id
  left join public.jobs j on j.link_id = m.id
  order by m.id;
  update public.jobs k
  set company_id = coalesce(k.company_id, o.company_id),
    location = coalesce(k.location, o.location),
    salary = coalesce(k.salary, o.salary),
    jd = coalesce(k.jd, o.jd),
    application_url = coalesce(k.application_url, o.application_url),
    valid_through = coalesce(k.valid_through, o.valid_through)
  from (
    select m.kept, min(j.company_id) as company_id, min(j.location) as location,
      min(j.salary) as salary, min(j.jd) as jd, min(j.application_url) as application_url,
      max(j.valid_through) as valid_through
    from pg_temp.merged_links m
    join public.jobs j on j.link_id = m.id
    group by m.kept) o
  where k.link_id = o.kept;
  for v_job in
    select j.id
    from pg_temp.merged_links m
    join public.jobs j on j.link_id = m.id
  loop
    begin
      delete from public.jobs j where j.id = v_job;
    exception
      -- A table of the user's refers to this job: it stays, without a link.
      when foreign_key_violation then
        null;
    end;
  end loop;
  update public.link_events e
  set link_id = m.kept
  from pg_temp.merged_links m
  where e.link_id = m.id;
  delete from public.linkedin_links l
  using pg_temp.merged_links m
  where l.id = m.id;
  get diagnostics v_merged = row_count;
  return v_merged;
end
$$;

-- Merges companies whose keys have become one: what the oldest does not say of itself, the others
-- do. Returns how many rows went into others.
create function public.merge_companies() returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_merged int;
begin
  create temp table merged_companies on commit drop as
  select m.id, m.kept
  from (
    select c.id, first_value(c.id) over (
      partition by public.company_key(c.name) order by c.id) as kept
    from public.companies c) m
  where m.id <> m.kept;
  update public.companies k
  set website = coalesce(k.website, o.website),
    linkedin_url = coalesce(k.linkedin_url, o.linkedin_url),
    size = coalesce(k.size, o.size),
    sector = coalesce(k.sector, o.sector),
    merged = o.rows
  from (
    select m.kept, jsonb_agg(to_jsonb(c) order by c.id) as rows,
      (array_agg(c.website order by c.id) filter (where c.website is not null))[1] as website,
      (array_agg(c.linkedin_url order by c.id) filter (where c.linkedin_url is not null))[1]
        as linkedin_url,
      (array_agg(c.size order by c.id) filter (where c.size is not null))[1] as size,
      (array_agg(c.sector order by c.id) filter (where c.sector is not null))[1] as sector
    from pg_temp.merged_companies m
    join public.companies c on c.id = m.id
    group by m.kept) o
  where k.id = o.kept;
  update public.jobs j
  set company_id = m.kept
  from pg_temp.merged_companies m
  where j.company_id = m.id;
  delete from public.companies c
  using pg_temp.merged_companies m
  where c.id = m.id;
  get diagnostics v_merged = row_count;
  return v_merged;
end
$$;

select public.merge_links(), public.merge_companies();
drop function public.merge_links();
drop function public.merge_companies();

-- A stored column keeps what it was made as until its source is written.
alter table public.linkedin_links disable trigger user;
update public.linkedin_links l
set raw_url = l.raw_url
where l.canonical_url <> public.canonical_url(l.raw_url);
alter table public.linkedin_links enable trigger user;
update public.companies c
set name = c.name
where c.name_key <> public.company_key(c.name);
