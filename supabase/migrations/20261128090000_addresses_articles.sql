-- Articles: pages are known by the canonical form of their address, and sources may be JSON feeds

alter table public.source drop constraint source_kind_known;
alter table public.source add constraint source_kind_known
  check (kind in ('rss', 'rdf', 'atom', 'json', 'sitemap', 'sitemap_index'));

-- Says by what the same page is known again: its canonical address, whatever the scheme. Null for
-- what is no web address.
create or replace function public.url_fingerprint(p_url text) returns text
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
  select 'url:' || encode(sha256(convert_to(
    regexp_replace(substr(public.canonical_address(p_url), 9), '^([^/?#]*)/(?=$|[?#])', '\1'),
    'utf8')), 'hex')
$$;

-- Claims the fingerprints that the form gives to articles which are no copies: of two that have the
-- same one now, the older has it. The former ones stay, so that nothing is found anew.
insert into public.article_fingerprint (fingerprint, queue_id)
select distinct on (f.fingerprint) f.fingerprint, q.id
from public.ingestion_queue q
cross join lateral (values (q.url), (q.canonical_url)) u(url)
cross join lateral public.fingerprint_scope(q.let_in, q.added_by) s(scope)
cross join lateral (select s.scope || public.url_fingerprint(u.url)) f(fingerprint)
where not q.is_copy and f.fingerprint is not null
order by f.fingerprint, q.created_at, q.id
on conflict on constraint article_fingerprint_pkey do nothing;

update public.ingestion_queue q
set url_fingerprint = null
where q.url_fingerprint is distinct from
  public.fingerprint_scope(q.let_in, q.added_by) || public.url_fingerprint(q.url)
  and q.url_fingerprint is not null;
update public.ingestion_queue q
set url_fingerprint = f.fingerprint
from public.article_fingerprint f
where f.queue_id = q.id
  and q.url_fingerprint is null
  and f.fingerprint =
    public.fingerprint_scope(q.let_in, q.added_by) || public.url_fingerprint(q.url);

-- The younger of two keeps its row, its text and its place, and names the older as the original.
update public.ingestion_queue q
set is_copy = true, duplicate_of = o.id
from public.article_fingerprint f, public.ingestion_queue o
where f.fingerprint =
    public.fingerprint_scope(q.let_in, q.added_by) || public.url_fingerprint(q.url)
  and o.id = f.queue_id
  and o.id <> q.id
  and o.duplicate_of is null
  and not q.is_copy
  and not q.no_duplicate
  and (o.created_at, o.id) < (q.created_at, q.id);
