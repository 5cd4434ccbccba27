-- The pipeline documents, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.document', 'extraction', 'chunking', 'kg_ingest');

grant update (extraction_status, chunking_status, kg_ingest_status) on public.document to authenticated;

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "12595102886228e3104028319183b56164e1a320ea836435aca2be6cfb798549",
  "pipeline": "documents",
  "entity": {"table":"public.document","key":"id","projection":"columns","metadata":"metadata","startable_by":["authenticated"]},
  "quota": {"column":"clerk_org_id","starts":{"count":2000,"per_seconds":3600},"spending":{"usd":50,"per_seconds":86400}},
  "stages": [
    {"name":"extraction","kind":"external","function_name":"documents-extraction","batch_size":1,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"5 s","deadline":"3600 s","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"max_in_flight":20,"concurrency":{"column":"clerk_org_id","limit":10}},"has_groups":true,"when_spent":"wait","sla":"900 s","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["chunking","kg_ingest"],"is_sink":false,"unconditional":true},
    {"name":"chunking","kind":"function","function_name":"documents-chunking","batch_size":1,"max_workers":4,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.apply_chunks","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"concurrency":{"column":"clerk_org_id","limit":10}},"has_groups":true,"when_spent":"wait","sla":"300 s","needs":["extraction"],"on_demand":false,"after":[],"position":2,"dependents":["kg_ingest"],"is_sink":false,"unconditional":true},
    {"name":"kg_ingest","kind":"map","function_name":"documents-kg-ingest","batch_size":1,"max_workers":4,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":false,"deadline":"604800 s","result_limit_bytes":1048576,"on_failure":"fail_run","child":{"pipeline":"chunks"},"fan_in":{"failed_children":"fail"},"limits":{"concurrency":{"column":"clerk_org_id","limit":10}},"has_groups":true,"when_spent":"wait","sla":"3600 s","needs":["chunking"],"on_demand":false,"after":[],"position":3,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"extraction":[],"chunking":["extraction"],"kg_ingest":{"child":"chunks","kind":"map","needs":["chunking"]}},
  "columns": [
    {"field":"entity.metadata","table":"public.document","column":"metadata","types":["jsonb"],"remedy":"Name a column of type jsonb: alter table public.document add column metadata jsonb not null default '{}'; or leave it out."},
    {"field":"quota.column","table":"public.document","column":"clerk_org_id","remedy":"Name the column whose value is the tenant."},
    {"field":"stages.extraction.limits.concurrency.column","table":"public.document","column":"clerk_org_id","remedy":"Name the column whose value is the key."},
    {"field":"stages.chunking.limits.concurrency.column","table":"public.document","column":"clerk_org_id","remedy":"Name the column whose value is the key."},
    {"field":"stages.kg_ingest.limits.concurrency.column","table":"public.document","column":"clerk_org_id","remedy":"Name the column whose value is the key."},
    {"field":"the input of stage extraction","table":"public.document","column":"clerk_org_id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage chunking, extraction, kg_ingest","table":"public.document","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage extraction","table":"public.document","column":"source_path","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "functions": [
    {"field":"stages.chunking.apply","name":"public.apply_chunks","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
