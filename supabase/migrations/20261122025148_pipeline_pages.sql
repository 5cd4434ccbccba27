-- The pipeline pages, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

grant update (ocr_status, blend_status, label_status) on public.pages to authenticated;

select millrace.define($pipeline${
  "pipeline": "pages",
  "entity": {
    "table": "public.pages",
    "key": "id",
    "projection": "columns",
    "startable_by": [
      "authenticated"
    ]
  },
  "stages": [
    {
      "name": "ocr",
      "kind": "external",
      "function": "pages-ocr",
      "needs": [],
      "batch_size": 10,
      "max_workers": 2,
      "lease_seconds": 60,
      "timeout_seconds": 30,
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
          }
        }
      },
      "limits": {
        "max_in_flight": 50
      },
      "completion": {
        "callback": true,
        "poll_seconds": 2,
        "deadline_seconds": 600
      },
      "result_limit_bytes": 1048576
    },
    {
      "name": "blend",
      "kind": "function",
      "function": "pages-blend",
      "needs": [
        "ocr"
      ],
      "batch_size": 20,
      "max_workers": 2,
      "lease_seconds": 60,
      "timeout_seconds": 30,
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
          }
        }
      },
      "result_limit_bytes": 1048576
    },
    {
      "name": "label",
      "kind": "function",
      "function": "pages-label",
      "needs": [
        "blend"
      ],
      "batch_size": 10,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 30,
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
      "completion": {
        "callback": true,
        "poll_seconds": 2,
        "deadline_seconds": 600
      },
      "result_limit_bytes": 1048576
    }
  ]
}$pipeline$);
