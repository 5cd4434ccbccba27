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
