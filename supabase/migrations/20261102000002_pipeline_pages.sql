-- The pipeline pages, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.pages', 'ocr', 'blend', 'label');

grant update (ocr_status, blend_status, label_status) on public.pages to authenticated;

select millrace.define($pipeline${
  "pipeline": "pages",
  "entity": {"table":"public.pages","startable_by":["authenticated"]},
  "stages": [
    {"name":"ocr","kind":"external","function":"pages-ocr","batch_size":10,"max_workers":2,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"max_in_flight":50},"completion":{"callback":true,"poll_seconds":2}},
    {"name":"blend","function":"pages-blend","needs":["ocr"],"batch_size":20,"max_workers":2,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}}},
    {"name":"label","function":"pages-label","needs":["blend"],"concurrency":50,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"completion":{"callback":true,"poll_seconds":2}}
  ]
}$pipeline$);
