-- The pipeline leads, written from its definition in supabase/functions/_pipelines. Do not edit it: change it
-- there and sync again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "6217218d00a2bc436af5f30520084ada0a4003c38348d5bdab09f52a30d85155",
  "pipeline": "leads",
  "entity": {"table":"public.leads","key":"id","projection":"columns","label":"email","startable_by":["authenticated"]},
  "quota": {"column":"account_id","starts":{"count":5000,"per_seconds":3600},"spending":{"usd":50,"per_seconds":86400}},
  "stages": [
    {"name":"scrape","kind":"external","function_name":"leads-scrape","batch_size":5,"max_workers":4,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":5,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"max_in_flight":50,"concurrency":{"column":"account_id","limit":25}},"has_groups":true,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["intel","messaging","strategy","subject"],"is_sink":false,"unconditional":true},
    {"name":"intel","kind":"function","function_name":"leads-intel","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":5,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"concurrency":{"column":"account_id","limit":50}},"has_groups":true,"when_spent":"wait","needs":["scrape"],"on_demand":false,"after":[],"position":2,"dependents":["messaging","strategy","subject"],"is_sink":false,"unconditional":true},
    {"name":"strategy","kind":"function","function_name":"leads-strategy","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":5,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"concurrency":{"column":"account_id","limit":50}},"has_groups":true,"when_spent":"wait","needs":["intel"],"on_demand":false,"after":[],"position":3,"dependents":["messaging","subject"],"is_sink":false,"unconditional":true},
    {"name":"subject","kind":"function","function_name":"leads-subject","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":5,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"concurrency":{"column":"account_id","limit":50}},"has_groups":true,"when_spent":"wait","needs":["strategy"],"on_demand":false,"after":[],"position":4,"dependents":["messaging"],"is_sink":false,"unconditional":true},
    {"name":"messaging","kind":"function","function_name":"leads-messaging","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":5,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"concurrency":{"column":"account_id","limit":50}},"has_groups":true,"when_spent":"wait","needs":["strategy","subject"],"on_demand":false,"after":[],"position":5,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"scrape":[],"intel":["scrape"],"strategy":["intel"],"subject":["strategy"],"messaging":["strategy","subject"]},
  "columns": [
    {"field":"entity.label","table":"public.leads","column":"email","types":["text","character varying"],"remedy":"Name a column of type text, such as a URL; or leave it out."},
    {"field":"quota.column","table":"public.leads","column":"account_id","remedy":"Name the column whose value is the tenant."},
    {"field":"stages.scrape.limits.concurrency.column","table":"public.leads","column":"account_id","remedy":"Name the column whose value is the key."},
    {"field":"stages.intel.limits.concurrency.column","table":"public.leads","column":"account_id","remedy":"Name the column whose value is the key."},
    {"field":"stages.strategy.limits.concurrency.column","table":"public.leads","column":"account_id","remedy":"Name the column whose value is the key."},
    {"field":"stages.subject.limits.concurrency.column","table":"public.leads","column":"account_id","remedy":"Name the column whose value is the key."},
    {"field":"stages.messaging.limits.concurrency.column","table":"public.leads","column":"account_id","remedy":"Name the column whose value is the key."},
    {"field":"the input of stage scrape","table":"public.leads","column":"company_url","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ]
}$pipeline$);
