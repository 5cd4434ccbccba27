-- The pipeline toc, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

select millrace.define($pipeline${
  "pipeline": "toc",
  "entity": {
    "table": "public.books",
    "key": "id",
    "projection": "none"
  },
  "stages": [
    {
      "name": "find",
      "kind": "agent",
      "function": "toc-find",
      "needs": [],
      "batch_size": 4,
      "max_workers": 2,
      "lease_seconds": 60,
      "timeout_seconds": 40,
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
      "agent": {
        "max_turns": 12,
        "max_tokens": 200000,
        "max_seconds": 600,
        "debug": true
      },
      "result_limit_bytes": 1048576
    },
    {
      "name": "extract",
      "kind": "function",
      "function": "toc-extract",
      "needs": [
        "find"
      ],
      "when": "$.needs.find.first_contents_page > 0",
      "otherwise": "skip_dependents",
      "batch_size": 1,
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
          },
          "pages_not_read": {
            "max_attempts": 30,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 2,
              "factor": 2,
              "cap_seconds": 60,
              "jitter": 0.2
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
    },
    {
      "name": "outline",
      "kind": "function",
      "function": "toc-outline",
      "needs": [],
      "batch_size": 1,
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
          }
        }
      },
      "on_failure": "continue",
      "result_limit_bytes": 1048576
    },
    {
      "name": "link",
      "kind": "function",
      "function": "toc-link",
      "needs": [
        "find",
        "extract"
      ],
      "batch_size": 1,
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
          }
        }
      },
      "result_limit_bytes": 1048576
    }
  ]
}$pipeline$);
