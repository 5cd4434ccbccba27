-- The pipeline link_sources, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "5218b547d10677cd1f3f93dad4642a390b569792302119707d58852a2d6c39fb",
  "pipeline": "link_sources",
  "entity": {"table":"public.link_sources","key":"id","projection":"none","due":"next_poll_at"},
  "stages": [
    {"name":"poll","kind":"function","function_name":"link-sources-poll","batch_size":1,"max_workers":4,"lease":"90 s","timeout":"45 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"misconfigured":{"max_attempts":100,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":900,"jitter":0.2}},"rate_limited":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":10,"factor":2,"cap_seconds":300,"jitter":0.2}}}},"callback":false,"apply":"public.apply_link_polls","result_limit_bytes":1048576,"on_failure":"fail_run","limits":{"max_in_flight":2},"has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"poll":[]},
  "columns": [
    {"field":"entity.due","table":"public.link_sources","column":"next_poll_at","types":["timestamp with time zone"],"remedy":"Name a column of type timestamptz: alter table public.link_sources add column due_at timestamptz; or leave it out."}
  ],
  "functions": [
    {"field":"stages.poll.apply","name":"public.apply_link_polls","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
