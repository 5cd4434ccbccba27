-- Articles: which of them are copies
--
-- Two addresses of one page, and one text at two addresses, have the same fingerprint. Whoever has
-- it first is the original; of the others, duplicate_of names it.

-- Says by what the same page is known again: without scheme, www, default port, fragment, last
-- slash and what tells where a reader came from (as clean-url.ts has it), its parameters sorted.
-- Null for null.
create function public.url_fingerprint(p_url text) returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := regexp_match(btrim(p_url), '^[a-z]+://([^/?#]*)([^?#]*)(?:\?([^#]*))?', 'i');
  v_query text;
begin
  if v_parts[3] <> '' then
    v_query := (
      select string_agg(g.pair, '&' order by g.pair collate "C")
      from regexp_split_to_table(v_parts[3], '&') g(pair)
      cross join lateral lower(split_part(g.pair, '=', 1)) n(name)
      where g.pair <> ''
        and n.name !~ '^(utm|pk|mtm|piwik|matomo)_'
        and n.name <> all (string_to_array(
          'fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid twclid ttclid igshid igsh '
          'mc_cid mc_eid mkt_tok oly_anon_id oly_enc_id vero_id wickedid _ga _gl _hsenc _hsmi '
          '__hssc __hstc __hsfp hsctatracking ref_src ref_url guccounter guce_referrer '
          'guce_referrer_sig cmpid ncid sr_share s_cid xtor spm at_medium at_campaign '
          'at_custom1 at_custom2', ' ')));
  end if;
  return 'url:' || encode(sha256(convert_to(
    regexp_replace(regexp_replace(lower(v_parts[1]), '^www\.', ''), ':(80|443)$', '')
      || rtrim(v_parts[2], '/') || coalesce('?' || v_query, ''), 'utf8')), 'hex');
end
$$;

-- Says by what the same text is known again, however it is set. Null for one too short to tell.
create function public.text_fingerprint(p_text text) returns text
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
  select case when length(w.words) >= 40
    then 'text:' || encode(sha256(convert_to(w.words, 'utf8')), 'hex') end
  -- Blanks first: replace() takes a twentieth of the pattern's time.
  from (
    select regexp_replace(replace(replace(replace(lower(p_text), ' ', ''), ',', ''), '.', ''),
      '[^[:alnum:]]+', '', 'g') as words) w
$$;

-- Says how an article's fingerprints begin: as they are once it is let in, else with its user's id.
create function public.fingerprint_scope(p_let_in boolean, p_added_by uuid) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when p_let_in then '' else p_added_by || ':' end
$$;

-- Gives a fingerprint to an article unless another holds it, and says which: the original, where
-- that is a copy itself. Waits for a transaction that is about to take the same one.
create function public.claim_fingerprint(p_fingerprint text, p_queue_id uuid) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_owner uuid;
begin
  while v_owner is null loop
    insert into public.article_fingerprint as f (fingerprint, queue_id)
    values (p_fingerprint, p_queue_id)
    on conflict on constraint article_fingerprint_pkey do nothing
    returning f.queue_id into v_owner;
    if v_owner is null then
      select coalesce(q.duplicate_of, f.queue_id) into v_owner
      from public.article_fingerprint f
      left join public.ingestion_queue q on q.id = f.queue_id
      where f.fingerprint = p_fingerprint;
    end if;
  end loop;
  return nullif(v_owner, p_queue_id);
end
$$;

-- Called by the apply function of fetch once it has written canonical_url and content: claims the
-- fingerprints of these articles, marks those that are copies, and returns them. What an article
-- that is not let in copies is named where the same user has added it.
create function public.claim_articles(p_queue_ids uuid[]) returns setof uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claims jsonb := (
    select coalesce(jsonb_agg(jsonb_build_object('id', q.id, 'known', g.known,
      'fingerprint', s.scope || g.known) order by s.scope || g.known, q.id), '[]')
    from public.ingestion_queue q
    cross join lateral (values (public.url_fingerprint(q.canonical_url)),
      (public.text_fingerprint(q.content))) g(known)
    cross join lateral public.fingerprint_scope(q.let_in, q.added_by) s(scope)
    where q.id = any (p_queue_ids) and g.known is not null);
begin
  -- In the order of the fingerprints, so that two batches never wait for each other in a circle.
  insert into public.article_fingerprint (fingerprint, queue_id)
  select c.fingerprint, c.id
  from jsonb_to_recordset(v_claims) c(id uuid, fingerprint text)
  on conflict on constraint article_fingerprint_pkey do nothing;
  update public.ingestion_queue q
  set text_fingerprint = f.fingerprint
  from public.article_fingerprint f
  where f.queue_id = q.id
    and q.id = any (p_queue_ids)
    and f.fingerprint =
      public.fingerprint_scope(q.let_in, q.added_by) || public.text_fingerprint(q.content)
    and q.text_fingerprint is distinct from f.fingerprint;
  if not exists (
      select
      from jsonb_to_recordset(v_claims) c(id uuid, known text, fingerprint text)
      join public.article_fingerprint f on f.fingerprint in (c.fingerprint, c.known)
      where f.queue_id <> c.id) then
    return;
  end if;
  -- Two that name each other as the original: the second must see what became of the first.
  perform pg_advisory_xact_lock(hashtextextended('public.claim_articles', 0));
  return query
  with met as materialized (
    select distinct on (c.id) c.id, coalesce(o.duplicate_of, o.id) as original, o.added_by
    from jsonb_to_recordset(v_claims) c(id uuid, known text, fingerprint text)
    join public.article_fingerprint f on f.fingerprint in (c.fingerprint, c.known)
    join public.ingestion_queue o on o.id = f.queue_id
    where c.id not in (o.id, coalesce(o.duplicate_of, o.id))
    order by c.id, o.created_at, o.id
  )
  update public.ingestion_queue q
  set is_copy = true,
    duplicate_of = case when q.let_in or m.added_by = q.added_by then m.original end
  from met m
  where q.id = m.id
    and not q.no_duplicate
    and not exists (
      select
      from met r
      where r.id = m.original and r.original = m.id and m.id < r.id)
  returning q.id;
end
$$;
comment on function public.claim_articles(uuid[]) is
  'Claims URL and text of fetched articles; marks those that are copies and returns their ids.';

revoke all on function public.url_fingerprint(text), public.text_fingerprint(text),
  public.fingerprint_scope(boolean, uuid), public.claim_fingerprint(text, uuid),
  public.claim_articles(uuid[])
  from public, anon, authenticated, service_role;
grant execute on function public.url_fingerprint(text) to service_role;
