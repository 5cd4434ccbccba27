-- The pipeline memos, written from its definition in supabase/functions/_pipelines. Do not edit it: change it
-- there and sync again, which adds another migration.

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "71d9d6458d130c415a6a29f0738077fe648b4b77faa4becf01557d8e8379d903",
  "pipeline": "memos",
  "entity": {"table":"public.memos","key":"id","projection":"none","due":"embed_at"},
  "stages": [
    {"name":"embed","kind":"function","function_name":"memos-embed","batch_size":50,"max_workers":2,"lease":"90 s","timeout":"60 s","retry":{"max_attempts":8,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.apply_memo_chunks","result_limit_bytes":1048576,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"embed":[]},
  "columns": [
    {"field":"entity.due","table":"public.memos","column":"embed_at","types":["timestamp with time zone"],"remedy":"Name a column of type timestamptz: alter table public.memos add column due_at timestamptz; or leave it out."},
    {"field":"the input of stage embed","table":"public.memos","column":"body","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage embed","table":"public.memos","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage embed","table":"public.memos","column":"revision","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "functions": [
    {"field":"stages.embed.apply","name":"public.apply_memo_chunks","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
