-- Articles: what people change in them, and what of it the history tells

-- Lets people edit the text at 320 alone, and collects the old and new of what differs since then
-- for the history. The stages' apply functions, which run as the tables' owner, write before 300.
create function public.edit_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old jsonb := jsonb_build_object('title', old.title, 'summary', old.summary, 'tags', old.tags,
    'thumbnail_url', old.thumbnail_url);
  v_new jsonb := jsonb_build_object('title', new.title, 'summary', new.summary, 'tags', new.tags,
    'thumbnail_url', new.thumbnail_url);
  v_fields text := (
    select string_agg(n.key, ', ' order by n.key)
    from jsonb_each(v_new) n
    where n.value is distinct from v_old -> n.key);
  v_emptied text := (
    select string_agg(n.key, ', ' order by n.key)
    from jsonb_each(v_new) n
    where n.value is distinct from v_old -> n.key
      and coalesce(btrim(n.value #>> '{}', E' []\n\t'), '') = '');
  v_owned boolean := (
    select pg_has_role(current_user, c.relowner, 'usage')
    from pg_class c
    where c.oid = tg_relid);
begin
  if old.status_code is distinct from 320 then
    if v_owned and (old.status_code between 300 and 499) is not true then
      return new;
    end if;
    raise exception '% of article % was edited at %', v_fields, old.id, coalesce((
        select format('%s (%s)', l.code, l.name)
        from public.status_lookup l
        where l.code = old.status_code), old.status_code::text, 'no code')
      using errcode = 'MR005',
        hint = case
          when old.status_code = 300 then 'Write 310, then 320, and edit then.'
          when old.status_code in (310, 400, 410) then 'Write 320 first, and edit then.'
          else 'title, summary, tags and thumbnail_url are edited at 320 alone: during the review '
            'or, of a published article, after writing 320.'
        end;
  elsif v_emptied is not null then
    raise exception '% of article % was emptied', v_emptied, old.id
      using errcode = 'MR005',
        hint = 'Write what it should be; to end the edit write 310, or 400 where it is published.';
  end if;
  new.status_changes := (
    select jsonb_object_agg(f.key, jsonb_build_object('old', f.was, 'new', f.now))
    from (
      select n.key, n.value as now, case when old.status_changes ? n.key
        then old.status_changes #> array[n.key, 'old'] else v_old -> n.key end as was
      from jsonb_each(v_new) n) f
    where f.now is distinct from f.was);
  new.revision := old.revision + 1;
  return new;
end
$$;
create trigger ingestion_queue_1_edit
  before update of title, summary, tags, thumbnail_url on public.ingestion_queue
  for each row
  when (old.title is distinct from new.title or old.summary is distinct from new.summary
    or old.tags is distinct from new.tags or old.thumbnail_url is distinct from new.thumbnail_url)
  execute function public.edit_article();

-- Prepares an article for its next code: an edit that is discarded (400) takes its text back, what
-- changed belongs to the code after 320 alone, and what had ended and begins again is a retry. An
-- article that was 410 becomes 410 again: saved as it was, since its last edit may not be on the
-- site yet.
create function public.move_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lacks text := concat_ws(', ', case when new.summary is null then 'summary' end,
    case when new.tags is null then 'tags' end,
    case when new.thumbnail_url is null then 'thumbnail_url' end);
begin
  if old.status_code = 320 and new.status_code = 400 then
    new := jsonb_populate_record(new, coalesce((
      select jsonb_object_agg(c.key, c.value -> 'old')
      from jsonb_each(new.status_changes) c), '{}'));
    new.status_changes := null;
    new.status_code := case
      when (
          select h.from_status
          from public.status_history h
          where h.queue_id = new.id and h.to_status = 320
          order by h.id desc
          limit 1) = 410 then 410
      else 400
    end;
  elsif old.status_code is distinct from 320 then
    new.status_changes := null;
  end if;
  if old.status_code in (500, 540) and new.status_code = 300 and v_lacks <> '' then
    raise exception '300 needs summary, tags, thumbnail_url: article % at % lacks %', new.id,
      old.status_code, v_lacks
      using errcode = 'MR005',
        hint = 'Begin it earlier: write 110, or the code of the step that makes what it lacks.';
  elsif old.status_code >= 500 and new.status_code < 500 then
    new.entry_type := 'retry';
    new.no_duplicate := new.no_duplicate or old.status_code = 520;
    new.duplicate_of := null;
    new.is_copy := false;
  end if;
  return new;
end
$$;
create trigger ingestion_queue_2_move before update of status_code on public.ingestion_queue
  for each row
  when (old.status_code is distinct from new.status_code
    and (320 in (old.status_code, new.status_code) or old.status_code >= 500
      or old.status_changes is not null))
  execute function public.move_article();

-- Refuses to fetch what has no address: it would end at 510, from where nothing leads on. What
-- waits at a gate goes past the fetch by itself.
create function public.refuse_fetch() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'article % has no url that could be fetched', old.id
    using errcode = 'MR005',
      hint = 'Write the code of a later step, such as 120 or 210: only what has a url is fetched.';
end
$$;
create trigger ingestion_queue_2_fetch before update of status_code on public.ingestion_queue
  for each row
  when (new.status_code = 110 and new.url is null and old.status_code not in (100, 110, 111, 200))
  execute function public.refuse_fetch();

-- Refuses what would make the history untrue: another first entry, and the removal of an article
-- that somebody is reviewing.
create function public.keep_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'article % is under review (%)', old.id, old.status_code
      using errcode = 'MR005',
        hint = 'Put it back (300) or reject it (540); it can be deleted then.';
  end if;
  raise exception 'entered_as of article % was changed from % to %',
    old.id, old.entered_as, coalesce(new.entered_as, 'null')
    using errcode = 'MR005',
      hint = 'Leave it alone: it says how the article entered first.';
end
$$;
create trigger ingestion_queue_3_entered before update of entered_as on public.ingestion_queue
  for each row when (old.entered_as is distinct from new.entered_as)
  execute function public.keep_article();
create trigger ingestion_queue_4_delete before delete on public.ingestion_queue
  for each row when (old.status_code in (310, 320))
  execute function public.keep_article();

-- Refuses that a person approves what has no title: a publication has one. Whoever approves past
-- this trigger (the tables' owner, and a decision through millrace_decide) hears of it at 500.
create function public.approve_article() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if (
      select pg_has_role(current_user, c.relowner, 'usage')
      from pg_class c
      where c.oid = tg_relid) then
    return new;
  end if;
  raise exception 'article % was approved without a title', old.id
    using errcode = 'MR005', hint = 'Write 320 and its title, then 330.';
end
$$;
create trigger ingestion_queue_5_approve before update of status_code on public.ingestion_queue
  for each row
  when (old.status_code in (310, 320) and new.status_code = 330
    and coalesce(btrim(new.title), '') = '')
  execute function public.approve_article();

-- Lets an article in once a curator has approved it: from now on its address and its text are
-- known, but for what another article has had before.
create function public.let_article_in() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  new.let_in := true;
  insert into public.article_fingerprint (fingerprint, queue_id)
  select distinct g.known, new.id
  from (values (public.url_fingerprint(new.url)), (public.url_fingerprint(new.canonical_url)),
    (public.text_fingerprint(new.content))) g(known)
  where g.known is not null
  order by g.known
  on conflict on constraint article_fingerprint_pkey do nothing;
  return new;
end
$$;
create trigger ingestion_queue_6_let_in before update of status_code on public.ingestion_queue
  for each row when (new.status_code = 330 and not old.let_in)
  execute function public.let_article_in();

-- Carries the edit of a published article: opens it (320), writes the fields that differ and saves
-- it (410). Returns the id of the history row, or null when nothing differs. The name counts for
-- the project's own key and the owner alone; a signed-in curator acts under the token's name.
create function public.track_publication_edit(
  p_publication_id uuid, p_queue_id uuid, p_old jsonb, p_new jsonb, p_changed_by text
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_actor text := coalesce(current_setting('millrace.actor', true), '');
  v_article public.ingestion_queue;
  v_edited public.ingestion_queue;
  v_new jsonb := (
    select coalesce(jsonb_object_agg(n.key, n.value), '{}')
    from jsonb_each(p_new) n
    where n.value is distinct from p_old -> n.key);
  v_unknown text := (
    select string_agg(k.key, ', ' order by k.key)
    from jsonb_object_keys(v_new) k(key)
    where k.key not in ('title', 'summary', 'tags', 'thumbnail_url'));
begin
  if v_unknown is not null then
    raise exception '% is no field of a publication that people edit', v_unknown
      using errcode = 'MR002', hint = 'Give title, summary, tags or thumbnail_url.';
  end if;
  select q.* into v_article
  from public.ingestion_queue q
  join public.publication p on p.queue_id = q.id and p.id = p_publication_id
  where q.id = p_queue_id
  for update of q;
  if not found then
    raise exception 'there is no publication % of an article % that you may edit',
      p_publication_id, p_queue_id
      using errcode = 'MR003', hint = 'Give publication.id and publication.queue_id of one row.';
  elsif v_article.status_code not in (400, 410) then
    raise exception 'article % is not published, or somebody is editing it: it is %',
      p_queue_id, v_article.status_code
      using errcode = 'MR005', hint = 'Wait until it is 400 or 410, then call this again.';
  end if;
  v_edited := jsonb_populate_record(v_article, v_new);
  if (v_edited.title, v_edited.summary, v_edited.tags, v_edited.thumbnail_url) is not distinct from
      (v_article.title, v_article.summary, v_article.tags, v_article.thumbnail_url) then
    return null;
  end if;
  perform set_config('millrace.actor', p_changed_by, true);
  update public.ingestion_queue q set status_code = 320 where q.id = p_queue_id;
  update public.ingestion_queue q
  set title = v_edited.title, summary = v_edited.summary, tags = v_edited.tags,
    thumbnail_url = v_edited.thumbnail_url
  where q.id = p_queue_id;
  update public.ingestion_queue q set status_code = 410 where q.id = p_queue_id;
  perform set_config('millrace.actor', v_actor, true);
  return (
    select h.id
    from public.status_history h
    where h.queue_id = p_queue_id
      and h.from_status = 320
      and h.to_status = 410
    order by h.id desc
    limit 1);
end
$$;
comment on function public.track_publication_edit(uuid, uuid, jsonb, jsonb, text) is
  'Saves an edit of a published article (400, 410) with its history; null when nothing differs.';

create view public.publication_edit_history with (security_invoker = true) as
select p.id as publication_id, h.queue_id, h.id as history_id, h.changed_at, h.changed_by,
  h.changes as field_changes
from public.status_history h
join public.publication p on p.queue_id = h.queue_id
where h.from_status = 320 and h.to_status = 410 and h.changes is not null;
comment on view public.publication_edit_history is
  'What people changed in published articles: {"title": {"old": …, "new": …}}.';

revoke all on public.publication_edit_history from anon, authenticated, service_role;
revoke all on function public.edit_article(), public.move_article(), public.refuse_fetch(),
  public.keep_article(), public.approve_article(), public.let_article_in(),
  public.track_publication_edit(uuid, uuid, jsonb, jsonb, text)
  from public, anon, authenticated, service_role;
grant select on public.publication_edit_history to authenticated, service_role;
grant execute on function public.track_publication_edit(uuid, uuid, jsonb, jsonb, text)
  to authenticated, service_role;
