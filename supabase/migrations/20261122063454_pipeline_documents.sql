-- The pipeline documents, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

alter table public.document
  add column if not exists extraction_status text not null default 'pending',
  add column if not exists extraction_job_id text,
  add column if not exists extraction_result jsonb,
  add column if not exists extraction_error text,
  add column if not exists extraction_retry_count int not null default 0,
  add column if not exists extraction_started_at timestamptz,
  add column if not exists extraction_completed_at timestamptz;

alter table public.document
  add column if not exists chunking_status text not null default 'pending',
  add column if not exists chunking_job_id text,
  add column if not exists chunking_result jsonb,
  add column if not exists chunking_error text,
  add column if not exists chunking_retry_count int not null default 0,
  add column if not exists chunking_started_at timestamptz,
  add column if not exists chunking_completed_at timestamptz;

alter table public.document
  add column if not exists kg_ingest_status text not null default 'pending',
  add column if not exists kg_ingest_job_id text,
  add column if not exists kg_ingest_result jsonb,
  add column if not exists kg_ingest_error text,
  add column if not exists kg_ingest_retry_count int not null default 0,
  add column if not exists kg_ingest_started_at timestamptz,
  add column if not exists kg_ingest_completed_at timestamptz;

grant update (extraction_status, chunking_status, kg_ingest_status) on public.document to authenticated;

select millrace.define($pipeline${
  "pipeline": "documents",
  "entity": {
    "table": "public.document",
    "key": "id",
    "projection": "columns",
    "metadata": "metadata",
    "startable_by": [
      "authenticated"
    ]
  },
  "replaces": {
    "pipeline": "document_monolith",
    "group_by": "clerk_org_id"
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
      "name": "extraction",
      "kind": "external",
      "function": "documents-extraction",
      "needs": [],
      "batch_size": 1,
      "max_workers": 2,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 8,
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
          }
        }
      },
      "limits": {
        "max_in_flight": 20,
        "concurrency": {
          "column": "clerk_org_id",
          "limit": 10
        }
      },
      "completion": {
        "callback": true,
        "poll_seconds": 5,
        "deadline_seconds": 3600
      },
      "sla_seconds": 900,
      "result_limit_bytes": 1048576
    },
    {
      "name": "chunking",
      "kind": "function",
      "function": "documents-chunking",
      "needs": [
        "extraction"
      ],
      "batch_size": 1,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 8,
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
          }
        }
      },
      "limits": {
        "concurrency": {
          "column": "clerk_org_id",
          "limit": 10
        }
      },
      "apply": "public.apply_chunks",
      "sla_seconds": 300,
      "result_limit_bytes": 1048576
    },
    {
      "name": "kg_ingest",
      "kind": "map",
      "function": "documents-kg-ingest",
      "needs": [
        "chunking"
      ],
      "batch_size": 1,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 8,
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
          }
        }
      },
      "limits": {
        "concurrency": {
          "column": "clerk_org_id",
          "limit": 10
        }
      },
      "child": {
        "pipeline": "chunks"
      },
      "fan_in": {
        "rule": "all",
        "failed_children": "fail"
      },
      "sla_seconds": 3600,
      "result_limit_bytes": 1048576
    }
  ]
}$pipeline$);
