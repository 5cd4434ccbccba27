-- The pipeline site_notices, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "pipeline": "site_notices",
  "entity": {"table":"public.site_notice","projection":"none"},
  "stages": [
    {"name":"tell","function":"site-notices-tell","batch_size":5,"max_workers":4,"retry":{"max_attempts":30,"backoff":{"kind":"exponential","cap_seconds":1800},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"apply":"public.site_notice_told"}
  ]
}$pipeline$);
