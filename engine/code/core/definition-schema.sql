-- What a definition may say, made of supabase/functions/_millrace/define/definition-schema.ts by `npm run check -- --write`.
-- Change it there.

create or replace function millrace.definition_schema() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select $schema${
 "type":"object",
 "required":["pipeline","entity","stages"],
 "additionalProperties":false,
 "properties":{
  "pipeline":{"$ref":"#/$defs/pipeline"},
  "entity":{
   "type":"object",
   "properties":{
    "table":{"$ref":"#/$defs/table"},
    "key":{"default":"id","type":"string","minLength":1,"wanted":"the name of a column"},
    "projection":{
     "default":"columns",
     "type":"string",
     "enum":["columns","status","none"],
     "wanted":"columns, status or none",
     "remedy":"columns keeps seven columns a stage on the entity, status shows the run in one column, none keeps its state in the engine alone."
    },
    "status":{
     "type":"object",
     "properties":{
      "column":{
       "type":"string",
       "minLength":1,
       "wanted":"a column of the entity's table",
       "remedy":"Name the column of type smallint or text."
      },
      "values":{
       "type":"object",
       "additionalProperties":{
        "type":"object",
        "additionalProperties":{
         "minItems":1,
         "maxItems":2,
         "type":"array",
         "items":{"type":"string"},
         "wanted":"a list of name and description",
         "remedy":"For a column of texts the value is the name."
        }
       }
      },
      "layers":{
       "default":{},
       "type":"object",
       "additionalProperties":{
        "type":"object",
        "properties":{
         "stages":{"minItems":1,"type":"array","items":{"$ref":"#/$defs/pipeline"}},
         "enter":{"$ref":"#/$defs/enter"},
         "leave":{"$ref":"#/$defs/enter"}
        },
        "required":["stages"],
        "additionalProperties":false
       }
      },
      "failed":{"$ref":"#/$defs/enter"},
      "ends":{"$ref":"#/$defs/ends","default":{}},
      "shared":{"$ref":"#/$defs/shared","default":[]},
      "closed":{"$ref":"#/$defs/shared","default":[]},
      "moves":{"$ref":"#/$defs/moves","default":[]},
      "entries":{"$ref":"#/$defs/shared","default":[]},
      "drawn":{
       "default":[],
       "type":"array",
       "items":{
        "minItems":2,
        "type":"array",
        "items":{
         "type":["string","integer","null"],
         "wanted":"a value of the status column, or null for none"
        }
       }
      },
      "lookup":{"$ref":"#/$defs/table"},
      "history":{
       "type":"object",
       "properties":{
        "table":{"$ref":"#/$defs/table"},
        "key":{"type":"string","minLength":1,"wanted":"a column of the history"},
        "since":{
         "type":"string",
         "minLength":1,
         "wanted":"a column of the entity's table",
         "remedy":"Add a column of type timestamptz and name it."
        },
        "changes":{"$ref":"#/$defs/changes"}
       },
       "required":["table","key","since"],
       "additionalProperties":false,
       "wanted":"an object of table, key and since"
      },
      "attempts":{"$ref":"#/$defs/changes"},
      "retry_at":{"$ref":"#/$defs/changes"},
      "error":{"$ref":"#/$defs/changes"}
     },
     "required":["column","values","failed"],
     "additionalProperties":false,
     "wanted":"an object of column, values and failed"
    },
    "label":{"type":"string","minLength":1,"wanted":"the name of a text column"},
    "trace":{"type":"string","minLength":1,"wanted":"the name of a uuid column"},
    "due":{"type":"string","minLength":1,"wanted":"the name of a timestamptz column"},
    "metadata":{"type":"string","minLength":1,"wanted":"the name of a jsonb column"},
    "startable_by":{
     "minItems":1,
     "type":"array",
     "items":{
      "type":"string",
      "pattern":"^[a-z_][a-z0-9_]*$",
      "wanted":"the name of a database role"
     }
    }
   },
   "required":["table"],
   "additionalProperties":false,
   "wanted":"an object with a table"
  },
  "quota":{
   "type":"object",
   "properties":{
    "column":{
     "type":"string",
     "minLength":1,
     "wanted":"a column of the entity's table",
     "remedy":"Name the column whose value is the tenant."
    },
    "starts":{
     "type":"object",
     "properties":{
      "count":{"type":"integer","minimum":1,"maximum":1000000},
      "per_seconds":{"type":"integer","minimum":1,"maximum":2678400}
     },
     "required":["count","per_seconds"],
     "additionalProperties":false,
     "wanted":"an object of count and per_seconds",
     "remedy":"Name both, and nothing else; or leave it out."
    },
    "spending":{
     "type":"object",
     "properties":{
      "usd":{"type":"number","minimum":0.01,"maximum":1000000},
      "per_seconds":{"type":"integer","minimum":1,"maximum":2678400}
     },
     "required":["usd","per_seconds"],
     "additionalProperties":false,
     "wanted":"an object of usd and per_seconds",
     "remedy":"Name both, and nothing else; or leave it out."
    }
   },
   "required":["column"],
   "additionalProperties":false,
   "wanted":"an object of column, and starts or spending or both",
   "remedy":"Name what is bounded and by which column, and nothing else; or leave it out.",
   "minProperties":2,
   "maxProperties":3
  },
  "alerts":{
   "type":"object",
   "additionalProperties":{
    "type":"object",
    "properties":{
     "kind":{
      "type":"string",
      "enum":[
       "run_sla",
       "p95",
       "error_share",
       "backlog",
       "oldest_ready",
       "dead",
       "spend",
       "late",
       "refused"
      ],
      "wanted":"run_sla, p95, error_share, backlog, oldest_ready, dead, spend, late or refused",
      "remedy":"run_sla and late know their own bounds, the others need above."
     },
     "stage":{
      "type":"string",
      "pattern":"^(\\*|[a-z][a-z0-9_]{0,40})$",
      "wanted":"the name of a stage, or *",
      "remedy":"Leave it out for the pipeline."
     },
     "above":{"type":"number","minimum":0,"maximum":1000000000},
     "span_seconds":{"type":"integer","minimum":60,"maximum":604800},
     "for_seconds":{"type":"integer","minimum":0,"maximum":86400},
     "recover_seconds":{"type":"integer","minimum":0,"maximum":86400},
     "least":{"type":"integer","minimum":1,"maximum":1000000},
     "remind_seconds":{"type":"integer","minimum":300,"maximum":604800},
     "channels":{
      "minItems":1,
      "type":"array",
      "items":{"$ref":"#/$defs/pipeline"},
      "wanted":"a list of names of channels"
     },
     "playbook":{"type":"string","minLength":1,"wanted":"the address of a page"},
     "enabled":{"type":"boolean","wanted":"true or false"}
    },
    "required":["kind"],
    "additionalProperties":false,
    "wanted":"an object with a kind"
   }
  },
  "sla":{
   "type":"object",
   "properties":{
    "median_seconds":{"type":"number","minimum":1,"maximum":31536000},
    "p95_seconds":{"type":"number","minimum":1,"maximum":31536000}
   },
   "additionalProperties":false,
   "wanted":"an object of median_seconds or p95_seconds or both",
   "remedy":"Write {\"p95_seconds\": 7200}, or leave it out.",
   "minProperties":1,
   "maxProperties":2
  },
  "retention":{
   "type":"object",
   "properties":{"days":{"type":"integer","minimum":1,"maximum":9999}},
   "required":["days"],
   "additionalProperties":false,
   "wanted":"an object of days",
   "remedy":"Write {\"days\": 30}; or leave it out."
  },
  "enabled":{"type":"boolean","wanted":"true or false"},
  "stages":{
   "type":"array",
   "minItems":1,
   "items":{
    "noun":"stage",
    "wanted":"function, external, agent, map, manual, pipeline or gate",
    "remedy":"A function does its work itself, an external stage hands it to a job service, a manual one waits for a person, a pipeline one for a run of another pipeline, a map one for many; an agent takes many turns with a model; a gate is passed by the database.",
    "oneOf":[
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["function","external"],"default":"function"},
       "function":{"$ref":"#/$defs/function"},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "concurrency":{"type":"integer","minimum":1,"maximum":5000},
       "batch_size":{"type":"integer","minimum":1,"maximum":500},
       "max_workers":{"type":"integer","minimum":1,"maximum":1000},
       "lease_seconds":{"default":60,"type":"number","minimum":5,"maximum":3600},
       "timeout_seconds":{"default":30,"type":"number","minimum":1,"maximum":190},
       "retry":{"$ref":"#/$defs/retry","default":{}},
       "limits":{"$ref":"#/$defs/limits"},
       "when_spent":{"$ref":"#/$defs/when_spent"},
       "shows":{"$ref":"#/$defs/shows"},
       "unchanged":{"$ref":"#/$defs/unchanged"},
       "completion":{
        "type":"object",
        "properties":{
         "callback":{"default":false,"type":"boolean","wanted":"true or false"},
         "poll_seconds":{"type":["integer","null"],"minimum":1,"maximum":3600,"default":null},
         "deadline_seconds":{"default":600,"type":"integer","minimum":1,"maximum":604800},
         "deadline_from":{
          "type":"string",
          "enum":["submission","start"],
          "wanted":"submission or start",
          "remedy":"submission counts the time in the service's queue, start does not."
         }
        },
        "additionalProperties":false
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_26"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["agent"]},
       "function":{"$ref":"#/$defs/function"},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "concurrency":{"type":"integer","minimum":1,"maximum":5000},
       "batch_size":{"type":"integer","minimum":1,"maximum":500},
       "max_workers":{"type":"integer","minimum":1,"maximum":1000},
       "lease_seconds":{"default":60,"type":"number","minimum":5,"maximum":3600},
       "timeout_seconds":{"default":30,"type":"number","minimum":1,"maximum":190},
       "retry":{"$ref":"#/$defs/retry","default":{}},
       "limits":{"$ref":"#/$defs/limits"},
       "when_spent":{"$ref":"#/$defs/when_spent"},
       "shows":{"$ref":"#/$defs/shows"},
       "unchanged":{"$ref":"#/$defs/unchanged"},
       "agent":{
        "type":"object",
        "properties":{
         "max_turns":{"type":"integer","minimum":1,"maximum":1000},
         "max_tokens":{"type":"integer","minimum":1,"maximum":100000000},
         "max_cost_usd":{"type":"number","minimum":0,"maximum":10000},
         "max_seconds":{"type":"number","minimum":1,"maximum":604800},
         "debug":{"type":"boolean","wanted":"true or false"}
        },
        "additionalProperties":false
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_26"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["map"]},
       "function":{"$ref":"#/$defs/function"},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "concurrency":{"type":"integer","minimum":1,"maximum":5000},
       "batch_size":{"type":"integer","minimum":1,"maximum":500},
       "max_workers":{"type":"integer","minimum":1,"maximum":1000},
       "lease_seconds":{"default":60,"type":"number","minimum":5,"maximum":3600},
       "timeout_seconds":{"default":30,"type":"number","minimum":1,"maximum":190},
       "retry":{"$ref":"#/$defs/retry","default":{}},
       "limits":{"$ref":"#/$defs/limits"},
       "when_spent":{"$ref":"#/$defs/when_spent"},
       "shows":{"$ref":"#/$defs/shows"},
       "child":{
        "type":"object",
        "properties":{
         "pipeline":{"$ref":"#/$defs/pipeline"},
         "insert":{
          "type":"string",
          "pattern":"^[a-z_][a-z0-9_]*\\.[a-z_][a-z0-9_]*$",
          "wanted":"schema.function, which takes (p_parent text, p_items jsonb)",
          "remedy":"Create the function in an earlier migration and name it with its schema."
         }
        },
        "required":["pipeline"],
        "additionalProperties":false,
        "wanted":"an object with the name of a pipeline"
       },
       "fan_in":{
        "type":"object",
        "properties":{
         "rule":{
          "default":"all",
          "type":"string",
          "enum":["all","at_least","share"],
          "wanted":"all, at_least or share",
          "remedy":"all waits for every child, at_least for \"count\" of them, share for that share of them."
         },
         "count":{"type":"integer","minimum":1,"maximum":100000},
         "share":{"type":"number","minimum":0,"maximum":1},
         "failed_children":{
          "type":"string",
          "enum":["fail","ignore"],
          "wanted":"fail or ignore",
          "remedy":"fail ends the stage with the first child that fails, ignore goes on with the others."
         },
         "late_children":{
          "type":"string",
          "enum":["continue","cancel"],
          "wanted":"continue or cancel",
          "remedy":"continue lets children that still run when the stage is done go on, cancel ends them."
         },
         "deadline_seconds":{"type":"number","minimum":1,"maximum":31536000},
         "at_deadline":{
          "type":"string",
          "enum":["fail","finish"],
          "wanted":"fail or finish",
          "remedy":"finish goes on with what there is at the deadline."
         }
        },
        "additionalProperties":false
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_26"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind","child"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["manual"]},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "decision":{
        "type":"object",
        "properties":{
         "schema":{},
         "deadline_seconds":{"type":"number","minimum":1,"maximum":31536000}
        },
        "additionalProperties":false
       },
       "shows":{
        "type":"object",
        "properties":{
         "asked":{"$ref":"#/$defs/enter"},
         "steps":{"$ref":"#/$defs/shared","default":[]},
         "step_moves":{"$ref":"#/$defs/moves","default":[]},
         "answers":{
          "default":{},
          "type":"object",
          "additionalProperties":{
           "type":"object",
           "properties":{
            "from":{"minItems":1,"type":"array","items":{"$ref":"#/$defs/enter"}},
            "decision":{"type":"object","additionalProperties":{},"wanted":"an object"}
           },
           "required":["from","decision"],
           "additionalProperties":false
          }
         },
         "discard":{"default":false,"type":"boolean","wanted":"true or false"},
         "completed":{"$ref":"#/$defs/enter"},
         "failed":{"$ref":"#/$defs/ends","default":{}}
        },
        "required":["asked"],
        "additionalProperties":false,
        "wanted":"an object of asked and answers"
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_26"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["pipeline"]},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "child":{
        "type":"object",
        "properties":{"pipeline":{"$ref":"#/$defs/pipeline"}},
        "required":["pipeline"],
        "additionalProperties":false,
        "wanted":"an object with the name of a pipeline"
       },
       "shows":{"$ref":"#/$defs/shows"},
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_26"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind","child"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["gate"]},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "limits":{
        "type":"object",
        "properties":{
         "rate":{"$ref":"#/$defs/rate"},
         "back_pressure":{"$ref":"#/$defs/back_pressure"},
         "shared":{"$ref":"#/$defs/shared_20"}
        },
        "additionalProperties":false,
        "wanted":"an object of rate, back_pressure or shared",
        "remedy":"Set rate, back_pressure or shared, or leave limits out: then the gate passes whatever comes.",
        "minProperties":1,
        "maxProperties":3
       },
       "shows":{
        "type":"object",
        "properties":{
         "queued":{"$ref":"#/$defs/enter"},
         "completed":{"$ref":"#/$defs/enter"},
         "failed":{"$ref":"#/$defs/ends","default":{}}
        },
        "required":["queued","completed"],
        "additionalProperties":false,
        "wanted":"an object of queued and completed"
       },
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"}
      },
      "required":["name","kind"]
     }
    ]
   },
   "wanted":"a list of at least one stage"
  }
 },
 "$defs":{
  "pipeline":{
   "type":"string",
   "pattern":"^[a-z][a-z0-9_]{0,40}$",
   "wanted":"a lower-case name of letters, digits and _",
   "remedy":"Use letters, digits and underscores, beginning with a letter, at most 41."
  },
  "table":{
   "type":"string",
   "pattern":"^([a-z_][a-z0-9_]*|\"([^\"]|\"\")+\")\\.([a-z_][a-z0-9_]*|\"([^\"]|\"\")+\")$",
   "wanted":"schema.table",
   "remedy":"Create the table in an earlier migration and name it with its schema."
  },
  "enter":{
   "type":["string","integer"],
   "wanted":"a value of the status column",
   "remedy":"Write the code, or the word, that the column shows."
  },
  "ends":{"type":"object","additionalProperties":{"$ref":"#/$defs/enter"}},
  "shared":{"type":"array","items":{"$ref":"#/$defs/enter"}},
  "moves":{
   "type":"array",
   "items":{
    "minItems":2,
    "maxItems":2,
    "type":"array",
    "items":{"$ref":"#/$defs/enter"},
    "wanted":"a list of two values: from and to"
   }
  },
  "changes":{
   "type":"string",
   "minLength":1,
   "wanted":"a column of the entity's table",
   "remedy":"Name the column, or leave it out."
  },
  "function":{
   "type":"string",
   "pattern":"^[a-z][a-z0-9-]*$",
   "wanted":"the name of an Edge Function",
   "remedy":"Use small letters, digits and -, a letter first."
  },
  "needs":{
   "type":"array",
   "items":{"$ref":"#/$defs/pipeline"},
   "wanted":"a list of names of stages",
   "remedy":"Write \"needs\": [\"other_stage\"]."
  },
  "when":{
   "type":"string",
   "minLength":1,
   "wanted":"a jsonpath predicate",
   "remedy":"Write for example \"$.entity.kind == \\\"scan\\\"\" or \"$.needs.count.pages > 20\"."
  },
  "otherwise":{
   "type":"string",
   "enum":["skip","skip_dependents"],
   "wanted":"skip or skip_dependents",
   "remedy":"skip lets the stages after it go on without its result, skip_dependents skips them too."
  },
  "given":{
   "type":"string",
   "minLength":1,
   "wanted":"a jsonpath predicate",
   "remedy":"Write for example \"$.entity.summary != null\"."
  },
  "after":{
   "minItems":1,
   "type":"array",
   "items":{
    "type":"object",
    "properties":{
     "map":{"$ref":"#/$defs/pipeline"},
     "stage":{"$ref":"#/$defs/pipeline"},
     "count":{"type":"integer","minimum":1,"maximum":100000},
     "consecutive":{"type":"integer","minimum":1,"maximum":100000},
     "all":{"type":"boolean","enum":[true]}
    },
    "required":["map","stage"],
    "additionalProperties":false,
    "wanted":"a threshold with a map, a stage and one of count, consecutive and all: true",
    "remedy":"Write {\"map\": \"split\", \"stage\": \"blend\", \"count\": 20}, or \"consecutive\": 10, or \"all\": true.",
    "minProperties":3,
    "maxProperties":3
   },
   "wanted":"a list of at least one threshold"
  },
  "retry":{
   "type":"object",
   "properties":{
    "max_attempts":{"default":3,"type":"integer","minimum":1,"maximum":100},
    "backoff":{"$ref":"#/$defs/backoff","default":{"kind":"exponential"}},
    "by_code":{
     "default":{},
     "type":"object",
     "additionalProperties":{
      "type":"object",
      "properties":{
       "max_attempts":{"type":"integer","minimum":1,"maximum":100},
       "backoff":{"$ref":"#/$defs/backoff"}
      },
      "additionalProperties":false
     }
    }
   },
   "additionalProperties":false
  },
  "backoff":{
   "oneOf":[
    {
     "type":"object",
     "properties":{
      "kind":{"type":"string","enum":["exponential"]},
      "base_seconds":{"default":5,"type":"number","minimum":0,"maximum":86400},
      "factor":{"default":2,"type":"number","minimum":1,"maximum":100},
      "cap_seconds":{"default":300,"type":"number","minimum":0,"maximum":604800},
      "jitter":{"default":0.2,"type":"number","minimum":0,"maximum":1}
     },
     "required":["kind"],
     "additionalProperties":false
    },
    {
     "type":"object",
     "properties":{
      "kind":{"type":"string","enum":["list"]},
      "seconds":{
       "minItems":1,
       "type":"array",
       "items":{"type":"number","minimum":0,"maximum":604800},
       "wanted":"a list of at least one number of seconds",
       "remedy":"Write {\"kind\": \"list\", \"seconds\": [5, 30]}."
      }
     },
     "required":["kind","seconds"],
     "additionalProperties":false
    }
   ],
   "noun":"backoff",
   "wanted":"exponential or list",
   "remedy":"Use {\"kind\": \"list\", \"seconds\": [5, 30]} or {\"kind\": \"exponential\", \"base_seconds\": 5, \"factor\": 2, \"cap_seconds\": 300, \"jitter\": 0.2}."
  },
  "limits":{
   "type":"object",
   "properties":{
    "max_in_flight":{"type":"integer","minimum":1,"maximum":10000},
    "rate":{"$ref":"#/$defs/rate"},
    "concurrency":{
     "type":"object",
     "properties":{
      "column":{
       "type":"string",
       "minLength":1,
       "wanted":"a column of the entity's table",
       "remedy":"Name the column whose value is the key."
      },
      "part":{
       "type":"string",
       "enum":["value","host"],
       "wanted":"value or host",
       "remedy":"value takes the column as it is, host the host of a URL."
      },
      "limit":{
       "type":"integer",
       "minimum":1,
       "maximum":1000,
       "remedy":"It is how many with the same key may be in work at once."
      }
     },
     "required":["column","limit"],
     "additionalProperties":false,
     "wanted":"an object of column, part and limit"
    },
    "priority":{"type":"boolean","wanted":"true or false"},
    "back_pressure":{"$ref":"#/$defs/back_pressure"},
    "shared":{"$ref":"#/$defs/shared_20"}
   },
   "additionalProperties":false,
   "wanted":"an object with at least one limit",
   "remedy":"Set max_in_flight, rate, concurrency, priority, back_pressure or shared, or leave limits out.",
   "minProperties":1,
   "maxProperties":6
  },
  "rate":{
   "type":"object",
   "properties":{
    "count":{
     "type":"integer",
     "minimum":1,
     "maximum":1000000,
     "remedy":"It is how many may begin in each interval."
    },
    "per_seconds":{
     "type":"number",
     "minimum":0.001,
     "maximum":86400,
     "remedy":"It is the length of the interval."
    },
    "burst":{"type":"integer","minimum":1,"maximum":1000000}
   },
   "required":["count","per_seconds"],
   "additionalProperties":false,
   "wanted":"an object of count, per_seconds and burst"
  },
  "back_pressure":{
   "type":["object","array"],
   "properties":{"stage":{"$ref":"#/$defs/stage"},"backlog":{"$ref":"#/$defs/backlog"}},
   "required":["stage","backlog"],
   "additionalProperties":false,
   "minItems":1,
   "maxItems":20,
   "items":{
    "type":"object",
    "properties":{"stage":{"$ref":"#/$defs/stage"},"backlog":{"$ref":"#/$defs/backlog"}},
    "required":["stage","backlog"],
    "additionalProperties":false
   },
   "wanted":"an object of stage and backlog, or a list of them"
  },
  "stage":{
   "type":"string",
   "pattern":"^([a-z][a-z0-9_]*\\.)?[a-z][a-z0-9_]*$",
   "wanted":"the name of a later stage, or pipeline.stage",
   "remedy":"Name a stage after this one, or \"pipeline.stage\" of another pipeline."
  },
  "backlog":{
   "type":"integer",
   "minimum":1,
   "maximum":100000,
   "remedy":"It is how many may be unfinished at the later stage; to let nothing through, pause the stage."
  },
  "shared_20":{
   "minItems":1,
   "type":"array",
   "items":{"$ref":"#/$defs/pipeline"},
   "wanted":"a list of names of shared limits",
   "remedy":"Write [\"scrapes\"]."
  },
  "when_spent":{
   "type":"string",
   "enum":["wait","bypass"],
   "wanted":"wait or bypass",
   "remedy":"wait works it in the next window, bypass leaves it out and remembers its rows."
  },
  "shows":{
   "type":"object",
   "properties":{
    "queued":{"$ref":"#/$defs/enter"},
    "backoff":{"$ref":"#/$defs/enter"},
    "started":{"$ref":"#/$defs/enter"},
    "completed":{"$ref":"#/$defs/enter"},
    "failed":{"$ref":"#/$defs/ends","default":{}}
   },
   "required":["queued","started","completed"],
   "additionalProperties":false,
   "wanted":"an object of queued, started and completed"
  },
  "unchanged":{
   "type":"string",
   "minLength":1,
   "wanted":"a jsonpath",
   "remedy":"Write for example \"$.needs.fetch.fingerprint\" or \"$.entity.body\"."
  },
  "on_failure":{
   "type":"string",
   "enum":["fail_run","continue"],
   "wanted":"fail_run or continue",
   "remedy":"fail_run ends the run, continue goes on without the stage's result."
  },
  "apply":{
   "type":"string",
   "pattern":"^[a-z_][a-z0-9_]*\\.[a-z_][a-z0-9_]*$",
   "wanted":"schema.function, which takes one jsonb",
   "remedy":"Create the function in an earlier migration and name it with its schema."
  },
  "ends_26":{
   "type":"array",
   "wanted":"a list of names and conditions",
   "remedy":"Write [{\"name\": \"rejected\", \"when\": \"$.result.ok == false\"}].",
   "minItems":1,
   "items":{
    "type":"object",
    "properties":{
     "name":{"$ref":"#/$defs/pipeline"},
     "when":{
      "type":"string",
      "minLength":1,
      "wanted":"a jsonpath predicate",
      "remedy":"Write for example \"$.result.score < 0.5\"."
     }
    },
    "required":["name","when"],
    "additionalProperties":false
   }
  }
 }
}$schema$::jsonb
$$;

