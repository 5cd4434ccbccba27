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
  -- Whoever still writes the old column, while it is there, means the code that it stands for.
  if new.status_code is null and to_jsonb(new) ->> 'status' is null then
    new.status_code :=
      case new.entry_type when 'discovered' then 100 else public.article_entry_code(new) end;
  end if;
  -- The text first, as claim_articles() has it: so the two never wait for each other in a circle.
  new.text_fingerprint := public.text_fingerprint(new.content);
  if new.text_fingerprint is not null then
    v_copied := public.claim_fingerprint(new.text_fingerprint, new.id);
    new.text_fingerprint := case when v_copied is null then new.text_fingerprint end;
  end if;
  new.url_fingerprint := public.url_fingerprint(new.url);
  if new.url_fingerprint is not null then
    new.duplicate_of := public.claim_fingerprint(new.url_fingerprint, new.id);
    new.url_fingerprint := case when new.duplicate_of is null then new.url_fingerprint end;
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

revoke all on function public.article_entry_code(public.ingestion_queue),
  public.article_lacks(public.ingestion_queue), public.enter_article(), public.check_claims()
  from public, anon, authenticated, service_role;
