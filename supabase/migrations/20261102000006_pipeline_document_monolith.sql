-- The pipeline document_monolith, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.add_columns('public.document', 'monolith');

select millrace.define($pipeline${
  "compiler": 1,
  "digest": "3f1b4888061d35da696ccadd5f44bdcba2049836566a6209ad48f359df930d70",
  "pipeline": "document_monolith",
  "entity": {"table":"public.document","key":"id","projection":"columns","metadata":"metadata"},
  "quota": {"column":"clerk_org_id","starts":{"count":2000,"per_seconds":3600},"spending":{"usd":50,"per_seconds":86400}},
  "stages": [
    {"name":"monolith","kind":"function","function_name":"document-monolith","batch_size":1,"max_workers":4,"lease":"60 s","timeout":"55 s","retry":{"max_attempts":4,"backoff":{"kind":"exponential","base_seconds":2,"factor":2,"cap_seconds":300,"jitter":0.2},"by_code":{"invalid_output":{"max_attempts":3,"backoff":{"kind":"list","seconds":[1,5]}}}},"callback":true,"poll_every":"10 s","deadline":"600 s","apply":"public.apply_document","result_limit_bytes":10000000,"on_failure":"fail_run","has_groups":false,"when_spent":"wait","needs":[],"on_demand":false,"after":[],"position":1,"dependents":[],"is_sink":true,"unconditional":true}
  ],
  "graph": {"monolith":[]},
  "columns": [
    {"field":"entity.metadata","table":"public.document","column":"metadata","types":["jsonb"],"remedy":"Name a column of type jsonb: alter table public.document add column metadata jsonb not null default '{}'; or leave it out."},
    {"field":"quota.column","table":"public.document","column":"clerk_org_id","remedy":"Name the column whose value is the tenant."},
    {"field":"the input of stage monolith","table":"public.document","column":"clerk_org_id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage monolith","table":"public.document","column":"id","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."},
    {"field":"the input of stage monolith","table":"public.document","column":"source_path","read":true,"remedy":"Correct the handler and sync again, or add the column in an earlier migration."}
  ],
  "functions": [
    {"field":"stages.monolith.apply","name":"public.apply_document","arguments":"jsonb","remedy":"Create the function in an earlier migration and name it with its schema."}
  ]
}$pipeline$);
