-- The pipeline link_sources, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "fcb6aebd591662c8a629e899a78df771ff69b88c3a964f3d120108efa6d21cf3",
  "pipeline": "link_sources",
  "entity": {"table":"public.link_sources","key":"id","projection":"none","due":"next_poll_at"},
  "stages": [
    {"name":"poll","kind":"function","function_name":"link-sources-poll","batch_size":1,"max_workers":4,"lease":"90 s","timeout":"45 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.apply_link_polls","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"max_in_flight":2},"has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"poll":[]},
  "columns": [
    {"field":"entity.due","table":"public.link_sources","column":"next_poll_at","types":["timestamp with time zone"],"remedy":"Name a column of type timestamptz: alter table public.link_sources add column due_at timestamptz; or leave it out."},
    {"field":"the input of stage poll","table":"public.link_sources","column":"address","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage poll","table":"public.link_sources","column":"column_name","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage poll","table":"public.link_sources","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage poll","table":"public.link_sources","column":"kind","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "functions": [
    {"field":"stages.poll.apply","name":"public.apply_link_polls","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
