-- Embeddings: memos are found by what they mean, and the vectors stay true while memos change
--
-- A memo whose body changes is due. The pipeline `memos` then cuts the body into passages and asks
-- a model for the vector of each that is new. A passage is never updated: its vector is that of its
-- text for ever. Which passages a memo has changes in the transaction that completes its run. A
-- search shows only passages whose text still stands in the memo, of memos that the user sees.

create table public.memos (
  id uuid constraint memos_pkey primary key default gen_random_uuid(),
  account_id uuid not null,
  body text not null,
  revision int not null default 1,
  embed_at timestamptz,
  constraint memos_body_length check (octet_length(body) <= 400000)
);
-- The sweep looks for due rows every ten seconds.
create index memos_by_embed_at on public.memos (embed_at, id);
create index memos_by_account on public.memos (account_id);
comment on table public.memos is
  'Write the body: its passages follow. search_passages() finds them.';
comment on column public.memos.revision is 'Counts the changes of the body.';
comment on column public.memos.embed_at is
  'When the passages are to be made; null where they are as the body is.';

create function public.memo_is_due() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'INSERT' then
    new.revision := 1;
    new.embed_at := millrace.now();
  elsif new.body is distinct from old.body then
    new.revision := old.revision + 1;
    new.embed_at := millrace.now();
  end if;
  return new;
end
$$;
comment on function public.memo_is_due() is 'Makes a memo due when its body changes.';
create trigger memo_is_due before insert or update of body on public.memos
for each row execute function public.memo_is_due();

create table public.passages (
  memo_id uuid not null constraint passages_memo_fkey references public.memos on delete cascade,
  digest text not null,
  text text not null,
  is_current boolean not null default false,
  constraint passages_pkey primary key (memo_id, digest)
);
comment on table public.passages is
  'The pieces of memos with their vectors. Text and vector are inserted and deleted together, and '
  'never updated.';
comment on column public.passages.digest is 'A hash of the model and the text.';
comment on column public.passages.is_current is
  'Whether it is among the passages of the memo''s last completed run.';

-- The type of the vectors, and the search: by pgvector, which Supabase has. A server without it has
-- arrays, and compares all of them.
do $$
begin
  if exists (select from pg_available_extensions e where e.name = 'vector') then
    create schema if not exists extensions;
    create extension if not exists vector with schema extensions;
    alter table public.passages add column embedding extensions.vector(1536) not null;
    create index passages_by_embedding on public.passages
      using hnsw (embedding extensions.vector_cosine_ops) where is_current;
    create function public.search_passages(p_embedding extensions.vector, p_limit int default 10)
    returns table (memo_id uuid, passage text, similarity real)
    language sql stable
    set search_path = pg_catalog, pg_temp
    -- Goes on where rows of other accounts are nearest.
    set hnsw.iterative_scan = 'strict_order'
    as $search$
      select p.memo_id, p.text, (1 - (p.embedding operator(extensions.<=>) p_embedding))::real
      from public.passages p
      join public.memos m on m.id = p.memo_id and strpos(m.body, p.text) > 0
      where p.is_current
      order by p.embedding operator(extensions.<=>) p_embedding
      limit least(p_limit, 100)
    $search$;
  else
    alter table public.passages add column embedding real[] not null
      constraint passages_embedding_length check (cardinality(embedding) = 1536);
    create function public.search_passages(p_embedding real[], p_limit int default 10)
    returns table (memo_id uuid, passage text, similarity real)
    language sql stable
    set search_path = pg_catalog, pg_temp
    as $search$
      select p.memo_id, p.text, s.similarity
      from public.passages p
      join public.memos m on m.id = p.memo_id and strpos(m.body, p.text) > 0
      cross join lateral (
        select (sum(v.a * v.b) / sqrt(sum(v.a ^ 2) * sum(v.b ^ 2)))::real as similarity
        from unnest(p.embedding, p_embedding) v(a, b)) s
      where p.is_current
      order by s.similarity desc
      limit least(p_limit, 100)
    $search$;
  end if;
end
$$;
comment on function public.search_passages is
  'The passages nearest to a vector, among the memos that the caller sees. similarity: 1 for the '
  'same direction. p_limit: at most 100.';
