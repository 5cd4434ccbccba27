-- The pipeline leads, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit it: change the definition there and run the command again, which adds another migration.

grant update (scrape_status, intel_status, strategy_status, subject_status, messaging_status) on public.leads to authenticated;

select millrace.define($pipeline${
  "pipeline": "leads",
  "entity": {
    "table": "public.leads",
    "key": "id",
    "projection": "columns",
    "startable_by": [
      "authenticated"
    ]
  },
  "quota": {
    "column": "account_id",
    "starts": {
      "count": 5000,
      "per_seconds": 3600
    },
    "spending": {
      "usd": 50,
      "per_seconds": 86400
    }
  },
  "stages": [
    {
      "name": "scrape",
      "kind": "external",
      "function": "leads-scrape",
      "needs": [],
      "batch_size": 10,
      "max_workers": 2,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 4,
        "backoff": {
          "kind": "exponential",
          "base_seconds": 5,
          "factor": 2,
          "cap_seconds": 300,
          "jitter": 0.2
        },
        "by_code": {
          "misconfigured": {
            "max_attempts": 100,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 5,
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
        "max_in_flight": 50,
        "concurrency": {
          "column": "account_id",
          "limit": 25
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
      "name": "intel",
      "kind": "function",
      "function": "leads-intel",
      "needs": [
        "scrape"
      ],
      "batch_size": 10,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 4,
        "backoff": {
          "kind": "exponential",
          "base_seconds": 5,
          "factor": 2,
          "cap_seconds": 300,
          "jitter": 0.2
        },
        "by_code": {
          "misconfigured": {
            "max_attempts": 100,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 5,
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
      "limits": {
        "concurrency": {
          "column": "account_id",
          "limit": 50
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
      "name": "strategy",
      "kind": "function",
      "function": "leads-strategy",
      "needs": [
        "intel"
      ],
      "batch_size": 10,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 4,
        "backoff": {
          "kind": "exponential",
          "base_seconds": 5,
          "factor": 2,
          "cap_seconds": 300,
          "jitter": 0.2
        },
        "by_code": {
          "misconfigured": {
            "max_attempts": 100,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 5,
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
      "limits": {
        "concurrency": {
          "column": "account_id",
          "limit": 50
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
      "name": "subject",
      "kind": "function",
      "function": "leads-subject",
      "needs": [
        "strategy"
      ],
      "batch_size": 10,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 4,
        "backoff": {
          "kind": "exponential",
          "base_seconds": 5,
          "factor": 2,
          "cap_seconds": 300,
          "jitter": 0.2
        },
        "by_code": {
          "misconfigured": {
            "max_attempts": 100,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 5,
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
      "limits": {
        "concurrency": {
          "column": "account_id",
          "limit": 50
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
      "name": "messaging",
      "kind": "function",
      "function": "leads-messaging",
      "needs": [
        "strategy",
        "subject"
      ],
      "batch_size": 10,
      "max_workers": 4,
      "lease_seconds": 60,
      "timeout_seconds": 30,
      "retry": {
        "max_attempts": 4,
        "backoff": {
          "kind": "exponential",
          "base_seconds": 5,
          "factor": 2,
          "cap_seconds": 300,
          "jitter": 0.2
        },
        "by_code": {
          "misconfigured": {
            "max_attempts": 100,
            "backoff": {
              "kind": "exponential",
              "base_seconds": 5,
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
      "limits": {
        "concurrency": {
          "column": "account_id",
          "limit": 50
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
