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
