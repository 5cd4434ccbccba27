-- The pipeline books, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.books', 'split', 'metadata', 'toc', 'page_numbers', 'headings', 'structure', 'review', 'assemble');

grant update (split_status, metadata_status, toc_status, page_numbers_status, headings_status, structure_status, review_status, assemble_status) on public.books to authenticated;

select millrace.define($pipeline${
  "pipeline": "books",
  "entity": {"table":"public.books","startable_by":["authenticated"]},
  "quota": {"column":"account_id","starts":{"count":1000,"per_seconds":3600},"spending":{"usd":100,"per_seconds":86400}},
  "stages": [
    {"name":"split","kind":"map","function":"books-split","batch_size":1,"max_workers":4,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"concurrency":{"column":"account_id","limit":5}},"child":{"pipeline":"pages","insert":"public.insert_pages"},"fan_in":{"failed_children":"ignore"}},
    {"name":"metadata","function":"books-metadata","after":[{"map":"split","stage":"blend","count":20}],"concurrency":50,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"completion":{"callback":true,"poll_seconds":2},"on_failure":"continue"},
    {"name":"toc","kind":"pipeline","after":[{"map":"split","stage":"blend","consecutive":10}],"child":{"pipeline":"toc"},"on_failure":"continue"},
    {"name":"page_numbers","function":"books-page-numbers","after":[{"map":"split","stage":"label","all":true}],"batch_size":1,"max_workers":4,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}}},
    {"name":"headings","function":"books-headings","after":[{"map":"split","stage":"label","all":true}],"batch_size":1,"max_workers":4,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}}},
    {"name":"structure","function":"books-structure","needs":["metadata","toc","page_numbers","headings"],"batch_size":1,"max_workers":4,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}}},
    {"name":"review","kind":"manual","needs":["structure"],"when":"$.needs.structure.confidence < 0.97","decision":{"schema":{"type":"object","properties":{"keep":{"type":"string","enum":["all","contents","headings"],"description":"all entries, only printed contents, or only headings"},"note":{"type":"string","maxLength":1000}},"required":["keep"],"additionalProperties":false},"deadline_seconds":604800},"on_failure":"continue"},
    {"name":"assemble","function":"books-assemble","needs":["split","metadata","structure","review"],"batch_size":1,"max_workers":4,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}}}
  ]
}$pipeline$);
