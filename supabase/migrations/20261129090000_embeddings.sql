-- Embeddings: memos are found by what they mean, and the vectors stay true while memos change
--
-- A memo whose body changes is due. The pipeline `memos` then cuts the body into chunks and asks
-- a model for the vector of each that is new. A chunk is never updated: its vector is that of its
-- text for ever. Which chunks a memo has changes in the transaction that completes its run. A
-- search shows only chunks whose text still stands in the memo, of memos that the user sees.

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
  'Write the body: its chunks follow. search_memos() finds them.';
comment on column public.memos.revision is 'Counts the changes of the body.';
comment on column public.memos.embed_at is
  'When the chunks are to be made; null where they are as the body is.';

-- Makes a memo due when its body changes. The sweep starts the run, so the user's write waits for
-- nothing.
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

create table public.memo_chunks (
  memo_id uuid not null constraint memo_chunks_memo_fkey references public.memos on delete cascade,
  digest text not null,
  model text not null,
  text text not null,
  is_current boolean not null default false,
  constraint memo_chunks_pkey primary key (memo_id, digest)
  -- With room for is_current beside each row: a completion writes to no index of vectors.
) with (fillfactor = 50);
comment on table public.memo_chunks is
  'The pieces of memos with their vectors. Text and vector are inserted and deleted together, and '
  'never updated.';
comment on column public.memo_chunks.digest is 'A hash of the model and the text.';
comment on column public.memo_chunks.model is
  'The model that made the vector: a search compares the vectors of one model alone.';
comment on column public.memo_chunks.is_current is
  'Whether it is among the chunks of the memo''s last completed run.';

-- The type of the vectors, and the search: by pgvector, which Supabase has. A server without it has
-- arrays, and compares all of them.
do $$
begin
  if exists (select from pg_available_extensions e where e.name = 'vector') then
    create schema if not exists extensions;
    begin
      create extension if not exists vector with schema extensions;
    exception
      when insufficient_privilege then
        raise warning 'public.memo_chunks gets arrays: only a superuser may create pgvector here';
    end;
  end if;
  if to_regtype('extensions.vector') is not null then
    alter table public.memo_chunks add column embedding extensions.vector(1536) not null;
    create index memo_chunks_by_embedding on public.memo_chunks
      using hnsw (embedding extensions.vector_cosine_ops);
    create function public.search_memos(
      p_embedding extensions.vector, p_model text, p_limit int default 10)
    returns table (memo_id uuid, chunk text, similarity real)
    language plpgsql stable
    set search_path = pg_catalog, pg_temp
    set enable_seqscan = off
    -- Goes on where chunks that the caller may not see are nearest, until there are enough.
    set hnsw.iterative_scan = 'strict_order'
    set hnsw.max_scan_tuples = 2147483647
    set hnsw.scan_mem_multiplier = 1000
    as $search$
    begin
      -- The chunks of few memos are all compared: the index would pass those of others first.
      if (select count(*) from (select from public.memos limit 1001) m) <= 1000 then
        return query
        with seen as materialized (
          select p.memo_id, p.text, p.embedding operator(extensions.<=>) p_embedding as distance
          from public.memos m
          join public.memo_chunks p
            on p.memo_id = m.id and p.is_current and p.model = p_model
              and strpos(m.body, p.text) > 0
        )
        select s.memo_id, s.text, (1 - s.distance)::real
        from seen s
        order by s.distance
        limit least(p_limit, 100);
      else
        return query
        select p.memo_id, p.text, (1 - (p.embedding operator(extensions.<=>) p_embedding))::real
        from public.memo_chunks p
        join public.memos m on m.id = p.memo_id and strpos(m.body, p.text) > 0
        where p.is_current and p.model = p_model
        order by p.embedding operator(extensions.<=>) p_embedding
        limit least(p_limit, 100);
      end if;
    end
    $search$;
  else
    alter table public.memo_chunks add column embedding real[] not null
      constraint memo_chunks_embedding_length check (cardinality(embedding) = 1536);
    create function public.search_memos(
      p_embedding real[], p_model text, p_limit int default 10)
    returns table (memo_id uuid, chunk text, similarity real)
    language sql stable
    set search_path = pg_catalog, pg_temp
    as $search$
      select p.memo_id, p.text, s.similarity
      from public.memo_chunks p
      join public.memos m on m.id = p.memo_id and strpos(m.body, p.text) > 0
      cross join lateral (
        select (sum(v.a * v.b) / sqrt(sum(v.a ^ 2) * sum(v.b ^ 2)))::real as similarity
        from unnest(p.embedding, p_embedding) v(a, b)) s
      where p.is_current and p.model = p_model
      order by s.similarity desc
      limit least(p_limit, 100)
    $search$;
  end if;
