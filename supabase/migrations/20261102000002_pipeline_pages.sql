-- The pipeline pages, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.pages', 'ocr', 'blend', 'label');

grant update (ocr_status, blend_status, label_status) on public.pages to authenticated;

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "be2a415e67d06e209e9b36ff785d3efd88e8f41ae820e5ba934977ea0c6ae2ce",
  "pipeline": "pages",
  "entity": {"table":"public.pages","key":"id","projection":"columns","startable_by":["authenticated"]},
  "stages": [
    {"name":"ocr","kind":"external","function_name":"pages-ocr","batch_size":10,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"2 s","deadline":"1800 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"max_in_flight":400,"concurrency":{"column":"book_id","limit":50}},"has_groups":true,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["blend","label"],"is_sink":false,"unconditional":true},
    {"name":"blend","kind":"function","function_name":"pages-blend","batch_size":20,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["ocr"],"on_demand":false,"after":[],"position":2,"dependents":["label"],"is_sink":false,"unconditional":true},
    {"name":"label","kind":"function","function_name":"pages-label","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["blend"],"on_demand":false,"after":[],"position":3,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"ocr":[],"blend":["ocr"],"label":["blend"]},
  "columns": [
    {"field":"stages.ocr.limits.concurrency.column","table":"public.pages","column":"book_id","remedy":"Name the column whose value is the key."},
    {"field":"the input of stage blend, ocr","table":"public.pages","column":"book_id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage blend, ocr","table":"public.pages","column":"number","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ]
}$pipeline$);
