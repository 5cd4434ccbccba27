-- What a shared limit may say, made of supabase/functions/_millrace/compile/definition-schema.ts by `npm run check -- --write`.
-- Change it there.

create function millrace.shared_limit_schema() returns jsonb
language sql immutable
as $$
  select $schema${
 "type":"object",
 "additionalProperties":false,
 "wanted":"an object with at least one limit",
 "remedy":"Set max_in_flight, rate, key_rate or spending; a limit that is to let nothing through is a pause of its stages.",
 "minProperties":1,
 "maxProperties":5,
 "properties":{
  "max_in_flight":{"type":"integer","minimum":1,"maximum":10000},
  "rate":{
   "type":"object",
   "additionalProperties":false,
   "wanted":"an object of count, per_seconds and burst",
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
   "required":["count","per_seconds"]
  },
  "key_rate":{
   "type":"object",
   "additionalProperties":false,
   "wanted":"an object of count, per_seconds and burst",
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
   "required":["count","per_seconds"]
  },
  "spending":{
   "type":"object",
   "additionalProperties":false,
   "wanted":"an object of usd or tokens or both, and per_seconds",
   "remedy":"Write {\"usd\": 5, \"per_seconds\": 86400}; or leave it out.",
   "minProperties":2,
   "maxProperties":3,
   "properties":{
    "usd":{"type":"number","minimum":0.01,"maximum":1000000},
    "tokens":{"type":"integer","minimum":1,"maximum":1000000000000},
    "per_seconds":{"type":"integer","minimum":1,"maximum":2678400}
   },
   "required":["per_seconds"]
  },
  "adaptive":{"type":"boolean","wanted":"true or false"}
 }
}$schema$::jsonb
$$;
