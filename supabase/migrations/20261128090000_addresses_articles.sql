-- Articles: sources may be JSON feeds

alter table public.source drop constraint source_kind_known;
alter table public.source add constraint source_kind_known
  check (kind in ('rss', 'rdf', 'atom', 'json', 'sitemap', 'sitemap_index'));
