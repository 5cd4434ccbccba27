-- The pipeline chunks, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "pipeline": "chunks",
  "entity": {"table":"public.chunk","projection":"none"},
  "stages": [
    {"name":"kg","function":"chunks-kg","concurrency":50,"retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"completion":{"callback":true,"poll_seconds":2},"apply":"public.apply_facts"},
    {"name":"graphiti","function":"chunks-graphiti","needs":["kg"],"batch_size":20,"max_workers":2,"retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"apply":"public.apply_graphiti"}
  ]
}$pipeline$);
