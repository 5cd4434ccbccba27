-- The pipeline documents, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.document', 'extraction', 'chunking', 'kg_ingest');

grant update (extraction_status, chunking_status, kg_ingest_status) on public.document to authenticated;

select millrace.define($pipeline${
  "pipeline": "documents",
  "entity": {"table":"public.document","metadata":"metadata","startable_by":["authenticated"]},
  "quota": {"column":"clerk_org_id","starts":{"count":2000,"per_seconds":3600},"spending":{"usd":50,"per_seconds":86400}},
  "stages": [
    {"name":"extraction","kind":"external","function":"documents-extraction","batch_size":1,"max_workers":2,"retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"max_in_flight":20,"concurrency":{"column":"clerk_org_id","limit":10}},"completion":{"callback":true,"poll_seconds":5,"deadline_seconds":3600},"sla_seconds":900},
    {"name":"chunking","function":"documents-chunking","needs":["extraction"],"batch_size":1,"max_workers":4,"retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"concurrency":{"column":"clerk_org_id","limit":10}},"apply":"public.apply_chunks","sla_seconds":300},
    {"name":"kg_ingest","kind":"map","function":"documents-kg-ingest","needs":["chunking"],"batch_size":1,"max_workers":4,"retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"cap_seconds":900}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10}}}},"limits":{"concurrency":{"column":"clerk_org_id","limit":10}},"child":{"pipeline":"chunks"},"fan_in":{"failed_children":"fail"},"sla_seconds":3600}
  ]
}$pipeline$);
