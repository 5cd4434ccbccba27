-- Books: a PDF or a plain text becomes pages, a table of contents and one document
--
-- `books` runs over a book and starts `pages` for each of its pages and `toc` for its table of contents. The file lies in the
-- bucket `books` of Storage, in the folder of its account, and so does the document that comes out of it. A page's text
-- lies on its row (blend_result). An account sees its own books alone; its users write the inputs and the statuses (to
-- 'queued'; the pipelines' definitions grant those), never a result.

create table public.books (
  id uuid constraint books_pkey primary key default gen_random_uuid(),
  account_id uuid not null,
  title text not null,
  source_path text not null,
  media_type text not null default 'application/pdf' constraint books_media_type_known check (media_type in ('application/pdf', 'text/plain')),
  created_at timestamptz not null default now(),
  split_status text not null default 'pending',
  split_job_id text,
  split_result jsonb,
  split_error text,
  split_retry_count int not null default 0,
  split_started_at timestamptz,
  split_completed_at timestamptz,
  metadata_status text not null default 'pending',
  metadata_job_id text,
  metadata_result jsonb,
  metadata_error text,
  metadata_retry_count int not null default 0,
  metadata_started_at timestamptz,
  metadata_completed_at timestamptz,
  toc_status text not null default 'pending',
  toc_job_id text,
  toc_result jsonb,
  toc_error text,
  toc_retry_count int not null default 0,
  toc_started_at timestamptz,
  toc_completed_at timestamptz,
  page_numbers_status text not null default 'pending',
  page_numbers_job_id text,
  page_numbers_result jsonb,
  page_numbers_error text,
  page_numbers_retry_count int not null default 0,
  page_numbers_started_at timestamptz,
  page_numbers_completed_at timestamptz,
  headings_status text not null default 'pending',
  headings_job_id text,
  headings_result jsonb,
  headings_error text,
  headings_retry_count int not null default 0,
  headings_started_at timestamptz,
  headings_completed_at timestamptz,
  structure_status text not null default 'pending',
  structure_job_id text,
  structure_result jsonb,
  structure_error text,
  structure_retry_count int not null default 0,
  structure_started_at timestamptz,
  structure_completed_at timestamptz,
  review_status text not null default 'pending',
  review_job_id text,
  review_result jsonb,
  review_error text,
  review_retry_count int not null default 0,
  review_started_at timestamptz,
  review_completed_at timestamptz,
  assemble_status text not null default 'pending',
  assemble_job_id text,
  assemble_result jsonb,
  assemble_error text,
  assemble_retry_count int not null default 0,
  assemble_started_at timestamptz,
  assemble_completed_at timestamptz,

  -- Only on what people write. A path is no longer than Storage takes.
  constraint books_title_length check (octet_length(title) <= 4000),
  constraint books_source_path_length check (octet_length(source_path) <= 1024),
  -- The functions read Storage with the rights of the project: a path must not lead them into another account's folder. It
  -- becomes part of a URL, so it has no character that a URL reads as something else: no %, \, ?, # and none that is invisible.
  constraint books_source_in_own_folder check (
    starts_with(source_path, account_id || '/') and source_path ~ '^[A-Za-z0-9_/!.*''() &$=@;:+,-]+$' and source_path !~ '(^|/)\.{1,2}(/|$)')
) with (fillfactor = 50);
-- No index on a projected column: it would end HOT updates. The queue has its own index in millrace.attempts.
create index books_by_account on public.books (account_id, created_at);
comment on table public.books is 'Write ''queued'' to split_status (or a later stage''s) to start the pipeline.';
comment on column public.books.source_path is 'Where the file lies in the bucket books: account_id/anything. By custom account_id/id.pdf or account_id/id.txt.';

create table public.pages (
  id uuid constraint pages_pkey primary key default gen_random_uuid(),
  book_id uuid not null constraint pages_book_fkey references public.books on delete cascade,
  number int not null constraint pages_number_from_one check (number >= 1),
  ocr_status text not null default 'pending',
  ocr_job_id text,
  ocr_result jsonb,
  ocr_error text,
  ocr_retry_count int not null default 0,
  ocr_started_at timestamptz,
  ocr_completed_at timestamptz,
  blend_status text not null default 'pending',
  blend_job_id text,
  blend_result jsonb,
  blend_error text,
  blend_retry_count int not null default 0,
  blend_started_at timestamptz,
  blend_completed_at timestamptz,
  label_status text not null default 'pending',
  label_job_id text,
  label_result jsonb,
  label_error text,
  label_retry_count int not null default 0,
  label_started_at timestamptz,
  label_completed_at timestamptz,

  constraint pages_number_key unique (book_id, number)
) with (fillfactor = 50);
comment on table public.pages is 'One row a page, inserted by the stage split of the book''s run. The text is in blend_result, what is what on the page in label_result.';
comment on column public.pages.number is 'Its place in the file, from 1; what is printed on it is in label_result.';

create function public.insert_pages(p_parent text, p_items jsonb) returns table (item_key text, entity_id text)
language sql set search_path = pg_catalog, pg_temp
as $$
  with given as (
    select (i ->> 'key')::int as number, (i ->> 'of')::int as last from jsonb_array_elements(p_items) i
  ), gone as (
    -- pages of a longer file that this one has replaced
    delete from public.pages p where p.book_id = p_parent::uuid and p.number > (select max(g.last) from given g)
  ), added as (
    insert into public.pages (book_id, number) select p_parent::uuid, g.number from given g order by g.number
    on conflict on constraint pages_number_key do nothing returning id, number
  )
  select a.number::text, a.id::text from added a
  union all
  select p.number::text, p.id::text from given g join public.pages p on p.book_id = p_parent::uuid and p.number = g.number
$$;
comment on function public.insert_pages(text, jsonb) is 'Adds pages {key: number, of: how many there are} to a book and removes those beyond; answers the row of each, also of those that were there already. For the stage split.';
revoke all on function public.insert_pages(text, jsonb) from public, anon, authenticated, service_role;

alter table public.books enable row level security;
create policy books_of_own_account on public.books for all to authenticated
  using (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid)
  with check (account_id = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id')::uuid);
comment on policy books_of_own_account on public.books is 'The account is the claim app_metadata.account_id of the user''s token, which users cannot write themselves.';

alter table public.pages enable row level security;
create policy pages_of_own_books on public.pages for all to authenticated
  using (exists (select from public.books b where b.id = book_id))
  with check (exists (select from public.books b where b.id = book_id));
comment on policy pages_of_own_books on public.pages is 'Whoever sees the book sees its pages: the policy of books counts here.';

revoke all on public.books, public.pages from anon, authenticated, service_role;
grant select, delete on public.books to authenticated;
grant insert (id, account_id, title, source_path, media_type),
  update (title, source_path, media_type)
  on public.books to authenticated;
grant select on public.pages to authenticated;
grant select, insert, update, delete on public.books, public.pages to service_role;

-- People decide about the contents of their own books.
create policy decisions_of_own_books on public.millrace_decisions for select to authenticated
  using (pipeline = 'books' and exists (select from public.books b where b.id::text = entity_id));
create policy decide_on_own_books on public.millrace_decisions for update to authenticated
  using (pipeline = 'books' and exists (select from public.books b where b.id::text = entity_id));

-- The bucket. Paths begin with the account: account_id/book_id.pdf, beside it book_id.json and book_id.md when they are made.
insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
values ('books', 'books', false, 52428800, array['application/pdf', 'text/plain', 'text/markdown', 'application/json'])
on conflict (id) do nothing;
create policy book_files_of_own_account on storage.objects for all to authenticated
  using (bucket_id = 'books' and (storage.foldername(name))[1] = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id'))
  with check (bucket_id = 'books' and (storage.foldername(name))[1] = ((select auth.jwt()) -> 'app_metadata' ->> 'account_id'));

create view public.book_pipeline_status with (security_invoker = true) as
select b.id, b.title, b.account_id, c.status, c.stages as current_stages, c.error as current_error,
  p.pages, p.read as pages_read, p.blended as pages_blended, p.labelled as pages_labelled, p.failed as pages_failed,
  b.split_status, b.metadata_status, b.toc_status, b.page_numbers_status, b.headings_status, b.structure_status, b.review_status, b.assemble_status,
  b.assemble_result ->> 'path' as document_path, b.created_at, b.assemble_completed_at as completed_at
from public.books b
cross join lateral (
  select count(*)::int as pages, (count(*) filter (where g.ocr_status = 'completed'))::int as read, (count(*) filter (where g.blend_status = 'completed'))::int as blended,
    (count(*) filter (where g.label_status = 'completed'))::int as labelled,
    (count(*) filter (where 'failed' in (g.ocr_status, g.blend_status, g.label_status)))::int as failed
  from public.pages g where g.book_id = b.id
) p
cross join lateral (
  select case
      when b.assemble_status in ('completed', 'skipped') then 'completed'
      when b.review_status = 'started' then 'waiting for a person'
      when bool_or(s.status in ('queued', 'started')) then 'running'
      when bool_or(s.status = 'failed') then 'failed'
      else 'pending' end as status,
    coalesce(array_agg(s.stage order by s.place) filter (where s.status in ('queued', 'started')), '{}') as stages,
    -- what was cancelled because of another stage's failure comes after it
    (array_agg(s.stage || ': ' || s.error order by s.error = 'cancelled', s.place) filter (where s.status = 'failed'))[1] as error
  from (values
    (1, 'split', b.split_status, b.split_error), (2, 'metadata', b.metadata_status, b.metadata_error), (3, 'toc', b.toc_status, b.toc_error), (4, 'page_numbers', b.page_numbers_status, b.page_numbers_error), (5, 'headings', b.headings_status, b.headings_error), (6, 'structure', b.structure_status, b.structure_error), (7, 'review', b.review_status, b.review_error), (8, 'assemble', b.assemble_status, b.assemble_error)
  ) s(place, stage, status, error)
) c;
comment on view public.book_pipeline_status is 'Where each book stands: its pages by stage, the book''s own stages under way (several at once), the first failure.';
revoke all on public.book_pipeline_status from anon, authenticated, service_role;
grant select on public.book_pipeline_status to authenticated, service_role;

create view public.book_costs with (security_invoker = true) as
select e.account_id,
  count(*) as books,
  count(*) filter (where e.assemble_status = 'completed') as completed,
  millrace_evidence.entity_costs('books', array_agg(e.id::text)) as cost_usd
from public.books e
group by e.account_id;
comment on view public.book_costs is
  'What books have cost, all their runs together, their pages and tables of contents counted to them, for each account. '
  'Null where nobody named a price: LLM_PRICE_INPUT, LLM_PRICE_OUTPUT.';
revoke all on public.book_costs from anon, authenticated, service_role;
grant select on public.book_costs to authenticated, service_role;
