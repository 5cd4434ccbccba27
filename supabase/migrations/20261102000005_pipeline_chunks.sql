-- The pipeline chunks, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "0fae03d8670ecfd564f934498bd5f4fe815e1449dc5d9881c27bd0eb31e1cc12",
  "pipeline": "chunks",
  "entity": {"table":"public.chunk","key":"id","projection":"none"},
  "stages": [
    {"name":"kg","kind":"function","function_name":"chunks-kg","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":900,"jitter":0.2}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10,"factor":2,"cap_seconds":300,"jitter":0.2}},"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","apply":"public.apply_facts","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["graphiti"],"is_sink":false,"unconditional":true},
    {"name":"graphiti","kind":"function","function_name":"chunks-graphiti","batch_size":20,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":900,"jitter":0.2}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10,"factor":2,"cap_seconds":300,"jitter":0.2}}}},"callback":false,"apply":"public.apply_graphiti","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["kg"],"on_demand":false,"after":[],"position":2,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"kg":[],"graphiti":["kg"]},
  "functions": [
    {"field":"stages.kg.apply","name":"public.apply_facts","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."},
    {"field":"stages.graphiti.apply","name":"public.apply_graphiti","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
