-- The pipeline chunks, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "0ef72a129355b5856f73a0e21c2adff248f35656e4b22eb38e4fdd8df3d4122b",
  "pipeline": "chunks",
  "entity": {"table":"public.chunk","key":"id","projection":"none"},
  "stages": [
    {"name":"kg","kind":"function","function_name":"chunks-kg","batch_size":50,"max_workers":1,"concurrency":50,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"2 s","deadline":"600 s","apply":"public.apply_facts","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":["graphiti"],"is_sink":false,"unconditional":true},
    {"name":"graphiti","kind":"function","function_name":"chunks-graphiti","batch_size":20,"max_workers":2,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.apply_graphiti","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":["kg"],"on_demand":false,"after":[],"position":2,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"kg":[],"graphiti":["kg"]},
  "columns": [
    {"field":"the input of stage graphiti","table":"public.chunk","column":"document_id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage graphiti","table":"public.chunk","column":"graphiti_posted_at","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage graphiti, kg","table":"public.chunk","column":"heading","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage graphiti","table":"public.chunk","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage graphiti","table":"public.chunk","column":"ordinal","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage graphiti, kg","table":"public.chunk","column":"text","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "functions": [
    {"field":"stages.kg.apply","name":"public.apply_facts","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."},
    {"field":"stages.graphiti.apply","name":"public.apply_graphiti","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
