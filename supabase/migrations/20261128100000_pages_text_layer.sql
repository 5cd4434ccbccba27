-- Books: a page's text layer is a stage of its own, and only pages that need it go through ocr

select millrace.add_columns('public.pages', 'text_layer');

-- A page is read when ocr is over: ocr is skipped where the text layer is enough.
create or replace view public.book_pipeline_status with (security_invoker = true) as
select b.id, b.title, b.account_id, c.status, c.stages as current_stages, c.error as current_error,
  p.pages, p.read as pages_read, p.blended as pages_blended, p.labelled as pages_labelled,
  p.failed as pages_failed, b.split_status, b.metadata_status, b.toc_status, b.page_numbers_status,
  b.headings_status, b.structure_status, b.review_status, b.assemble_status,
  b.assemble_result ->> 'path' as document_path, b.created_at,
  b.assemble_completed_at as completed_at
from public.books b
cross join lateral (
  select count(*)::int as pages,
    (count(*) filter (where g.ocr_status in ('completed', 'skipped')))::int as read,
    (count(*) filter (where g.blend_status = 'completed'))::int as blended,
    (count(*) filter (where g.label_status = 'completed'))::int as labelled,
    (count(*) filter (
      where 'failed' in (g.text_layer_status, g.ocr_status, g.blend_status, g.label_status)
    ))::int as failed
  from public.pages g
  where g.book_id = b.id
) p
cross join lateral (
  select
    case
      when b.assemble_status in ('completed', 'skipped') then 'completed'
      when b.review_status = 'started' then 'waiting for a person'
      when bool_or(s.status in ('queued', 'started')) then 'running'
      when bool_or(s.status = 'failed') then 'failed'
      else 'pending'
    end as status,
    coalesce(
      array_agg(s.stage order by s.place) filter (where s.status in ('queued', 'started')), '{}'
    ) as stages,
    -- A stage that was cancelled because of another one's failure comes after it.
    (array_agg(s.stage || ': ' || s.error order by s.error = 'cancelled', s.place)
      filter (where s.status = 'failed'))[1] as error
  from (values
    (1, 'split', b.split_status, b.split_error),
    (2, 'metadata', b.metadata_status, b.metadata_error),
    (3, 'toc', b.toc_status, b.toc_error),
    (4, 'page_numbers', b.page_numbers_status, b.page_numbers_error),
    (5, 'headings', b.headings_status, b.headings_error),
    (6, 'structure', b.structure_status, b.structure_error),
    (7, 'review', b.review_status, b.review_error),
    (8, 'assemble', b.assemble_status, b.assemble_error)
  ) s(place, stage, status, error)
) c;
