-- Limits that stages share, to define, written by `npm run pipelines:sync` from supabase/functions/_pipelines/shared-limits.ts.
-- Do not edit it: change them there and run the command again, which adds another migration.

select millrace.define_limit('scrapes', $limit${"rate":{"count":120,"per_seconds":60},"key_rate":{"count":60,"per_seconds":60}}$limit$);
select millrace.define_limit('model', $limit${"max_in_flight":20,"spending":{"usd":5,"tokens":10000000,"per_seconds":86400}}$limit$);
