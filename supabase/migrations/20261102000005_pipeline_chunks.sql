-- The pipeline chunks, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "eb75780194d7875b2d958d4ddcb52d7155a78e1f053e173814d25de32770d9d5",
  "pipeline": "chunks",
  "entity": {"table":"public.chunk","key":"id","projection":"none"},
  "stages": [
    {"name":"kg","kind":"function","function_name":"chunks-kg","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","apply":"public.apply_facts","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["graphiti"],"is_sink":false,"unconditional":true},
    {"name":"graphiti","kind":"function","function_name":"chunks-graphiti","batch_size":20,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.apply_graphiti","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["kg"],"on_demand":false,"after":[],"position":2,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"kg":[],"graphiti":["kg"]},
  "functions": [
    {"field":"stages.kg.apply","name":"public.apply_facts","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."},
    {"field":"stages.graphiti.apply","name":"public.apply_graphiti","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