end
$$;
comment on function public.search_memos is
  'The chunks nearest to a vector of p_model, among the memos that the caller sees. similarity: 1 '
  'for the same direction. p_limit: at most 100.';
comment on column public.memo_chunks.embedding is 'The vector of the text, by the model.';

-- Returns those of the chunks [{memo_id, digest}] that have no row, as one value: the Data API cuts
-- off rows behind the thousandth.
create function public.lacking_chunks(p_items jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object('memo_id', i.memo_id, 'digest', i.digest)), '[]')
  from jsonb_to_recordset(p_items) i(memo_id uuid, digest text)
  where not exists (
    select from public.memo_chunks p
    where p.memo_id = i.memo_id and p.digest = i.digest)
$$;
comment on function public.lacking_chunks(jsonb) is
  'Which of these chunks have no row yet: [{memo_id, digest}].';

-- Inserts chunks [{memo_id, revision, digest, model, text, embedding}] of memos still at that
-- revision, and returns the ids of these memos. A worker that lost its lease writes nothing so.
create function public.keep_chunks(p_items jsonb) returns jsonb
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
    -- A change of the body waits until the chunks stand. A memo that is being changed is skipped.
    for share skip locked
  ), kept as (
    insert into public.memo_chunks (memo_id, digest, model, text, embedding)
    select p.memo_id, p.digest, p.model, p.text, p.embedding
    from jsonb_populate_recordset(null::public.memo_chunks, p_items) p
    join unchanged u on u.id = p.memo_id
    order by p.memo_id, p.digest
    on conflict on constraint memo_chunks_pkey do nothing
  )
  select coalesce(jsonb_agg(u.id), '[]')
  from unchanged u
$$;
comment on function public.keep_chunks(jsonb) is
  'Inserts chunks of memos that are still at the revision they were cut from. Returns the ids of '
  'these memos.';

-- Replaces the chunks of memos in the transaction that completes their runs. A memo that has
-- changed since stays due. p_items: [{attempt, run, entity_id, result}].
create function public.apply_memo_chunks(p_items jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_memo uuid;
  v_digests text[];
  v_found int;
begin
  for v_memo, v_digests in
    select m.id, array(select jsonb_array_elements_text(i #> '{result,chunks}'))
    from jsonb_array_elements(p_items) i
    join public.memos m on m.id = (i ->> 'entity_id')::uuid
      and m.revision = (i #>> '{result,revision}')::int
    order by m.id
  loop
    delete from public.memo_chunks p
    where p.memo_id = v_memo and p.digest <> all (v_digests);
    update public.memo_chunks p
    set is_current = true
    where p.memo_id = v_memo and not p.is_current;
    select count(*) into v_found from public.memo_chunks p where p.memo_id = v_memo;
    if v_found <> cardinality(v_digests) then
      raise exception 'memo % has % of % chunks', v_memo, v_found, cardinality(v_digests)
        using errcode = 'MR002', hint = 'Delete no row of memo_chunks; retry the run.';
    end if;
    update public.memos m set embed_at = null where m.id = v_memo;
  end loop;
end
$$;
comment on function public.apply_memo_chunks(jsonb) is
  'Replaces the chunks of memos by those of their results.';
revoke all
  on function public.memo_is_due(), public.search_memos, public.lacking_chunks(jsonb),
    public.keep_chunks(jsonb), public.apply_memo_chunks(jsonb)
  from public, anon, authenticated, service_role;
grant execute on function public.search_memos to authenticated, service_role;
grant execute on function public.lacking_chunks(jsonb), public.keep_chunks(jsonb)
  to service_role;

alter table public.memos enable row level security;
create policy memos_of_own_account on public.memos for all to authenticated
  using (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid)
  with check (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid);
comment on policy memos_of_own_account on public.memos is
  'The account is the claim app_metadata.account_id of the user''s token, which users cannot write '
  'themselves.';
alter table public.memo_chunks enable row level security;
create policy memo_chunks_of_seen_memos on public.memo_chunks for select to authenticated
  using (is_current and exists (
    select from public.memos m
    where m.id = memo_id and strpos(m.body, text) > 0));
comment on policy memo_chunks_of_seen_memos on public.memo_chunks is
  'Whoever sees the memo sees its chunks, and only what still stands in it.';

revoke all on public.memos, public.memo_chunks from anon, authenticated, service_role;
grant select, delete on public.memos to authenticated;
grant insert (account_id, body), update (body) on public.memos to authenticated;
grant select on public.memo_chunks to authenticated;
grant select, insert, update, delete on public.memos, public.memo_chunks to service_role;
