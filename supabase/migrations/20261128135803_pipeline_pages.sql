-- The pipeline pages, written from its definition in supabase/functions/_pipelines. Do not edit it: change it
-- there and sync again, which adds another migration.

select millrace.add_columns('public.pages', 'text_layer');

grant update (text_layer_status) on public.pages to authenticated;

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "2f75a02d0f1491968639e91e213fa099b6caef1b39dc7d488276d438ce086953",
  "pipeline": "pages",
  "entity": {"table":"public.pages","key":"id","projection":"columns","startable_by":["authenticated"]},
  "stages": [
    {"name":"text_layer","kind":"function","function_name":"pages-text-layer","batch_size":10,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["blend","label","ocr"],"is_sink":false,"unconditional":true},
    {"name":"ocr","kind":"external","function_name":"pages-ocr","batch_size":10,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"2 s","deadline":"1800 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"max_in_flight":400,"concurrency":{"column":"book_id","limit":50}},"has_groups":true,"when_spent":"wait","needs":["text_layer"],"when_path":"$.needs.text_layer.needs_ocr == true","otherwise":"skip","on_demand":false,"after":[],"position":2,"dependents":["blend","label"],"is_sink":false,"unconditional":false},
    {"name":"blend","kind":"function","function_name":"pages-blend","batch_size":20,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["ocr","text_layer"],"on_demand":false,"after":[],"position":3,"dependents":["label"],"is_sink":false,"unconditional":true},
    {"name":"label","kind":"function","function_name":"pages-label","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["blend"],"on_demand":false,"after":[],"position":4,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"text_layer":[],"ocr":{"when":"$.needs.text_layer.needs_ocr == true","needs":["text_layer"]},"blend":["ocr","text_layer"],"label":["blend"]},
  "columns": [
    {"field":"stages.ocr.limits.concurrency.column","table":"public.pages","column":"book_id","remedy":"Name the column whose value is the key."},
    {"field":"the input of stage ocr, text_layer","table":"public.pages","column":"book_id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage ocr, text_layer","table":"public.pages","column":"number","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "paths": [
    {"field":"stages.ocr.when","path":"$.needs.text_layer.needs_ocr == true","predicate":true,"example":"\"$.entity.kind == \\\"scan\\\"\" or \"$.needs.count.pages > 20\""}
  ]
}$pipeline$);
