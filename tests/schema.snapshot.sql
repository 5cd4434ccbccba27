-- The schema that the migrations make, as text, written by `npm run check -- --write`:
-- in a review it shows what a change of the migrations does.
schema pipeline
schema public
  grant usage to anon
  grant usage to authenticated
  grant usage to public
  grant usage to service_role
type pipeline.attempt_state enum (queued, started, waiting, completed, failed, cancelled, skipped)
type pipeline.run_status enum (running, completed, failed, cancelled)
view pipeline.agent_log
  column arguments text
  column asked text
  column at timestamp with time zone
  column attempt_id bigint
  column cost_usd numeric
  column entity_id text
  column kind text
  column output text
  column passage integer
  column pipeline text
  column run_id bigint
  column seq integer
  column stage text
  column tokens numeric
  column tool text
  column what text
  as  SELECT p.name AS pipeline, s.name AS stage, t.run_id, r.entity_id, t.passage, t.seq, t.kind, CASE WHEN t.kind = 'tool'::text THEN CASE WHEN (t.content -> 'failed'::text) = 'true'::jsonb THEN 'fails'::text ELSE 'answers'::text END WHEN t.content ? 'discarded'::text THEN 'discarded: '::text || (t.content ->> 'discarded'::text) WHEN m.calls IS NOT NULL THEN 'calls '::text || m.calls ELSE 'answers'::text END AS what, CASE WHEN t.kind = 'tool'::text THEN t.content ->> 'name'::text ELSE m.calls END AS tool, CASE WHEN t.kind = 'tool'::text THEN t.content ->> 'arguments'::text ELSE m.arguments END AS arguments, CASE WHEN t.kind = 'tool'::text THEN t.content ->> 'output'::text ELSE m.said END AS output, ((t.usage ->> 'input_tokens'::text)::numeric) + ((t.usage ->> 'output_tokens'::text)::numeric) AS tokens, (t.usage ->> 'cost_usd'::text)::numeric AS cost_usd, t.content ->> 'asked'::text AS asked, t.attempt_id, t.created_at AS at FROM pipeline.turns t JOIN pipeline.stages s ON s.id = t.stage_id JOIN pipeline.pipelines p ON p.id = s.pipeline_id LEFT JOIN pipeline.runs r ON r.id = t.run_id CROSS JOIN LATERAL ( SELECT string_agg(o.i ->> 'name'::text, ', '::text ORDER BY o.n) FILTER (WHERE (o.i ->> 'type'::text) = 'function_call'::text) AS calls, string_agg(o.i ->> 'arguments'::text, ', '::text ORDER BY o.n) FILTER (WHERE (o.i ->> 'type'::text) = 'function_call'::text) AS arguments, string_agg(jsonb_path_query_first(o.i, '$."content"[*]."text"'::jsonpath) #>> '{}'::text[], ' '::text ORDER BY o.n) AS said FROM jsonb_array_elements( CASE WHEN t.kind = 'model'::text AND jsonb_typeof(t.content -> 'output'::text) = 'array'::text THEN t.content -> 'output'::text ELSE '[]'::jsonb END) WITH ORDINALITY o(i, n)) m ORDER BY t.run_id, t.stage_id, t.passage, t.seq;
view pipeline.agent_passages
  column attempts bigint
  column cost_usd numeric
  column entity_id text
  column first_turn_at timestamp with time zone
  column input_tokens numeric
  column last_turn_at timestamp with time zone
  column output_tokens numeric
  column passage integer
  column pipeline text
  column run_id bigint
  column stage text
  column tool_calls bigint
  column turns bigint
  as  SELECT p.name AS pipeline, s.name AS stage, t.run_id, r.entity_id, t.passage, count(*) FILTER (WHERE t.kind = 'model'::text) AS turns, count(*) FILTER (WHERE t.kind = 'tool'::text) AS tool_calls, sum((t.usage ->> 'input_tokens'::text)::numeric) AS input_tokens, sum((t.usage ->> 'output_tokens'::text)::numeric) AS output_tokens, sum((t.usage ->> 'cost_usd'::text)::numeric) AS cost_usd, count(DISTINCT t.attempt_id) AS attempts, min(t.created_at) AS first_turn_at, max(t.created_at) AS last_turn_at FROM pipeline.turns t JOIN pipeline.stages s ON s.id = t.stage_id JOIN pipeline.pipelines p ON p.id = s.pipeline_id LEFT JOIN pipeline.runs r ON r.id = t.run_id GROUP BY p.name, s.id, s.name, t.run_id, r.entity_id, t.passage ORDER BY t.run_id, s.id, t.passage;
table pipeline.alerts
  column attempt_id bigint not null
  column entity_id text not null
  column id bigint not null generated always as identity
  column kind text not null
  column message text not null
  column passage integer not null
  column pipeline text not null
  column raised_at timestamp with time zone not null
  column resolved_at timestamp with time zone
  column run_id bigint not null
  column stage text not null
  column stage_id integer not null
  constraint alerts_kind_known CHECK ((kind = 'sla'::text))
  constraint alerts_pkey PRIMARY KEY (id)
  CREATE INDEX alerts_by_run ON pipeline.alerts USING btree (run_id)
  CREATE INDEX alerts_open ON pipeline.alerts USING btree (id) WHERE (resolved_at IS NULL)
  CREATE UNIQUE INDEX alerts_one_open ON pipeline.alerts USING btree (run_id, stage_id, passage) WHERE (resolved_at IS NULL)
  CREATE UNIQUE INDEX alerts_pkey ON pipeline.alerts USING btree (id)
sequence pipeline.alerts_id_seq
table pipeline.arrivals
  column due_at timestamp with time zone not null
  column id bigint not null generated always as identity
  column lane text not null
  column stage_id integer not null
  constraint arrivals_pkey PRIMARY KEY (stage_id, lane, id)
  CREATE UNIQUE INDEX arrivals_pkey ON pipeline.arrivals USING btree (stage_id, lane, id)
sequence pipeline.arrivals_id_seq
table pipeline.attempts with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05)
  column alone boolean not null default false
  column created_at timestamp with time zone not null
  column deadline_at timestamp with time zone
  column error jsonb
  column finished_at timestamp with time zone
  column held boolean not null default false
  column id bigint not null generated always as identity
  column job_id text
  column job_started_at timestamp with time zone
  column lane text
  column late_at timestamp with time zone
  column number smallint not null
  column output jsonb
  column overtaken_job_id text
  column parent_id bigint
  column poll_at timestamp with time zone
  column queue_at timestamp with time zone
  column releases smallint not null default 0
  column retry_count smallint not null default 0
  column run_id bigint not null
  column service text
  column stage_id integer not null
  column started_at timestamp with time zone
  column state pipeline.attempt_state not null default 'queued'::pipeline.attempt_state
  column submission_id bigint
  column superseded boolean not null default false
  column token uuid
  column uncounted boolean not null default false
  column usage jsonb
  constraint attempts_number_key UNIQUE (run_id, stage_id, number)
  constraint attempts_pkey PRIMARY KEY (id)
  CREATE INDEX attempts_alone ON pipeline.attempts USING btree (stage_id, queue_at, id) WHERE (alone AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_by_deadline ON pipeline.attempts USING btree (deadline_at) WHERE (deadline_at IS NOT NULL)
  CREATE INDEX attempts_by_job ON pipeline.attempts USING btree (hashtextextended(job_id, (0)::bigint)) WHERE ((job_id IS NOT NULL) AND (service <> ALL (ARRAY['children'::text, 'decision'::text, 'by_hand'::text])))
  CREATE INDEX attempts_by_lane ON pipeline.attempts USING btree (stage_id, lane, queue_at, id) WHERE ((lane IS NOT NULL) AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_by_submission ON pipeline.attempts USING btree (submission_id) WHERE (submission_id IS NOT NULL)
  CREATE INDEX attempts_held ON pipeline.attempts USING btree (stage_id, queue_at, id) WHERE (held AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_late ON pipeline.attempts USING btree (late_at) WHERE (late_at IS NOT NULL)
  CREATE INDEX attempts_of_jobs ON pipeline.attempts USING btree (stage_id, finished_at) WHERE ((job_id IS NOT NULL) AND (finished_at IS NOT NULL))
  CREATE INDEX attempts_ready ON pipeline.attempts USING btree (stage_id, queue_at, id) WHERE (queue_at IS NOT NULL)
  CREATE INDEX attempts_to_poll ON pipeline.attempts USING btree (poll_at) WHERE (poll_at IS NOT NULL)
  CREATE UNIQUE INDEX attempts_number_key ON pipeline.attempts USING btree (run_id, stage_id, number)
  CREATE UNIQUE INDEX attempts_pkey ON pipeline.attempts USING btree (id) WITH (fillfactor='90')
sequence pipeline.attempts_id_seq
type pipeline.built
  column entity json
  column failure json
  column needs json
type pipeline.cancelled
  column change pipeline.change
  column stage_id integer
type pipeline.change
  column completed_at timestamp with time zone
  column entity_id text
  column error text
  column job_id text
  column queued text[]
  column result jsonb
  column retry_count integer
  column started_at timestamp with time zone
  column status text
type pipeline.claimed
  column alone boolean
  column attempt_id bigint
  column entity_id text
  column number integer
  column retry_count integer
  column run_id bigint
  column submission bigint
  column trace_id uuid
  column version_id integer
table pipeline.claims with (fillfactor=50)
  column alone boolean not null
  column attempt_ids bigint[] not null
  column expires_at timestamp with time zone not null
  column host uuid not null
  column token uuid not null
  column worker_id uuid not null
  constraint claims_pkey PRIMARY KEY (token)
  CREATE INDEX claims_by_host ON pipeline.claims USING btree (host)
  CREATE INDEX claims_by_worker ON pipeline.claims USING btree (worker_id)
  CREATE UNIQUE INDEX claims_pkey ON pipeline.claims USING btree (token)
view pipeline.cut_over_report
  column completed bigint
  column cost_per_run numeric
  column cost_usd numeric
  column failed bigint
  column median_seconds numeric
  column p95_seconds numeric
  column pipeline text
  column running bigint
  column runs bigint
  column success_share numeric
  column way text
  as  WITH run AS MATERIALIZED ( SELECT n.name AS pipeline, w.way, w.place, r_1.id, r_1.status, EXTRACT(epoch FROM r_1.finished_at - r_1.created_at) AS seconds FROM pipeline.pipelines n CROSS JOIN LATERAL ( VALUES ('new'::text,1,n.id), ('old'::text,2,n.replaces_id)) w(way, place, pipeline_id) LEFT JOIN pipeline.runs r_1 ON r_1.pipeline_id = w.pipeline_id AND NOT (EXISTS ( SELECT FROM pipeline.attempts a JOIN pipeline.attempts f ON f.id = a.parent_id AND f.run_id <> a.run_id WHERE a.run_id = r_1.id)) WHERE n.replaces_id IS NOT NULL ), cost AS MATERIALIZED ( SELECT c_1.run_id, sum(c_1.cost_usd) AS cost_usd FROM pipeline.attempt_costs(ARRAY( SELECT r_1.id FROM run r_1 WHERE r_1.id IS NOT NULL)) c_1(run_id, stage_id, attempt_id, paid_by, cost_usd) GROUP BY c_1.run_id ) SELECT r.pipeline, r.way, count(r.id) AS runs, count(*) FILTER (WHERE r.status = 'running'::pipeline.run_status) AS running, count(*) FILTER (WHERE r.status = 'completed'::pipeline.run_status) AS completed, count(*) FILTER (WHERE r.status = 'failed'::pipeline.run_status) AS failed, round(count(*) FILTER (WHERE r.status = 'completed'::pipeline.run_status)::numeric / NULLIF(count(*) FILTER (WHERE r.status = ANY (ARRAY['completed'::pipeline.run_status, 'failed'::pipeline.run_status])), 0)::numeric, 4) AS success_share, round(percentile_cont(0.5::double precision) WITHIN GROUP (ORDER BY (r.seconds::double precision)) FILTER (WHERE r.status = 'completed'::pipeline.run_status)::numeric, 3) AS median_seconds, round(percentile_cont(0.95::double precision) WITHIN GROUP (ORDER BY (r.seconds::double precision)) FILTER (WHERE r.status = 'completed'::pipeline.run_status)::numeric, 3) AS p95_seconds, sum(c.cost_usd) AS cost_usd, round(sum(c.cost_usd) / NULLIF(count(r.id), 0)::numeric, 6) AS cost_per_run FROM run r LEFT JOIN cost c ON c.run_id = r.id GROUP BY r.pipeline, r.way, r.place ORDER BY r.pipeline, r.place;
table pipeline.cut_overs
  column changed_at timestamp with time zone not null
  column groups text[]
  column mode text not null default 'default'::text
  column pipeline_id integer not null
  column share numeric
  constraint cut_overs_mode_known CHECK ((mode = ANY (ARRAY['default'::text, 'off'::text, 'share'::text, 'groups'::text, 'on'::text])))
  constraint cut_overs_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES pipeline.pipelines(id) ON DELETE CASCADE
  constraint cut_overs_pkey PRIMARY KEY (pipeline_id)
  constraint cut_overs_share_bounds CHECK (((share >= (0)::numeric) AND (share <= (1)::numeric)))
  CREATE UNIQUE INDEX cut_overs_pkey ON pipeline.cut_overs USING btree (pipeline_id)
view pipeline.dead_letters
  column attempt_id bigint
  column can_retry boolean
  column entity_id text
  column error_code text
  column error_message text
  column failed_at timestamp with time zone
  column pipeline text
  column retry_count smallint
  column run_id bigint
  column stage text
  as  SELECT a.id AS attempt_id, r.id AS run_id, p.name AS pipeline, s.name AS stage, r.entity_id, a.error ->> 'code'::text AS error_code, COALESCE(a.error ->> 'detail'::text, a.error ->> 'message'::text) AS error_message, a.retry_count, a.finished_at AS failed_at, NOT (EXISTS ( SELECT FROM pipeline.runs o WHERE o.entity_id = r.entity_id AND (o.pipeline_id = ANY (pipeline.ways_of(r.pipeline_id))) AND o.id > r.id)) AND NOT (EXISTS ( SELECT FROM pipeline.fan_outs f WHERE f.id = r.fan_out_id AND (f.state = ANY (ARRAY['abandoned'::text, 'closed'::text])))) AS can_retry FROM pipeline.runs r JOIN pipeline.pipelines p ON p.id = r.pipeline_id JOIN pipeline.attempts a ON a.run_id = r.id AND a.state = 'failed'::pipeline.attempt_state AND NOT a.superseded JOIN pipeline.stages s ON s.id = a.stage_id WHERE r.status = 'failed'::pipeline.run_status AND NOT (EXISTS ( SELECT FROM pipeline.attempts n WHERE n.run_id = a.run_id AND n.stage_id = a.stage_id AND n.number > a.number));
table pipeline.dropped_metadata
  column id bigint not null generated always as identity
  column metadata_id bigint not null
  constraint dropped_metadata_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX dropped_metadata_pkey ON pipeline.dropped_metadata USING btree (id)
sequence pipeline.dropped_metadata_id_seq
table pipeline.fan_outs with (fillfactor=50)
  column attempt_id bigint not null
  column cancelled integer not null default 0
  column child_pipeline_id integer not null
  column completed integer not null default 0
  column created_at timestamp with time zone not null
  column failed integer not null default 0
  column first_number integer
  column id bigint not null generated always as identity
  column retry_children boolean not null default false
  column run_id bigint not null
  column spawned integer not null default 0
  column stage_id integer not null
  column state text not null default 'open'::text
  column total integer
  constraint fan_outs_pkey PRIMARY KEY (id)
  constraint fan_outs_state_known CHECK ((state = ANY (ARRAY['open'::text, 'finished'::text, 'abandoned'::text, 'closed'::text])))
  CREATE INDEX fan_outs_abandoned ON pipeline.fan_outs USING btree (id) WHERE (state = 'abandoned'::text)
  CREATE INDEX fan_outs_by_attempt ON pipeline.fan_outs USING btree (attempt_id)
  CREATE INDEX fan_outs_by_run ON pipeline.fan_outs USING btree (run_id, stage_id)
  CREATE UNIQUE INDEX fan_outs_one_open ON pipeline.fan_outs USING btree (run_id, stage_id) WHERE (state = 'open'::text)
  CREATE UNIQUE INDEX fan_outs_pkey ON pipeline.fan_outs USING btree (id)
sequence pipeline.fan_outs_id_seq
table pipeline.fan_progress with (fillfactor=50)
  column done integer not null default 0
  column fan_out_id bigint not null
  column next_number integer
  column stage_id integer not null
  constraint fan_progress_pkey PRIMARY KEY (fan_out_id, stage_id)
  CREATE UNIQUE INDEX fan_progress_pkey ON pipeline.fan_progress USING btree (fan_out_id, stage_id)
view pipeline.forgers
  column entity_table regclass
  column remedy text
  column role text
  column verbs text
  as  WITH role AS ( SELECT r.oid, r.rolname AS name FROM pg_roles a JOIN pg_roles r ON pg_has_role(a.oid, r.oid, 'member'::text) WHERE a.rolname = 'authenticator'::name AND r.oid <> a.oid AND NOT r.rolbypassrls AND NOT r.rolsuper ), entity AS ( SELECT c.oid, c.relrowsecurity AS guarded, array_agg(n.name) AS columns FROM pipeline.pipelines p JOIN pg_class c ON c.oid = p.entity_table::oid JOIN pipeline.stages s ON s.pipeline_id = p.id CROSS JOIN LATERAL unnest(pipeline.stage_columns(s.name)) n(name) WHERE p.projection = 'columns'::text GROUP BY c.oid, c.relrowsecurity ), forged AS ( SELECT e.oid AS table_id, r.oid AS role_id, r.name AS role, k.name AS verb, e.columns FROM entity e CROSS JOIN role r CROSS JOIN ( VALUES ('insert'::text,'a'::text), ('update'::text,'w'::text)) k(name, policy) WHERE (EXISTS ( SELECT FROM pg_attribute a WHERE a.attrelid = e.oid AND (a.attname = ANY (e.columns)) AND a.attname !~~ '%\_status'::text AND has_column_privilege(r.oid, e.oid, a.attnum, k.name))) AND (NOT e.guarded OR (EXISTS ( SELECT FROM pg_policy y WHERE y.polrelid = e.oid AND y.polpermissive AND (y.polcmd = '*'::"char" OR y.polcmd::text = k.policy) AND (EXISTS ( SELECT FROM unnest(y.polroles) o(o) WHERE o.o = 0::oid OR pg_has_role(r.oid, o.o, 'usage'::text)))))) ), allowed AS ( SELECT f.table_id, f.role, f.verb, has_any_column_privilege('public'::name, f.table_id, f.verb) AS by_all, string_agg(quote_ident(a.attname::text), ', '::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = ''::"char" AND a.attidentity <> 'a'::"char" AND has_column_privilege(f.role_id, f.table_id, a.attnum, f.verb) AND ((a.attname <> ALL (f.columns)) OR a.attname ~~ '%\_status'::text AND (EXISTS ( SELECT FROM aclexplode(a.attacl) x(grantor, grantee, privilege_type, is_grantable) WHERE x.grantee = f.role_id AND x.privilege_type = upper(f.verb))))) AS columns FROM forged f JOIN pg_attribute a ON a.attrelid = f.table_id AND a.attnum > 0 AND NOT a.attisdropped GROUP BY f.table_id, f.role_id, f.role, f.verb ) SELECT table_id::regclass AS entity_table, role::text AS role, string_agg(verb, ', '::text ORDER BY verb) AS verbs, format('revoke %s on %s from %s;'::text, string_agg(verb, ', '::text ORDER BY verb), table_id::regclass, CASE WHEN bool_or(by_all) THEN 'public, '::text ELSE ''::text END || quote_ident(role::text)) || COALESCE(format(' grant %s on %s to %I;'::text, string_agg(((verb || ' ('::text) || columns) || ')'::text, ', '::text ORDER BY verb), table_id::regclass, role), ''::text) AS remedy FROM allowed w GROUP BY table_id, role ORDER BY (table_id::regclass), (role::text);
table pipeline.former_costs
  column cost_usd numeric not null
  column fan_out_id bigint not null
  CREATE INDEX former_costs_by_fan_out ON pipeline.former_costs USING btree (fan_out_id)
table pipeline.gates with (fillfactor=50)
  column arrivals_to text not null default ''::text
  column checked_to bigint not null default 0
  column last_turn bigint not null default 0
  column refilled_at timestamp with time zone not null default pipeline.now()
  column stage_id integer not null
  column tokens double precision not null default 'Infinity'::double precision
  constraint gates_pkey PRIMARY KEY (stage_id)
  constraint gates_stage_fkey FOREIGN KEY (stage_id) REFERENCES pipeline.stages(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX gates_pkey ON pipeline.gates USING btree (stage_id)
table pipeline.in_flight
  column attempt_id bigint not null
  column key text not null
  column stage_id integer not null
  column token uuid not null
  column worker_id uuid
  constraint in_flight_pkey PRIMARY KEY (attempt_id, token)
  CREATE INDEX in_flight_by_attempt ON pipeline.in_flight USING btree (stage_id, attempt_id)
  CREATE INDEX in_flight_by_key ON pipeline.in_flight USING btree (stage_id, key)
  CREATE INDEX in_flight_by_worker ON pipeline.in_flight USING btree (worker_id)
  CREATE UNIQUE INDEX in_flight_pkey ON pipeline.in_flight USING btree (attempt_id, token)
view pipeline.job_outcomes
  column completed bigint
  column ended bigint
  column max_in_flight text
  column past_deadline bigint
  column pipeline text
  column stage text
  as  SELECT p.name AS pipeline, s.name AS stage, s.limits ->> 'max_in_flight'::text AS max_in_flight, j.ended, j.completed, j.past_deadline FROM pipeline.stages s JOIN pipeline.pipelines p ON p.id = s.pipeline_id CROSS JOIN LATERAL ( SELECT count(*) AS ended, count(*) FILTER (WHERE e.state = 'completed'::pipeline.attempt_state) AS completed, count(*) FILTER (WHERE e.state = 'failed'::pipeline.attempt_state AND (e.error ->> 'code'::text) = 'deadline'::text) AS past_deadline FROM ( SELECT a.state, a.error FROM pipeline.attempts a WHERE a.stage_id = s.id AND a.job_id IS NOT NULL AND a.finished_at > (( SELECT pipeline.now() - '01:00:00'::interval)) ORDER BY a.finished_at DESC LIMIT 1000) e) j WHERE (s.kind = ANY (ARRAY['function'::text, 'external'::text])) AND s.deadline IS NOT NULL ORDER BY p.name, s.id;
table pipeline.lanes with (fillfactor=50)
  column due_at timestamp with time zone
  column lane text not null
  column priority smallint not null
  column stage_id integer not null
  column turn bigint
  constraint lanes_pkey PRIMARY KEY (stage_id, lane)
  constraint lanes_stage_fkey FOREIGN KEY (stage_id) REFERENCES pipeline.stages(id) ON DELETE CASCADE
  constraint lanes_turn_or_due CHECK (((turn IS NULL) <> (due_at IS NULL)))
  CREATE INDEX lanes_asleep ON pipeline.lanes USING btree (stage_id, due_at) WHERE (due_at IS NOT NULL)
  CREATE INDEX lanes_in_turn ON pipeline.lanes USING btree (stage_id, priority DESC, turn) WHERE (turn IS NOT NULL)
  CREATE UNIQUE INDEX lanes_pkey ON pipeline.lanes USING btree (stage_id, lane)
table pipeline.log
  column at timestamp with time zone not null default pipeline.now()
  column code text not null
  column detail jsonb not null default '{}'::jsonb
  column id bigint not null generated always as identity
  column level text not null
  column message text not null
  constraint log_level_known CHECK ((level = ANY (ARRAY['info'::text, 'warning'::text, 'error'::text])))
  constraint log_pkey PRIMARY KEY (id)
  CREATE INDEX log_by_code ON pipeline.log USING btree (code, at)
  CREATE UNIQUE INDEX log_pkey ON pipeline.log USING btree (id)
sequence pipeline.log_id_seq
view pipeline.operations
  column attempt_id bigint
  column can_start boolean
  column entity_id text
  column error text
  column fails_after integer
  column failures integer
  column is_done boolean
  column is_started boolean
  column kind text
  column operation text
  column pipeline text
  column run_id bigint
  column stage text
  column state text
  as  SELECT r.id AS run_id, p.name AS pipeline, r.entity_id, s.name AS stage, s.kind, COALESCE(a.state::text, 'pending'::text) AS state, CASE WHEN a.state = ANY (ARRAY['completed'::pipeline.attempt_state, 'skipped'::pipeline.attempt_state]) THEN 'complete'::text WHEN a.state = ANY (ARRAY['queued'::pipeline.attempt_state, 'started'::pipeline.attempt_state, 'waiting'::pipeline.attempt_state]) THEN 'in progress'::text WHEN a.state = ANY (ARRAY['failed'::pipeline.attempt_state, 'cancelled'::pipeline.attempt_state]) THEN 'failed'::text ELSE 'not started'::text END AS operation, r.status = 'running'::pipeline.run_status AND a.id IS NULL AND cardinality(vs.needs) = (( SELECT count(*) AS count FROM pipeline.attempts n WHERE n.run_id = r.id AND (n.stage_id = ANY (vs.needs)) AND (n.state = ANY (ARRAY['completed'::pipeline.attempt_state, 'skipped'::pipeline.attempt_state])) AND NOT n.superseded)) AND pipeline.thresholds_hold(r.id, vs.after) AS can_start, COALESCE(a.state = ANY (ARRAY['queued'::pipeline.attempt_state, 'started'::pipeline.attempt_state, 'waiting'::pipeline.attempt_state, 'completed'::pipeline.attempt_state, 'skipped'::pipeline.attempt_state]), false) AS is_started, COALESCE(a.state = ANY (ARRAY['completed'::pipeline.attempt_state, 'skipped'::pipeline.attempt_state, 'failed'::pipeline.attempt_state, 'cancelled'::pipeline.attempt_state]), false) AS is_done, COALESCE(a.retry_count::integer, 0) + COALESCE((a.state = 'failed'::pipeline.attempt_state)::integer, 0) AS failures, COALESCE((s.retry ->> 'max_attempts'::text)::integer, 3) AS fails_after, a.id AS attempt_id, COALESCE(a.error ->> 'detail'::text, a.error ->> 'message'::text) AS error FROM pipeline.runs r JOIN pipeline.pipelines p ON p.id = r.pipeline_id JOIN pipeline.version_stages vs ON vs.version_id = r.version_id JOIN pipeline.stages s ON s.id = vs.stage_id LEFT JOIN LATERAL ( SELECT o.id, o.run_id, o.parent_id, o.submission_id, o.queue_at, o.created_at, o.started_at, o.finished_at, o.deadline_at, o.poll_at, o.job_started_at, o.late_at, o.token, o.stage_id, o.state, o.number, o.retry_count, o.releases, o.alone, o.superseded, o.uncounted, o.held, o.service, o.job_id, o.overtaken_job_id, o.error, o.lane, o.output, o.usage FROM pipeline.attempts o WHERE o.run_id = r.id AND o.stage_id = s.id AND NOT o.superseded ORDER BY o.number DESC LIMIT 1) a ON true;
view pipeline.paused
  column pipeline text
  column remedy text
  column stage text
  as  SELECT p.name AS pipeline, s.name AS stage, format('select pipeline.unpause(%s);'::text, concat_ws(', '::text, quote_literal(p.name), quote_literal(s.name))) AS remedy FROM pipeline.pipelines p CROSS JOIN LATERAL ( SELECT NULL::text AS name, 0 AS "position" WHERE NOT p.enabled UNION ALL SELECT t.name, vs."position" FROM pipeline.version_stages vs JOIN pipeline.stages t ON t.id = vs.stage_id WHERE vs.version_id = p.current_version_id AND NOT t.enabled) s ORDER BY p.name, s."position";
type pipeline.payer
  column key text
  column pipeline_id integer
  column quota jsonb
table pipeline.pipelines
  column created_at timestamp with time zone not null default pipeline.now()
  column current_version_id integer
  column enabled boolean not null default true
  column entity_key text not null
  column entity_table regclass not null
  column group_key text
  column id integer not null generated always as identity
  column is_child boolean not null default false
  column metadata_column text
  column name text not null
  column projection text not null
  column quota jsonb
  column quota_changed_at timestamp with time zone
  column replaces_id integer
  constraint pipelines_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint pipelines_name_key UNIQUE (name)
  constraint pipelines_pkey PRIMARY KEY (id)
  constraint pipelines_projection_known CHECK ((projection = ANY (ARRAY['columns'::text, 'none'::text])))
  constraint pipelines_replaces_fkey FOREIGN KEY (replaces_id) REFERENCES pipeline.pipelines(id)
  constraint pipelines_replaces_key UNIQUE (replaces_id)
  CREATE UNIQUE INDEX pipelines_name_key ON pipeline.pipelines USING btree (name)
  CREATE UNIQUE INDEX pipelines_pkey ON pipeline.pipelines USING btree (id)
  CREATE UNIQUE INDEX pipelines_replaces_key ON pipeline.pipelines USING btree (replaces_id)
sequence pipeline.pipelines_id_seq
table pipeline.posts unlogged
  column posted_at timestamp with time zone not null default transaction_timestamp()
  column request_id bigint not null
  CREATE INDEX posts_by_time ON pipeline.posts USING btree (posted_at)
view pipeline.queue_depth
  column in_backoff bigint
  column oldest_due_at timestamp with time zone
  column pipeline text
  column ready bigint
  column stage text
  column started bigint
  as  SELECT p.name AS pipeline, s.name AS stage, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at <= pipeline.now()) AS ready, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at > pipeline.now()) AS in_backoff, count(a.id) FILTER (WHERE a.state = 'started'::pipeline.attempt_state) AS started, min(a.queue_at) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state) AS oldest_due_at FROM pipeline.stages s JOIN pipeline.pipelines p ON p.id = s.pipeline_id LEFT JOIN pipeline.attempts a ON a.stage_id = s.id AND a.queue_at IS NOT NULL GROUP BY p.name, s.id, s.name ORDER BY p.name, s.id;
table pipeline.quota_uses with (autovacuum_vacuum_scale_factor=0.02)
  column closes_at timestamp with time zone not null
  column id bigint not null generated always as identity
  column key text not null
  column kind text not null
  column pipeline_id integer not null
  column summed boolean not null default false
  column used numeric not null
  constraint quota_uses_kind_known CHECK ((kind = ANY (ARRAY['starts'::text, 'spending'::text])))
  constraint quota_uses_pkey PRIMARY KEY (id)
  CREATE INDEX quota_uses_by_end ON pipeline.quota_uses USING btree (closes_at)
  CREATE INDEX quota_uses_by_key ON pipeline.quota_uses USING btree (pipeline_id, key, kind, closes_at)
  CREATE INDEX quota_uses_to_sum ON pipeline.quota_uses USING btree (id) WHERE (NOT summed)
  CREATE UNIQUE INDEX quota_uses_pkey ON pipeline.quota_uses USING btree (id)
sequence pipeline.quota_uses_id_seq
view pipeline.quotas
  column allowed numeric
  column held bigint
  column key text
  column kind text
  column next_at timestamp with time zone
  column pipeline text
  column used numeric
  as  WITH used AS ( SELECT u_1.pipeline_id, u_1.key, u_1.kind, sum(u_1.used) AS used FROM pipeline.quota_uses u_1 WHERE u_1.closes_at > pipeline.now() GROUP BY u_1.pipeline_id, u_1.key, u_1.kind ), held AS ( SELECT r.quota_of AS pipeline_id, r.quota_key AS key, substr(a.error ->> 'code'::text, 7) AS kind, count(*) AS held, min(a.queue_at) AS next_at FROM pipeline.attempts a JOIN pipeline.runs r ON r.id = a.run_id WHERE a.held AND a.queue_at IS NOT NULL AND a.state = 'queued'::pipeline.attempt_state GROUP BY r.quota_of, r.quota_key, (substr(a.error ->> 'code'::text, 7)) ) SELECT p.name AS pipeline, key, kind, COALESCE(u.used, 0::numeric) AS used, COALESCE(p.quota #>> ARRAY[kind, 'count'::text], p.quota #>> ARRAY[kind, 'usd'::text])::numeric AS allowed, COALESCE(h.held, 0::bigint) AS held, h.next_at FROM used u FULL JOIN held h USING (pipeline_id, key, kind) JOIN pipeline.pipelines p ON p.id = pipeline_id ORDER BY p.name, (COALESCE(h.held, 0::bigint)) DESC, key, kind;
type pipeline.ready
  column run_id bigint
  column stage_id integer
table pipeline.rings
  column id bigint not null generated always as identity
  column rung_at timestamp with time zone not null
  column stage_id integer not null
  constraint rings_pkey PRIMARY KEY (id)
  CREATE INDEX rings_by_stage ON pipeline.rings USING btree (stage_id, rung_at)
  CREATE UNIQUE INDEX rings_pkey ON pipeline.rings USING btree (id)
sequence pipeline.rings_id_seq
table pipeline.run_metadata
  column id bigint not null generated by default as identity
  column value jsonb not null
  constraint run_metadata_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX run_metadata_pkey ON pipeline.run_metadata USING btree (id)
sequence pipeline.run_metadata_id_seq
table pipeline.runs with (fillfactor=80)
  column created_at timestamp with time zone not null
  column entity_id text not null
  column fan_out_id bigint
  column finished_at timestamp with time zone
  column id bigint not null generated always as identity
  column item_key text
  column metadata_id bigint
  column pipeline_id integer not null
  column priority smallint not null default 0
  column quota_key text
  column quota_of integer
  column status pipeline.run_status not null default 'running'::pipeline.run_status
  column took_place_of bigint
  column trace_id uuid not null default gen_random_uuid()
  column version_id integer not null
  constraint runs_pkey PRIMARY KEY (id)
  constraint runs_priority_bounds CHECK (((priority >= 0) AND (priority <= 9)))
  CREATE INDEX runs_by_entity ON pipeline.runs USING btree (entity_id, pipeline_id, id)
  CREATE INDEX runs_by_metadata ON pipeline.runs USING btree (metadata_id) WHERE (metadata_id IS NOT NULL)
  CREATE INDEX runs_of_live_children ON pipeline.runs USING btree (fan_out_id) WHERE ((status = 'running'::pipeline.run_status) AND (fan_out_id IS NOT NULL))
  CREATE UNIQUE INDEX runs_by_item ON pipeline.runs USING btree (fan_out_id, item_key) WHERE (fan_out_id IS NOT NULL)
  CREATE UNIQUE INDEX runs_one_live ON pipeline.runs USING btree (pipeline_id, entity_id) WHERE (status = 'running'::pipeline.run_status)
  CREATE UNIQUE INDEX runs_pkey ON pipeline.runs USING btree (id)
sequence pipeline.runs_id_seq
table pipeline.settings
  column comment text not null default ''::text
  column name text not null
  column value text not null
  constraint settings_pkey PRIMARY KEY (name)
  CREATE UNIQUE INDEX settings_pkey ON pipeline.settings USING btree (name)
  CREATE TRIGGER settings_are_checked BEFORE INSERT OR UPDATE ON pipeline.settings FOR EACH ROW EXECUTE FUNCTION pipeline.check_setting()
view pipeline.stage_health
  column completed bigint
  column enabled boolean
  column failed bigint
  column in_backoff bigint
  column late bigint
  column live_workers bigint
  column oldest_age interval
  column pipeline text
  column ready bigint
  column retries bigint
  column sla interval
  column stage text
  column started bigint
  column waiting bigint
  as  SELECT p.name AS pipeline, s.name AS stage, s.enabled AND p.enabled AS enabled, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at <= pipeline.now()) AS ready, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at > pipeline.now()) AS in_backoff, count(a.id) FILTER (WHERE a.state = 'started'::pipeline.attempt_state) AS started, count(a.id) FILTER (WHERE a.state = 'waiting'::pipeline.attempt_state) AS waiting, count(a.id) FILTER (WHERE a.state = 'completed'::pipeline.attempt_state AND NOT a.superseded) AS completed, count(DISTINCT a.run_id) FILTER (WHERE a.state = 'failed'::pipeline.attempt_state AND r.status = 'failed'::pipeline.run_status AND NOT a.superseded) AS failed, count(a.id) FILTER (WHERE a.retry_count > 0) AS retries, pipeline.now() - min(COALESCE(a.queue_at, a.started_at)) FILTER (WHERE (a.state = ANY (ARRAY['queued'::pipeline.attempt_state, 'started'::pipeline.attempt_state, 'waiting'::pipeline.attempt_state])) AND COALESCE(a.queue_at, a.started_at) <= pipeline.now()) AS oldest_age, ( SELECT count(*) AS count FROM pipeline.workers w WHERE w.stage_id = s.id AND w.left_at IS NULL AND w.heartbeat_at > (pipeline.now() - '00:00:15'::interval)) AS live_workers, s.sla, CASE WHEN s.sla IS NULL THEN 0::bigint ELSE pipeline.late_runs(s.id) END AS late FROM pipeline.stages s JOIN pipeline.pipelines p ON p.id = s.pipeline_id LEFT JOIN pipeline.attempts a ON a.stage_id = s.id LEFT JOIN pipeline.runs r ON r.id = a.run_id GROUP BY p.name, p.enabled, s.id, s.name, s.enabled, s.sla ORDER BY p.name, s.id;
table pipeline.stages
  column agent jsonb
  column apply text
  column awaited boolean not null default false
  column batch_size integer not null
  column callback boolean not null default false
  column child jsonb
  column counted boolean not null default false
  column deadline interval
  column deadline_from text not null default 'start'::text
  column decision jsonb
  column enabled boolean not null default true
  column fan_in jsonb
  column function_name text
  column id integer not null generated always as identity
  column kind text not null
  column laned boolean not null default false
  column lease interval not null
  column limits jsonb
  column max_workers integer not null
  column name text not null
  column on_failure text not null
  column pipeline_id integer not null
  column poll_every interval
  column result_limit_bytes integer not null
  column retry jsonb not null
  column sla interval
  column sla_changed_at timestamp with time zone
  column timeout interval not null
  column watched boolean not null default false
  constraint stages_batch_size_bounds CHECK (((batch_size >= 1) AND (batch_size <= 1000)))
  constraint stages_deadline_from_known CHECK ((deadline_from = ANY (ARRAY['submission'::text, 'start'::text])))
  constraint stages_kind_known CHECK ((kind = ANY (ARRAY['function'::text, 'external'::text, 'manual'::text, 'pipeline'::text, 'map'::text, 'agent'::text])))
  constraint stages_max_workers_bounds CHECK (((max_workers >= 1) AND (max_workers <= 1000)))
  constraint stages_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint stages_name_key UNIQUE (pipeline_id, name)
  constraint stages_on_failure_known CHECK ((on_failure = ANY (ARRAY['fail_run'::text, 'continue'::text])))
  constraint stages_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES pipeline.pipelines(id) ON DELETE CASCADE
  constraint stages_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX stages_name_key ON pipeline.stages USING btree (pipeline_id, name)
  CREATE UNIQUE INDEX stages_pkey ON pipeline.stages USING btree (id)
sequence pipeline.stages_id_seq
table pipeline.tallies
  column cancelled integer not null default 0
  column completed integer not null default 0
  column done integer not null default 0
  column failed integer not null default 0
  column fan_out_id bigint not null
  column id bigint not null generated always as identity
  column recount boolean not null default false
  column stage_id integer
  constraint tallies_pkey PRIMARY KEY (id)
  CREATE INDEX tallies_by_fan_out ON pipeline.tallies USING btree (fan_out_id)
  CREATE UNIQUE INDEX tallies_pkey ON pipeline.tallies USING btree (id)
sequence pipeline.tallies_id_seq
table pipeline.turns
  column attempt_id bigint not null
  column call_id text
  column content jsonb not null
  column created_at timestamp with time zone not null
  column kind text not null
  column passage integer not null
  column run_id bigint not null
  column seq integer not null
  column stage_id integer not null
  column usage jsonb
  constraint turns_kind_known CHECK ((kind = ANY (ARRAY['model'::text, 'tool'::text])))
  constraint turns_pkey PRIMARY KEY (run_id, stage_id, passage, seq)
  CREATE UNIQUE INDEX turns_pkey ON pipeline.turns USING btree (run_id, stage_id, passage, seq)
table pipeline.version_stages
  column after jsonb not null default '[]'::jsonb
  column child_pipeline_id integer
  column dependents integer[] not null
  column is_sink boolean not null
  column needs integer[] not null
  column otherwise text
  column plain boolean not null
  column position integer not null
  column stage_id integer not null
  column version_id integer not null
  column when_path jsonpath
  constraint version_stages_pkey PRIMARY KEY (version_id, stage_id)
  constraint version_stages_stage_fkey FOREIGN KEY (stage_id) REFERENCES pipeline.stages(id) ON DELETE CASCADE
  constraint version_stages_version_fkey FOREIGN KEY (version_id) REFERENCES pipeline.versions(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX version_stages_pkey ON pipeline.version_stages USING btree (version_id, stage_id)
table pipeline.versions
  column created_at timestamp with time zone not null default pipeline.now()
  column graph jsonb not null
  column id integer not null generated always as identity
  column number integer not null
  column pipeline_id integer not null
  constraint versions_number_key UNIQUE (pipeline_id, number)
  constraint versions_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES pipeline.pipelines(id) ON DELETE CASCADE
  constraint versions_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX versions_number_key ON pipeline.versions USING btree (pipeline_id, number)
  CREATE UNIQUE INDEX versions_pkey ON pipeline.versions USING btree (id)
sequence pipeline.versions_id_seq
type pipeline.work
  column attempt_id bigint
  column claimed_stage text
  column claimed_trace text
  column entity_id text
  column error jsonb
  column job_id text
  column ord integer
  column outcome text
  column reason text
  column result jsonb
  column run_id bigint
  column service text
  column shown text
  column stage_id integer
  column token uuid
  column usage jsonb
  column verdict text
  column was pipeline.attempt_state
table pipeline.workers with (fillfactor=50)
  column heartbeat_at timestamp with time zone not null
  column host uuid not null
  column id uuid not null
  column last_seq integer not null default 0
  column last_token uuid
  column leave_tries smallint not null default 0
  column left_at timestamp with time zone
  column signed_on_at timestamp with time zone not null
  column stage_id integer not null
  constraint workers_pkey PRIMARY KEY (id)
  CREATE INDEX workers_live ON pipeline.workers USING btree (stage_id) WHERE (left_at IS NULL)
  CREATE UNIQUE INDEX workers_pkey ON pipeline.workers USING btree (id)
type pipeline.written
  column dirty boolean
  column entity_id text
  column status text
view public.book_costs with (security_invoker=true)
  column account_id uuid
  column books bigint
  column completed bigint
  column cost_usd numeric
  as  SELECT account_id, count(*) AS books, count(*) FILTER (WHERE assemble_status = 'completed'::text) AS completed, evidence.entity_costs('books'::text, array_agg(id::text)) AS cost_usd FROM books e GROUP BY account_id;
  grant select to authenticated
  grant select to service_role
view public.book_pipeline_status with (security_invoker=true)
  column account_id uuid
  column assemble_status text
  column completed_at timestamp with time zone
  column created_at timestamp with time zone
  column current_error text
  column current_stages text[]
  column document_path text
  column headings_status text
  column id uuid
  column metadata_status text
  column page_numbers_status text
  column pages integer
  column pages_blended integer
  column pages_failed integer
  column pages_labelled integer
  column pages_read integer
  column review_status text
  column split_status text
  column status text
  column structure_status text
  column title text
  column toc_status text
  as  SELECT b.id, b.title, b.account_id, c.status, c.stages AS current_stages, c.error AS current_error, p.pages, p.read AS pages_read, p.blended AS pages_blended, p.labelled AS pages_labelled, p.failed AS pages_failed, b.split_status, b.metadata_status, b.toc_status, b.page_numbers_status, b.headings_status, b.structure_status, b.review_status, b.assemble_status, b.assemble_result ->> 'path'::text AS document_path, b.created_at, b.assemble_completed_at AS completed_at FROM books b CROSS JOIN LATERAL ( SELECT count(*)::integer AS pages, count(*) FILTER (WHERE g.ocr_status = 'completed'::text)::integer AS read, count(*) FILTER (WHERE g.blend_status = 'completed'::text)::integer AS blended, count(*) FILTER (WHERE g.label_status = 'completed'::text)::integer AS labelled, count(*) FILTER (WHERE 'failed'::text = g.ocr_status OR 'failed'::text = g.blend_status OR 'failed'::text = g.label_status)::integer AS failed FROM pages g WHERE g.book_id = b.id) p CROSS JOIN LATERAL ( SELECT CASE WHEN b.assemble_status = ANY (ARRAY['completed'::text, 'skipped'::text]) THEN 'completed'::text WHEN b.review_status = 'started'::text THEN 'waiting for a person'::text WHEN bool_or(s.status = ANY (ARRAY['queued'::text, 'started'::text])) THEN 'running'::text WHEN bool_or(s.status = 'failed'::text) THEN 'failed'::text ELSE 'pending'::text END AS status, COALESCE(array_agg(s.stage ORDER BY s.place) FILTER (WHERE s.status = ANY (ARRAY['queued'::text, 'started'::text])), '{}'::text[]) AS stages, (array_agg((s.stage || ': '::text) || s.error ORDER BY (s.error = 'cancelled'::text), s.place) FILTER (WHERE s.status = 'failed'::text))[1] AS error FROM ( VALUES (1,'split'::text,b.split_status,b.split_error), (2,'metadata'::text,b.metadata_status,b.metadata_error), (3,'toc'::text,b.toc_status,b.toc_error), (4,'page_numbers'::text,b.page_numbers_status,b.page_numbers_error), (5,'headings'::text,b.headings_status,b.headings_error), (6,'structure'::text,b.structure_status,b.structure_error), (7,'review'::text,b.review_status,b.review_error), (8,'assemble'::text,b.assemble_status,b.assemble_error)) s(place, stage, status, error)) c;
  grant select to authenticated
  grant select to service_role
table public.books with (fillfactor=50) row level security
  column account_id uuid not null
  column assemble_completed_at timestamp with time zone
  column assemble_error text
  column assemble_job_id text
  column assemble_result jsonb
  column assemble_retry_count integer not null default 0
  column assemble_started_at timestamp with time zone
  column assemble_status text not null default 'pending'::text
  column created_at timestamp with time zone not null default now()
  column headings_completed_at timestamp with time zone
  column headings_error text
  column headings_job_id text
  column headings_result jsonb
  column headings_retry_count integer not null default 0
  column headings_started_at timestamp with time zone
  column headings_status text not null default 'pending'::text
  column id uuid not null default gen_random_uuid()
  column media_type text not null default 'application/pdf'::text
  column metadata_completed_at timestamp with time zone
  column metadata_error text
  column metadata_job_id text
  column metadata_result jsonb
  column metadata_retry_count integer not null default 0
  column metadata_started_at timestamp with time zone
  column metadata_status text not null default 'pending'::text
  column page_numbers_completed_at timestamp with time zone
  column page_numbers_error text
  column page_numbers_job_id text
  column page_numbers_result jsonb
  column page_numbers_retry_count integer not null default 0
  column page_numbers_started_at timestamp with time zone
  column page_numbers_status text not null default 'pending'::text
  column review_completed_at timestamp with time zone
  column review_error text
  column review_job_id text
  column review_result jsonb
  column review_retry_count integer not null default 0
  column review_started_at timestamp with time zone
  column review_status text not null default 'pending'::text
  column source_path text not null
  column split_completed_at timestamp with time zone
  column split_error text
  column split_job_id text
  column split_result jsonb
  column split_retry_count integer not null default 0
  column split_started_at timestamp with time zone
  column split_status text not null default 'pending'::text
  column structure_completed_at timestamp with time zone
  column structure_error text
  column structure_job_id text
  column structure_result jsonb
  column structure_retry_count integer not null default 0
  column structure_started_at timestamp with time zone
  column structure_status text not null default 'pending'::text
  column title text not null
  column toc_completed_at timestamp with time zone
  column toc_error text
  column toc_job_id text
  column toc_result jsonb
  column toc_retry_count integer not null default 0
  column toc_started_at timestamp with time zone
  column toc_status text not null default 'pending'::text
  constraint books_media_type_known CHECK ((media_type = ANY (ARRAY['application/pdf'::text, 'text/plain'::text])))
  constraint books_pkey PRIMARY KEY (id)
  constraint books_source_in_own_folder CHECK ((starts_with(source_path, (account_id || '/'::text)) AND (source_path ~ '^[A-Za-z0-9_/!.*''() &$=@;:+,-]+$'::text) AND (source_path !~ '(^|/)\.{1,2}(/|$)'::text)))
  constraint books_source_path_length CHECK ((octet_length(source_path) <= 1024))
  constraint books_title_length CHECK ((octet_length(title) <= 4000))
  CREATE INDEX books_by_account ON public.books USING btree (account_id, created_at)
  CREATE UNIQUE INDEX books_pkey ON public.books USING btree (id)
  CREATE TRIGGER millrace_books_deleted AFTER DELETE ON public.books REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.books__deleted()
  CREATE TRIGGER millrace_books_inserted AFTER INSERT ON public.books REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.books__intake()
  CREATE TRIGGER millrace_books_key BEFORE UPDATE OF id ON public.books FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.books__key()
  CREATE TRIGGER millrace_books_truncated AFTER TRUNCATE ON public.books FOR EACH STATEMENT EXECUTE FUNCTION pipeline.books__deleted()
  CREATE TRIGGER millrace_books_updated AFTER UPDATE ON public.books REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('pipeline.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('pipeline'::text, 'create'::text)))) EXECUTE FUNCTION pipeline.books__intake()
  CREATE TRIGGER millrace_toc_deleted AFTER DELETE ON public.books REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.toc__deleted()
  CREATE TRIGGER millrace_toc_key BEFORE UPDATE OF id ON public.books FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.toc__key()
  CREATE TRIGGER millrace_toc_truncated AFTER TRUNCATE ON public.books FOR EACH STATEMENT EXECUTE FUNCTION pipeline.toc__deleted()
  policy books_of_own_account permissive all to authenticated using (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid) with check (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid)
  grant delete, insert, select, update to service_role
  grant delete, select to authenticated
  grant insert (account_id) to authenticated
  grant insert (id) to authenticated
  grant insert, update (media_type) to authenticated
  grant insert, update (source_path) to authenticated
  grant insert, update (title) to authenticated
  grant update (assemble_status) to authenticated
  grant update (headings_status) to authenticated
  grant update (metadata_status) to authenticated
  grant update (page_numbers_status) to authenticated
  grant update (review_status) to authenticated
  grant update (split_status) to authenticated
  grant update (structure_status) to authenticated
  grant update (toc_status) to authenticated
table public.chunk row level security
  column document_id uuid not null
  column end_offset integer not null
  column graphiti_posted_at timestamp with time zone
  column heading text
  column id uuid not null
  column ordinal integer not null
  column page integer
  column start_offset integer not null
  column text text not null
  column tokens integer not null
  constraint chunk_document_fkey FOREIGN KEY (document_id) REFERENCES document(id) ON DELETE CASCADE
  constraint chunk_offsets_in_order CHECK (((start_offset >= 0) AND (end_offset > start_offset)))
  constraint chunk_ordinal_from_one CHECK ((ordinal >= 1))
  constraint chunk_ordinal_key UNIQUE (document_id, ordinal) DEFERRABLE INITIALLY DEFERRED
  constraint chunk_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX chunk_ordinal_key ON public.chunk USING btree (document_id, ordinal)
  CREATE UNIQUE INDEX chunk_pkey ON public.chunk USING btree (id)
  CREATE TRIGGER millrace_chunks_deleted AFTER DELETE ON public.chunk REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.chunks__deleted()
  CREATE TRIGGER millrace_chunks_key BEFORE UPDATE OF id ON public.chunk FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.chunks__key()
  CREATE TRIGGER millrace_chunks_truncated AFTER TRUNCATE ON public.chunk FOR EACH STATEMENT EXECUTE FUNCTION pipeline.chunks__deleted()
  policy chunk_of_own_document permissive select to authenticated using (EXISTS ( SELECT
   FROM document d
  WHERE (d.id = chunk.document_id)))
  grant delete, insert, select, update to service_role
  grant select to authenticated
table public.chunk_draft row level security
  column attempt_id bigint not null
  column document_id uuid not null
  column end_offset integer not null
  column heading text
  column id uuid not null
  column ordinal integer not null
  column page integer
  column start_offset integer not null
  column text text not null
  column tokens integer not null
  constraint chunk_draft_document_fkey FOREIGN KEY (document_id) REFERENCES document(id) ON DELETE CASCADE
  constraint chunk_draft_pkey PRIMARY KEY (attempt_id, document_id, id)
  CREATE INDEX chunk_draft_by_document ON public.chunk_draft USING btree (document_id)
  CREATE UNIQUE INDEX chunk_draft_pkey ON public.chunk_draft USING btree (attempt_id, document_id, id)
  grant delete, insert, select, update to service_role
table public.document with (fillfactor=50) row level security
  column chunking_completed_at timestamp with time zone
  column chunking_error text
  column chunking_job_id text
  column chunking_result jsonb
  column chunking_retry_count integer not null default 0
  column chunking_started_at timestamp with time zone
  column chunking_status text not null default 'pending'::text
  column clerk_org_id text not null generated as (metadata ->> 'clerk_org_id'::text)
  column created_at timestamp with time zone not null default now()
  column extraction_completed_at timestamp with time zone
  column extraction_error text
  column extraction_job_id text
  column extraction_result jsonb
  column extraction_retry_count integer not null default 0
  column extraction_started_at timestamp with time zone
  column extraction_status text not null default 'pending'::text
  column id uuid not null default gen_random_uuid()
  column kg_ingest_completed_at timestamp with time zone
  column kg_ingest_error text
  column kg_ingest_job_id text
  column kg_ingest_result jsonb
  column kg_ingest_retry_count integer not null default 0
  column kg_ingest_started_at timestamp with time zone
  column kg_ingest_status text not null default 'pending'::text
  column metadata jsonb not null default '{}'::jsonb
  column monolith_completed_at timestamp with time zone
  column monolith_error text
  column monolith_job_id text
  column monolith_result jsonb
  column monolith_retry_count integer not null default 0
  column monolith_started_at timestamp with time zone
  column monolith_status text not null default 'pending'::text
  column source_path text not null
  constraint document_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text))
  constraint document_metadata_length CHECK ((octet_length((metadata)::text) <= 65536))
  constraint document_org_form CHECK ((clerk_org_id ~ '^[A-Za-z0-9_-]{1,100}$'::text))
  constraint document_pkey PRIMARY KEY (id)
  constraint document_source_in_own_folder CHECK ((starts_with(source_path, ((metadata ->> 'clerk_org_id'::text) || '/'::text)) AND (source_path ~ '^[A-Za-z0-9_/!.*''() &$=@;:+,-]+$'::text) AND (source_path !~ '(^|/)\.{1,2}(/|$)'::text)))
  constraint document_source_path_length CHECK ((octet_length(source_path) <= 1024))
  CREATE INDEX document_by_org ON public.document USING btree (clerk_org_id, created_at)
  CREATE UNIQUE INDEX document_pkey ON public.document USING btree (id)
  CREATE TRIGGER millrace_document_monolith_deleted AFTER DELETE ON public.document REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.document_monolith__deleted()
  CREATE TRIGGER millrace_document_monolith_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.document_monolith__intake()
  CREATE TRIGGER millrace_document_monolith_key BEFORE UPDATE OF id ON public.document FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.document_monolith__key()
  CREATE TRIGGER millrace_document_monolith_truncated AFTER TRUNCATE ON public.document FOR EACH STATEMENT EXECUTE FUNCTION pipeline.document_monolith__deleted()
  CREATE TRIGGER millrace_document_monolith_updated AFTER UPDATE ON public.document REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('pipeline.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('pipeline'::text, 'create'::text)))) EXECUTE FUNCTION pipeline.document_monolith__intake()
  CREATE TRIGGER millrace_documents_deleted AFTER DELETE ON public.document REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.documents__deleted()
  CREATE TRIGGER millrace_documents_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.documents__intake()
  CREATE TRIGGER millrace_documents_key BEFORE UPDATE OF id ON public.document FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.documents__key()
  CREATE TRIGGER millrace_documents_truncated AFTER TRUNCATE ON public.document FOR EACH STATEMENT EXECUTE FUNCTION pipeline.documents__deleted()
  CREATE TRIGGER millrace_documents_updated AFTER UPDATE ON public.document REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('pipeline.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('pipeline'::text, 'create'::text)))) EXECUTE FUNCTION pipeline.documents__intake()
  policy document_of_own_org permissive all to authenticated using (clerk_org_id = ( SELECT clerk_org_id() AS clerk_org_id)) with check ((metadata ->> 'clerk_org_id'::text) = ( SELECT clerk_org_id() AS clerk_org_id))
  grant delete, insert, select, update to service_role
  grant delete, select to authenticated
  grant insert (id) to authenticated
  grant insert, update (metadata) to authenticated
  grant insert, update (source_path) to authenticated
  grant update (chunking_status) to authenticated
  grant update (extraction_status) to authenticated
  grant update (kg_ingest_status) to authenticated
view public.document_costs with (security_invoker=true)
  column clerk_org_id text
  column completed bigint
  column cost_usd numeric
  column documents bigint
  column source_platform text
  as  SELECT metadata ->> 'clerk_org_id'::text AS clerk_org_id, metadata ->> 'source_platform'::text AS source_platform, count(*) AS documents, count(*) FILTER (WHERE status = 'completed'::text) AS completed, sum((metadata ->> 'total_cost_usd'::text)::numeric) AS cost_usd FROM pipeline_job j GROUP BY (metadata ->> 'clerk_org_id'::text), (metadata ->> 'source_platform'::text);
  grant select to authenticated
  grant select to service_role
table public.kg_edge row level security
  column chunk_id uuid not null
  column fact text not null
  column id bigint not null generated always as identity
  column relation text not null
  column source_id bigint not null
  column target_id bigint not null
  constraint kg_edge_chunk_fkey FOREIGN KEY (chunk_id) REFERENCES chunk(id) ON DELETE CASCADE
  constraint kg_edge_key UNIQUE (chunk_id, source_id, relation, target_id)
  constraint kg_edge_pkey PRIMARY KEY (id)
  constraint kg_edge_source_fkey FOREIGN KEY (source_id) REFERENCES kg_entity(id) ON DELETE CASCADE
  constraint kg_edge_target_fkey FOREIGN KEY (target_id) REFERENCES kg_entity(id) ON DELETE CASCADE
  CREATE INDEX kg_edge_by_source ON public.kg_edge USING btree (source_id)
  CREATE INDEX kg_edge_by_target ON public.kg_edge USING btree (target_id)
  CREATE UNIQUE INDEX kg_edge_key ON public.kg_edge USING btree (chunk_id, source_id, relation, target_id)
  CREATE UNIQUE INDEX kg_edge_pkey ON public.kg_edge USING btree (id)
  policy kg_edge_of_own_chunk permissive select to authenticated using (EXISTS ( SELECT
   FROM chunk c
  WHERE (c.id = kg_edge.chunk_id)))
  grant delete, insert, select, update to service_role
  grant select to authenticated
sequence public.kg_edge_id_seq
table public.kg_entity row level security
  column clerk_org_id text not null
  column description text not null default ''::text
  column id bigint not null generated always as identity
  column key text not null
  column name text not null
  column type text not null
  constraint kg_entity_key UNIQUE (clerk_org_id, key)
  constraint kg_entity_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX kg_entity_key ON public.kg_entity USING btree (clerk_org_id, key)
  CREATE UNIQUE INDEX kg_entity_pkey ON public.kg_entity USING btree (id)
  policy kg_entity_mentioned permissive select to authenticated using ((clerk_org_id = ( SELECT clerk_org_id() AS clerk_org_id)) AND (EXISTS ( SELECT
   FROM kg_mention m
  WHERE (m.entity_id = kg_entity.id))))
  grant delete, insert, select, update to service_role
  grant select to authenticated
sequence public.kg_entity_id_seq
table public.kg_mention row level security
  column chunk_id uuid not null
  column entity_id bigint not null
  column name text not null
  constraint kg_mention_chunk_fkey FOREIGN KEY (chunk_id) REFERENCES chunk(id) ON DELETE CASCADE
  constraint kg_mention_entity_fkey FOREIGN KEY (entity_id) REFERENCES kg_entity(id) ON DELETE CASCADE
  constraint kg_mention_pkey PRIMARY KEY (chunk_id, entity_id)
  CREATE INDEX kg_mention_by_entity ON public.kg_mention USING btree (entity_id)
  CREATE UNIQUE INDEX kg_mention_pkey ON public.kg_mention USING btree (chunk_id, entity_id)
  policy kg_mention_in_own_chunk permissive select to authenticated using (EXISTS ( SELECT
   FROM chunk c
  WHERE (c.id = kg_mention.chunk_id)))
  grant delete, insert, select, update to service_role
  grant select to authenticated
view public.lead_costs with (security_invoker=true)
  column account_id uuid
  column completed bigint
  column cost_usd numeric
  column leads bigint
  as  SELECT account_id, count(*) AS leads, count(*) FILTER (WHERE messaging_status = 'completed'::text) AS completed, evidence.entity_costs('leads'::text, array_agg(id::text)) AS cost_usd FROM leads e GROUP BY account_id;
  grant select to authenticated
  grant select to service_role
view public.lead_pipeline_status with (security_invoker=true)
  column account_id uuid
  column company_url text
  column completed_at timestamp with time zone
  column created_at timestamp with time zone
  column current_error text
  column current_stage text
  column current_status text
  column email text
  column id uuid
  column intel_status text
  column messaging_status text
  column scrape_status text
  column strategy_status text
  column subject_status text
  as  SELECT l.id, l.email, l.company_url, l.account_id, c.stage AS current_stage, c.status AS current_status, c.error AS current_error, l.scrape_status, l.intel_status, l.strategy_status, l.subject_status, l.messaging_status, l.created_at, l.messaging_completed_at AS completed_at FROM leads l CROSS JOIN LATERAL ( SELECT s.stage, s.status, s.error FROM ( VALUES (1,'scrape'::text,l.scrape_status,l.scrape_error), (2,'intel'::text,l.intel_status,l.intel_error), (3,'strategy'::text,l.strategy_status,l.strategy_error), (4,'subject'::text,l.subject_status,l.subject_error), (5,'messaging'::text,l.messaging_status,l.messaging_error), (6,'completed'::text,'completed'::text,NULL::text)) s(place, stage, status, error) WHERE s.place = 6 OR (s.status <> ALL (ARRAY['completed'::text, 'skipped'::text])) ORDER BY s.place LIMIT 1) c;
  grant select to authenticated
  grant select to service_role
table public.leads with (fillfactor=50) row level security
  column account_id uuid not null
  column company_url text not null
  column created_at timestamp with time zone not null default now()
  column email text not null
  column id uuid not null default gen_random_uuid()
  column intel_completed_at timestamp with time zone
  column intel_error text
  column intel_job_id text
  column intel_result jsonb
  column intel_retry_count integer not null default 0
  column intel_started_at timestamp with time zone
  column intel_status text not null default 'pending'::text
  column messaging_completed_at timestamp with time zone
  column messaging_error text
  column messaging_job_id text
  column messaging_result jsonb
  column messaging_retry_count integer not null default 0
  column messaging_started_at timestamp with time zone
  column messaging_status text not null default 'pending'::text
  column scrape_completed_at timestamp with time zone
  column scrape_error text
  column scrape_job_id text
  column scrape_result jsonb
  column scrape_retry_count integer not null default 0
  column scrape_started_at timestamp with time zone
  column scrape_status text not null default 'pending'::text
  column strategy_completed_at timestamp with time zone
  column strategy_error text
  column strategy_job_id text
  column strategy_result jsonb
  column strategy_retry_count integer not null default 0
  column strategy_started_at timestamp with time zone
  column strategy_status text not null default 'pending'::text
  column subject_completed_at timestamp with time zone
  column subject_error text
  column subject_job_id text
  column subject_result jsonb
  column subject_retry_count integer not null default 0
  column subject_started_at timestamp with time zone
  column subject_status text not null default 'pending'::text
  constraint leads_company_url_length CHECK ((octet_length(company_url) <= 8000))
  constraint leads_email_length CHECK ((octet_length(email) <= 1000))
  constraint leads_pkey PRIMARY KEY (id)
  CREATE INDEX leads_by_account ON public.leads USING btree (account_id, created_at)
  CREATE UNIQUE INDEX leads_pkey ON public.leads USING btree (id)
  CREATE TRIGGER millrace_leads_deleted AFTER DELETE ON public.leads REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.leads__deleted()
  CREATE TRIGGER millrace_leads_inserted AFTER INSERT ON public.leads REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.leads__intake()
  CREATE TRIGGER millrace_leads_key BEFORE UPDATE OF id ON public.leads FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.leads__key()
  CREATE TRIGGER millrace_leads_truncated AFTER TRUNCATE ON public.leads FOR EACH STATEMENT EXECUTE FUNCTION pipeline.leads__deleted()
  CREATE TRIGGER millrace_leads_updated AFTER UPDATE ON public.leads REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('pipeline.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('pipeline'::text, 'create'::text)))) EXECUTE FUNCTION pipeline.leads__intake()
  policy leads_of_own_account permissive all to authenticated using (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid) with check (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid)
  grant delete, insert, select, update to service_role
  grant delete, select to authenticated
  grant insert (account_id) to authenticated
  grant insert, update (company_url) to authenticated
  grant insert, update (email) to authenticated
  grant update (intel_status) to authenticated
  grant update (messaging_status) to authenticated
  grant update (scrape_status) to authenticated
  grant update (strategy_status) to authenticated
  grant update (subject_status) to authenticated
table public.pages with (fillfactor=50) row level security
  column blend_completed_at timestamp with time zone
  column blend_error text
  column blend_job_id text
  column blend_result jsonb
  column blend_retry_count integer not null default 0
  column blend_started_at timestamp with time zone
  column blend_status text not null default 'pending'::text
  column book_id uuid not null
  column id uuid not null default gen_random_uuid()
  column label_completed_at timestamp with time zone
  column label_error text
  column label_job_id text
  column label_result jsonb
  column label_retry_count integer not null default 0
  column label_started_at timestamp with time zone
  column label_status text not null default 'pending'::text
  column number integer not null
  column ocr_completed_at timestamp with time zone
  column ocr_error text
  column ocr_job_id text
  column ocr_result jsonb
  column ocr_retry_count integer not null default 0
  column ocr_started_at timestamp with time zone
  column ocr_status text not null default 'pending'::text
  constraint pages_book_fkey FOREIGN KEY (book_id) REFERENCES books(id) ON DELETE CASCADE
  constraint pages_number_from_one CHECK ((number >= 1))
  constraint pages_number_key UNIQUE (book_id, number)
  constraint pages_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX pages_number_key ON public.pages USING btree (book_id, number)
  CREATE UNIQUE INDEX pages_pkey ON public.pages USING btree (id)
  CREATE TRIGGER millrace_pages_deleted AFTER DELETE ON public.pages REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.pages__deleted()
  CREATE TRIGGER millrace_pages_inserted AFTER INSERT ON public.pages REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.pages__intake()
  CREATE TRIGGER millrace_pages_key BEFORE UPDATE OF id ON public.pages FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.pages__key()
  CREATE TRIGGER millrace_pages_truncated AFTER TRUNCATE ON public.pages FOR EACH STATEMENT EXECUTE FUNCTION pipeline.pages__deleted()
  CREATE TRIGGER millrace_pages_updated AFTER UPDATE ON public.pages REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('pipeline.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('pipeline'::text, 'create'::text)))) EXECUTE FUNCTION pipeline.pages__intake()
  policy pages_of_own_books permissive all to authenticated using (EXISTS ( SELECT
   FROM books b
  WHERE (b.id = pages.book_id))) with check (EXISTS ( SELECT
   FROM books b
  WHERE (b.id = pages.book_id)))
  grant delete, insert, select, update to service_role
  grant select to authenticated
  grant update (blend_status) to authenticated
  grant update (label_status) to authenticated
  grant update (ocr_status) to authenticated
table public.pipeline_decisions row level security
  column attempt_id bigint not null
  column closed_at timestamp with time zone
  column closed_why text
  column deadline_at timestamp with time zone not null
  column decided_at timestamp with time zone
  column decided_by uuid
  column decision jsonb
  column entity_id text not null
  column opened_at timestamp with time zone not null
  column pipeline text not null
  column run_id bigint not null
  column schema jsonb not null
  column stage text not null
  constraint pipeline_decisions_fold TRIGGER DEFERRABLE INITIALLY DEFERRED
  constraint pipeline_decisions_pkey PRIMARY KEY (attempt_id)
  CREATE INDEX pipeline_decisions_by_entity ON public.pipeline_decisions USING btree (entity_id)
  CREATE INDEX pipeline_decisions_by_run ON public.pipeline_decisions USING btree (run_id)
  CREATE INDEX pipeline_decisions_open ON public.pipeline_decisions USING btree (attempt_id) WHERE (closed_at IS NULL)
  CREATE UNIQUE INDEX pipeline_decisions_pkey ON public.pipeline_decisions USING btree (attempt_id)
  CREATE CONSTRAINT TRIGGER pipeline_decisions_fold AFTER UPDATE ON public.pipeline_decisions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.decided_at IS NULL) AND (new.decided_at IS NOT NULL))) EXECUTE FUNCTION pipeline.fold_decided()
  CREATE TRIGGER pipeline_decisions_check BEFORE UPDATE OF decision ON public.pipeline_decisions FOR EACH ROW EXECUTE FUNCTION pipeline.check_answer()
  CREATE TRIGGER pipeline_decisions_take AFTER UPDATE ON public.pipeline_decisions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.take_answers()
  policy decide_on_own_books permissive update to authenticated using ((pipeline = 'books'::text) AND (EXISTS ( SELECT
   FROM books b
  WHERE ((b.id)::text = pipeline_decisions.entity_id))))
  policy decisions_of_own_books permissive select to authenticated using ((pipeline = 'books'::text) AND (EXISTS ( SELECT
   FROM books b
  WHERE ((b.id)::text = pipeline_decisions.entity_id))))
  grant select to authenticated
  grant select to service_role
  grant update (decision) to authenticated
  grant update (decision) to service_role
view public.pipeline_job with (security_invoker=true)
  column completed_at timestamp with time zone
  column created_at timestamp with time zone
  column current_phase text
  column document_id uuid
  column id uuid
  column metadata jsonb
  column pipeline text
  column run_id bigint
  column started_at timestamp with time zone
  column status text
  column trace_id uuid
  column updated_at timestamp with time zone
  as  SELECT d.id, d.id AS document_id, j.current_phase, j.status, j.metadata, j.created_at, j.started_at, j.completed_at, j.updated_at, j.run_id, j.trace_id, j.pipeline FROM document d CROSS JOIN LATERAL evidence.document_job(d.id) j(run_id, trace_id, pipeline, current_phase, status, metadata, created_at, started_at, completed_at, updated_at);
  grant select to authenticated
  grant select to service_role
view public.pipeline_phase with (security_invoker=true)
  column completed_at timestamp with time zone
  column error_message text
  column error_type text
  column id bigint
  column input_location text
  column metadata jsonb
  column output_location text
  column parent_phase_id bigint
  column phase text
  column pipeline text
  column pipeline_job_id uuid
  column queued_at timestamp with time zone
  column retry_count integer
  column run_id bigint
  column started_at timestamp with time zone
  column status text
  as  SELECT f.id, d.id AS pipeline_job_id, f.phase, f.status, l.input_location, CASE WHEN f.status = 'completed'::text THEN l.output_location ELSE NULL::text END AS output_location, f.error ->> 'message'::text AS error_message, f.error ->> 'code'::text AS error_type, f.retry_count, f.parent_phase_id, f.metadata, f.queued_at, f.started_at, f.completed_at, f.run_id, f.pipeline FROM document d CROSS JOIN LATERAL evidence.document_phases(d.id) f(id, run_id, pipeline, phase, status, output, error, retry_count, parent_phase_id, metadata, queued_at, started_at, completed_at) CROSS JOIN LATERAL ( SELECT CASE WHEN f.phase = ANY (ARRAY['extraction'::text, 'monolith'::text]) THEN 'documents/'::text || d.source_path WHEN f.phase = 'chunking'::text THEN ('extracted_text/'::text || d.id) || '.txt'::text WHEN f.phase = 'kg_ingest'::text THEN 'chunk?document_id=eq.'::text || d.id ELSE NULL::text END AS input_location, CASE WHEN f.phase = 'extraction'::text THEN f.output ->> 'text_location'::text WHEN f.phase = 'chunking'::text THEN f.output ->> 'output_location'::text WHEN f.phase = ANY (ARRAY['kg_ingest'::text, 'monolith'::text]) THEN 'kg_edge?select=*,chunk!inner(document_id)&chunk.document_id=eq.'::text || d.id ELSE NULL::text END AS output_location) l;
  grant select to authenticated
  grant select to service_role
function pipeline.abandon_fan_outs(p_run_ids bigint[], p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 59fe02f2b88253952e22563cb1c87af9
function pipeline.add_children(p_fan_out pipeline.fan_outs, p_item_keys text[], p_entity_ids text[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 12e3da21babde4cffa12cfa999cf7bc4
function pipeline.address_ends(p_items pipeline.work[], p_locked bigint[], OUT items pipeline.work[], OUT late integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 7713d70d7deac2735041ce25deb0bcad
function pipeline.admit_arrivals(p_stage_id integer, p_gate pipeline.gates, p_room integer) returns pipeline.gates language plpgsql volatile set search_path=pg_catalog, pg_temp body 6997499a3971a7e99d2ee50232a8d0cc
function pipeline.adopt_attempts(p_stage pipeline.stages, p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ed8a6f058620b231eed517ec0087bbb6
function pipeline.adopt_runs(p_fan_out pipeline.fan_outs, p_item_keys text[], p_entity_ids text[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 87f0ee081df622146c49fd634cd935b6
function pipeline.advance(p_stage_id integer, p_run_ids bigint[], OUT ready pipeline.ready[], OUT followers integer[], OUT names text[], OUT laned boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body a46ae619548d01245cc8ad9cdf2d629b
function pipeline.advance_others(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body bee4e5b5988878d84f9ec12ee53fe07a
function pipeline.after_of(p_pipeline_id integer, p_stages jsonb, p_stage jsonb) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body 578af31db27a06f0bef993c971878296
function pipeline.answer_in_sequence(p_stage pipeline.stages, p_worker pipeline.workers, p_seq integer, p_limit integer, p_done record) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 339058fea0a02ab827aaf47f5cc61b83
function pipeline.append_turns(p_attempt pipeline.attempts, p_turns jsonb, OUT added integer, OUT next_seq integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 0bc925ec7f38329c97db8959ed6b2330
function pipeline.apply_results(p_stage_id integer, p_items pipeline.work[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 8a173fae8d018d501806abfa3c473cbf
function pipeline.array_fault(p_schema jsonb, p_value jsonb, p_path text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 404e9e153fd5e00a94d90e0d77546b58
function pipeline.assign_lanes(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a4438bf342b56b9b3302af8e60115bc6
function pipeline.attach(p_pipeline text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6f47de630b50d744c95edf0de2d7f9fc
function pipeline.attach_lanes(p_pipeline pipeline.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 3b4fa7ef011dd050bbf544ed5e56c48f
function pipeline.attach_quota(p_pipeline pipeline.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body eed7bcf986a45be3107a031e3546ea94
function pipeline.attempt_costs(p_runs bigint[]) returns TABLE(run_id bigint, stage_id integer, attempt_id bigint, paid_by bigint, cost_usd numeric) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, jit=off, plan_cache_mode=force_generic_plan body ef88bc3924ab32a25ee2fa6e05a7c6ac
function pipeline.attempt_of_job(p_job_id text) returns pipeline.attempts language plpgsql stable set search_path=pg_catalog, pg_temp body 60c30108559ef63cb6309e68014d0853
function pipeline.backoff_seconds(p_backoff jsonb, p_retry_count integer) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp body d658cb2a24d056a7ea2511e39430d800
function pipeline.batch_bytes() returns bigint language plpgsql stable set search_path=pg_catalog, pg_temp body 14589d275882e09a324c61113b63c2af
function pipeline.batch_of(p_stage pipeline.stages, p_token uuid, p_items pipeline.claimed[], p_entity_ids text[], p_each bigint, p_built pipeline.built[] DEFAULT NULL::pipeline.built[]) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 392ca4d36ffced4b43f1b002c478c4c8
function pipeline.begin_beside(p_pipeline_id integer, p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0c189d5713bc2d0217a4346e8092ec77
function pipeline.begin_open(p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 079ec8a5b7d909fe10b5f6bae83bbb92
function pipeline.begin_roots(p_pipeline_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b20db36a273a439318edb3085e57922e
function pipeline.begin_stage(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9c95212f8f72d025f810fb5e61268e1f
function pipeline.books__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 40bd42d97c2825ea1d43d235642fdad1
function pipeline.books__intake() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_nestloop=off body 13d383fb7c8470f8e364c60c2a86a9c7
function pipeline.books__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.books__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body e697b05ac58dd0b2a04e2376899b72d5
function pipeline.books__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ce5aaead67efec1877cd51b8a32fe54f
function pipeline.books__queued(p_stage text, p_dependents text[], p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5c2b1e986cf6ad712f1504ff4a985b3e
function pipeline.books__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 01c12473d88c9efa8677e250317af10c
function pipeline.books__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 594f97dd288bc7d8fbf7c4735437c6d8
function pipeline.books__settle(p_stage text, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 96be0dff465a25e92c5c000175f45a73
function pipeline.books__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9270927b9b559bd9eeeed6bd5ae95b5c
function pipeline.books__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a9065b7359a7cb369c9a02696ef3ad95
function pipeline.branches(p_ids integer[], p_branches text[]) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 4aa655269fefa09584f89d4455514a96
function pipeline.built_row(p_stage pipeline.stages, p_item pipeline.claimed) returns pipeline.built language plpgsql volatile set search_path=pg_catalog, pg_temp body d0647173db813f92241da1065e6743ed
function pipeline.cancel(p_run bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body ab97a2adcceb4c03e873590db0133b62
function pipeline.cancel_attempts(p_run_ids bigint[], p_stage_ids integer[]) returns pipeline.cancelled[] language plpgsql volatile set search_path=pg_catalog, pg_temp body e26b46edd78d17b31ccdc8e169aadc12
function pipeline.cancel_children(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body f45a3bb4bf8ec2105fd4af52ae73207f
function pipeline.cancel_held(p_run_ids bigint[], p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body dbe1b879a432dfe3945b82c1080e6422
function pipeline.charge_starts(p_stage pipeline.stages, p_payer pipeline.payer, p_attempt_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body e5f41f5924e23a48ccc59b38fb00e3fb
function pipeline.check_after(p_stage jsonb, p_stages jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 723fc5c6788636983f4094064058b7fa
function pipeline.check_agent(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body d1a1bdf12078337d89aa37d1e5b3d8c5
function pipeline.check_amount(p_definition jsonb, p_kind text, p_unit text, p_min numeric) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body e979add38d30b475b4322b5c15fb032b
function pipeline.check_answer() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body c976ee596656951853f8ec51e02b1a5e
function pipeline.check_back_pressure(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 1c6aa9ca38d4ce24699923eeb02badad
function pipeline.check_backoff(p_stage jsonb, p_path text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body a45c2d1c7682dc46706b491ee34ed2b7
function pipeline.check_changed_children(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4412a41e65cc415d233cf7b62571e0d0
function pipeline.check_changed_kinds(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a2228748035fb9eeb2e9c5259b221bfb
function pipeline.check_child(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 1d33a7bc7bab2b02ffa4c9c5a4b46665
function pipeline.check_columns(p_pipeline pipeline.pipelines, p_stages text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4465c5becc0fa64c23c144d84c15217a
function pipeline.check_completion(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body e82c6ef3f9d162bca70eb97943bb036a
function pipeline.check_concurrency(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body abdedbd87ac5ffe3c93ff358ff83927c
function pipeline.check_condition(p_pipeline text, p_condition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body eeee456a0834f357df2b94af8ce19b77
function pipeline.check_condition_names(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 3729af7fac4ce1c51e57b497ab42968b
function pipeline.check_condition_path(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 709851095875d88254a1e5bc90be0619
function pipeline.check_counted_stages(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e8f845c540f25c7693efdd9256c4568d
function pipeline.check_decision(p_stage jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body d519cb6e0181d19d7e2b8ddc84af9665
function pipeline.check_definition(p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8d1a848a41a84a169b1d4245353ee57c
function pipeline.check_dropped_stages(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ecd91d8435d9360319b3e1c1e09f9909
function pipeline.check_fan_in(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 9da6154898a9faa7cb1ad17069d1f940
function pipeline.check_flag(p_new pipeline.pipelines, p_mode text, p_share numeric, p_groups text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body ee9d6a10b53c8b770c594888f6fd8f31
function pipeline.check_invariants() returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language sql stable set search_path=pg_catalog, pg_temp body ba0f25c6a92bb0fec0e2dc1682830bca
function pipeline.check_items(p_items jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 8602d3e55e70609901400b0e4953e62b
function pipeline.check_job_states(p_jobs jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body bd2e8e40c5c16691be6102ac75378707
function pipeline.check_json_schema(p_schema jsonb, p_path text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 8816ad0dfdb6a9cb1ad3f7e692d10191
function pipeline.check_key(p_pipeline pipeline.pipelines) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body becdae48340c363b2a9a4a5a450e99ff
function pipeline.check_keys(p_stage jsonb, p_path text[], p_known text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body bbc7ecf4f4f3ea8c299becf72cc0cd95
function pipeline.check_kind(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 3121f3d1f6ff6835e8eb6a657995229b
function pipeline.check_limits(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body ddf17bd32e51b4c76b994e2922d0f60c
function pipeline.check_metadata(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 6ec8dcdf703f3ee9e6dc4c1a49db27c8
function pipeline.check_moved(p_pipeline text, p_table regclass, p_key text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body eed6187060b2c4ac5405e9765a1457c2
function pipeline.check_needs(p_stage jsonb, p_names text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body b87a018ef1ad2cc81f61d9727173a9ed
function pipeline.check_number(p_stage jsonb, p_path text[], p_min numeric, p_max numeric, p_whole boolean DEFAULT false) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 42ac5d432a4263987be25c733af5f8ff
function pipeline.check_numbers(p_fan_out pipeline.fan_outs, p_item_keys text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 723fd7d70d7236da6803be3bba5aaa5e
function pipeline.check_parents(p_pipeline text, p_table regclass, p_key text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1ea2a1fa3882d4d4808d1ed38eb3b5fd
function pipeline.check_patterns(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body fadbdeec59c660863542ea0666b228f0
function pipeline.check_quota(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body d3098c368756f3cac527078ea8d39ccb
function pipeline.check_replaced(p_pipeline text, p_table regclass, p_key text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 4990600a5cf4ba8667e2cd5eba138748
function pipeline.check_replaces(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 0314fcda4c1351c03b41523e97745132
function pipeline.check_required(p_stage jsonb, p_path text[], p_wanted text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body c5d84f5531e00d14800cb3def7d11a80
function pipeline.check_retry(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 4bc6124b40bda363527bfa8692e7b649
function pipeline.check_rival(p_stage jsonb, p_stages jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body b37a9decee4627f32517e10d5a4f091d
function pipeline.check_rows(p_fan_out pipeline.fan_outs, p_item_keys text[], p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d87c01fa5c930b08eb9cad389635c501
function pipeline.check_rows_exist(p_child pipeline.pipelines, p_item_keys text[], p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body faf47416f455eba20e9a24b9dbf3f34b
function pipeline.check_schema_bounds(p_schema jsonb, p_path text, p_low text, p_high text, p_count boolean) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 7029bf4df7a7e74bcd3d1a8d45b9b480
function pipeline.check_schema_object(p_schema jsonb, p_path text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 979f2176943a1afceb3fc72be32b4e59
function pipeline.check_schema_pattern(p_schema jsonb, p_path text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body cbba8922e84647b60eae5b319d4681f5
function pipeline.check_setting() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 3526b7449bad423692feeb05e13f0b94
function pipeline.check_slots(p_stage_id integer, p_worker_id uuid, p_checked_to bigint) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body fd61b72d2e4e9f7d202f19bda555bf2b
function pipeline.check_stage(p_stage jsonb, p_names text[], p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 53340e5108169ce07f3f9888336610e8
function pipeline.check_status_words(p_table regclass, p_stages text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4c882d0881274a047b5b65fe0dc5403d
function pipeline.check_table(p_table regclass) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 57fa64358603929e94a0025ef7553f68
function pipeline.check_threshold(p_stage jsonb, p_after jsonb, p_stages jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 0437f1465758517c766c4670b10090ac
function pipeline.check_turns(p_turns jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1121ba3271062f992370800f8e3344e9
function pipeline.check_type(p_stage jsonb, p_path text[], p_type text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body e6567b33afa79ae9fdd788c469a3cd7b
function pipeline.child_failure(p_fan_out pipeline.fan_outs) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body f74aa6696117ea695d69e3d9c726c121
function pipeline.chunks__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 003ad1f80f0c7d996ef4ae7f088cef97
function pipeline.chunks__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.chunks__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 026921b41cc3d001374df167ccd85bd4
function pipeline.chunks__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 88fb928386ca772cdca181c04dfe15ac
function pipeline.chunks__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 26e25d6ef4de64897cc58b3ce51e9a79
function pipeline.claim(p_stage pipeline.stages, p_worker_id uuid, p_host uuid, p_limit integer, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT items pipeline.claimed[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 66b4b4fd2551ec13b9078f11cbedee90
function pipeline.claim_answer(p_stage pipeline.stages, p_status text, p_reason text, p_batch json, p_ring integer[], p_items json, p_wait_ms integer DEFAULT NULL::integer, p_cut boolean DEFAULT false) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 62071afd993dac6542a4d43ac109a2bc
function pipeline.claim_lanes(p_stage pipeline.stages, p_worker_id uuid, p_host uuid, p_room integer, INOUT gate pipeline.gates, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 862c677aa97818e38ebf34abaf0eee1a
function pipeline.claim_limited(p_stage pipeline.stages, p_worker_id uuid, p_host uuid, p_limit integer, p_may_wait boolean, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT items pipeline.claimed[], OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 7a2df580f3f7d717d0f06e4bd4562587
function pipeline.claim_next(p_stage pipeline.stages, p_worker pipeline.workers, p_seq integer, p_limit integer, p_done record) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 3832a24ffdf052768473647b53730c27
function pipeline.clear_entities(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5022d1d7c0d5d8089402df0d0e2872f3
function pipeline.clear_stages(p_run pipeline.runs, p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4430efa62d29cbfff3553b52eb0f4962
function pipeline.clear_the_way(p_fan_out pipeline.fan_outs, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 34eecde02a54a8bec1be5e42714df073
function pipeline.close_decisions(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 7ad70f69baba6a59aa5552b5da8bc0fc
function pipeline.close_held(p_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body dd25c0450228236472466f2f885ead4b
function pipeline.complete(p_stage_id integer, p_items pipeline.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9c11084c6dcf57acdfbb6e536d4d6aec
function pipeline.complete_stage(p_run bigint, p_stage text, p_result jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 69b2691d88a8c61198e33567fff10a9f
function pipeline.consume_tallies(p_fan_out_id bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f59e8fc176d1d794eb95bc1d0c871330
function pipeline.contains_pipeline(p_pipeline_id integer, p_name text) returns boolean language sql stable set search_path=pg_catalog, pg_temp body e8015fa8f90b2125d6dca0253ba54cf5
function pipeline.copy_metadata(p_pipeline_id integer, p_entity_ids text[], OUT ids bigint[], OUT faults text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 1fadb166e74aaff5deeb06e99f290d12
function pipeline.cost_of(p_run bigint) returns numeric language sql stable set search_path=pg_catalog, pg_temp body 88bb82649d217d6da5358ae9973e81a2
function pipeline.count_attempts(p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b92550760388cd804fdaeeb1f7a4eb95
function pipeline.count_consecutive(p_fan_out pipeline.fan_outs, p_stage_id integer, p_wanted integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d34f650b980cda4f3555fee853f31a4d
function pipeline.cut_over_way(p_pipeline text, p_entity_id text, OUT way text, OUT why text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 9d9a8c75384bfdfde8502e8116e8ee4d
function pipeline.define(p_definition jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body e797ee478c59b9be617250388341c146
function pipeline.delete_runs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6b3437266b82bde5a64118b4b28f7f1f
function pipeline.detach_old(p_pipeline pipeline.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fc7e9054794cfda23ac0765002b6ba08
function pipeline.dirty_condition(p_row text, p_stage text, p_with_status boolean) returns text language sql immutable set search_path=pg_catalog, pg_temp body 53e938302678f564a960aa1a91631ca9
function pipeline.doctor() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body af0b31a2b215a233ca871e84a211b9cb
function pipeline.document_monolith__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 5a422bcd40a2041ddfdff7ca0826e619
function pipeline.document_monolith__intake() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_nestloop=off body 8145ad77526463a325a1e9907df8229f
function pipeline.document_monolith__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.document_monolith__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 11ef140c5467f5175d5b2aadd7d3808b
function pipeline.document_monolith__metadata(p_ids text[]) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 912ad4938cd132bc43bf2b30ddf4c117
function pipeline.document_monolith__queued(p_stage text, p_dependents text[], p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2eca2ab14ceb1d5d434201b634bdcc1d
function pipeline.document_monolith__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 64de9f6416be8598801ab44dbd50f0d3
function pipeline.document_monolith__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 88c3ceafc87d10c4afc46a13f6336115
function pipeline.document_monolith__settle(p_stage text, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 07c4911168f062616b9f1a0a9b7b04bd
function pipeline.document_monolith__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body d2faf38a9d7705e775dc7b747097ad8b
function pipeline.document_monolith__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9e562111107eb10cc2cf918613af28a6
function pipeline.documents__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 367d8ca8cdeaeaf18c67c89cdad0a2ea
function pipeline.documents__intake() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_nestloop=off body 72b91a4308910fcc9cb045d5785ef8b5
function pipeline.documents__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.documents__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 3dfac11d451fb907248534366ffd8ada
function pipeline.documents__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 11ef140c5467f5175d5b2aadd7d3808b
function pipeline.documents__metadata(p_ids text[]) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b249cfb24d82d22f25009ad63bda35c7
function pipeline.documents__queued(p_stage text, p_dependents text[], p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 899837577a141c0f08bf020f572507b0
function pipeline.documents__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2db37b948d6cf275340f193d7d1f25f3
function pipeline.documents__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 455fd95566d3b3ea688d9b3ebbe548c5
function pipeline.documents__settle(p_stage text, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 77520d2cbf302ddac2071291d18c8ea8
function pipeline.documents__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body bb91eb164dbb3457e7ff509ba3ff4b8f
function pipeline.documents__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8f559e7bf0613ac8639fd737bb35f467
function pipeline.drop_claims(p_worker_id uuid) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d89adc3f98642f06fe3c69b855a8372e
function pipeline.drop_overtaken(p_fan_out_id bigint, p_item_keys text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 3cce0c66b541d9e76eab6c3c0f0302ac
function pipeline.drop_turns(p_stage pipeline.stages, p_verdicts json) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1d3c125ab89d7eef547ad85330311ce8
function pipeline.due_of_payer(p_stage pipeline.stages, p_payer pipeline.payer, p_uncounted boolean) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c9eb5b1e69103edb35ea62814095641a
function pipeline.edges_to(p_stage jsonb) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body 339d91bd688a20effa2afda0d622415e
function pipeline.end_given_up(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f143d8ddc6f8afab91702abb769aa810
function pipeline.end_runs(p_run_ids bigint[], p_status pipeline.run_status) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c5783812d2c75aa416c3a1d9d36b9a40
function pipeline.end_stage(p_run bigint, p_stage text, p_verb text, p_outcome text, p_result jsonb, p_error jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b987d7549e9fcd92e5cdce49f789524c
function pipeline.end_turns(p_stage pipeline.stages, p_lanes text[], p_served text[], p_last_turn bigint, p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body cd8108b7dcdc12009eda899c01869b50
function pipeline.enqueue_stage(p_run_ids bigint[], p_stage_id integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body d19ef2d3f839d8044618da2d3e6b7e0a
function pipeline.error_kind(p_sqlstate text, p_context text DEFAULT NULL::text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 68a5def6974b0d6321412294facb854d
function pipeline.fail(p_stage_id integer, p_items pipeline.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body e65a53bf82d28e643b957d4082dc2021
function pipeline.fail_lost(p_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body bd3a0428e24e4bf0f09c078a89a6992d
function pipeline.fail_overdue(p_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 2c8dea80267dc8dd401b43f5e60960f7
function pipeline.fail_stage(p_run bigint, p_stage text, p_message text, p_permanent boolean DEFAULT false) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body d0f2f467c98b6df30aaca7d2c151eb7f
function pipeline.fan_in_output(p_fan_out pipeline.fan_outs, p_kind text) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 32725107a1a675f4d3b2b2158c8a976f
function pipeline.fan_in_verdict(p_fan_out pipeline.fan_outs, p_fan_in jsonb, p_deadline_at timestamp with time zone, OUT outcome text, OUT error jsonb) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 9e0517a190daabc326cd48f6d28598aa
function pipeline.fan_out_of(p_attempt pipeline.attempts, p_child_pipeline_id integer) returns pipeline.fan_outs language plpgsql volatile set search_path=pg_catalog, pg_temp body c462352b7c8f4e19e84f063ac84a420a
function pipeline.fault_of(p_pipeline text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body bfc440ae0e728c5e74f0f63172fd8234
function pipeline.faulty_jobs() returns text language plpgsql stable set search_path=pg_catalog, pg_temp body ef0d1cbbb76073294046547227d02e5e
function pipeline.fill_batch(p_stage pipeline.stages, p_token uuid, p_items pipeline.claimed[], p_entity_ids text[], OUT batch json, OUT kept integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 67a036ec1c3be48d567949a49ff6f10b
function pipeline.finish_runs(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 867fab0a2d6e26ac9622d9272c9b29ee
function pipeline.first_stage(p_pipeline_id integer) returns integer language plpgsql stable set search_path=pg_catalog, pg_temp body 04b5f99ff1e61d3e588fafc996379832
function pipeline.fold(p_fan_out_id bigint, OUT ring integer[], OUT busy boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 30da12ab7b70d8d3ea2a5f62cc07b042
function pipeline.fold_decided() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, lock_timeout=200ms, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body e4aa2e9855c49d4a7400fc36c59fdf5d
function pipeline.follow_bound(p_stage_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 8370a08283fff1904c6b8cf442e68703
function pipeline.follow_bounds() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9949043fd3d351da50c7c2337059eb34
function pipeline.follow_later_runs(p_fan_out_id bigint, p_item_keys text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 62b8346304cd4cb69db8623486a701d6
function pipeline.followers_with_work(p_stage_id integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7cb6985fb8019d888821442211f86247
function pipeline.forget(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 8e07445b7ce15be0de021cf403d04ff2
function pipeline.forget_alerts(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 82d7a58a611a578dd0555b54e61d719d
function pipeline.forget_decisions(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e6f4b61a9b4f06387de5cf76abfea8c7
function pipeline.forget_lanes(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 69602a8ff5bd19a8fa3a1ee81c552b0a
function pipeline.forget_posts(p_keep integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 55f40f67993882dd29b69afe61c4e588
function pipeline.free_of_key(p_stage pipeline.stages, p_lane text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body b04f5cc491925261f08792abf4403d5b
function pipeline.free_slots(p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c082cfcb19298a1058ac13d2adf6a5e9
function pipeline.function_named(p_name text, p_arguments text) returns regprocedure language plpgsql stable set search_path=pg_catalog, pg_temp body f48b4621479c622604016f45152b66ca
function pipeline.give_back(p_stage pipeline.stages, p_token uuid, p_kept bigint[], p_back bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d3d5cb9b6d0dc82b6ee81488217d5c25
function pipeline.give_back_limits(p_stage pipeline.stages, p_kept bigint[], p_back bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 14c583e8fe8bdf4963384adbad6e8124
function pipeline.give_back_turns(p_stage pipeline.stages, p_kept bigint[], p_back bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b1852925b35034df7723801596bf1d33
function pipeline.go_on(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ee909f066d90f48c318e1b0712a5f51d
function pipeline.go_on_without(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c9e89fcf548da347253a815172abc22f
function pipeline.graph_of(p_definition jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 950b5ac38a2631e445a30cf7ecc75220
function pipeline.has_columns(p_pipeline pipeline.pipelines, p_stage text) returns boolean language sql stable set search_path=pg_catalog, pg_temp body 57c2b143896e54c19dfbab10446c0270
function pipeline.has_ready_work(p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body e5de9399316e1ddaf721ebd8fb316ccc
function pipeline.held_batch(p_stage pipeline.stages, p_token uuid, p_attempt_ids bigint[], OUT batch json, OUT kept integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 685b3d235fe633a19421362f080b9786
function pipeline.held_items(p_token uuid, p_attempt_ids bigint[]) returns pipeline.claimed[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ba11bf29d7ba57fff9d4094f91667c73
function pipeline.hold_alike(p_items pipeline.work[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ba347e0b8fdb3dd42951ceb11887bfeb
function pipeline.hold_back(p_stage pipeline.stages, p_payer pipeline.payer, p_kind text, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8c8efa2a539b91802f88919650e07d4e
function pipeline.hold_gates(p_pipeline text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 49a88b30f5ceb96961c30cedf7fe0583
function pipeline.hold_message(p_quota jsonb, p_kind text, p_due_at timestamp with time zone) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body ab6e5bacaa447ed5ca620d46454ba230
function pipeline.hold_parent(p_run_id bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body f01a38a74f6aaa4b02debfb9f1fbf322
function pipeline.hold_runs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 759d432128799283257e475f33fd2db7
function pipeline.hold_stage(p_run bigint, p_stage text, OUT run pipeline.runs, OUT version_stage pipeline.version_stages, p_whole boolean DEFAULT false) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 2a60f2358fd6cc74eebd0108c6a580bf
function pipeline.in_words(p_interval interval) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 5694671c22514654250a8bea344ed5a2
function pipeline.inherit_quotas(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 39b89e9e665e65412d37a04bd73a6b97
function pipeline.intake_body(p_pipeline pipeline.pipelines, p_key_type text, p_from text, p_was text) returns text language sql stable set search_path=pg_catalog, pg_temp body fe95ce58d35d4398a757e8f1a54c501e
function pipeline.is_done(p_run_id bigint, p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 50f8cd1126a6e902d054a8992c7362fd
function pipeline.is_kind(p_stage jsonb, p_kinds text[]) returns boolean language sql immutable set search_path=pg_catalog, pg_temp body 413f72455dc29c68f678f1ad4a04e6c2
function pipeline.is_last_word(p_attempt pipeline.attempts) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 578730f420cfcb2718f96bb29f20a340
function pipeline.is_latest_run(p_run_id bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 7862813a20f63eccf93d8fb72b07a6f5
function pipeline.is_only_root(p_stage pipeline.version_stages) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body a1df32f0d69bc92fd592c878943c1be0
function pipeline.item_fault(p_item jsonb, p_key text, p_id bigint) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body e3a28ad74e3ae37e697d54627544cfa6
function pipeline.item_numbers(p_keys text[]) returns integer[] language plpgsql immutable set search_path=pg_catalog, pg_temp body 5cd2a065766807aa4af18473cc75d532
function pipeline.items_of(p_items json) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 87d5153577662dd8fac041b55e3acc1f
function pipeline.join_children(p_fan_out pipeline.fan_outs, OUT ready integer[], OUT busy boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body f73fa444ca9ad3ee395a1cbd5ede7b01
function pipeline.json_is(p_value jsonb, p_type text) returns boolean language plpgsql immutable set search_path=pg_catalog, pg_temp body a965ae9c4102e631eda89b4307d20ccf
function pipeline.json_path(p_path text, p_key text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 26f7a98f480d420e669ddb161221705f
function pipeline.judge(p_items pipeline.work[], p_locked bigint[], p_late integer[] DEFAULT '{}'::integer[]) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 33d656f89877c7615a088ceffec999ea
function pipeline.keep_costs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_hashjoin=on, jit=off, plan_cache_mode=force_custom_plan body 1a01b7968cca02afbc0747d80de111dc
function pipeline.keep_to_quota(p_stage pipeline.stages, p_payer pipeline.payer, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 32dd75954543e9e9194a80e26df75deb
function pipeline.keep_to_quotas(p_stage pipeline.stages, p_token uuid, p_attempt_ids bigint[]) returns pipeline.claimed[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0111f726757d1f0b66440fc0cf1bfccc
function pipeline.key_of_row(p_pipeline pipeline.pipelines, p_entity_id text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 738dc3fe6b862002a0a60b933098b447
function pipeline.keys_of_entities(p_pipeline_id integer, p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a1a3c2aaf38fafa76fbb5fcdc6017c04
function pipeline.lane_key(p_value text, p_part text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 91642bfaa178cabbb8829a4c6510df89
function pipeline.lane_keys(p_stage pipeline.stages, p_entity_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 11be5a1bd4b2a0eb3916e94032851a31
function pipeline.lanes_sorted_by(p_limits jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 330f378ca6ad75b1c1e1e0603dd270a7
function pipeline.lanes_with_arrivals(p_stage_id integer, p_after text, p_limit integer) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body aaf05a173d8e613869bb10b4bfe1dd34
function pipeline.last_answers(p_limit integer) returns TABLE(status_code integer, error_msg text, content text) language plpgsql stable set search_path=pg_catalog, pg_temp body 2a47d66a3f8f855cac654c536f1b2cbe
function pipeline.late_attempts(p_items pipeline.work[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 3dd0f387be9747127462163a81e4da03
function pipeline.late_runs(p_stage_id integer) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body 956457b86ecf0f14c05b51abf11f09af
function pipeline.leads__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 1a68572532c8a4c44bb66c0e3e1df9ab
function pipeline.leads__intake() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_nestloop=off body deb73e489addaf705f02b583cc3a00e1
function pipeline.leads__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.leads__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 1cbbebb95b77ae764604a5d2ff30e461
function pipeline.leads__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 321cbaf9a75e47d06ab90efe33a1f303
function pipeline.leads__queued(p_stage text, p_dependents text[], p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ffe859384bfb6efdaff6153a82c0e1e5
function pipeline.leads__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0cfbfb36d2dd929cbdb04598fae63a9b
function pipeline.leads__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 1471763e00a12f8cd92a44dd0d4e23a2
function pipeline.leads__settle(p_stage text, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 85b22a4dfde6a9938a0d9554b9fcfc46
function pipeline.leads__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 28286bc6787d05db3872ddccd05a9727
function pipeline.leads__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body aa5de06b27f34b363d10c62f417a427b
function pipeline.leave_children(p_stage pipeline.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body beab60fc0c62f55a00b4461461500f50
function pipeline.let_go(p_pipeline pipeline.pipelines, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 89775d2fcb2e1b12aebc7460bb3f6712
function pipeline.limit_error(p_limit text) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 3709f1f55c280f7096c88988d7a369e4
function pipeline.limit_faults() returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language sql stable set search_path=pg_catalog, pg_temp body 51a1f7aff9923ddf0cc27a4cf6c3c06f
function pipeline.limits_of(p_stage jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 2888343c090ec0ff8ccd59663c10d7f3
function pipeline.live_workers(p_stage_id integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 298943072a33e95dd5db25b6233da258
function pipeline.lock_attempts(p_attempt_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 8d278fd791318000ab51829f382c8693
function pipeline.lock_entities(p_pipeline_id integer, p_ids text[], p_wait boolean) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body fb5331fe9dac12133cf06c31e4008c30
function pipeline.lock_prunable(p_before timestamp with time zone, p_after bigint, p_limit integer) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 637e43fa908fe6bb63494114ae4eea47
function pipeline.lock_rows_named(p_pipeline pipeline.pipelines, p_entity_ids text[], p_wait boolean) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9ac6a8c0305491d705d440f945b1b7a7
function pipeline.mark_late(p_items pipeline.work[], p_late bigint[]) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 36b0ff4e58198b315cfcb95eb8e9f03a
function pipeline.may_claim(p_stage pipeline.stages) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 67069cc596b60fa765ba9bf19b009966
function pipeline.measured_rows(p_stage pipeline.stages, p_items pipeline.claimed[], p_entity_ids text[], p_bytes bigint) returns pipeline.built[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 67c661d1326088d1010328e50076357c
function pipeline.metadata_faults() returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language sql stable set search_path=pg_catalog, pg_temp body fb6d333b0b1524d8139e6ea6b232de41
function pipeline.metadata_of(p_run bigint) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body f56c6ae8e7af2fea98abec526d79beea
function pipeline.metadata_of_entities(p_pipeline_id integer, p_ids text[]) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 5a74a1016a86f050f4b93cd9f6cd26f1
function pipeline.must_see_both_ways(p_ways integer[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body c41dd8f42b1475c6f7cbc933b1aaf693
function pipeline.must_stay(p_worker pipeline.workers) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 701cb9df7697c19480a1674da897ea46
function pipeline.name_parents(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5fe1f9ef5548ddfa83dc7fb6ee093049
function pipeline.name_payers(p_pipeline_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body da9056753c3410bea55204d3bcac8eb3
function pipeline.needing(p_version_id integer, p_stage_id integer) returns integer[] language sql stable set search_path=pg_catalog, pg_temp body 470aff095331d06153459bafd3699baa
function pipeline.needs_of(p_run_id bigint, p_version_id integer, p_stage_id integer, p_each bigint) returns json language plpgsql stable set search_path=pg_catalog, pg_temp body 62ffbeb6ad4885111ad887def15afcd4
function pipeline.new_runs(p_pipeline_id integer, p_entity_ids text[], p_stage_id integer) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 8f80c32cc31a46574b1e332bd1e43011
function pipeline.new_way_ids(p_new pipeline.pipelines, p_entity_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body dc34bf6a34a07916f4f3a0a27b05d654
function pipeline.note_awaited(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 876fa08e03096d05fa2653c3d0e52c19
function pipeline.note_in_flight(p_stage pipeline.stages, p_attempt_ids bigint[], p_lanes text[], p_token uuid, p_worker_id uuid) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body eab2b1c73bae5051a734f3e6d2db183e
function pipeline.note_spending(p_items pipeline.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 086e6b755dc474f0c7ec163747a8fa85
function pipeline.note_starts(p_run_ids bigint[], p_since timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8b3371f8e60c3bff97cde740ce180179
function pipeline.now() returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 29396b4a64060706b0495e01ebaeb830
function pipeline.object_fault(p_schema jsonb, p_value jsonb, p_path text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 0147bb4de415636ee60180fac89ebe95
function pipeline.open_decisions(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 842648bb1f0c0f1e6349aba910619d18
function pipeline.open_runs(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 94c615d0f940a2003f94271e8ce7abf1
function pipeline.order_stages(p_stages jsonb) returns text[] language plpgsql immutable set search_path=pg_catalog, pg_temp body 3afc949347b40d73967c4d7a2a065cd6
function pipeline.owner_message(p_error jsonb, p_attempt_id bigint) returns text language sql immutable set search_path=pg_catalog, pg_temp body 470952a43ed26640cd3c52dec530285f
function pipeline.pages__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 9b9b5e7159fae83e290c15292da06176
function pipeline.pages__intake() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_nestloop=off body 4f97bbd6c6a82328a8153c4b1da0d543
function pipeline.pages__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.pages__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b7800c071e37e1e9cbf347ed4bd228f9
function pipeline.pages__queued(p_stage text, p_dependents text[], p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 32b5f0897db9b9fcddb98263e36b576b
function pipeline.pages__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b7125987c8aa7d70c9e14a015cbaa2fe
function pipeline.pages__settle(p_stage text, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 05d9a78d435aabcaf453591929db6d27
function pipeline.pages__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body cb4f503474d4c84519d0aea253f32282
function pipeline.pages__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 75d1f1b11e2e1c33dfe9d2cfefeec88f
function pipeline.parents_to_fold(p_except bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9d3b22e0d29b3e3a81bd9cd83918d59c
function pipeline.parents_without_child(p_child pipeline.pipelines, p_stage_id integer, p_run_ids bigint[], p_free text[], p_faults text[]) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 41bddea6bb1a0b19047ce49122cb6bbe
function pipeline.parse_items(p_items json, p_key text) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ce39eb3c4c29b3b5b4fbbd814dc25b42
function pipeline.pass_gate(p_stage_id integer, p_may_wait boolean) returns pipeline.gates language plpgsql volatile set search_path=pg_catalog, pg_temp body 43dd4c411fd1f5621e0782bbf7af2270
function pipeline.pass_thresholds(p_fan_out pipeline.fan_outs) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7ff0c7b9e76cc7619b6495acaee07874
function pipeline.pass_thresholds_guarded(p_fan_out pipeline.fan_outs, OUT ring integer[], OUT busy boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 93f1575ba0b0999dc88613fd564bc4f3
function pipeline.passage_began(p_run_id bigint, p_stage_id integer, p_passage integer) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body e60110cf9bc11999f4200be14b348243
function pipeline.paths_of(p_condition jsonpath) returns TABLE(names text[]) language sql immutable set search_path=pg_catalog, pg_temp body 97e1fdd045bd26a3de1ded2b3b283f06
function pipeline.pause(p_pipeline text, p_stage text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 662cdc99ccaf63e3f15fdb56ed045c63
function pipeline.place_attempts(p_stage pipeline.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 29fa6ef3487d5396446df60310bb61e2
function pipeline.post(p_function text, p_body jsonb) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 66d3bdbf79c961c7746c96be66667b39
function pipeline.pressing_stage(p_stage pipeline.stages) returns integer language plpgsql stable set search_path=pg_catalog, pg_temp body 736d6b5bfe0b4cdb75a5c74810b5a9b8
function pipeline.prioritise(p_run bigint, p_priority integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f716e0f9713436bebf0905ebfa24677b
function pipeline.project(p_stage_id integer, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body bec7ad4143a3175eac70aaf31153cf68
function pipeline.project_cancelled(p_cancelled pipeline.cancelled[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d9ab1997372496e2cde8ee9cd15fa332
function pipeline.project_entities(p_pipeline_id integer, p_how text, p_stage text, p_changes pipeline.change[], p_ids text[], p_dependents text[]) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body 766f820a1ea1eeafb0aaa83237c45a4e
function pipeline.project_queued(p_pipeline_id integer, p_stage_id integer, p_dependents integer[], p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f0f47875d96f32f148be840f12c63b62
function pipeline.project_started(p_stage pipeline.stages, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 55875d17d0cead8359988c967684a3c7
function pipeline.prune() returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body dac6bc5fdb86bd892146224acec7074e
function pipeline.prune_alerts(p_before timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body fc48adfa835f25b612cff60bac30a44b
function pipeline.prune_decisions() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body dc9398c24062519e04973c3f5ac4d38a
function pipeline.prune_runs(p_run_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 09847be6459d94cf60887c487cef60a6
function pipeline.put_back(p_stage pipeline.stages, p_attempt_ids bigint[], p_due_at timestamp with time zone, p_why jsonb DEFAULT NULL::jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c8ad9e4453d0fdb6919bd6e27b610cc3
function pipeline.put_off(p_items pipeline.work[], p_why text) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 126a21f7517816a88f7882c0798c31c0
function pipeline.queue_attempts(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c11e76d204077689f0c8dfc212555536
function pipeline.queue_here(p_pipeline_id integer, p_stage_id integer, p_entity_ids text[], p_dirty_ids text[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 091223424a06b7afc057c17cdff4c75b
function pipeline.queue_one_way(p_pipeline_id integer, p_other_id integer, p_stage_id integer, p_entity_ids text[], p_dirty_ids text[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 07ddcba4c184d99c4c5a52930c191b41
function pipeline.queue_stage(p_pipeline_id integer, p_stage_id integer, p_entity_ids text[], p_dirty_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 62561d500902de56a831f2a08f5af9ca
function pipeline.queued_assignments(p_stage text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 602cd1eba1b7b8dc2f259956c764dcd3
function pipeline.quota_keys(p_pipeline_id integer, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6aaf9bd4700b96949edcac1b8b44898d
function pipeline.raise_alerts(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 1d41a288224ec8d58c66d880bb1ea0c3
function pipeline.record_ends(p_items pipeline.work[], OUT verdicts json, OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=2s body 8bb29e8ef9163511afac54357557b28e
function pipeline.record_items(p_items pipeline.work[], OUT verdicts json, OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=2s body 8147ef10e1e2bd03170bf44aab54e69b
function pipeline.refuse_metadata(p_faults text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body cae94d1edc7578e40fb3aa8bad94251d
function pipeline.refuse_operation(p_run bigint, p_stage text, p_verb text, p_state text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 55af61678a0c7bb8f2b041a6840a339d
function pipeline.refuse_orphan(p_run pipeline.runs) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 30c0b8d66179ac05395a541d96ea4f8a
function pipeline.refuse_other_way(p_pipeline_id integer, p_stage_id integer, p_other_id integer, p_entity_ids text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 4234934993084680556438454121fbeb
function pipeline.refuse_quota(p_definition jsonb, p_path text[], p_wanted text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 083f056805d7a471c7fd31ff2c0c9de7
function pipeline.refuse_schema(p_path text, p_value jsonb, p_wanted text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body b118a2b0afb4830d7f55d60c5b6e2da0
function pipeline.refuse_value(p_stage jsonb, p_path text[], p_wanted text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body d772d62313003835c5b9f2b255f554e4
function pipeline.release(p_stage_id integer, p_items pipeline.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 4938308f27b87a7d48764c4b313e7afb
function pipeline.reopen_fan_outs(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fddad70d256ee22dcf888dddc612601c
function pipeline.reopen_run(p_run pipeline.runs, p_except integer[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a0737d7da5c0c55bae40f6418ff7c803
function pipeline.repeat_answer(p_stage pipeline.stages, p_worker pipeline.workers, p_done record) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 62c358dea1acb716e6ab0431d430e138
function pipeline.replacing_pipeline(p_pipeline text) returns pipeline.pipelines language plpgsql stable set search_path=pg_catalog, pg_temp body 93e75d26559e7e1241b83efb83ad0ba3
function pipeline.replay(p_pipeline text, p_condition jsonb DEFAULT '{}'::jsonb, p_dry_run boolean DEFAULT true) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body a948ecad90b49ef778c94fb4554835cb
function pipeline.report(p_level text, p_code text, p_message text, p_detail jsonb DEFAULT '{}'::jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 61482481db143e471f5a7a397a3ec320
function pipeline.report_passed_over(p_pipeline text, p_stage text, p_entity_id text, p_why text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 60acb0803c2c3eb5d0d0734343ba326b
function pipeline.reset(p_run bigint, p_stage text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body ab1d768a9c98ece7aef53e0eb231ecfb
function pipeline.reset_children(p_run bigint, p_stage text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 8f5f2dfcca3e3f41af6b8cb514d874fa
function pipeline.resolve_alerts(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 1827ce885471ff7084c57dbef5c68a30
function pipeline.retry(p_run bigint, p_stage text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 1e759630cf24866288aa4191f86b71c5
function pipeline.retry_child_runs(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7fed62a786851dbdc155589097d7b99a
function pipeline.retry_children(p_fan_out pipeline.fan_outs, p_item_keys text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a4f905a73b5d3e9b3f11b4d7c4a531d2
function pipeline.retry_due(p_stage_id integer, p_error jsonb, p_retry_count integer) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 4c9592ad3419c05c5a89898c91da0f49
function pipeline.retry_failed_children(p_fan_out pipeline.fan_outs) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body af47b10b62dc11ff980a5c5e326b35c7
function pipeline.retry_runs(p_run_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body f18f9d7c5266a4e716d5b60ace183167
function pipeline.retry_stage(p_stage_id integer, p_kind text, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2f9f5069189de5e794eeb8077e4d5d35
function pipeline.ring(p_stage_ids integer[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 87f5a3baf233845224e47e6c197e2384
function pipeline.ring_headers() returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 715fd8da9dd5579a39545833dd6f8bf0
function pipeline.ring_list(p_stage_ids integer[]) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 666abae1e071baa30dc8c054c4f5f2fc
function pipeline.ring_polls() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 658b1874b5ac202b081d142dec18aa19
function pipeline.ring_secret_remedy() returns text language sql immutable set search_path=pg_catalog, pg_temp body a51259a40dc2d6fb8bc086b40b7252a0
function pipeline.rings_for_freed(p_attempt_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body f970a1b063003ea95869d526d7595d86
function pipeline.room_at(p_stage pipeline.stages, p_gate pipeline.gates, p_wanted integer, OUT room integer, OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body dc4c8a048cc94f8cbc69d79f26a4c119
function pipeline.row_faults() returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 78bc4ae6c51f1e75f55e2d543eb959cc
function pipeline.rows_for_items(p_stage pipeline.stages, p_parent text, p_items jsonb, OUT item_keys text[], OUT entity_ids text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 83297ab739ad48f97dd77cc1f48ab99c
function pipeline.rows_of_entities(p_pipeline_id integer, p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body edb0cb8f8375b5d0189a143c53697822
function pipeline.run_under_way(p_pipeline_id integer, p_stage_id integer, p_entity_id text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body 98813c58f28ade5c134be86ac1230f8a
function pipeline.running_of(p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body fd38f571661a8175f540ce4b3f1ba232
function pipeline.runs_to_begin(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b9fad4de9b5dbff80ba85e9353fdba76
function pipeline.save_cut_over(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f950876a3f010387fb14fde31c043371
function pipeline.save_quota(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body f3002328d8aa54721e91b95ef7376b26
function pipeline.save_stages(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 0862aa8828824409c25d9cb1675b3d4c
function pipeline.save_version(p_pipeline_id integer, p_definition jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 5285f155c0421795f51b1a9993229d88
function pipeline.save_version_stages(p_pipeline_id integer, p_version_id integer, p_stages jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 75f4d7117a03b1635bfd0278b0560be6
function pipeline.scalar_fault(p_schema jsonb, p_value jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body eb4ba55119dc9acfdce20a16c2627b6c
function pipeline.schedule_polls() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 3ff67692295e365786508a311bfa7d79
function pipeline.schedule_pruning(p_more boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a7ffc6b81ee3522f28426325ce7fa99a
function pipeline.schema_fault(p_schema jsonb, p_value jsonb, p_path text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body ba2a526de65678a39fab1798ad8bbc17
function pipeline.set_cut_over(p_pipeline text, p_mode text, p_share numeric DEFAULT NULL::numeric, p_groups text[] DEFAULT NULL::text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 3b767298ed83fef056d7facfd4245806
function pipeline.setting(p_name text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body cd8b66affba8cfc8696cb5363d7a3f93
function pipeline.settle(p_items pipeline.work[], p_alike boolean DEFAULT false, OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body e522a82bf979cf3b04d7fbfad41e2d8d
function pipeline.settle_branch(p_pipeline pipeline.pipelines, p_stage_id integer, p_stage text) returns text language sql stable set search_path=pg_catalog, pg_temp body 04b50fd5ba858343e529ba2fcb6d3afa
function pipeline.settle_guarded(p_items pipeline.work[], p_alike boolean DEFAULT false, OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body e14b39bb0cfa9d990be6180615678b9d
function pipeline.settle_halves(p_items pipeline.work[], p_until timestamp with time zone, p_transient boolean, OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body cb2a5b2384411d85dbe534b03a7fccd4
function pipeline.settle_part(p_items pipeline.work[], p_alike boolean, p_until timestamp with time zone, OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body be5b2996fc8982cda10a0a4fbece2b87
function pipeline.settle_unprojected(p_items pipeline.work[], OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body fbad8ebb809326a10c5f89f88310b0d6
function pipeline.share_of(p_entity_id text) returns numeric language sql immutable set search_path=pg_catalog, pg_temp body d0c529a36545250f8fcae2898ba5d290
function pipeline.short_json(p_value jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body f7f14d3699c1549189031b2c6b6afc92
function pipeline.show_going(p_stage pipeline.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f69d817616fe8dc0feeb86c285c80964
function pipeline.show_held(p_stage pipeline.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 96b9235473239f54c374178e7cdd9235
function pipeline.show_queued(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 11e2f038de6f82e12bb819bc2d225440
function pipeline.size_expression(p_table regclass, p_columns name[], p_at_most boolean) returns text language sql stable set search_path=pg_catalog, pg_temp body 6cf34f7f6c55dbb8ed9264ac2c1022bc
function pipeline.size_of_needs(p_run_id bigint, p_version_id integer, p_stage_id integer) returns bigint language plpgsql stable set search_path=pg_catalog, pg_temp body 7a0ee937ff71dd51722651731f849de9
function pipeline.sizes_of_entities(p_pipeline_id integer, p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a2b4c4a613b97126d0460ad0a460e021
function pipeline.skip(p_run bigint, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 216b246bd3b890169b04ff281f7cb155
function pipeline.skip_stage(p_stage_id integer, p_run_ids bigint[], p_why jsonb) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body f5bd460fdef1e671083a1d86067fe608
function pipeline.spawn_chunk(p_attempt pipeline.attempts, p_items jsonb, p_last boolean, OUT fan_out pipeline.fan_outs, OUT ring integer[], OUT busy text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 02afae2b59eb8c47142af6d538b6dd53
function pipeline.stage_columns(p_stage text) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body ebed5ade3830a8b5ae5e17092d29df3a
function pipeline.stage_columns_ddl(p_table text, p_stage text) returns text language sql immutable set search_path=pg_catalog, pg_temp body c9851bc506de3f3d1c6a14a7ada72fdb
function pipeline.stage_costs(p_run bigint) returns TABLE(stage text, attempts integer, cost_usd numeric) language plpgsql stable set search_path=pg_catalog, pg_temp, plan_cache_mode=force_generic_plan body cff5a5968807d796770afeb164d439e5
function pipeline.stage_named(p_pipeline text, p_stage text) returns pipeline.stages language plpgsql stable set search_path=pg_catalog, pg_temp body a05df4893b272aa57d74353581bb4fc5
function pipeline.stage_open(p_stage pipeline.stages) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body 144da1a2477e7b80dcbac43acc97cef8
function pipeline.stages_after(p_stage text, p_stages jsonb) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body a2c8f69b1ebf62861c6c6d62b51ad5b0
function pipeline.stale_reason(p_state pipeline.attempt_state, p_error jsonb) returns text language sql immutable set search_path=pg_catalog, pg_temp body 6fefd4b75f97746dde295c46c8eb54d2
function pipeline.start(p_pipeline text, p_entity_id text, p_stage text DEFAULT NULL::text, p_priority integer DEFAULT NULL::integer, p_restart boolean DEFAULT false) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 02a68643a3c70e3702220fc5b24d6c06
function pipeline.start_child_runs(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body bf03f8d3837d10305f9ae393bd30b684
function pipeline.start_over(p_run_ids bigint[], p_stage_id integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 297780f8127c42127030929e8afb4a17
function pipeline.start_stage(p_run bigint, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 3e7d2c811ae798a75bda85d01fcb1d67
function pipeline.state_of(p_run_id bigint, p_stage_id integer) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body b7da32692a75bdee0c41912309f98670
function pipeline.still_late(p_alert_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body bd06640a3b786af7891b7f049efd0fca
function pipeline.storable_item(p_item json) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 413b540426689da0c988b054777d4470
function pipeline.successor_of(p_attempt pipeline.attempts) returns pipeline.attempts language plpgsql volatile set search_path=pg_catalog, pg_temp body 13cda4d475634dd9ef44198007fdc6a9
function pipeline.sum_uses(p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a0c3bedb4cd0d19e7f272f57cfbeb623
function pipeline.sweep() returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=2s, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body adb29b9fb701647513d7958911c2b7fd
function pipeline.sweep_alerts(OUT alerts integer, OUT resolved integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 1da0f42e7983b88b5cbcff9e6bca1357
function pipeline.sweep_children(OUT folded integer, OUT cancelled integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body cbacf8e538298a29b1dcbdb647d176d9
function pipeline.sweep_deadlines(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 0527d58aaf9211331b5bcba53be5673e
function pipeline.sweep_due() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 5bb42568a90df1826598e84194812e46
function pipeline.sweep_leases(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body edcd002c4bb460d2f16582305cdd416b
function pipeline.sweep_limits(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e643867fe67695b371eb21914a3a73b4
function pipeline.sweep_metadata(p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7626a50aed83918b6b7fb62b70660023
function pipeline.sweep_pipeline(p_pipeline_id integer, OUT leases integer, OUT deadlines integer, OUT rung integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 7b51c29663469016eb5bfb402716b18b
function pipeline.sweep_quotas() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 593ea80ce9376f409eaaf6bf324192e0
function pipeline.switch(p_pipeline text, p_stage text, p_enabled boolean) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body bf4cff5b31328a483f61a11019ca02c6
function pipeline.table_named(p_name text) returns regclass language plpgsql stable set search_path=pg_catalog, pg_temp body 465dff35e91165144d4e65f5661f000b
function pipeline.take_answers() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 2eb9bc1fdfab3c13c41105495da29c7d
function pipeline.take_from_lanes(p_stage pipeline.stages, p_lanes text[], p_share integer, p_token uuid, p_now timestamp with time zone, OUT attempt_ids bigint[], OUT lanes text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body ce958d1c378581d9c694a681b604f215
function pipeline.take_in(p_pipeline_id integer, p_stage text, p_status text, p_entity_ids text[], p_dirty_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_nestloop=on, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 653493b434fadb66a37159c78f3c12ef
function pipeline.take_loner(p_stage pipeline.stages, p_busy boolean, p_token uuid, p_now timestamp with time zone, OUT is_due boolean, OUT attempt_id bigint, OUT lane text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body e57be5dc4b158aa065055a16446281bb
function pipeline.take_over(p_run_ids bigint[], p_keep integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5ca79b3cc2f2b777643f2f6e5f7fdcf8
function pipeline.take_places(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8e9ef3b35b7a916bff920c26db2e5b31
function pipeline.take_rings(p_stage_ids integer[], p_scaling_out integer DEFAULT NULL::integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 5e311174e6a0e236b723f3b9d404fd05
function pipeline.thresholds_hold(p_run_id bigint, p_after jsonb) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 1ac8f860e44726a74e6b1081e40118f4
function pipeline.timeline(p_run bigint) returns TABLE(attempt_id bigint, stage text, number integer, state pipeline.attempt_state, parent_id bigint, retry_count integer, queued_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone, took interval, service text, job_id text, error_code text, error_message text, usage jsonb, superseded boolean) language sql stable set search_path=pg_catalog, pg_temp body 55e56745399f1cef2355054271d96c60
function pipeline.toc__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body d4ffc67f87d71bce8ccd0f5c17feeb8f
function pipeline.toc__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.toc__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ce5aaead67efec1877cd51b8a32fe54f
function pipeline.toc__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a458da9ffc23c46469d8c565f936b9be
function pipeline.toc__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 93feb70934b41e4fd454725f6a995ba9
function pipeline.tokens_of(p_rate jsonb, p_gate pipeline.gates) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp body db8e1bd13f9768e8a55b93f04e750140
function pipeline.uncounted_attempts(p_stage pipeline.stages, p_limit integer) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c73c8106839fdb1892399e77e49eda32
function pipeline.unmet_runs(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body be2de77d7d9e995d4b4ecef02a04742a
function pipeline.unpause(p_pipeline text, p_stage text DEFAULT NULL::text) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body 2b5a2b56758429b315ffddeb382d3bd3
function pipeline.use_new_pipeline() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body dc4c7c0842e3d5d0dce75410c68d344d
function pipeline.used_by(p_payer pipeline.payer, p_kind text) returns numeric language plpgsql volatile set search_path=pg_catalog, pg_temp body e21691df90529f070b34adb926d1136f
function pipeline.value_fault(p_schema jsonb, p_value jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body fbb13550a29927db2fbb6744d888e0c1
function pipeline.verdict_on_end(p_attempt pipeline.attempts, p_item pipeline.work, p_late boolean, p_too_large boolean) returns text language sql immutable set search_path=pg_catalog, pg_temp body 1079ecb465180c289c0dee201b34a1ed
function pipeline.verdicts_of(p_items pipeline.work[]) returns json language plpgsql immutable set search_path=pg_catalog, pg_temp body 4642fa9ac0b6ded1cedd6f59bee8ccea
function pipeline.void_reason(p_attempt pipeline.attempts, p_token uuid) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 88890aac739e9dc0535acb8d1f7cc8a7
function pipeline.wait(p_stage_id integer, p_items pipeline.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 75516f98673bb4c03ceaeea450caa15b
function pipeline.ways_of(p_pipeline_id integer) returns integer[] language plpgsql stable set search_path=pg_catalog, pg_temp body afeded5fc8f07e361e113072b3485383
function pipeline.why_undecided(p_state pipeline.attempt_state, p_error jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 043e010205f8a5d9ebac23740793ade4
function pipeline.window_end(p_quota jsonb, p_kind text) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body f0b0e9749b5f23588a42177f95b55a80
function pipeline.write_by_stage(p_function text, p_arguments text, p_branches text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c2e17552b84a58252ca1982aab84f553
function pipeline.write_common_functions(p_pipeline pipeline.pipelines, p_key_type text, p_engine_columns text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7496ee536d155fc7401a0596abc3c201
function pipeline.write_dispatch() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fa35603bf5cefa10b79f445289eae4ce
function pipeline.write_entities(p_pipeline_id integer, p_how text, p_stage text, p_changes pipeline.change[], p_ids text[], p_dependents text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 29660ddfcef120e7063c3b0131c20d6f
function pipeline.write_intake(p_pipeline pipeline.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b1bd797148314305ffff9c6545569cfa
function pipeline.write_projection(p_pipeline pipeline.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body be2c051a9e676ce2f90824f78f52cb0b
function pipeline.write_rows(p_pipeline pipeline.pipelines, p_key_type text, p_engine_columns text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 795e8d91b8dbb66cb3636fc2a4e7abb7
function pipeline.write_way(p_function text, p_signature text, p_ids integer[], p_branches text[], p_comment text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ffca811e3cfa933fb504526581395f69
function pipeline.writes_entities(p_pipeline_id integer) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body 5d20df3c50656a89a0badd45894c9520
function pipeline.written_rows(p_pipeline pipeline.pipelines, p_stage text, p_ancestors text[], p_dependents text[], p_was text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 05c324ec9e8f28747b392fcceb84d7b1
function public.apply_chunks(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b26c75c6aecb335e954102cf618bc6f8
function public.apply_document(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1e4f229a69eab52dbc3d2bb3e7d6c59e
function public.apply_facts(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1b93d921933609e0ed67abb0d9edeb43
function public.apply_graphiti(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body fd0365935354faa090da861a9b5e78e3
function public.clerk_org_id() returns text language sql stable set search_path=pg_catalog, pg_temp body 79308d2512ad14a1411ef6afd8e23472
  grant execute to authenticated
  grant execute to service_role
function public.insert_pages(p_parent text, p_items jsonb) returns TABLE(item_key text, entity_id text) language sql volatile set search_path=pg_catalog, pg_temp body 4f3e620ce379cd8e4624653c6293bcfe
function public.kg_key(p_name text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 0cd05e24769a7ff7ea1d4dd881896a89
function public.names_in_chunks(p_items jsonb) returns TABLE(chunk_id uuid, clerk_org_id text, key text, name text, type text, description text) language sql stable set search_path=pg_catalog, pg_temp body 6e516c18ddcf5bbdbe8581ef7fbb86ad
function public.pipeline_checkpoint(p_worker uuid, p_attempt bigint, p_token uuid, p_turns jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 9ffebac88bb46929e7cd86bdd46f07d0
  grant execute to service_role
function public.pipeline_claim(p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq integer, p_limit integer) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body fa0e4223069001a256d7bbd0bd067d8f
  grant execute to service_role
function public.pipeline_complete(p_worker uuid, p_seq integer, p_items json, p_limit integer) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body e02f1ae391fb99c48e22a776b8d2dda4
  grant execute to service_role
function public.pipeline_decide(p_attempt bigint, p_decision jsonb) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body ad02f6cb4857597b446af7a530d70b96
  grant execute to authenticated
  grant execute to service_role
function public.pipeline_fold(p_fan_outs bigint[]) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 8f4e2395e0bf57d9fe3cf71f096b31c7
  grant execute to service_role
function public.pipeline_job_owner(p_job jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 9a15c2dfa3cea898643658e16d83eab4
  grant execute to service_role
function public.pipeline_leave(p_worker uuid, p_hand_over boolean DEFAULT false) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 3777b84812051077e189d04e7ab41948
  grant execute to service_role
function public.pipeline_note_faults(p_faults jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 9f370bce8097c0fc57b1b19b015b35f1
  grant execute to service_role
function public.pipeline_note_jobs(p_jobs jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 13925d1051e5b3013edf2d3c637771ce
  grant execute to service_role
function public.pipeline_poll(p_limit integer, p_poll_ms integer DEFAULT NULL::integer) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 10c8c1f1fec4634b5540e63911e47025
  grant execute to service_role
function public.pipeline_renew(p_worker uuid, p_attempts bigint[]) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 755872609008a2afb4f8bc771c850310
  grant execute to service_role
function public.pipeline_resume(p_items json) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body acf1a751590afe4b86d9bd2cbfd18650
  grant execute to service_role
function public.pipeline_ring(p_stages jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body c30f6ca6b6e01d857b2d8959daec1671
  grant execute to service_role
function public.pipeline_spawn(p_worker uuid, p_attempt bigint, p_token uuid, p_items jsonb, p_last boolean) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 74bc32a1848f0553333ada006a2b3253
  grant execute to service_role
function public.pipeline_sweep() returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, statement_timeout=60s body 36cbdb163d0bd61b95827a5a378dad41
  grant execute to service_role
function public.pipeline_turns(p_worker uuid, p_attempt bigint, p_token uuid) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body e350c34d100f6f11418a9c1c142c0d39
  grant execute to service_role
schedule millrace-prune "17 3 * * *" select pipeline.prune()
schedule millrace-sweep "10 seconds" select pipeline.sweep()
