-- The pipeline chunks, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "pipeline": "chunks",
  "entity": {
    "table": "public.chunk",
    "key": "id",
    "projection": "none"
  },
  "stages": [
    {
      "name": "kg",
      "kind": "function",
      "function": "chunks-kg",
      "needs": [],
      "batch_size": 10,
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
      "completion": {
        "callback": true,
        "poll_seconds": 2,
        "deadline_seconds": 600
      },
      "apply": "public.apply_facts",
      "result_limit_bytes": 1048576
    },
    {
      "name": "graphiti",
      "kind": "function",
      "function": "chunks-graphiti",
      "needs": [
        "kg"
      ],
      "batch_size": 20,
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
      "apply": "public.apply_graphiti",
      "result_limit_bytes": 1048576
    }
  ]
}$pipeline$);
