-- The pipeline document_monolith, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.document', 'monolith');

select millrace.define($pipeline${
  "pipeline": "document_monolith",
  "entity": {"table":"public.document","metadata":"metadata"},
  "quota": {"column":"clerk_org_id","starts":{"count":2000,"per_seconds":3600},"spending":{"usd":50,"per_seconds":86400}},
  "stages": [
    {"name":"monolith","function":"document-monolith","batch_size":1,"max_workers":4,"timeout_seconds":55,"retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"apply":"public.apply_document","result_limit_bytes":10000000}
  ]
}$pipeline$);
