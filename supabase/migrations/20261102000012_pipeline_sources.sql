-- The pipeline sources, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "pipeline": "sources",
  "entity": {"table":"public.source","projection":"none","due":"next_poll_at"},
  "stages": [
    {"name":"poll","function":"sources-poll","batch_size":1,"max_workers":4,"lease_seconds":90,"timeout_seconds":45,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"concurrency":{"column":"address","part":"host","limit":2}},"apply":"public.apply_polls"}
  ]
}$pipeline$);