comment on column public.passages.embedding is 'The vector of the text, by the model.';

-- What the stage asks and writes while it works.
-- Items: [{memo_id, revision, digest, text, embedding}].

create function public.lacking_passages(p_items jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object('memo_id', i.memo_id, 'digest', i.digest)), '[]')
  from jsonb_to_recordset(p_items) i(memo_id uuid, digest text)
  where not exists (
    select from public.passages p
    where p.memo_id = i.memo_id and p.digest = i.digest)
$$;
comment on function public.lacking_passages(jsonb) is
  'Which of these passages have no row yet: [{memo_id, digest}].';

create function public.keep_passages(p_items jsonb) returns jsonb
language sql
set search_path = pg_catalog, pg_temp
as $$
  with unchanged as (
    select m.id
    from public.memos m
    where (m.id, m.revision) in (
      select i.memo_id, i.revision
      from jsonb_to_recordset(p_items) i(memo_id uuid, revision int))
    order by m.id
    -- A change of the body waits for these rows. Who is changing one now is not waited for.
    for share skip locked
  ), kept as (
    insert into public.passages (memo_id, digest, text, embedding)
    select p.memo_id, p.digest, p.text, p.embedding
    from jsonb_populate_recordset(null::public.passages, p_items) p
    join unchanged u on u.id = p.memo_id
    order by p.memo_id, p.digest
    on conflict on constraint passages_pkey do nothing
  )
  select coalesce(jsonb_agg(u.id), '[]')
  from unchanged u
$$;
comment on function public.keep_passages(jsonb) is
  'Inserts passages of memos that are still at the revision they were cut from. Returns the ids of '
  'these memos.';

-- What the stage writes together with its completion. Items: [{attempt, run, entity_id, result}].

create function public.apply_passages(p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_memo uuid;
  v_digests text[];
  v_found int;
begin
  -- A memo that has changed since stays due, and its next run applies.
  for v_memo, v_digests in
    select m.id, array(select jsonb_array_elements_text(i #> '{result,passages}'))
    from jsonb_array_elements(p_items) i
    join public.memos m on m.id = (i ->> 'entity_id')::uuid
      and m.revision = (i #>> '{result,revision}')::int
    order by m.id
  loop
    delete from public.passages p
    where p.memo_id = v_memo and p.digest <> all (v_digests);
    update public.passages p
    set is_current = true
    where p.memo_id = v_memo and not p.is_current;
    select count(*) into v_found from public.passages p where p.memo_id = v_memo;
    if v_found <> cardinality(v_digests) then
      raise exception 'memo % has % of % passages', v_memo, v_found, cardinality(v_digests)
        using errcode = 'MR002', hint = 'Delete no row of passages; retry the run.';
    end if;
    update public.memos m set embed_at = null where m.id = v_memo;
  end loop;
end
$$;
comment on function public.apply_passages(jsonb) is
  'Replaces the passages of memos by those of their results.';
revoke all
  on function public.memo_is_due(), public.search_passages, public.lacking_passages(jsonb),
    public.keep_passages(jsonb), public.apply_passages(jsonb)
  from public, anon, authenticated, service_role;
grant execute on function public.search_passages to authenticated, service_role;
grant execute on function public.lacking_passages(jsonb), public.keep_passages(jsonb)
  to service_role;

alter table public.memos enable row level security;
create policy memos_of_own_account on public.memos for all to authenticated
  using (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid)
  with check (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid);
comment on policy memos_of_own_account on public.memos is
  'The account is the claim app_metadata.account_id of the user''s token, which users cannot write '
  'themselves.';
alter table public.passages enable row level security;
create policy passages_of_seen_memos on public.passages for select to authenticated
  using (is_current and exists (
    select from public.memos m
    where m.id = memo_id and strpos(m.body, text) > 0));
comment on policy passages_of_seen_memos on public.passages is
  'Whoever sees the memo sees its passages, and only what still stands in it.';

revoke all on public.memos, public.passages from anon, authenticated, service_role;
grant select, delete on public.memos to authenticated;
grant insert (account_id, body), update (body) on public.memos to authenticated;
grant select on public.passages to authenticated;
grant select, insert, update, delete on public.memos, public.passages to service_role;
