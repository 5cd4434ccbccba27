-- The pipeline document_monolith, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

alter table public.document
  add column if not exists monolith_status text not null default 'pending',
  add column if not exists monolith_job_id text,
  add column if not exists monolith_result jsonb,
  add column if not exists monolith_error text,
  add column if not exists monolith_retry_count int not null default 0,
  add column if not exists monolith_started_at timestamptz,
  add column if not exists monolith_completed_at timestamptz;

select millrace.define($pipeline${
  "pipeline": "document_monolith",
  "entity": {
    "table": "public.document",
    "key": "id",
    "projection": "columns",
    "metadata": "metadata"
  },
  "quota": {
    "column": "clerk_org_id",
    "starts": {
      "count": 2000,
      "per_seconds": 3600
    },
    "spending": {
      "usd": 50,
      "per_seconds": 86400
    }
  },
  "stages": [
    {
      "name": "monolith",
      "kind": "function",
      "function": "document-monolith",
      "needs": [],
      "batch_size": 1,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 55,
      "retry": {
        "max_attempts": 4,
        "backoff": {
          "kind": "exponential",
          "base_seconds": 2,
          "factor": 2,
          "cap_seconds": 300,
          "jitter": 0.2
        },
        "by_code": {
          "misconfigured": {
            "max_attempts": 100,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 2,
              "factor": 2,
              "cap_seconds": 900,
              "jitter": 0.2
            }
          },
          "rate_limited": {
            "max_attempts": 8,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 10,
              "factor": 2,
              "cap_seconds": 300,
              "jitter": 0.2
            }
          },
          "invalid_output": {
            "max_attempts": 3,
            "backoff": {
              "kind": "list",
              "seconds": [
                1,
                5
              ]
            }
          }
        }
      },
      "apply": "public.apply_document",
      "result_limit_bytes": 10000000
    }
  ]
}$pipeline$);
