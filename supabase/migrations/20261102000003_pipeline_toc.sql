-- The pipeline toc, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "f59dd1fe62776ad3e45521b25d7f8f182e20d4367b3390ee0421b593a1b91526",
  "pipeline": "toc",
  "entity": {"table":"public.books","key":"id","projection":"none"},
  "stages": [
    {"name":"find","kind":"agent","function_name":"toc-find","batch_size":4,"max_workers":2,"lease":"60 s","timeout":"40 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":false,"result_limit_bytes":1048576,"on_failure":"fail_run","agent":{"max_turns":12,"max_tokens":200000,"max_seconds":600,"debug":true},"has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["extract","link"],"is_sink":false,"unconditional":true},
    {"name":"extract","kind":"function","function_name":"toc-extract","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}},"pages_not_read":{"max_attempts":30,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":60,"jitter":0.2}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["find"],"when_path":"$.needs.find.first_contents_page > 0","otherwise":"skip_dependents","on_demand":false,"after":[],"position":3,"dependents":["link"],"is_sink":false,"unconditional":false},
    {"name":"outline","kind":"function","function_name":"toc-outline","batch_size":1,"max_workers":4,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"continue","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":2,"dependents":[],"is_sink":true,"unconditional":true},
    {"name":"link","kind":"function","function_name":"toc-link","batch_size":1,"max_workers":4,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["extract","find"],"on_demand":false,"after":[],"position":4,"dependents":[],"is_sink":true,"unconditional":false}
  ],
  "graph": {"find":[],"extract":{"when":"$.needs.find.first_contents_page > 0","otherwise":"skip_dependents","needs":["find"]},"outline":[],"link":["extract","find"]},
  "columns": [
    {"field":"the input of stage extract, find, link, outline","table":"public.books","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "paths": [
    {"field":"stages.extract.when","path":"$.needs.find.first_contents_page > 0","predicate":true,"example":"\"$.entity.kind == \\\"scan\\\"\" or \"$.needs.count.pages > 20\""}
  ]
}$pipeline$);
