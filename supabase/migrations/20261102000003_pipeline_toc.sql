-- The pipeline toc, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "pipeline": "toc",
  "entity": {"table":"public.books","projection":"none"},
  "stages": [
    {"name":"find","kind":"agent","function":"toc-find","batch_size":4,"max_workers":2,"timeout_seconds":40,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"agent":{"max_turns":12,"max_tokens":200000,"max_seconds":600,"debug":true}},
    {"name":"extract","function":"toc-extract","needs":["find"],"when":"$.needs.find.first_contents_page > 0","otherwise":"skip_dependents","concurrency":50,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}},"pages_not_read":{"max_attempts":30,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":60}}}},"completion":{"callback":true,"poll_seconds":2}},
    {"name":"outline","function":"toc-outline","batch_size":1,"max_workers":4,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"on_failure":"continue"},
    {"name":"link","function":"toc-link","needs":["find","extract"],"batch_size":1,"max_workers":4,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}}}
  ]
}$pipeline$);
