-- The pipeline books, written by `npm run pipelines:sync` from supabase/functions/_pipelines.
-- Do not edit the definition: change it there and run the command again, which adds another migration.

grant update (split_status, metadata_status, toc_status, page_numbers_status, headings_status, structure_status, review_status, assemble_status) on public.books to authenticated;

select millrace.define($pipeline${
  "pipeline": "books",
  "entity": {
    "table": "public.books",
    "key": "id",
    "projection": "columns",
    "startable_by": [
      "authenticated"
    ]
  },
  "quota": {
    "column": "account_id",
    "starts": {
      "count": 1000,
      "per_seconds": 3600
    },
    "spending": {
      "usd": 100,
      "per_seconds": 86400
    }
  },
  "stages": [
    {
      "name": "split",
      "kind": "map",
      "function": "books-split",
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
      "limits": {
        "concurrency": {
          "column": "account_id",
          "limit": 5
        }
      },
      "child": {
        "pipeline": "pages",
        "insert": "public.insert_pages"
      },
      "fan_in": {
        "rule": "all",
        "failed_children": "ignore"
      },
      "result_limit_bytes": 1048576
    },
    {
      "name": "metadata",
      "kind": "function",
      "function": "books-metadata",
      "needs": [],
      "after": [
        {
          "map": "split",
          "stage": "blend",
          "count": 20
        }
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
      "on_failure": "continue",
      "result_limit_bytes": 1048576
    },
    {
      "name": "toc",
      "kind": "pipeline",
      "needs": [],
      "after": [
        {
          "map": "split",
          "stage": "blend",
          "consecutive": 10
        }
      ],
      "child": {
        "pipeline": "toc"
      },
      "on_failure": "continue",
      "result_limit_bytes": 1048576
    },
    {
      "name": "page_numbers",
      "kind": "function",
      "function": "books-page-numbers",
      "needs": [],
      "after": [
        {
          "map": "split",
          "stage": "label",
          "all": true
        }
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
    },
    {
      "name": "headings",
      "kind": "function",
      "function": "books-headings",
      "needs": [],
      "after": [
        {
          "map": "split",
          "stage": "label",
          "all": true
        }
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
    },
    {
      "name": "structure",
      "kind": "function",
      "function": "books-structure",
      "needs": [
        "metadata",
        "toc",
        "page_numbers",
        "headings"
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
    },
    {
      "name": "review",
      "kind": "manual",
      "needs": [
        "structure"
      ],
      "when": "$.needs.structure.confidence < 0.97",
      "decision": {
        "schema": {
          "type": "object",
          "properties": {
            "keep": {
              "type": "string",
              "enum": [
                "all",
                "contents",
                "headings"
              ],
              "description": "all entries, only printed contents, or only headings"
            },
            "note": {
              "type": "string",
              "maxLength": 1000
            }
          },
          "required": [
            "keep"
          ],
          "additionalProperties": false
        },
        "deadline_seconds": 604800
      },
      "on_failure": "continue",
      "result_limit_bytes": 1048576
    },
    {
      "name": "assemble",
      "kind": "function",
      "function": "books-assemble",
      "needs": [
        "split",
        "metadata",
        "structure",
        "review"
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
