-- The pipeline sources, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "d91179f5f881610ab07abc22ab2d88eefaf3877dbd7e4997402c57a8dbf4ff74",
  "pipeline": "sources",
  "entity": {"table":"public.source","key":"id","projection":"none","due":"next_poll_at"},
  "stages": [
    {"name":"poll","kind":"function","function_name":"sources-poll","batch_size":1,"max_workers":4,"lease":"90 s","timeout":"45 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.apply_polls","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"concurrency":{"column":"address","part":"host","limit":2}},"has_groups":true,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"poll":[]},
  "columns": [
    {"field":"entity.due","table":"public.source","column":"next_poll_at","types":["timestamp with time zone"],"remedy":"Name a column of type timestamptz: alter table public.source add column due_at timestamptz; or leave it out."},
    {"field":"stages.poll.limits.concurrency.column","table":"public.source","column":"address","remedy":"Name the column whose value is the key."},
    {"field":"the input of stage poll","table":"public.source","column":"address","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage poll","table":"public.source","column":"etag","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage poll","table":"public.source","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage poll","table":"public.source","column":"last_modified","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "functions": [
    {"field":"stages.poll.apply","name":"public.apply_polls","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
