-- The pipeline leads, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.leads', 'scrape', 'intel', 'strategy', 'subject', 'messaging');

grant update (scrape_status, intel_status, strategy_status, subject_status, messaging_status) on public.leads to authenticated;

select millrace.define($pipeline${
  "pipeline": "leads",
  "entity": {"table":"public.leads","startable_by":["authenticated"]},
  "quota": {"column":"account_id","starts":{"count":5000,"per_seconds":3600},"spending":{"usd":50,"per_seconds":86400}},
  "stages": [
    {"name":"scrape","kind":"external","function":"leads-scrape","batch_size":10,"max_workers":2,"retry":{"max_attempts":4,"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"max_in_flight":50,"concurrency":{"column":"account_id","limit":25}},"completion":{"callback":true,"poll_seconds":2}},
    {"name":"intel","function":"leads-intel","needs":["scrape"],"concurrency":50,"retry":{"max_attempts":4,"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"limits":{"concurrency":{"column":"account_id","limit":50}},"completion":{"callback":true,"poll_seconds":2}},
    {"name":"strategy","function":"leads-strategy","needs":["intel"],"concurrency":50,"retry":{"max_attempts":4,"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"limits":{"concurrency":{"column":"account_id","limit":50}},"completion":{"callback":true,"poll_seconds":2}},
    {"name":"subject","function":"leads-subject","needs":["strategy"],"concurrency":50,"retry":{"max_attempts":4,"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"limits":{"concurrency":{"column":"account_id","limit":50}},"completion":{"callback":true,"poll_seconds":2}},
    {"name":"messaging","function":"leads-messaging","needs":["strategy","subject"],"concurrency":50,"retry":{"max_attempts":4,"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"limits":{"concurrency":{"column":"account_id","limit":50}},"completion":{"callback":true,"poll_seconds":2}}
  ]
}$pipeline$);
