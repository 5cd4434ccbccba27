-- Documents: a file of any kind becomes a text, chunks of it, and a small knowledge graph
--
-- `documents` runs over a document in three phases, and `chunks` over each of its chunks. The file lies in the bucket
-- `documents` of Storage, in the folder of its organisation; its text goes to `extracted_text`, as DOCUMENT_ID.txt, and only
-- its location passes between phases. `document_monolith`, the old way, does all of it in one call.
--
-- An organisation sees its own documents alone, and what was made of them. Its users write the inputs and the statuses (to
-- 'queued'), never a result. The organisation is the claim org_id of the user's token, as Clerk gives it.

create function public.clerk_org_id() returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(auth.jwt() ->> 'org_id', auth.jwt() #>> '{o,id}', auth.jwt() #>> '{app_metadata,clerk_org_id}')
$$;
comment on function public.clerk_org_id() is 'The organisation of the signed-in user: the claim org_id of a Clerk token (o.id in its second version), else app_metadata.clerk_org_id.';
revoke all on function public.clerk_org_id() from public, anon, authenticated, service_role;
grant execute on function public.clerk_org_id() to authenticated, service_role;

create table public.document (
  id uuid constraint document_pkey primary key default gen_random_uuid(),
  source_path text not null,
  metadata jsonb not null default '{}' constraint document_metadata_is_object check (jsonb_typeof(metadata) = 'object'),
  clerk_org_id text not null generated always as (metadata ->> 'clerk_org_id') stored,
  created_at timestamptz not null default now(),
  reading text generated always as (
    case when coalesce(extraction_result, monolith_result) ? 'partly_read' then 'partly'
      when coalesce(extraction_result, monolith_result) is not null then 'whole' end) stored,

  extraction_status text not null default 'pending',
  extraction_job_id text,
  extraction_result jsonb,
  extraction_error text,
  extraction_retry_count int not null default 0,
  extraction_started_at timestamptz,
  extraction_completed_at timestamptz,

  chunking_status text not null default 'pending',
  chunking_job_id text,
  chunking_result jsonb,
  chunking_error text,
  chunking_retry_count int not null default 0,
  chunking_started_at timestamptz,
  chunking_completed_at timestamptz,

  kg_ingest_status text not null default 'pending',
  kg_ingest_job_id text,
  kg_ingest_result jsonb,
  kg_ingest_error text,
  kg_ingest_retry_count int not null default 0,
  kg_ingest_started_at timestamptz,
  kg_ingest_completed_at timestamptz,

  monolith_status text not null default 'pending',
  monolith_job_id text,
  monolith_result jsonb,
  monolith_error text,
  monolith_retry_count int not null default 0,
  monolith_started_at timestamptz,
  monolith_completed_at timestamptz,

  -- Only on what people write. A path is no longer than Storage takes; metadata goes out with each document that is claimed.
  constraint document_source_path_length check (octet_length(source_path) <= 1024),
  constraint document_metadata_length check (octet_length(metadata::text) <= 65536),
  constraint document_org_form check (clerk_org_id ~ '^[A-Za-z0-9_-]{1,100}$'),
  -- The functions read Storage with the rights of the project: a path must not lead them into another organisation's folder. It
  -- becomes part of a URL, so it has no character that a URL reads as something else: no %, \, ?, # and none that is invisible.
  constraint document_source_in_own_folder check (
    starts_with(source_path, (metadata ->> 'clerk_org_id') || '/') and source_path ~ '^[A-Za-z0-9_/!.*''() &$=@;:+,-]+$' and source_path !~ '(^|/)\.{1,2}(/|$)')
) with (fillfactor = 50);
-- No index on a projected column: it would end HOT updates. The queue has its own index in millrace.attempts.
create index document_by_org on public.document (clerk_org_id, created_at);
comment on table public.document is 'Write ''queued'' to extraction_status (or a later phase''s) to start the pipeline. What was made of it is in chunk and the tables kg_…, how in pipeline_job and pipeline_phase.';
comment on column public.document.source_path is 'Where the file lies in the bucket documents: clerk_org_id/anything.';
comment on column public.document.metadata is 'source_name, source_platform, clerk_org_id, and anything else: copied into the run when it starts.';
comment on column public.document.reading is 'whole, or partly: extraction_result ->> ''partly_read'' (of the old way monolith_result) counts what the text lacks, by page. Null before the text is read.';
comment on column public.document.monolith_status is 'Of the old way, for documents that the flag in document_way leaves to it.';

-- The cut-over (docs/patterns/cut-over.md): whoever queues a document writes extraction_status, and the flag says which way it goes.

create table public.document_way (
  one boolean constraint document_way_pkey primary key default true constraint document_way_one_row check (one),
  share numeric constraint document_way_share_bounds check (share between 0 and 1),
  orgs text[] not null default '{}'
);
insert into public.document_way default values;
comment on table public.document_way is 'The flag: one row, which says which documents go through the phases. The others go to document_monolith.';
comment on column public.document_way.share is 'The share of all documents, by a hash of their ids: 0.1, or 1 for all. Null: all where USE_NEW_PIPELINE is true, else none.';
comment on column public.document_way.orgs is 'Organisations whose documents go through the phases in any case.';

create function public.goes_new_way(p_id uuid, p_org text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select p_org = any (w.orgs) or ('x' || left(md5(p_id::text), 8))::bit(32)::bigint / 4294967296.0
    < coalesce(w.share, (millrace.setting('use_new_pipeline') is not distinct from 'true')::int)
  from public.document_way w
$$;
comment on function public.goes_new_way(uuid, text) is 'Whether the flag sends a document of an organisation through the phases. An id has its place between 0 and 1 for ever, so a share that grows only adds documents.';

create function public.document_goes_one_way() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_first boolean := new.extraction_status = 'queued' and old.extraction_status is distinct from 'queued';
  v_later boolean := new.chunking_status = 'queued' and old.chunking_status is distinct from 'queued'
    or new.kg_ingest_status = 'queued' and old.kg_ingest_status is distinct from 'queued';
  v_whole boolean := new.monolith_status = 'queued' and old.monolith_status is distinct from 'queued';
  v_live text[];
begin
  if not (v_first or v_later or v_whole) then
    return new;
  end if;
  -- The row is locked, so nobody else begins a run of it meanwhile. The engine's own writes come here too: their run is live.
  v_live := array(
    select p.name from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
    where p.name in ('documents', 'document_monolith') and r.entity_id = new.id::text and r.status = 'running');
  if v_first and 'documents' <> all (v_live) then
    if 'document_monolith' = any (v_live) or not public.goes_new_way(new.id, new.metadata ->> 'clerk_org_id') then
      new.extraction_status := 'pending';
      new.chunking_status := 'pending';
      new.kg_ingest_status := 'pending';
      new.monolith_status := 'queued';
    else
      new.monolith_status := 'pending';
    end if;
  elsif (v_later or 'documents' = any (v_live)) and (v_whole or 'document_monolith' = any (v_live)) then
    raise exception 'document % is under way the other way', new.id
      using errcode = 'MR005', hint = 'Let it finish, or cancel its run: select millrace.cancel(run_id) from public.pipeline_job.';
  end if;
  return new;
end
$$;
comment on function public.document_goes_one_way() is 'Sends a document that is queued the way that it is under way already, else the way of the flag, and refuses what would send it both ways.';
revoke all on function public.goes_new_way(uuid, text), public.document_goes_one_way() from public, anon, authenticated, service_role;

create trigger document_goes_one_way before insert or update of extraction_status, chunking_status, kg_ingest_status, monolith_status
on public.document for each row execute function public.document_goes_one_way();

create table public.chunk (
  id uuid constraint chunk_pkey primary key,
  document_id uuid not null constraint chunk_document_fkey references public.document on delete cascade,
  ordinal int not null constraint chunk_ordinal_from_one check (ordinal >= 1),
  text text not null,
  tokens int not null,
  start_offset int not null,
  end_offset int not null,
  heading text,
  page int,
  graphiti_posted_at timestamptz,
  constraint chunk_ordinal_key unique (document_id, ordinal) deferrable initially deferred,
  constraint chunk_offsets_in_order check (start_offset >= 0 and end_offset > start_offset)
);
comment on table public.chunk is 'A document''s text in pieces. The id comes of the document and the piece, so the same text has the same chunks.';
comment on column public.chunk.start_offset is 'Its place in the text in Storage, in UTF-16 code units, as JavaScript counts them; end_offset is where it ends.';
comment on column public.chunk.heading is 'The headings it stands under, parted by " > ".';
comment on column public.chunk.page is 'Of a paged source, where it begins, from 1.';
comment on column public.chunk.graphiti_posted_at is 'When a Graphiti server took it, where one is set up. It is not posted again; set null where that server has lost it.';

create table public.chunk_draft (
  attempt_id bigint not null,
  document_id uuid not null constraint chunk_draft_document_fkey references public.document on delete cascade,
  id uuid not null,
  ordinal int not null,
  text text not null,
  tokens int not null,
  start_offset int not null,
  end_offset int not null,
  heading text,
  page int,
  constraint chunk_draft_pkey primary key (attempt_id, document_id, id)
);
create index chunk_draft_by_document on public.chunk_draft (document_id);
comment on table public.chunk_draft is 'What an attempt has cut so far. It becomes the document''s chunks together with the attempt''s completion, or never.';

create table public.kg_entity (
  id bigint generated always as identity constraint kg_entity_pkey primary key,
  clerk_org_id text not null,
  key text not null,
  name text not null,
  type text not null,
  description text not null default '',
  constraint kg_entity_key unique (clerk_org_id, key)
);
comment on table public.kg_entity is 'A person, an organisation, a place or a thing, once in each organisation, however its name is written.';
comment on column public.kg_entity.key is 'The name as kg_key() makes it, by which names are resolved to one entity.';

create table public.kg_mention (
  entity_id bigint not null constraint kg_mention_entity_fkey references public.kg_entity on delete cascade,
  chunk_id uuid not null constraint kg_mention_chunk_fkey references public.chunk on delete cascade,
  name text not null,
  constraint kg_mention_pkey primary key (chunk_id, entity_id)
);
create index kg_mention_by_entity on public.kg_mention (entity_id);
comment on table public.kg_mention is 'A chunk that names an entity, and how it is written there.';

create table public.kg_edge (
  id bigint generated always as identity constraint kg_edge_pkey primary key,
  source_id bigint not null constraint kg_edge_source_fkey references public.kg_entity on delete cascade,
  target_id bigint not null constraint kg_edge_target_fkey references public.kg_entity on delete cascade,
  relation text not null,
  fact text not null,
  chunk_id uuid not null constraint kg_edge_chunk_fkey references public.chunk on delete cascade,
  constraint kg_edge_key unique (chunk_id, source_id, relation, target_id)
);
create index kg_edge_by_source on public.kg_edge (source_id);
create index kg_edge_by_target on public.kg_edge (target_id);
comment on table public.kg_edge is 'A fact about two entities, and the chunk it comes from.';

create function public.kg_key(p_name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  -- Without accents, case, punctuation, a leading article and what says only that it is a company. The collation is named, so
  -- that letters are letters and a key is the same on every server. What is no accent is put together again: パス is not バス.
  -- Names are short. Of what is longer the beginning counts, lest one keep the server busy for seconds.
  with cut as (
    select left(p_name, 500) as name
  ), folded as (
    select replace(lower(normalize(regexp_replace(
      normalize(c.name collate "und-x-icu", nfkd), '[\u0300-\u036f]', '', 'g'), nfkc)),
      'ς', 'σ') as name
    from cut c
  ), plain as (
    -- An initial is no article: A. B. Smith is not B. Smith.
    select btrim(regexp_replace(regexp_replace(f.name, '^[^[:alnum:]]*(the|a|an)\s+(?=[[:alnum:]])', ''), '[^[:alnum:]+#]+', ' ', 'g')) as name
    from folded f
  )
  select coalesce(nullif(regexp_replace(p.name, '( (inc|incorporated|ltd|limited|llc|plc|corp|corporation|co|company|gmbh|ag))+$', ''), ''), c.name)
  from plain p, cut c
$$;
comment on function public.kg_key(text) is 'The form in which names are compared: The Acme Company, ACME Inc. and Acmé are one.';
revoke all on function public.kg_key(text) from public, anon, authenticated, service_role;

-- What stages write together with their completion. Items: [{attempt, run, entity_id, result}].

create function public.apply_chunks(p_items jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_item record;
  v_drafts int;
begin
  for v_item in
    select (i ->> 'attempt')::bigint as attempt_id, (i ->> 'entity_id')::uuid as document_id, (i #>> '{result,chunks}')::int as chunks
    from jsonb_array_elements(p_items) i order by 2
  loop
    select count(*) into v_drafts from public.chunk_draft d where d.attempt_id = v_item.attempt_id and d.document_id = v_item.document_id;
    if v_drafts is distinct from v_item.chunks then
      raise exception 'attempt % reports % chunks of document %, but has drafted %', v_item.attempt_id, v_item.chunks, v_item.document_id, v_drafts
        using errcode = 'MR002', hint = 'Write all chunks to chunk_draft under the attempt before it completes.';
    end if;
    delete from public.chunk c where c.document_id = v_item.document_id
      and not exists (select from public.chunk_draft d where d.attempt_id = v_item.attempt_id and d.document_id = v_item.document_id and d.id = c.id);
    -- What an edit before it has only moved is the same chunk; what it has not even moved is not written.
    insert into public.chunk as c (id, document_id, ordinal, text, tokens, start_offset, end_offset, heading, page)
    select d.id, d.document_id, d.ordinal, d.text, d.tokens, d.start_offset, d.end_offset, d.heading, d.page
    from public.chunk_draft d where d.attempt_id = v_item.attempt_id and d.document_id = v_item.document_id order by d.id
    on conflict on constraint chunk_pkey do update
      set ordinal = excluded.ordinal, tokens = excluded.tokens, start_offset = excluded.start_offset, end_offset = excluded.end_offset,
        heading = excluded.heading, page = excluded.page
      where (c.ordinal, c.tokens, c.start_offset, c.end_offset, c.heading, c.page)
        is distinct from (excluded.ordinal, excluded.tokens, excluded.start_offset, excluded.end_offset, excluded.heading, excluded.page);
    delete from public.chunk_draft d where d.document_id = v_item.document_id;
  end loop;
end
$$;
comment on function public.apply_chunks(jsonb) is 'Turns an attempt''s drafts into its document''s chunks. Chunks that are the same stay, with the facts in them; those that are gone go with theirs.';

create function public.names_in_chunks(p_items jsonb) returns table (chunk_id uuid, clerk_org_id text, key text, name text, type text, description text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select c.id, d.clerk_org_id, public.kg_key(e.name), e.name, e.type, coalesce(e.description, '')
  from jsonb_array_elements(p_items) i
  join public.chunk c on c.id = (i ->> 'entity_id')::uuid
  join public.document d on d.id = c.document_id
  cross join jsonb_to_recordset(i #> '{result,entities}') e(name text, type text, description text)
$$;
comment on function public.names_in_chunks(jsonb) is 'What chunks name, with the key by which it is found again.';

create function public.apply_facts(p_items jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_chunks uuid[] := array(select (i ->> 'entity_id')::uuid from jsonb_array_elements(p_items) i);
begin
  -- In the order of the key, so that two batches that name the same things never wait for each other in a circle.
  insert into public.kg_entity (clerk_org_id, key, name, type, description)
  select distinct on (n.clerk_org_id, n.key) n.clerk_org_id, n.key, n.name, n.type, n.description
  from public.names_in_chunks(p_items) n
  order by n.clerk_org_id, n.key, length(n.name) desc, n.name
  on conflict on constraint kg_entity_key do nothing;

  with named as materialized (
    select distinct on (n.chunk_id, e.id) n.chunk_id, e.id as entity_id, n.name
    from public.names_in_chunks(p_items) n
    join public.kg_entity e on e.clerk_org_id = n.clerk_org_id and e.key = n.key
    order by n.chunk_id, e.id, length(n.name) desc, n.name
  ), gone as (
    delete from public.kg_mention m where m.chunk_id = any (v_chunks)
      and not exists (select from named n where n.chunk_id = m.chunk_id and n.entity_id = m.entity_id)
  )
  insert into public.kg_mention as m (chunk_id, entity_id, name)
  select n.chunk_id, n.entity_id, n.name from named n
  on conflict on constraint kg_mention_pkey do update set name = excluded.name where m.name <> excluded.name;

  with said as materialized (
    select (i ->> 'entity_id')::uuid as chunk_id, public.kg_key(r.source) as source, r.relation, public.kg_key(r.target) as target, r.fact
    from jsonb_array_elements(p_items) i cross join jsonb_to_recordset(i #> '{result,relations}') r(source text, relation text, target text, fact text)
  ), facts as materialized (
    select distinct on (f.chunk_id, s.id, f.relation, t.id) f.chunk_id, s.id as source_id, f.relation, t.id as target_id, f.fact
    from said f
    join public.kg_mention sm on sm.chunk_id = f.chunk_id join public.kg_entity s on s.id = sm.entity_id and s.key = f.source
    join public.kg_mention tm on tm.chunk_id = f.chunk_id join public.kg_entity t on t.id = tm.entity_id and t.key = f.target
    where s.id <> t.id
    order by f.chunk_id, s.id, f.relation, t.id, length(f.fact) desc, f.fact
  ), gone as (
    delete from public.kg_edge e where e.chunk_id = any (v_chunks) and not exists (
      select from facts f where f.chunk_id = e.chunk_id and f.source_id = e.source_id and f.relation = e.relation and f.target_id = e.target_id)
  )
  insert into public.kg_edge as e (chunk_id, source_id, relation, target_id, fact)
  select f.chunk_id, f.source_id, f.relation, f.target_id, f.fact from facts f
  on conflict on constraint kg_edge_key do update set fact = excluded.fact where e.fact <> excluded.fact;
end
$$;
comment on function public.apply_facts(jsonb) is 'Writes what chunks say: entities (found again by their key), mentions, and facts between entities of the same chunk. What a chunk no longer says goes; what it says again keeps its row.';

create function public.apply_graphiti(p_items jsonb) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
  update public.chunk c set graphiti_posted_at = millrace.now()
  from jsonb_array_elements(p_items) i
  where c.id = (i ->> 'entity_id')::uuid and c.graphiti_posted_at is null and (i #>> '{result,posted}')::boolean
$$;
comment on function public.apply_graphiti(jsonb) is 'Remembers which chunks a Graphiti server has taken, so that a replay does not post them again.';

create function public.apply_document(p_items jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform public.apply_chunks(p_items);
  perform public.apply_facts(coalesce(jsonb_agg(jsonb_build_object('entity_id', f -> 'chunk_id', 'result', f)), '[]'))
  from jsonb_array_elements(p_items) i cross join jsonb_array_elements(i #> '{result,facts}') f;
end
$$;
comment on function public.apply_document(jsonb) is 'What the one stage of document_monolith writes: chunks and facts together.';
revoke all on function public.names_in_chunks(jsonb), public.apply_chunks(jsonb), public.apply_facts(jsonb), public.apply_graphiti(jsonb), public.apply_document(jsonb) from public, anon, authenticated, service_role;

alter table public.document_way enable row level security;
revoke all on public.document_way from anon, authenticated, service_role;
alter table public.document enable row level security;
create policy document_of_own_org on public.document for all to authenticated
  using (clerk_org_id = (select public.clerk_org_id())) with check (metadata ->> 'clerk_org_id' = (select public.clerk_org_id()));
comment on policy document_of_own_org on public.document is 'The organisation is a claim of the user''s token, which users cannot write themselves. Checked in the metadata, of which the column is made.';

alter table public.chunk enable row level security;
create policy chunk_of_own_document on public.chunk for select to authenticated
  using (exists (select from public.document d where d.id = document_id));
alter table public.chunk_draft enable row level security;
alter table public.kg_mention enable row level security;
create policy kg_mention_in_own_chunk on public.kg_mention for select to authenticated
  using (exists (select from public.chunk c where c.id = chunk_id));
alter table public.kg_edge enable row level security;
create policy kg_edge_of_own_chunk on public.kg_edge for select to authenticated
  using (exists (select from public.chunk c where c.id = chunk_id));
alter table public.kg_entity enable row level security;
create policy kg_entity_mentioned on public.kg_entity for select to authenticated
  using (clerk_org_id = (select public.clerk_org_id()) and exists (select from public.kg_mention m where m.entity_id = id));
comment on policy kg_entity_mentioned on public.kg_entity is 'What no document names any more is not seen either.';

revoke all on public.document, public.chunk, public.chunk_draft, public.kg_entity, public.kg_mention, public.kg_edge
  from anon, authenticated, service_role;
revoke all on sequence public.kg_entity_id_seq, public.kg_edge_id_seq
  from anon, authenticated, service_role;
grant select, delete on public.document to authenticated;
grant insert (id, source_path, metadata), update (source_path, metadata) on public.document to authenticated;
grant select on public.chunk, public.kg_entity, public.kg_mention, public.kg_edge to authenticated;
grant select, insert, update, delete
  on public.document, public.chunk, public.chunk_draft, public.kg_entity, public.kg_mention, public.kg_edge
  to service_role;

insert into storage.buckets (id, name, public, file_size_limit) values
  ('documents', 'documents', false, 52428800),
  ('extracted_text', 'extracted_text', false, 52428800)
on conflict (id) do nothing;
create policy document_files_of_own_org on storage.objects for all to authenticated
  using (bucket_id = 'documents' and (storage.foldername(name))[1] = (select public.clerk_org_id()))
  with check (bucket_id = 'documents' and (storage.foldername(name))[1] = (select public.clerk_org_id()));
-- A text outlives its document: whoever gives a new document the same id does not get it.
create policy extracted_text_of_own_documents on storage.objects for select to authenticated
  using (bucket_id = 'extracted_text' and exists (
    select from public.document d
    where d.id = case when name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[.]txt$' then left(name, 36)::uuid end and d.created_at <= updated_at));

-- Documents: evidence and summary
--
-- pipeline_phase has a row for each attempt at a phase, pipeline_job one for each document. Both are views over the engine's
-- own rows, so that there is one source of truth: an attempt, its run and the document's columns change in one transaction,
-- evidence and summary together. Whoever sees a document sees its job and its phases. A document keeps the one row of its job,
-- with what all of its runs have cost, once its runs are pruned; its phases go with the runs.
--
-- The engine's schema stays closed. Two functions in the schema `millrace_evidence`, in which nobody but the service may name anything, read
-- it for one document with their owner's rights; the views call them for those documents alone that row-level security shows.

-- Sums up what all runs of a document have cost, those that were pruned too, as the metadata of its
-- job have it.
create function millrace_evidence.document_costs(p_document_id uuid) returns jsonb
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with way as (
    select p.id
    from millrace.pipelines p
    where p.name in ('documents', 'document_monolith')
  ), cost as (
    select s.name as phase, t.cost_usd
    from millrace.attempt_costs(array(
      select r.id
      from millrace.runs r
      join way w on w.id = r.pipeline_id
      where r.entity_id = p_document_id::text)) t
    join millrace.stages s on s.id = t.stage_id
    union all
    select k.key, k.value::numeric
    from millrace.former_runs f
    join way w on w.id = f.pipeline_id
    cross join lateral jsonb_each_text(f.costs) k
    where f.entity_id = p_document_id::text
  ), total as (
    select c.phase, sum(c.cost_usd) as cost_usd
    from cost c
    where c.cost_usd is not null
    group by c.phase
  )
  select jsonb_build_object(
    'cost_usd', coalesce(jsonb_object_agg(t.phase, t.cost_usd), '{}'),
    'total_cost_usd', sum(t.cost_usd))
  from total t
$$;
comment on function millrace_evidence.document_costs(uuid) is
  'What all runs of a document have cost, by phase and in total; null where nobody named a price.';

-- Reads a document's latest run, or what is left of it. Which phase a former run had come to that
-- failed is not.
create function millrace_evidence.document_job(p_document_id uuid)
returns table (
  run_id bigint, trace_id uuid, pipeline text, current_phase text, status text, metadata jsonb,
  created_at timestamptz, started_at timestamptz, completed_at timestamptz, updated_at timestamptz
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select j.id, j.trace_id, p.name,
    case j.status
      when 'completed' then 'completed'
      else (
        select s.name
        from millrace.version_stages vs
        join millrace.stages s on s.id = vs.stage_id
        where vs.version_id = j.version_id and not millrace.is_done(j.id, vs.stage_id)
        order by vs.position
        limit 1)
    end,
    case j.status
      when 'running' then 'processing'
      when 'completed' then 'completed'
      else 'failed'
    end,
    coalesce(j.metadata, '{}') || millrace_evidence.document_costs(p_document_id),
    j.created_at, j.started_at, j.finished_at, j.updated_at
  from (
    select r.id, r.pipeline_id, r.version_id, r.trace_id, r.status,
      millrace.metadata_of(r.id) as metadata, r.created_at, a.started_at, r.finished_at,
      a.updated_at
    from millrace.runs r
    cross join lateral (
      select min(t.started_at) as started_at,
        max(greatest(t.created_at, t.started_at, t.finished_at)) as updated_at
      from millrace.attempts t
      where t.run_id = r.id) a
    where r.entity_id = p_document_id::text
    union all
    select f.run_id, f.pipeline_id, null, f.trace_id, f.status, f.metadata, f.created_at,
      f.started_at, f.finished_at, f.finished_at
    from millrace.former_runs f
    where f.entity_id = p_document_id::text) j
  join millrace.pipelines p on p.id = j.pipeline_id
    and p.name in ('documents', 'document_monolith')
  order by j.id desc
  limit 1
$$;
comment on function millrace_evidence.document_job(uuid) is
  'A document''s latest run, which stays when it is pruned. Its metadata is what the document had '
  'when it started, with what all of its runs have cost, by phase and in total.';

create function millrace_evidence.document_phases(p_document_id uuid)
returns table (id uuid, attempt_id bigint, run_id bigint, pipeline text, phase text, status text, output jsonb, error jsonb, retry_count int, parent_phase_id uuid, metadata jsonb, queued_at timestamptz, started_at timestamptz, completed_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select md5('millrace.attempts/' || a.id)::uuid, a.id, r.id, p.name, s.name,
    case a.state when 'queued' then 'queued' when 'started' then 'processing' when 'waiting' then 'processing'
      when 'completed' then 'completed' when 'skipped' then 'skipped' else 'failed' end,
    a.output, case when a.state = 'cancelled' then '{"code": "cancelled", "message": "cancelled"}' 
      else a.error - 'detail' || jsonb_build_object('message', millrace.owner_message(a.error, a.id)) end,
    a.retry_count, md5('millrace.attempts/' || a.parent_id)::uuid,
    coalesce(a.usage, '{}') || jsonb_build_object('cost', c.costs -> a.id::text),
    a.created_at, a.started_at, a.finished_at
  from millrace.runs r
  join millrace.pipelines p on p.id = r.pipeline_id and p.name in ('documents', 'document_monolith')
  cross join lateral (
    select jsonb_object_agg(t.attempt_id, t.cost_usd) as costs
    from (select t.attempt_id, sum(t.cost_usd) as cost_usd from millrace.attempt_costs(array[r.id]) t group by t.attempt_id) t) c
  join millrace.attempts a on a.run_id = r.id
  join millrace.stages s on s.id = a.stage_id
  where r.entity_id = p_document_id::text
    -- A result that a run took over from the one before is no attempt of its own.
    and not exists (select from millrace.attempts f where f.id = a.parent_id and f.run_id <> a.run_id)
$$;
comment on function millrace_evidence.document_phases(uuid) is 'Every attempt at a document''s phases, of all its runs. The metadata is what the attempt used up; cost counts that of its chunks.';

revoke all on function millrace_evidence.document_costs(uuid), millrace_evidence.document_job(uuid),
  millrace_evidence.document_phases(uuid)
  from public;
grant execute on function millrace_evidence.document_job(uuid), millrace_evidence.document_phases(uuid) to authenticated, service_role;

create view public.pipeline_job with (security_invoker = true) as
select d.id, d.id as document_id, j.current_phase, j.status, j.metadata, j.created_at, j.started_at, j.completed_at, j.updated_at, j.run_id, j.trace_id, j.pipeline
from public.document d cross join lateral millrace_evidence.document_job(d.id) j;
comment on view public.pipeline_job is
  'One row a document: its latest run, whichever way it goes, pruned or not. The id is the '
  'document''s, since it has one job.';
comment on column public.pipeline_job.current_phase is 'The first phase that is not done, or completed. The old way has the one phase monolith.';
comment on column public.pipeline_job.metadata is 'source_name, source_platform, clerk_org_id and what else the document had when the run started; cost_usd by phase and total_cost_usd, of all its runs.';

create view public.pipeline_phase with (security_invoker = true) as
select f.id, d.id as pipeline_job_id, f.phase, f.status, l.input_location, case when f.status = 'completed' then l.output_location end as output_location,
  f.error ->> 'message' as error_message, f.error ->> 'code' as error_type, f.retry_count, f.parent_phase_id, f.metadata, f.queued_at, f.started_at, f.completed_at, f.run_id, f.pipeline, f.attempt_id
from public.document d
cross join lateral millrace_evidence.document_phases(d.id) f
cross join lateral (
  select case
      when f.phase in ('extraction', 'monolith') then 'documents/' || d.source_path
      when f.phase = 'chunking' then 'extracted_text/' || d.id || '.txt'
      when f.phase = 'kg_ingest' then 'chunk?document_id=eq.' || d.id end as input_location,
    case
      when f.phase = 'extraction' then f.output ->> 'text_location'
      when f.phase = 'chunking' then f.output ->> 'output_location'
      when f.phase in ('kg_ingest', 'monolith') then 'kg_edge?select=*,chunk!inner(document_id)&chunk.document_id=eq.' || d.id end as output_location
) l;
comment on view public.pipeline_phase is
  'One row for each attempt at a phase, of those runs of a document that are kept; a retry names '
  'its parent. started and waiting show as processing, cancelled as failed.';
comment on column public.pipeline_phase.id is 'Derived from attempt_id, the engine''s own number: the same whenever it is read.';
comment on column public.pipeline_phase.attempt_id is 'As millrace_attempt() takes it; rises with every attempt.';
comment on column public.pipeline_phase.input_location is 'A bucket of Storage and the name in it, or rows as the Data API serves them; null for phases that this view does not know.';

create function millrace_evidence.refuse_evidence() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '% shows what the engine has recorded, and takes no rows', tg_table_name using errcode = '0A000',
    hint = 'Insert the document into public.document and set its extraction_status to ''queued'': the job and its phases follow.';
end $$;
comment on function millrace_evidence.refuse_evidence() is 'Refuses rows that an application writes into the views of evidence, with what to write instead.';
revoke all on function millrace_evidence.refuse_evidence() from public;
create trigger refuse_evidence instead of insert on public.pipeline_job for each row execute function millrace_evidence.refuse_evidence();
create trigger refuse_evidence instead of insert on public.pipeline_phase for each row execute function millrace_evidence.refuse_evidence();

create view public.document_costs with (security_invoker = true) as
select j.metadata ->> 'clerk_org_id' as clerk_org_id, j.metadata ->> 'source_platform' as source_platform, count(*) as documents,
  count(*) filter (where j.status = 'completed') as completed, sum((j.metadata ->> 'total_cost_usd')::numeric) as cost_usd
from public.pipeline_job j group by 1, 2;
comment on view public.document_costs is 'What documents have cost, all their runs together, for each organisation and platform.';

create view public.document_ways with (security_invoker = true) as
select p.name as pipeline, count(*) as runs, count(*) filter (where r.status = 'completed') as completed,
  count(*) filter (where r.status = 'failed') as failed,
  percentile_cont(0.5) within group (order by r.finished_at - r.created_at) filter (where r.status = 'completed') as median_time,
  sum((select sum(c.cost_usd) from millrace.attempt_costs(array[r.id]) c)) as cost_usd
from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
where p.name in ('documents', 'document_monolith')
group by p.name;
comment on view public.document_ways is 'Both ways of the cut-over side by side, over all runs that are kept: how they ended, how long they took, what they cost. For the owner alone.';

revoke all on public.document_ways from anon, authenticated, service_role;
revoke all on public.pipeline_job, public.pipeline_phase, public.document_costs
  from anon, authenticated, service_role;
grant select on public.pipeline_job, public.pipeline_phase, public.document_costs to authenticated, service_role;
-- So that an application's server is told what to write instead.
grant insert on public.pipeline_job, public.pipeline_phase to service_role;
