-- The pipeline link_sources, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "pipeline": "link_sources",
  "entity": {"table":"public.link_sources","projection":"none","due":"next_poll_at"},
  "stages": [
    {"name":"poll","function":"link-sources-poll","batch_size":1,"max_workers":4,"lease_seconds":90,"timeout_seconds":45,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"max_in_flight":2},"apply":"public.apply_link_polls"}
  ]
}$pipeline$);
