-- The pipeline site_notices, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "fd059b0f6ad5c93a9b5b5ba30aa7edb1608258ccb9339303a52e8ff459d983e9",
  "pipeline": "site_notices",
  "entity": {"table":"public.site_notice","key":"id","projection":"none"},
  "stages": [
    {"name":"tell","kind":"function","function_name":"site-notices-tell","batch_size":5,"max_workers":4,"lease":"60 s","timeout":"30 s","retry":{"max_attempts":30,"backoff":{"kind":"exponential","base_seconds":5,"factor":2,"cap_seconds":1800,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.site_notice_told","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"tell":[]},
  "columns": [
    {"field":"the input of stage tell","table":"public.site_notice","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage tell","table":"public.site_notice","column":"publication_id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage tell","table":"public.site_notice","column":"slug","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage tell","table":"public.site_notice","column":"type","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "functions": [
    {"field":"stages.tell.apply","name":"public.site_notice_told","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