create or replace function millrace.shared_limit_schema() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select $schema${
 "type":"object",
 "properties":{
  "max_in_flight":{"type":"integer","minimum":1,"maximum":10000},
  "rate":{
   "type":"object",
   "properties":{
    "count":{
     "type":"integer",
     "minimum":1,
     "maximum":1000000,
     "remedy":"It is how many may begin in each interval."
    },
    "per_seconds":{
     "type":"number",
     "minimum":0.001,
     "maximum":86400,
     "remedy":"It is the length of the interval."
    },
    "burst":{"type":"integer","minimum":1,"maximum":1000000}
   },
   "required":["count","per_seconds"],
   "additionalProperties":false,
   "wanted":"an object of count, per_seconds and burst"
  },
  "key_rate":{
   "type":"object",
   "properties":{
    "count":{
     "type":"integer",
     "minimum":1,
     "maximum":1000000,
     "remedy":"It is how many may begin in each interval."
    },
    "per_seconds":{
     "type":"number",
     "minimum":0.001,
     "maximum":86400,
     "remedy":"It is the length of the interval."
    },
    "burst":{"type":"integer","minimum":1,"maximum":1000000}
   },
   "required":["count","per_seconds"],
   "additionalProperties":false,
   "wanted":"an object of count, per_seconds and burst"
  },
  "spending":{
   "type":"object",
   "properties":{
    "usd":{"type":"number","minimum":0.01,"maximum":1000000},
    "tokens":{"type":"integer","minimum":1,"maximum":1000000000000},
    "per_seconds":{"type":"integer","minimum":1,"maximum":2678400}
   },
   "required":["per_seconds"],
   "additionalProperties":false,
   "wanted":"an object of usd or tokens or both, and per_seconds",
   "remedy":"Write {\"usd\": 5, \"per_seconds\": 86400}; or leave it out.",
   "minProperties":2,
   "maxProperties":3
  },
  "adaptive":{"type":"boolean","wanted":"true or false"}
 },
 "additionalProperties":false,
 "wanted":"an object with at least one limit",
 "remedy":"Set max_in_flight, rate, key_rate or spending; a limit that is to let nothing through is a pause of its stages.",
 "minProperties":1,
 "maxProperties":5
}$schema$::jsonb
$$;
