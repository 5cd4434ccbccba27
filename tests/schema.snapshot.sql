-- The schema that the migrations make, as text, written by `npm run check -- --write`:
-- in a review it shows what a change of the migrations does.
schema millrace
schema millrace_evidence
  grant usage to service_role
schema public
  grant usage to anon
  grant usage to authenticated
  grant usage to public
  grant usage to service_role
type millrace.attempt_state enum (queued, started, waiting, completed, failed, cancelled, skipped)
type millrace.run_status enum (running, completed, failed, cancelled)
table millrace.adopted_values
  column old_value text not null
  column pipeline_id integer not null
  column rows bigint not null
  column value text not null
  constraint adopted_values_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint adopted_values_pkey PRIMARY KEY (pipeline_id, old_value, value)
  CREATE UNIQUE INDEX adopted_values_pkey ON millrace.adopted_values USING btree (pipeline_id, old_value, value)
table millrace.adoptions
  column adopted bigint not null default 0
  column began_at timestamp with time zone not null default millrace.now()
  column ended_at timestamp with time zone
  column last_key text
  column old_column text not null
  column otherwise text
  column pipeline_id integer not null
  column value_function text not null
  constraint adoptions_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint adoptions_pkey PRIMARY KEY (pipeline_id)
  CREATE UNIQUE INDEX adoptions_pkey ON millrace.adoptions USING btree (pipeline_id)
view millrace.agent_executions
  column attempts bigint
  column cost_usd numeric
  column entity_id text
  column execution integer
  column first_turn_at timestamp with time zone
  column input_tokens numeric
  column last_turn_at timestamp with time zone
  column output_tokens numeric
  column pipeline text
  column run_id bigint
  column stage text
  column tool_calls bigint
  column turns bigint
  as  SELECT p.name AS pipeline, s.name AS stage, t.run_id, r.entity_id, t.execution, count(*) FILTER (WHERE t.kind = 'model'::text) AS turns, count(*) FILTER (WHERE t.kind = 'tool'::text) AS tool_calls, sum((t.usage ->> 'input_tokens'::text)::numeric) AS input_tokens, sum((t.usage ->> 'output_tokens'::text)::numeric) AS output_tokens, sum((t.usage ->> 'cost_usd'::text)::numeric) AS cost_usd, count(DISTINCT t.attempt_id) AS attempts, min(t.created_at) AS first_turn_at, max(t.created_at) AS last_turn_at FROM millrace.turns t JOIN millrace.stages s ON s.id = t.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id LEFT JOIN millrace.runs r ON r.id = t.run_id GROUP BY p.name, s.id, s.name, t.run_id, r.entity_id, t.execution ORDER BY t.run_id, s.id, t.execution;
view millrace.agent_log
  column arguments text
  column asked text
  column at timestamp with time zone
  column attempt_id bigint
  column cost_usd numeric
  column entity_id text
  column execution integer
  column kind text
  column output text
  column pipeline text
  column run_id bigint
  column seq integer
  column stage text
  column tokens numeric
  column tool text
  column what text
  as  SELECT p.name AS pipeline, s.name AS stage, t.run_id, r.entity_id, t.execution, t.seq, t.kind, CASE WHEN t.kind = 'tool'::text THEN CASE WHEN (t.content -> 'failed'::text) = 'true'::jsonb THEN 'fails'::text ELSE 'answers'::text END WHEN t.content ? 'discarded'::text THEN 'discarded: '::text || (t.content ->> 'discarded'::text) WHEN m.calls IS NOT NULL THEN 'calls '::text || m.calls ELSE 'answers'::text END AS what, CASE WHEN t.kind = 'tool'::text THEN t.content ->> 'name'::text ELSE m.calls END AS tool, CASE WHEN t.kind = 'tool'::text THEN t.content ->> 'arguments'::text ELSE m.arguments END AS arguments, CASE WHEN t.kind = 'tool'::text THEN t.content ->> 'output'::text ELSE m.said END AS output, ((t.usage ->> 'input_tokens'::text)::numeric) + ((t.usage ->> 'output_tokens'::text)::numeric) AS tokens, (t.usage ->> 'cost_usd'::text)::numeric AS cost_usd, t.content ->> 'asked'::text AS asked, t.attempt_id, t.created_at AS at FROM millrace.turns t JOIN millrace.stages s ON s.id = t.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id LEFT JOIN millrace.runs r ON r.id = t.run_id CROSS JOIN LATERAL ( SELECT string_agg(o.i ->> 'name'::text, ', '::text ORDER BY o.n) FILTER (WHERE (o.i ->> 'type'::text) = 'function_call'::text) AS calls, string_agg(o.i ->> 'arguments'::text, ', '::text ORDER BY o.n) FILTER (WHERE (o.i ->> 'type'::text) = 'function_call'::text) AS arguments, string_agg(jsonb_path_query_first(o.i, '$."content"[*]."text"'::jsonpath) #>> '{}'::text[], ' '::text ORDER BY o.n) AS said FROM jsonb_array_elements( CASE WHEN t.kind = 'model'::text AND jsonb_typeof(t.content -> 'output'::text) = 'array'::text THEN t.content -> 'output'::text ELSE '[]'::jsonb END) WITH ORDINALITY o(i, n)) m ORDER BY t.run_id, t.stage_id, t.execution, t.seq;
table millrace.alert_channels
  column api_url text not null default 'https://api.resend.com/emails'::text
  column enabled boolean not null default true
  column id integer not null generated always as identity
  column kind text not null
  column name text not null
  column sender text
  constraint alert_channels_kind_known CHECK ((kind = ANY (ARRAY['webhook'::text, 'slack'::text, 'email'::text])))
  constraint alert_channels_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint alert_channels_name_key UNIQUE (name)
  constraint alert_channels_pkey PRIMARY KEY (id)
  constraint alert_channels_sender_given CHECK (((kind <> 'email'::text) OR (sender IS NOT NULL)))
  CREATE UNIQUE INDEX alert_channels_name_key ON millrace.alert_channels USING btree (name)
  CREATE UNIQUE INDEX alert_channels_pkey ON millrace.alert_channels USING btree (id)
sequence millrace.alert_channels_id_seq
table millrace.alert_messages with (fillfactor=70)
  column channel_id integer not null
  column created_at timestamp with time zone not null
  column ended_at timestamp with time zone
  column error text
  column events jsonb not null
  column first_tried_at timestamp with time zone
  column id bigint not null generated always as identity
  column more integer not null default 0
  column state text not null default 'waiting'::text
  column status integer
  column tried_at timestamp with time zone
  column tries integer not null default 0
  column wait interval not null default '00:00:00'::interval
  column webhook_id text not null default ('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text))
  constraint alert_messages_channel_fkey FOREIGN KEY (channel_id) REFERENCES millrace.alert_channels(id) ON DELETE CASCADE
  constraint alert_messages_pkey PRIMARY KEY (id)
  constraint alert_messages_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'dead'::text])))
  CREATE INDEX alert_messages_by_end ON millrace.alert_messages USING btree (ended_at)
  CREATE INDEX alert_messages_dead ON millrace.alert_messages USING btree (channel_id, id) WHERE (state = 'dead'::text)
  CREATE INDEX alert_messages_waiting ON millrace.alert_messages USING btree (channel_id, id) WHERE (state = 'waiting'::text)
  CREATE UNIQUE INDEX alert_messages_pkey ON millrace.alert_messages USING btree (id)
sequence millrace.alert_messages_id_seq
table millrace.alert_rules
  column above numeric
  column channels text[]
  column enabled boolean not null default true
  column hold interval not null default '00:00:00'::interval
  column id integer not null generated always as identity
  column kind text not null
  column least integer not null default 1
  column name text not null
  column pipeline text
  column playbook text
  column recover interval not null default '00:05:00'::interval
  column remind interval default '04:00:00'::interval
  column source text not null default 'sql'::text
  column span interval not null default '00:10:00'::interval
  column stage text
  constraint alert_rules_kind_known CHECK ((kind = ANY (ARRAY['run_sla'::text, 'p95'::text, 'error_share'::text, 'backlog'::text, 'oldest_ready'::text, 'dead'::text, 'spend'::text, 'late'::text, 'refused'::text, 'engine'::text])))
  constraint alert_rules_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint alert_rules_pkey PRIMARY KEY (id)
  constraint alert_rules_source_known CHECK ((source = ANY (ARRAY['default'::text, 'definition'::text, 'sql'::text])))
  CREATE UNIQUE INDEX alert_rules_key ON millrace.alert_rules USING btree (pipeline, name) NULLS NOT DISTINCT
  CREATE UNIQUE INDEX alert_rules_pkey ON millrace.alert_rules USING btree (id)
  CREATE TRIGGER alert_rules_are_checked BEFORE INSERT OR UPDATE ON millrace.alert_rules FOR EACH ROW EXECUTE FUNCTION millrace.check_rule()
sequence millrace.alert_rules_id_seq
table millrace.alerts
  column acknowledged_at timestamp with time zone
  column acknowledged_by text
  column attempt_id bigint not null
  column entity_id text not null
  column execution integer not null
  column id bigint not null generated always as identity
  column kind text not null
  column message text not null
  column pipeline text not null
  column raised_at timestamp with time zone not null
  column resolved_at timestamp with time zone
  column run_id bigint not null
  column stage text not null
  column stage_id integer not null
  constraint alerts_kind_known CHECK ((kind = 'sla'::text))
  constraint alerts_pkey PRIMARY KEY (id)
  CREATE INDEX alerts_by_run ON millrace.alerts USING btree (run_id)
  CREATE INDEX alerts_of_stage ON millrace.alerts USING btree (stage_id, id) WHERE (resolved_at IS NULL)
  CREATE INDEX alerts_open ON millrace.alerts USING btree (id) WHERE (resolved_at IS NULL)
  CREATE UNIQUE INDEX alerts_one_open ON millrace.alerts USING btree (run_id, stage_id, execution) WHERE (resolved_at IS NULL)
  CREATE UNIQUE INDEX alerts_pkey ON millrace.alerts USING btree (id)
sequence millrace.alerts_id_seq
view millrace.all_alerts
  column acknowledged_at timestamp with time zone
  column acknowledged_by text
  column attempt_id bigint
  column entity_id text
  column id bigint
  column kind text
  column message text
  column pipeline text
  column playbook text
  column raised_at timestamp with time zone
  column resolved_at timestamp with time zone
  column rule text
  column run_id bigint
  column stage text
  as  SELECT l.id, l.kind, NULL::text AS rule, l.pipeline, l.stage, l.run_id, l.attempt_id, l.entity_id, l.message, NULL::text AS playbook, l.raised_at, l.resolved_at, l.acknowledged_at, l.acknowledged_by FROM millrace.alerts l UNION ALL SELECT a.id, a.kind, a.rule, a.pipeline, a.stage, NULL::bigint AS run_id, NULL::bigint AS attempt_id, NULL::text AS entity_id, a.message, a.playbook, a.raised_at, a.resolved_at, a.acknowledged_at, a.acknowledged_by FROM millrace.rule_alerts a;
table millrace.arrivals
  column concurrency_group text not null
  column due_at timestamp with time zone not null
  column id bigint not null generated always as identity
  column stage_id integer not null
  constraint arrivals_pkey PRIMARY KEY (stage_id, concurrency_group, id)
  CREATE UNIQUE INDEX arrivals_pkey ON millrace.arrivals USING btree (stage_id, concurrency_group, id)
sequence millrace.arrivals_id_seq
view millrace.attempt_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a queued attempt has a due time, a started one a lease, a waiting one a deadline'::text AS rule, a.run_id, a.id AS attempt_id, a.state::text AS detail FROM millrace.attempts a LEFT JOIN millrace.claims c ON c.token = a.token WHERE a.state = 'queued'::millrace.attempt_state AND (a.queue_at IS NULL OR a.token IS NOT NULL) OR a.state = 'started'::millrace.attempt_state AND (c.token IS NULL OR a.queue_at IS NULL OR NOT (a.id = ANY (c.attempt_ids))) OR a.state = 'waiting'::millrace.attempt_state AND (a.deadline_at IS NULL OR a.queue_at IS NOT NULL OR a.job_id IS NULL) OR (a.state <> ALL (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state])) AND a.queue_at IS NOT NULL OR a.state <> 'waiting'::millrace.attempt_state AND (a.poll_at IS NOT NULL OR a.deadline_at IS NOT NULL) UNION ALL SELECT 'an attempt that is over cannot be late'::text AS rule, a.run_id, a.id AS attempt_id, a.state::text AS detail FROM millrace.attempts a WHERE a.late_at IS NOT NULL AND (a.state <> ALL (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state])) UNION ALL SELECT 'no worker is awaited for a stage that none runs'::text AS rule, a.run_id, a.id AS attempt_id, 'stage '::text || s.name AS detail FROM millrace.attempts a JOIN millrace.stages s ON s.id = a.stage_id WHERE (s.kind = ANY (ARRAY['manual'::text, 'pipeline'::text])) AND (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state])) OR s.kind = 'gate'::text AND (a.state = ANY (ARRAY['started'::millrace.attempt_state, 'waiting'::millrace.attempt_state])) UNION ALL SELECT 'a superseded attempt is not live'::text AS rule, a.run_id, a.id AS attempt_id, a.state::text AS detail FROM millrace.attempts a WHERE a.superseded AND (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state])) UNION ALL SELECT 'a completed attempt has its result, and no other has one'::text AS rule, a.run_id, a.id AS attempt_id, 'stage '::text || a.stage_id AS detail FROM millrace.attempts a WHERE (a.state = 'completed'::millrace.attempt_state) <> (a.output IS NOT NULL);
table millrace.attempts with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05)
  column concurrency_group text
  column created_at timestamp with time zone not null
  column deadline_at timestamp with time zone
  column error jsonb
  column finished_at timestamp with time zone
  column held boolean not null default false
  column id bigint not null generated always as identity
  column input_hash uuid
  column isolated boolean not null default false
  column job_id text
  column job_started_at timestamp with time zone
  column late_at timestamp with time zone
  column lost_alone boolean not null default false
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
  column state millrace.attempt_state not null default 'queued'::millrace.attempt_state
  column submission_id bigint
  column superseded boolean not null default false
  column token uuid
  column uncounted boolean not null default false
  column usage jsonb
  constraint attempts_number_key UNIQUE (run_id, stage_id, number)
  constraint attempts_pkey PRIMARY KEY (id)
  CREATE INDEX attempts_by_deadline ON millrace.attempts USING btree (deadline_at) WHERE (deadline_at IS NOT NULL)
  CREATE INDEX attempts_by_group ON millrace.attempts USING btree (stage_id, concurrency_group, queue_at, id) WHERE ((concurrency_group IS NOT NULL) AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_by_job ON millrace.attempts USING btree (hashtextextended(job_id, (0)::bigint)) WHERE ((job_id IS NOT NULL) AND (service <> ALL (ARRAY['children'::text, 'decision'::text, 'by_hand'::text])))
  CREATE INDEX attempts_by_submission ON millrace.attempts USING btree (submission_id) WHERE (submission_id IS NOT NULL)
  CREATE INDEX attempts_held ON millrace.attempts USING btree (stage_id, queue_at, id) WHERE (held AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_isolated ON millrace.attempts USING btree (stage_id, queue_at, id) WHERE (isolated AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_late ON millrace.attempts USING btree (late_at) WHERE (late_at IS NOT NULL)
  CREATE INDEX attempts_of_jobs ON millrace.attempts USING btree (stage_id, finished_at) WHERE ((job_id IS NOT NULL) AND (finished_at IS NOT NULL))
  CREATE INDEX attempts_ready ON millrace.attempts USING btree (stage_id, queue_at, id) WHERE (queue_at IS NOT NULL)
  CREATE INDEX attempts_to_poll ON millrace.attempts USING btree (poll_at) WHERE (poll_at IS NOT NULL)
  CREATE INDEX attempts_waiting ON millrace.attempts USING btree (stage_id) WHERE (deadline_at IS NOT NULL)
  CREATE UNIQUE INDEX attempts_number_key ON millrace.attempts USING btree (run_id, stage_id, number)
  CREATE UNIQUE INDEX attempts_pkey ON millrace.attempts USING btree (id) WITH (fillfactor='90')
sequence millrace.attempts_id_seq
table millrace.back_pressures
  column backlog integer not null
  column later_id integer not null
  column on_the_way integer[] not null default '{}'::integer[]
  column stage_id integer not null
  constraint back_pressures_backlog_bounds CHECK ((backlog >= 1))
  constraint back_pressures_later_fkey FOREIGN KEY (later_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  constraint back_pressures_pkey PRIMARY KEY (stage_id, later_id)
  constraint back_pressures_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE INDEX back_pressures_by_later ON millrace.back_pressures USING btree (later_id, stage_id)
  CREATE UNIQUE INDEX back_pressures_pkey ON millrace.back_pressures USING btree (stage_id, later_id)
table millrace.begun_rows
  column entity_id text not null
  column pipeline_id integer not null
  constraint begun_rows_pkey PRIMARY KEY (pipeline_id, entity_id)
  CREATE UNIQUE INDEX begun_rows_pkey ON millrace.begun_rows USING btree (pipeline_id, entity_id)
type millrace.built
  column entity json
  column failure json
  column needs json
table millrace.bulk_faults
  column bulk_id bigint not null
  column code text not null
  column message text not null
  column run_id bigint not null
  constraint bulk_faults_bulk_fkey FOREIGN KEY (bulk_id) REFERENCES millrace.bulks(id) ON DELETE CASCADE
  constraint bulk_faults_pkey PRIMARY KEY (bulk_id, run_id)
  CREATE UNIQUE INDEX bulk_faults_pkey ON millrace.bulk_faults USING btree (bulk_id, run_id)
table millrace.bulks with (fillfactor=50)
  column args jsonb not null
  column at_end_at timestamp with time zone
  column began_at timestamp with time zone
  column conditions jsonb not null
  column created_at timestamp with time zone not null
  column done integer not null default 0
  column ended_at timestamp with time zone
  column faults integer not null default 0
  column filter jsonb not null
  column frozen_at timestamp with time zone not null
  column held bigint[] not null default '{}'::bigint[]
  column id bigint not null generated always as identity
  column key text not null
  column last_run_id bigint not null
  column next_run_id bigint not null default 0
  column passed_over integer not null default 0
  column pipeline_id integer not null
  column preview jsonb not null
  column reason text
  column slices integer not null default 0
  column state text not null default 'previewed'::text
  column subject text
  column verb text not null
  column why text
  column worked_at timestamp with time zone
  constraint bulks_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint bulks_pkey PRIMARY KEY (id)
  constraint bulks_state_known CHECK ((state = ANY (ARRAY['previewed'::text, 'running'::text, 'done'::text, 'aborted'::text, 'stopped'::text])))
  CREATE INDEX bulks_running ON millrace.bulks USING btree (id) WHERE (state = 'running'::text)
  CREATE UNIQUE INDEX bulks_pkey ON millrace.bulks USING btree (id)
sequence millrace.bulks_id_seq
view millrace.bypass_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a stage is switched as its bypass says'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, format('stage %s is %s'::text, s.name, CASE WHEN s.bypassed THEN 'bypassed'::text ELSE 'not bypassed'::text END) AS detail FROM millrace.stages s WHERE s.bypassed <> ((EXISTS ( SELECT FROM millrace.bypasses b WHERE b.stage_id = s.id))) UNION ALL SELECT 'what a run leaves out by a bypass is remembered'::text AS rule, a.run_id, a.id AS attempt_id, 'stage '::text || a.stage_id AS detail FROM millrace.attempts a JOIN millrace.runs r ON r.id = a.run_id WHERE a.state = 'skipped'::millrace.attempt_state AND (a.error ->> 'code'::text) = 'bypassed'::text AND NOT a.error ? 'started_since'::text AND NOT a.superseded AND a.parent_id IS NULL AND NOT (EXISTS ( SELECT FROM millrace.runs o WHERE o.entity_id = r.entity_id AND (o.pipeline_id = ANY (millrace.ways_of(r.pipeline_id))) AND o.id > r.id)) AND NOT (EXISTS ( SELECT FROM millrace.bypassed b WHERE b.stage_id = a.stage_id AND b.entity_id = r.entity_id));
table millrace.bypassed
  column at timestamp with time zone not null
  column entity_id text not null
  column reason text not null
  column run_id bigint not null
  column stage_id integer not null
  constraint bypassed_pkey PRIMARY KEY (stage_id, entity_id)
  constraint bypassed_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE INDEX bypassed_by_run ON millrace.bypassed USING btree (run_id)
  CREATE INDEX bypassed_in_order ON millrace.bypassed USING btree (stage_id, at, run_id)
  CREATE UNIQUE INDEX bypassed_pkey ON millrace.bypassed USING btree (stage_id, entity_id)
table millrace.bypasses
  column began_at timestamp with time zone not null
  column line bigint not null
  column reason text not null
  column spent boolean not null default false
  column stage_id integer not null
  column until timestamp with time zone
  constraint bypasses_pkey PRIMARY KEY (stage_id)
  constraint bypasses_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX bypasses_pkey ON millrace.bypasses USING btree (stage_id)
type millrace.call
  column batch_bytes text
  column is_child boolean
  column last_sweep_at text
  column open boolean
  column row_cpu_ms real
  column stage millrace.stages
  column worker millrace.workers
type millrace.caller
  column key text
  column key_print text
  column payloads boolean
  column pipelines text[]
  column role text
  column subject text
type millrace.cancelled
  column change millrace.change
  column stage_id integer
type millrace.change
  column completed_at timestamp with time zone
  column entity_id text
  column error text
  column job_id text
  column queued text[]
  column result jsonb
  column retry_count integer
  column started_at timestamp with time zone
  column status text
table millrace.check_progress with (fillfactor=50)
  column after bigint not null default 0
  column began_at timestamp with time zone
  column ended_at timestamp with time zone
  column faults integer not null default 0
  column faulty bigint[] not null default '{}'::bigint[]
  column id boolean not null default true
  constraint check_progress_one_row CHECK (id)
  constraint check_progress_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX check_progress_pkey ON millrace.check_progress USING btree (id)
table millrace.child_tallies
  column cancelled integer not null default 0
  column completed integer not null default 0
  column done integer not null default 0
  column failed integer not null default 0
  column fan_out_id bigint not null
  column id bigint not null generated always as identity
  column recount boolean not null default false
  column stage_id integer
  constraint child_tallies_pkey PRIMARY KEY (id)
  CREATE INDEX child_tallies_by_fan_out ON millrace.child_tallies USING btree (fan_out_id)
  CREATE UNIQUE INDEX child_tallies_pkey ON millrace.child_tallies USING btree (id)
sequence millrace.child_tallies_id_seq
type millrace.claimed
  column attempt_id bigint
  column entity_id text
  column isolated boolean
  column number integer
  column retry_count integer
  column run_id bigint
  column submission bigint
  column trace_id uuid
  column version_id integer
table millrace.claims with (fillfactor=50)
  column attempt_ids bigint[] not null
  column expires_at timestamp with time zone not null
  column host uuid not null
  column isolated boolean not null
  column token uuid not null
  column worker_id uuid not null
  constraint claims_pkey PRIMARY KEY (token)
  CREATE INDEX claims_by_host ON millrace.claims USING btree (host)
  CREATE INDEX claims_by_worker ON millrace.claims USING btree (worker_id)
  CREATE UNIQUE INDEX claims_pkey ON millrace.claims USING btree (token)
table millrace.concurrency_groups with (fillfactor=50)
  column concurrency_group text not null
  column due_at timestamp with time zone
  column priority smallint not null
  column stage_id integer not null
  column turn bigint
  constraint concurrency_groups_pkey PRIMARY KEY (stage_id, concurrency_group)
  constraint concurrency_groups_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  constraint concurrency_groups_turn_or_due CHECK (((turn IS NULL) <> (due_at IS NULL)))
  CREATE INDEX groups_asleep ON millrace.concurrency_groups USING btree (stage_id, due_at) WHERE (due_at IS NOT NULL)
  CREATE INDEX groups_in_turn ON millrace.concurrency_groups USING btree (stage_id, priority DESC, turn) WHERE (turn IS NOT NULL)
  CREATE UNIQUE INDEX concurrency_groups_pkey ON millrace.concurrency_groups USING btree (stage_id, concurrency_group)
view millrace.cut_over_report
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
  as  WITH run AS MATERIALIZED ( SELECT n.name AS pipeline, w.way, w.place, r.id, r.status, EXTRACT(epoch FROM r.finished_at - r.created_at) AS seconds FROM millrace.pipelines n CROSS JOIN LATERAL ( VALUES ('new'::text,1,n.id), ('old'::text,2,n.replaces_id)) w(way, place, pipeline_id) LEFT JOIN millrace.runs r ON r.pipeline_id = w.pipeline_id AND NOT (EXISTS ( SELECT FROM millrace.attempts a JOIN millrace.attempts f ON f.id = a.parent_id AND f.run_id <> a.run_id WHERE a.run_id = r.id)) WHERE n.replaces_id IS NOT NULL ), cost AS MATERIALIZED ( SELECT c.run_id, sum(c.cost_usd) AS cost_usd FROM millrace.attempt_costs(ARRAY( SELECT r.id FROM run r WHERE r.id IS NOT NULL)) c(run_id, stage_id, attempt_id, paid_by, cost_usd) GROUP BY c.run_id ), counted AS ( SELECT r.pipeline, r.way, r.place, count(r.id) AS runs, count(*) FILTER (WHERE r.status = 'running'::millrace.run_status) AS running, count(*) FILTER (WHERE r.status = 'completed'::millrace.run_status) AS completed, count(*) FILTER (WHERE r.status = 'failed'::millrace.run_status) AS failed, percentile_cont(0.5::double precision) WITHIN GROUP (ORDER BY (r.seconds::double precision)) FILTER (WHERE r.status = 'completed'::millrace.run_status) AS median_seconds, percentile_cont(0.95::double precision) WITHIN GROUP (ORDER BY (r.seconds::double precision)) FILTER (WHERE r.status = 'completed'::millrace.run_status) AS p95_seconds, sum(c.cost_usd) AS cost_usd FROM run r LEFT JOIN cost c ON c.run_id = r.id GROUP BY r.pipeline, r.way, r.place ) SELECT pipeline, way, runs, running, completed, failed, round(completed::numeric / NULLIF(completed + failed, 0)::numeric, 4) AS success_share, round(median_seconds::numeric, 3) AS median_seconds, round(p95_seconds::numeric, 3) AS p95_seconds, cost_usd, round(cost_usd / NULLIF(runs, 0)::numeric, 6) AS cost_per_run FROM counted ORDER BY pipeline, place;
table millrace.cut_overs
  column changed_at timestamp with time zone not null
  column groups text[]
  column mode text not null default 'default'::text
  column pipeline_id integer not null
  column share numeric
  constraint cut_overs_mode_known CHECK ((mode = ANY (ARRAY['default'::text, 'off'::text, 'share'::text, 'groups'::text, 'on'::text])))
  constraint cut_overs_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint cut_overs_pkey PRIMARY KEY (pipeline_id)
  constraint cut_overs_share_bounds CHECK (((share >= (0)::numeric) AND (share <= (1)::numeric)))
  CREATE UNIQUE INDEX cut_overs_pkey ON millrace.cut_overs USING btree (pipeline_id)
view millrace.dead_letter_counts
  column error_code text
  column newest timestamp with time zone
  column oldest timestamp with time zone
  column pipeline text
  column runs bigint
  column stage text
  as  WITH RECURSIVE cause AS ( ( SELECT r.pipeline_id, r.failed_stage_id, r.error_code FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status ORDER BY r.pipeline_id, r.failed_stage_id, r.error_code LIMIT 1) UNION ALL SELECT n_1.pipeline_id, n_1.failed_stage_id, n_1.error_code FROM cause c_1 CROSS JOIN LATERAL ( SELECT r.pipeline_id, r.failed_stage_id, r.error_code FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status AND ((ROW(r.pipeline_id, r.failed_stage_id, r.error_code) > ROW(c_1.pipeline_id, c_1.failed_stage_id, c_1.error_code))) ORDER BY r.pipeline_id, r.failed_stage_id, r.error_code LIMIT 1) n_1 ) SELECT p.name AS pipeline, s.name AS stage, c.error_code, n.runs, o.finished_at AS oldest, y.finished_at AS newest FROM ( SELECT cause.pipeline_id, cause.failed_stage_id, cause.error_code FROM cause LIMIT 1000) c JOIN millrace.pipelines p ON p.id = c.pipeline_id JOIN millrace.stages s ON s.id = c.failed_stage_id CROSS JOIN LATERAL ( SELECT count(*) AS runs FROM ( SELECT FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status AND r.pipeline_id = c.pipeline_id AND r.failed_stage_id = c.failed_stage_id AND r.error_code = c.error_code LIMIT 10000) l) n CROSS JOIN LATERAL ( SELECT r.finished_at FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status AND r.pipeline_id = c.pipeline_id AND r.failed_stage_id = c.failed_stage_id AND r.error_code = c.error_code ORDER BY r.finished_at LIMIT 1) o CROSS JOIN LATERAL ( SELECT r.finished_at FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status AND r.pipeline_id = c.pipeline_id AND r.failed_stage_id = c.failed_stage_id AND r.error_code = c.error_code ORDER BY r.finished_at DESC LIMIT 1) y;
view millrace.dead_letters
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
  as  SELECT ( SELECT a.id FROM millrace.attempts a WHERE a.run_id = f.run_id AND a.stage_id = f.stage_id ORDER BY a.number DESC LIMIT 1) AS attempt_id, f.run_id, p.name AS pipeline, s.name AS stage, f.entity_id, f.error_code, ( SELECT COALESCE(a.error ->> 'detail'::text, a.error ->> 'message'::text) AS "coalesce" FROM millrace.attempts a WHERE a.run_id = f.run_id AND a.stage_id = f.stage_id ORDER BY a.number DESC LIMIT 1) AS error_message, ( SELECT a.retry_count FROM millrace.attempts a WHERE a.run_id = f.run_id AND a.stage_id = f.stage_id ORDER BY a.number DESC LIMIT 1) AS retry_count, f.failed_at, f.can_retry FROM millrace.failed_runs f JOIN millrace.pipelines p ON p.id = f.pipeline_id JOIN millrace.stages s ON s.id = f.stage_id;
view millrace.deliveries
  column channel text
  column created_at timestamp with time zone
  column ended_at timestamp with time zone
  column error text
  column events integer
  column first_message text
  column kind text
  column message bigint
  column next_try_at timestamp with time zone
  column state text
  column status integer
  column tries integer
  as  SELECT m.id AS message, c.name AS channel, c.kind, m.state, m.tries, m.status, m.error, CASE WHEN m.state = 'waiting'::text THEN COALESCE(m.tried_at + m.wait, m.created_at) ELSE NULL::timestamp with time zone END AS next_try_at, jsonb_array_length(m.events) + m.more AS events, m.events #>> '{0,message}'::text[] AS first_message, m.created_at, m.ended_at FROM millrace.alert_messages m JOIN millrace.alert_channels c ON c.id = m.channel_id ORDER BY m.id DESC;
view millrace.done_attempts
  column created_at timestamp with time zone
  column error jsonb
  column finished_at timestamp with time zone
  column id bigint
  column input_hash uuid
  column number smallint
  column output jsonb
  column retry_count smallint
  column run_id bigint
  column stage_id integer
  column started_at timestamp with time zone
  column state millrace.attempt_state
  as  SELECT id, run_id, stage_id, number, state, retry_count, created_at, started_at, finished_at, error, output, input_hash FROM millrace.attempts a WHERE (state = ANY (ARRAY['completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state])) AND NOT superseded;
table millrace.dropped_metadata
  column id bigint not null generated always as identity
  column metadata_id bigint not null
  constraint dropped_metadata_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX dropped_metadata_pkey ON millrace.dropped_metadata USING btree (id)
sequence millrace.dropped_metadata_id_seq
table millrace.due_progress with (fillfactor=50)
  column lap_at timestamp with time zone
  column lap_key text
  column pipeline_id integer not null
  column seen_until timestamp with time zone not null
  constraint due_progress_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint due_progress_pkey PRIMARY KEY (pipeline_id)
  CREATE UNIQUE INDEX due_progress_pkey ON millrace.due_progress USING btree (pipeline_id)
view millrace.ending_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a run that ended under a name is completed'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, format('%s, but it is %s'::text, r.ended_as, r.status) AS detail FROM millrace.runs r WHERE r.ended_as IS NOT NULL AND r.status <> 'completed'::millrace.run_status UNION ALL SELECT 'a stage is skipped for the ending of its own run'::text AS rule, a.run_id, a.id AS attempt_id, 'stage '::text || a.stage_id AS detail FROM millrace.attempts a JOIN millrace.runs r ON r.id = a.run_id WHERE a.state = 'skipped'::millrace.attempt_state AND NOT a.superseded AND a.error ? 'ended'::text AND (a.error ->> 'ended'::text) IS DISTINCT FROM r.ended_as UNION ALL SELECT 'what the row brought along is known of its first run alone'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, r.entity_id AS detail FROM millrace.runs r WHERE r.given IS NOT NULL AND (EXISTS ( SELECT FROM millrace.runs o WHERE o.pipeline_id = r.pipeline_id AND o.entity_id = r.entity_id AND o.id < r.id));
view millrace.failed_runs
  column can_retry boolean
  column entity_id text
  column error_code text
  column failed_at timestamp with time zone
  column pipeline_id integer
  column run_id bigint
  column stage_id integer
  as  SELECT id AS run_id, pipeline_id, failed_stage_id AS stage_id, entity_id, error_code, finished_at AS failed_at, NOT (EXISTS ( SELECT FROM millrace.runs o WHERE o.entity_id = r.entity_id AND (o.pipeline_id = ANY (millrace.ways_of(r.pipeline_id))) AND o.id > r.id)) AND NOT (EXISTS ( SELECT FROM millrace.fan_outs f WHERE f.id = r.fan_out_id AND (f.state = ANY (ARRAY['abandoned'::text, 'closed'::text])))) AS can_retry FROM millrace.runs r WHERE status = 'failed'::millrace.run_status;
view millrace.fan_out_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'an attempt that waits for children has an open fan-out, and an open fan-out a live attempt'::text AS rule, a.run_id, a.id AS attempt_id, COALESCE('fan-out '::text || f.id, 'none'::text) AS detail FROM millrace.attempts a LEFT JOIN millrace.fan_outs f ON f.attempt_id = a.id AND f.state = 'open'::text WHERE a.state = 'waiting'::millrace.attempt_state AND a.service = 'children'::text AND f.total IS NULL UNION ALL SELECT 'an attempt that waits for children has an open fan-out, and an open fan-out a live attempt'::text AS rule, f.run_id, f.attempt_id, 'fan-out '::text || f.id AS detail FROM millrace.fan_outs f WHERE f.state = 'open'::text AND NOT (EXISTS ( SELECT FROM millrace.attempts a WHERE a.id = f.attempt_id AND a.state = 'waiting'::millrace.attempt_state AND a.service = 'children'::text)) AND NOT (EXISTS ( SELECT FROM millrace.attempts s WHERE s.run_id = f.run_id AND s.stage_id = f.stage_id AND (s.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state])) AND NOT s.superseded));
table millrace.fan_outs with (fillfactor=50)
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
  CREATE INDEX fan_outs_abandoned ON millrace.fan_outs USING btree (id) WHERE (state = 'abandoned'::text)
  CREATE INDEX fan_outs_by_attempt ON millrace.fan_outs USING btree (attempt_id)
  CREATE INDEX fan_outs_by_run ON millrace.fan_outs USING btree (run_id, stage_id)
  CREATE UNIQUE INDEX fan_outs_one_open ON millrace.fan_outs USING btree (run_id, stage_id) WHERE (state = 'open'::text)
  CREATE UNIQUE INDEX fan_outs_pkey ON millrace.fan_outs USING btree (id)
sequence millrace.fan_outs_id_seq
table millrace.fan_progress with (fillfactor=50)
  column done integer not null default 0
  column fan_out_id bigint not null
  column next_number integer
  column stage_id integer not null
  constraint fan_progress_pkey PRIMARY KEY (fan_out_id, stage_id)
  CREATE UNIQUE INDEX fan_progress_pkey ON millrace.fan_progress USING btree (fan_out_id, stage_id)
view millrace.figure_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  WITH figure AS ( SELECT t.stage_id, sum( CASE t.outcome WHEN 'removed'::text THEN - t.n ELSE t.n END) AS finished, sum(t.n) FILTER (WHERE t.outcome = ANY (ARRAY['completed'::text, 'copied'::text])) AS completed, sum(t.n) FILTER (WHERE t.outcome = ANY (ARRAY['failed'::text, 'retried'::text])) AS failed, sum(t.n) FILTER (WHERE t.outcome = ANY (ARRAY['skipped'::text, 'copied'::text])) AS skipped, sum(t.n) FILTER (WHERE t.outcome = 'cancelled'::text) AS cancelled FROM millrace.told_figures t WHERE t.stage_id <> 0 GROUP BY t.stage_id ), recount AS ( SELECT a.stage_id, count(*) AS finished, count(*) FILTER (WHERE a.state = 'completed'::millrace.attempt_state) AS completed, count(*) FILTER (WHERE a.state = 'failed'::millrace.attempt_state) AS failed, count(*) FILTER (WHERE a.state = 'skipped'::millrace.attempt_state) AS skipped, count(*) FILTER (WHERE a.state = 'cancelled'::millrace.attempt_state) AS cancelled FROM millrace.attempts a WHERE a.state = ANY (ARRAY['completed'::millrace.attempt_state, 'failed'::millrace.attempt_state, 'skipped'::millrace.attempt_state, 'cancelled'::millrace.attempt_state]) GROUP BY a.stage_id ) SELECT 'every attempt that is over is counted once'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, format('stage %s: %s, and the figures say %s'::text, COALESCE(f.stage_id, r.stage_id), COALESCE(r.finished, 0::bigint), COALESCE(f.finished, 0::numeric)) AS detail FROM figure f FULL JOIN recount r ON r.stage_id = f.stage_id WHERE COALESCE(f.finished, 0::numeric) <> COALESCE(r.finished, 0::bigint)::numeric OR r.completed::numeric > COALESCE(f.completed, 0::numeric) OR r.failed::numeric > COALESCE(f.failed, 0::numeric) OR r.skipped::numeric > COALESCE(f.skipped, 0::numeric) OR r.cancelled::numeric > COALESCE(f.cancelled, 0::numeric);
view millrace.forgers
  column entity_table regclass
  column remedy text
  column role text
  column verbs text
  column what text
  as  WITH role AS ( SELECT r.oid, r.rolname AS name FROM pg_roles a JOIN pg_roles r ON pg_has_role(a.oid, r.oid, 'member'::text) WHERE a.rolname = 'authenticator'::name AND r.oid <> a.oid AND NOT r.rolbypassrls AND NOT r.rolsuper ), kept AS ( SELECT p.entity_table::oid AS table_id, 'results'::text AS what, n.name, n.name ~~ '%\_status'::text AS by_people FROM millrace.pipelines p JOIN millrace.stages s ON s.pipeline_id = p.id CROSS JOIN LATERAL unnest(millrace.stage_columns(s.name)) n(name) WHERE p.projection = 'columns'::text UNION ALL SELECT p.entity_table::oid AS entity_table, 'figures'::text, n.name, false FROM millrace.pipelines p CROSS JOIN unnest(ARRAY['attempts'::text, 'retry_at'::text, 'error'::text]) f(field) CROSS JOIN LATERAL ( SELECT p.status ->> f.field AS "?column?") n(name) WHERE p.projection = 'status'::text AND n.name IS NOT NULL UNION ALL SELECT a.attrelid, t.what, a.attname::text AS attname, false FROM millrace.pipelines p CROSS JOIN LATERAL ( VALUES ('history'::text,p.status #>> '{history,table}'::text[]), ('values'::text,p.status ->> 'lookup'::text)) t(what, name) JOIN pg_attribute a ON a.attrelid = to_regclass(t.name)::oid AND a.attnum > 0 AND NOT a.attisdropped WHERE p.projection = 'status'::text ), entity AS ( SELECT c.oid, c.relrowsecurity AS guarded, string_agg(DISTINCT k.what, ' and '::text) AS what, COALESCE(array_agg(k.name) FILTER (WHERE NOT k.by_people), '{}'::text[]) AS columns, COALESCE(array_agg(k.name) FILTER (WHERE k.by_people), '{}'::text[]) AS statuses, bool_or(k.what = ANY (ARRAY['history'::text, 'values'::text])) AS whole FROM kept k JOIN pg_class c ON c.oid = k.table_id GROUP BY c.oid, c.relrowsecurity ), forged AS ( SELECT e.oid AS table_id, r.oid AS role_id, r.name AS role, e.what, k.name AS verb, e.columns, e.statuses FROM entity e CROSS JOIN role r CROSS JOIN ( VALUES ('delete'::text,'d'::text), ('insert'::text,'a'::text), ('update'::text,'w'::text)) k(name, policy) WHERE CASE k.name WHEN 'delete'::text THEN e.whole AND has_table_privilege(r.oid, e.oid, 'delete'::text) ELSE (EXISTS ( SELECT FROM pg_attribute a WHERE a.attrelid = e.oid AND (a.attname = ANY (e.columns)) AND has_column_privilege(r.oid, e.oid, a.attnum, k.name))) END AND (NOT e.guarded OR (EXISTS ( SELECT FROM pg_policy y WHERE y.polrelid = e.oid AND y.polpermissive AND (y.polcmd = '*'::"char" OR y.polcmd::text = k.policy) AND (EXISTS ( SELECT FROM unnest(y.polroles) o(o) WHERE o.o = 0::oid OR pg_has_role(r.oid, o.o, 'usage'::text)))))) ), allowed AS ( SELECT f.table_id, f.role, f.what, f.verb, CASE f.verb WHEN 'delete'::text THEN has_table_privilege('public'::name, f.table_id, 'delete'::text) ELSE has_any_column_privilege('public'::name, f.table_id, f.verb) END AS by_all, string_agg(quote_ident(a.attname::text), ', '::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = ''::"char" AND a.attidentity <> 'a'::"char" AND (a.attname <> ALL (f.columns)) AND f.verb <> 'delete'::text AND has_column_privilege(f.role_id, f.table_id, a.attnum, f.verb) AND ((a.attname <> ALL (f.statuses)) OR (EXISTS ( SELECT FROM aclexplode(a.attacl) x(grantor, grantee, privilege_type, is_grantable) WHERE x.grantee = f.role_id AND x.privilege_type = upper(f.verb))))) AS columns FROM forged f JOIN pg_attribute a ON a.attrelid = f.table_id AND a.attnum > 0 AND NOT a.attisdropped GROUP BY f.table_id, f.role_id, f.role, f.what, f.verb ) SELECT table_id::regclass AS entity_table, role::text AS role, string_agg(verb, ', '::text ORDER BY verb) AS verbs, format('revoke %s on %s from %s;'::text, string_agg(verb, ', '::text ORDER BY verb), table_id::regclass, CASE WHEN bool_or(by_all) THEN 'public, '::text ELSE ''::text END || quote_ident(role::text)) || COALESCE((' grant '::text || string_agg(((verb || ' ('::text) || columns) || ')'::text, ', '::text ORDER BY verb)) || format(' on %s to %I;'::text, table_id::regclass, role), ''::text) AS remedy, what FROM allowed w GROUP BY table_id, role, what ORDER BY (table_id::regclass), (role::text);
table millrace.former_costs
  column cost_usd numeric not null
  column fan_out_id bigint not null
  CREATE INDEX former_costs_by_fan_out ON millrace.former_costs USING btree (fan_out_id)
table millrace.former_runs
  column costs jsonb not null
  column created_at timestamp with time zone not null
  column entity_id text not null
  column finished_at timestamp with time zone
  column metadata jsonb
  column pipeline_id integer not null
  column run_id bigint not null
  column started_at timestamp with time zone
  column status millrace.run_status not null
  column trace_id uuid
  constraint former_runs_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint former_runs_pkey PRIMARY KEY (pipeline_id, entity_id)
  CREATE UNIQUE INDEX former_runs_pkey ON millrace.former_runs USING btree (pipeline_id, entity_id)
view millrace.hour_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'every run that is over is counted'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, format('pipeline %s: %s %s'::text, r.pipeline_id, r.n, r.outcome) AS detail FROM ( SELECT o.pipeline_id, CASE WHEN o.ended_as IS NOT NULL THEN 'ended'::text ELSE o.status::text END AS outcome, count(*) AS n FROM millrace.runs o WHERE o.status <> 'running'::millrace.run_status GROUP BY o.pipeline_id, ( CASE WHEN o.ended_as IS NOT NULL THEN 'ended'::text ELSE o.status::text END)) r WHERE r.n::numeric > (( SELECT COALESCE(sum(t.n), 0::numeric) AS "coalesce" FROM millrace.told_figures t WHERE t.pipeline_id = r.pipeline_id AND t.stage_id = 0 AND t.outcome = r.outcome)) UNION ALL SELECT 'an hour is the sum of its minutes'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, format('pipeline %s, stage %s, %s'::text, h.pipeline_id, h.stage_id, h.hour) AS detail FROM ( SELECT k.pipeline_id, k.stage_id, min(k.minute) AS minute FROM millrace.minutes k GROUP BY k.pipeline_id, k.stage_id) o JOIN millrace.hours h ON h.pipeline_id = o.pipeline_id AND h.stage_id = o.stage_id AND h.hour > o.minute CROSS JOIN LATERAL ( SELECT COALESCE(sum(m.completed + m.ended), 0::bigint) AS completed, COALESCE(sum(m.failed + m.retried), 0::bigint) AS failed, COALESCE(sum(m.skipped + m.cancelled), 0::bigint) AS passed_over, COALESCE(sum(m.cost_usd), 0::numeric) AS cost_usd FROM millrace.minutes m WHERE m.pipeline_id = h.pipeline_id AND m.stage_id = h.stage_id AND m.minute >= h.hour AND m.minute < (h.hour + '01:00:00'::interval)) s WHERE h.hour > (( SELECT millrace.now() - make_interval(hours => s_1.value::integer) FROM millrace.settings s_1 WHERE s_1.name = 'minutes_hours'::text)) AND ((h.completed + h.ended) <> s.completed OR (h.failed + h.retried) <> s.failed OR (h.skipped + h.cancelled) <> s.passed_over OR h.cost_usd <> s.cost_usd);
table millrace.hours with (fillfactor=80)
  column cancelled integer not null default 0
  column codes jsonb
  column completed integer not null default 0
  column copied integer not null default 0
  column cost_usd numeric not null default 0
  column ended integer not null default 0
  column failed integer not null default 0
  column hour timestamp with time zone not null
  column input_tokens numeric not null default 0
  column output_tokens numeric not null default 0
  column pipeline_id integer not null
  column r0 integer not null default 0
  column r1 integer not null default 0
  column r10 integer not null default 0
  column r11 integer not null default 0
  column r12 integer not null default 0
  column r13 integer not null default 0
  column r14 integer not null default 0
  column r15 integer not null default 0
  column r2 integer not null default 0
  column r3 integer not null default 0
  column r4 integer not null default 0
  column r5 integer not null default 0
  column r6 integer not null default 0
  column r7 integer not null default 0
  column r8 integer not null default 0
  column r9 integer not null default 0
  column removed integer not null default 0
  column retried integer not null default 0
  column run_ms double precision not null default 0
  column skipped integer not null default 0
  column stage_id integer not null
  column w0 integer not null default 0
  column w1 integer not null default 0
  column w10 integer not null default 0
  column w11 integer not null default 0
  column w12 integer not null default 0
  column w13 integer not null default 0
  column w14 integer not null default 0
  column w15 integer not null default 0
  column w2 integer not null default 0
  column w3 integer not null default 0
  column w4 integer not null default 0
  column w5 integer not null default 0
  column w6 integer not null default 0
  column w7 integer not null default 0
  column w8 integer not null default 0
  column w9 integer not null default 0
  column wait_ms double precision not null default 0
  constraint hours_pkey PRIMARY KEY (pipeline_id, stage_id, hour)
  CREATE UNIQUE INDEX hours_pkey ON millrace.hours USING btree (pipeline_id, stage_id, hour)
table millrace.in_flight
  column attempt_id bigint not null
  column key text not null
  column stage_id integer not null
  column token uuid not null
  column worker_id uuid
  constraint in_flight_pkey PRIMARY KEY (attempt_id, token)
  CREATE INDEX in_flight_by_attempt ON millrace.in_flight USING btree (stage_id, attempt_id)
  CREATE INDEX in_flight_by_key ON millrace.in_flight USING btree (stage_id, key)
  CREATE INDEX in_flight_by_worker ON millrace.in_flight USING btree (worker_id)
  CREATE UNIQUE INDEX in_flight_pkey ON millrace.in_flight USING btree (attempt_id, token)
view millrace.job_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a job is heard to run while its attempt waits, and overtaken by one that completes it'::text AS rule, run_id, id AS attempt_id, state::text AS detail FROM millrace.attempts a WHERE job_started_at IS NOT NULL AND (state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'skipped'::millrace.attempt_state])) OR overtaken_job_id IS NOT NULL AND (state <> 'completed'::millrace.attempt_state OR overtaken_job_id = job_id) OR overtaken_job_id IS NOT NULL AND NOT (EXISTS ( SELECT FROM millrace.attempts e WHERE e.run_id = a.run_id AND e.stage_id = a.stage_id AND e.number < a.number AND e.state = 'failed'::millrace.attempt_state AND ((e.error ->> 'code'::text) = ANY (ARRAY['deadline'::text, 'lost_lease'::text])) AND COALESCE(e.job_id = a.job_id, true) AND (a.superseded OR NOT e.superseded)));
view millrace.job_outcomes
  column completed bigint
  column ended bigint
  column max_in_flight text
  column past_deadline bigint
  column pipeline text
  column stage text
  as  SELECT p.name AS pipeline, s.name AS stage, s.limits ->> 'max_in_flight'::text AS max_in_flight, j.ended, j.completed, j.past_deadline FROM millrace.stages s JOIN millrace.pipelines p ON p.id = s.pipeline_id CROSS JOIN LATERAL ( SELECT count(*) AS ended, count(*) FILTER (WHERE e.state = 'completed'::millrace.attempt_state) AS completed, count(*) FILTER (WHERE e.state = 'failed'::millrace.attempt_state AND (e.error ->> 'code'::text) = 'deadline'::text) AS past_deadline FROM ( SELECT a.state, a.error FROM millrace.attempts a WHERE a.stage_id = s.id AND a.job_id IS NOT NULL AND a.finished_at > (( SELECT millrace.now() - '01:00:00'::interval)) ORDER BY a.finished_at DESC LIMIT 1000) e) j WHERE (s.kind = ANY (ARRAY['function'::text, 'external'::text])) AND s.deadline IS NOT NULL ORDER BY p.name, s.id;
table millrace.journal
  column at timestamp with time zone not null
  column bulk_id bigint
  column filter jsonb
  column id bigint not null generated always as identity
  column key text not null
  column key_print text
  column outcome jsonb not null default '{}'::jsonb
  column pipeline text
  column reason text
  column request_id text
  column request_print text
  column run_ids bigint[] not null default '{}'::bigint[]
  column runs integer not null
  column session jsonb not null
  column stage text
  column subject text
  column verb text not null
  constraint journal_key_known CHECK ((key = ANY (ARRAY['user'::text, 'secret'::text, 'sql'::text, 'engine'::text])))
  constraint journal_pkey PRIMARY KEY (id)
  CREATE INDEX journal_by_pipeline ON millrace.journal USING btree (pipeline, id)
  CREATE INDEX journal_by_run ON millrace.journal USING gin (run_ids) WITH (fastupdate=off)
  CREATE INDEX journal_by_time ON millrace.journal USING btree (at)
  CREATE UNIQUE INDEX journal_by_request ON millrace.journal USING btree (key, subject, request_id) NULLS NOT DISTINCT WHERE (request_id IS NOT NULL)
  CREATE UNIQUE INDEX journal_pkey ON millrace.journal USING btree (id)
  CREATE TRIGGER journal_is_kept BEFORE UPDATE OR TRUNCATE ON millrace.journal FOR EACH STATEMENT EXECUTE FUNCTION millrace.keep_journal()
  CREATE TRIGGER journal_is_not_deleted AFTER DELETE ON millrace.journal REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION millrace.keep_journal()
sequence millrace.journal_id_seq
view millrace.learned_limits
  column key text
  column learned_from text
  column learned_share numeric
  column learned_since timestamp with time zone
  column name text
  column refused_until timestamp with time zone
  column seconds numeric
  as  SELECT l.name, v.key, round(millrace.share_of(v.one)::numeric, 3) AS learned_share, (v.one).refused_by AS learned_from, (v.one).lowered_since AS learned_since, CASE WHEN (v.one).refused_until > millrace.now() THEN (v.one).refused_until ELSE NULL::timestamp with time zone END AS refused_until, EXTRACT(epoch FROM GREATEST((v.one).refused_until, millrace.now()) - (v.one).lowered_since) AS seconds FROM millrace.shared_limits l CROSS JOIN LATERAL ( SELECT NULL::text AS key, l.*::millrace.shared_limits AS one UNION ALL SELECT k.key, millrace.keyed(l.*, k.*) AS keyed FROM millrace.limit_keys k WHERE k.limit_id = l.id AND k.lowered_at IS NOT NULL) v WHERE millrace.share_of(v.one) < 1::double precision ORDER BY l.name, v.key NULLS FIRST;
view millrace.limit_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a queued attempt''s concurrency group is known to its stage'::text AS rule, a.run_id, a.id AS attempt_id, a.concurrency_group AS detail FROM millrace.attempts a WHERE a.queue_at IS NOT NULL AND a.state = 'queued'::millrace.attempt_state AND a.concurrency_group IS NOT NULL AND ( SELECT s.has_groups FROM millrace.stages s WHERE s.id = a.stage_id) AND NOT (EXISTS ( SELECT FROM millrace.concurrency_groups g WHERE g.stage_id = a.stage_id AND g.concurrency_group = a.concurrency_group)) AND NOT (EXISTS ( SELECT FROM millrace.arrivals n WHERE n.stage_id = a.stage_id AND n.concurrency_group = a.concurrency_group)) UNION ALL SELECT 'a parked concurrency group''s key has something in flight, or was freed'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, g.concurrency_group AS detail FROM millrace.concurrency_groups g JOIN millrace.stages s ON s.id = g.stage_id AND s.has_groups WHERE g.due_at = 'infinity'::timestamp with time zone AND NOT (EXISTS ( SELECT FROM millrace.in_flight f WHERE f.stage_id = g.stage_id AND f.key = substr(g.concurrency_group, 2))) AND NOT (EXISTS ( SELECT FROM millrace.arrivals n WHERE n.stage_id = g.stage_id AND n.concurrency_group = ('*'::text || substr(g.concurrency_group, 2))));
table millrace.limit_keys with (fillfactor=50)
  column heed_from timestamp with time zone
  column key text not null
  column limit_id integer not null
  column lowered_at timestamp with time zone
  column lowered_since timestamp with time zone
  column refilled_at timestamp with time zone not null default millrace.now()
  column refused_by text
  column refused_until timestamp with time zone
  column share double precision not null default 1
  column tokens double precision not null default 'Infinity'::double precision
  constraint limit_keys_limit_fkey FOREIGN KEY (limit_id) REFERENCES millrace.shared_limits(id) ON DELETE CASCADE
  constraint limit_keys_pkey PRIMARY KEY (limit_id, key)
  CREATE UNIQUE INDEX limit_keys_pkey ON millrace.limit_keys USING btree (limit_id, key)
table millrace.limit_refusals
  column at timestamp with time zone not null
  column id bigint not null generated always as identity
  column key text
  column limit_id integer not null
  column refused_by text not null
  column retry_after interval not null
  constraint limit_refusals_pkey PRIMARY KEY (id)
  CREATE INDEX limit_refusals_by_limit ON millrace.limit_refusals USING btree (limit_id, id)
  CREATE UNIQUE INDEX limit_refusals_pkey ON millrace.limit_refusals USING btree (id)
sequence millrace.limit_refusals_id_seq
table millrace.limit_uses with (autovacuum_vacuum_scale_factor=0.02)
  column at timestamp with time zone not null
  column id bigint not null generated always as identity
  column limit_id integer not null
  column summed boolean not null default false
  column tokens numeric not null
  column usd numeric not null
  constraint limit_uses_pkey PRIMARY KEY (id)
  CREATE INDEX limit_uses_by_time ON millrace.limit_uses USING btree (limit_id, at)
  CREATE INDEX limit_uses_to_sum ON millrace.limit_uses USING btree (id) WHERE (NOT summed)
  CREATE UNIQUE INDEX limit_uses_pkey ON millrace.limit_uses USING btree (id)
sequence millrace.limit_uses_id_seq
table millrace.limited_stages with (fillfactor=50)
  column limit_id integer not null
  column short_at timestamp with time zone
  column since timestamp with time zone not null default millrace.now()
  column stage_id integer not null
  column taken_at timestamp with time zone
  constraint limited_stages_limit_fkey FOREIGN KEY (limit_id) REFERENCES millrace.shared_limits(id)
  constraint limited_stages_pkey PRIMARY KEY (limit_id, stage_id)
  constraint limited_stages_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE INDEX limited_stages_by_stage ON millrace.limited_stages USING btree (stage_id, limit_id)
  CREATE UNIQUE INDEX limited_stages_pkey ON millrace.limited_stages USING btree (limit_id, stage_id)
table millrace.limiters with (fillfactor=50)
  column arrivals_to text not null default ''::text
  column checked_to bigint not null default 0
  column last_turn bigint not null default 0
  column refilled_at timestamp with time zone not null default millrace.now()
  column stage_id integer not null
  column tokens double precision not null default 'Infinity'::double precision
  constraint limiters_pkey PRIMARY KEY (stage_id)
  constraint limiters_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX limiters_pkey ON millrace.limiters USING btree (stage_id)
table millrace.log
  column at timestamp with time zone not null default millrace.now()
  column code text not null
  column detail jsonb not null default '{}'::jsonb
  column id bigint not null generated always as identity
  column level text not null
  column message text not null
  constraint log_level_known CHECK ((level = ANY (ARRAY['info'::text, 'warning'::text, 'error'::text])))
  constraint log_pkey PRIMARY KEY (id)
  CREATE INDEX log_by_code ON millrace.log USING btree (code, at)
  CREATE INDEX log_by_time ON millrace.log USING btree (at)
  CREATE UNIQUE INDEX log_pkey ON millrace.log USING btree (id)
sequence millrace.log_id_seq
view millrace.metadata_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a run''s metadata is kept'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, 'metadata '::text || r.metadata_id AS detail FROM millrace.runs r WHERE r.metadata_id IS NOT NULL AND NOT (EXISTS ( SELECT FROM millrace.run_metadata m WHERE m.id = r.metadata_id)) UNION ALL SELECT 'metadata has a run, or is to be deleted'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, 'metadata '::text || m.id AS detail FROM millrace.run_metadata m WHERE NOT (EXISTS ( SELECT FROM millrace.runs r WHERE r.metadata_id = m.id)) AND NOT (EXISTS ( SELECT FROM millrace.dropped_metadata d WHERE d.metadata_id = m.id));
table millrace.minutes with (fillfactor=80)
  column cancelled integer not null default 0
  column codes jsonb
  column completed integer not null default 0
  column copied integer not null default 0
  column cost_usd numeric not null default 0
  column ended integer not null default 0
  column failed integer not null default 0
  column input_tokens numeric not null default 0
  column minute timestamp with time zone not null
  column output_tokens numeric not null default 0
  column pipeline_id integer not null
  column r0 integer not null default 0
  column r1 integer not null default 0
  column r10 integer not null default 0
  column r11 integer not null default 0
  column r12 integer not null default 0
  column r13 integer not null default 0
  column r14 integer not null default 0
  column r15 integer not null default 0
  column r2 integer not null default 0
  column r3 integer not null default 0
  column r4 integer not null default 0
  column r5 integer not null default 0
  column r6 integer not null default 0
  column r7 integer not null default 0
  column r8 integer not null default 0
  column r9 integer not null default 0
  column removed integer not null default 0
  column retried integer not null default 0
  column run_ms double precision not null default 0
  column skipped integer not null default 0
  column stage_id integer not null
  column w0 integer not null default 0
  column w1 integer not null default 0
  column w10 integer not null default 0
  column w11 integer not null default 0
  column w12 integer not null default 0
  column w13 integer not null default 0
  column w14 integer not null default 0
  column w15 integer not null default 0
  column w2 integer not null default 0
  column w3 integer not null default 0
  column w4 integer not null default 0
  column w5 integer not null default 0
  column w6 integer not null default 0
  column w7 integer not null default 0
  column w8 integer not null default 0
  column w9 integer not null default 0
  column wait_ms double precision not null default 0
  constraint minutes_pkey PRIMARY KEY (pipeline_id, stage_id, minute)
  CREATE UNIQUE INDEX minutes_pkey ON millrace.minutes USING btree (pipeline_id, stage_id, minute)
view millrace.operations
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
  as  SELECT r.id AS run_id, p.name AS pipeline, r.entity_id, s.name AS stage, s.kind, COALESCE(a.state::text, 'pending'::text) AS state, CASE WHEN a.state = ANY (ARRAY['completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state]) THEN 'complete'::text WHEN a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state]) THEN 'in progress'::text WHEN a.state = ANY (ARRAY['failed'::millrace.attempt_state, 'cancelled'::millrace.attempt_state]) THEN 'failed'::text ELSE 'not started'::text END AS operation, r.status = 'running'::millrace.run_status AND a.id IS NULL AND cardinality(vs.needs) = (( SELECT count(*) AS count FROM millrace.attempts n WHERE n.run_id = r.id AND (n.stage_id = ANY (vs.needs)) AND (n.state = ANY (ARRAY['completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state])) AND NOT n.superseded)) AND millrace.thresholds_hold(r.id, vs.after) AS can_start, COALESCE(a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state, 'completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state]), false) AS is_started, COALESCE(a.state = ANY (ARRAY['completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state, 'failed'::millrace.attempt_state, 'cancelled'::millrace.attempt_state]), false) AS is_done, COALESCE(a.retry_count::integer, 0) + COALESCE((a.state = 'failed'::millrace.attempt_state)::integer, 0) AS failures, COALESCE((s.retry ->> 'max_attempts'::text)::integer, 3) AS fails_after, a.id AS attempt_id, COALESCE(a.error ->> 'detail'::text, a.error ->> 'message'::text) AS error FROM millrace.runs r JOIN millrace.pipelines p ON p.id = r.pipeline_id JOIN millrace.version_stages vs ON vs.version_id = r.version_id JOIN millrace.stages s ON s.id = vs.stage_id LEFT JOIN LATERAL ( SELECT o.id, o.run_id, o.parent_id, o.submission_id, o.queue_at, o.created_at, o.started_at, o.finished_at, o.deadline_at, o.poll_at, o.job_started_at, o.late_at, o.token, o.stage_id, o.state, o.number, o.retry_count, o.releases, o.isolated, o.superseded, o.uncounted, o.held, o.service, o.job_id, o.overtaken_job_id, o.error, o.concurrency_group, o.output, o.usage FROM millrace.attempts o WHERE o.run_id = r.id AND o.stage_id = s.id AND NOT o.superseded ORDER BY o.number DESC LIMIT 1) a ON true;
table millrace.operators
  column added_at timestamp with time zone not null default millrace.now()
  column line bigint
  column note text not null default ''::text
  column payloads boolean not null default false
  column pipelines text[]
  column role text not null
  column subject text not null
  constraint operators_pkey PRIMARY KEY (subject)
  constraint operators_role_known CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
  constraint operators_subject_length CHECK (((length(subject) >= 1) AND (length(subject) <= 500)))
  CREATE UNIQUE INDEX operators_pkey ON millrace.operators USING btree (subject)
  CREATE TRIGGER operators_are_noted BEFORE INSERT OR DELETE OR UPDATE ON millrace.operators FOR EACH ROW EXECUTE FUNCTION millrace.note_operator()
view millrace.paused
  column pipeline text
  column remedy text
  column stage text
  as  SELECT p.name AS pipeline, s.name AS stage, format('select millrace.unpause(%s);'::text, concat_ws(', '::text, quote_literal(p.name), quote_literal(s.name))) AS remedy FROM millrace.pipelines p CROSS JOIN LATERAL ( SELECT NULL::text AS name, 0 AS "position" WHERE NOT p.enabled UNION ALL SELECT t.name, vs."position" FROM millrace.version_stages vs JOIN millrace.stages t ON t.id = vs.stage_id WHERE vs.version_id = p.current_version_id AND NOT t.enabled) s ORDER BY p.name, s."position";
type millrace.payer
  column key text
  column pipeline_id integer
  column quota jsonb
table millrace.pipelines
  column created_at timestamp with time zone not null default millrace.now()
  column current_version_id integer
  column due_column text
  column enabled boolean not null default true
  column entity_key text not null
  column entity_table regclass not null
  column group_key text
  column has_given boolean not null default false
  column id integer not null generated always as identity
  column is_child boolean not null default false
  column label_column text
  column metadata_column text
  column name text not null
  column projection text not null
  column quota jsonb
  column quota_changed_at timestamp with time zone
  column replaces_id integer
  column retention jsonb
  column sla jsonb
  column status jsonb
  column switched_line bigint
  column trace_column text
  constraint pipelines_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint pipelines_name_key UNIQUE (name)
  constraint pipelines_pkey PRIMARY KEY (id)
  constraint pipelines_projection_known CHECK ((projection = ANY (ARRAY['columns'::text, 'status'::text, 'none'::text])))
  constraint pipelines_replaces_fkey FOREIGN KEY (replaces_id) REFERENCES millrace.pipelines(id)
  constraint pipelines_replaces_key UNIQUE (replaces_id)
  CREATE UNIQUE INDEX pipelines_name_key ON millrace.pipelines USING btree (name)
  CREATE UNIQUE INDEX pipelines_pkey ON millrace.pipelines USING btree (id)
  CREATE UNIQUE INDEX pipelines_replaces_key ON millrace.pipelines USING btree (replaces_id)
  CREATE TRIGGER pipelines_switched BEFORE UPDATE OF enabled ON millrace.pipelines FOR EACH ROW WHEN ((old.enabled IS DISTINCT FROM new.enabled)) EXECUTE FUNCTION millrace.note_switched()
sequence millrace.pipelines_id_seq
table millrace.posts unlogged
  column function_name text
  column posted_at timestamp with time zone not null default transaction_timestamp()
  column request_id bigint not null
  CREATE INDEX posts_by_time ON millrace.posts USING btree (posted_at)
view millrace.pressure_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a stage is held back by those that its limits name'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, format('stage %s: %s'::text, s.name, COALESCE(b.stage, 'stage '::text || k.later_id)) AS detail FROM millrace.stages s JOIN millrace.pipelines p ON p.id = s.pipeline_id LEFT JOIN LATERAL millrace.pressures_in(s.limits) b(place, stage, backlog) ON true FULL JOIN ( SELECT o.stage_id, o.later_id, (q.name || '.'::text) || l.name AS full_name FROM millrace.back_pressures o JOIN millrace.stages l ON l.id = o.later_id JOIN millrace.pipelines q ON q.id = l.pipeline_id) k ON k.stage_id = s.id AND k.full_name = CASE WHEN b.stage ~~ '%.%'::text THEN b.stage ELSE (p.name || '.'::text) || b.stage END WHERE b.stage IS NOT NULL AND k.later_id IS NULL OR b.stage IS NULL AND k.later_id IS NOT NULL;
table millrace.prune_progress with (fillfactor=50)
  column began_at timestamp with time zone not null
  column ended_at timestamp with time zone
  column pipeline_id integer not null
  column removed bigint not null default 0
  column seen_at timestamp with time zone not null default '-infinity'::timestamp with time zone
  column seen_id bigint not null default 0
  column seen_row tid not null default '(0,0)'::tid
  column table_name text not null default ''::text
  constraint prune_progress_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint prune_progress_pkey PRIMARY KEY (pipeline_id, table_name)
  CREATE UNIQUE INDEX prune_progress_pkey ON millrace.prune_progress USING btree (pipeline_id, table_name)
table millrace.pulses with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
  column at timestamp with time zone not null
  column codes text[]
  column cost_usd numeric
  column input_tokens numeric
  column n integer not null
  column outcome text not null
  column output_tokens numeric
  column pipeline_id integer not null
  column run_ms real[]
  column stage_id integer not null
  column wait_ms real[]
  constraint pulses_outcome_known CHECK ((outcome = ANY (ARRAY['completed'::text, 'ended'::text, 'failed'::text, 'retried'::text, 'skipped'::text, 'cancelled'::text, 'copied'::text, 'removed'::text])))
view millrace.queue_depth
  column in_backoff bigint
  column oldest_due_at timestamp with time zone
  column pipeline text
  column ready bigint
  column stage text
  column started bigint
  as  SELECT p.name AS pipeline, s.name AS stage, c.ready, c.in_backoff, c.started, c.oldest_due_at FROM millrace.live_counts() c(stage_id, ready, in_backoff, started, waiting, failed, oldest_due_at, oldest_open_at) JOIN millrace.stages s ON s.id = c.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id ORDER BY p.name, s.id;
table millrace.quota_uses with (autovacuum_vacuum_scale_factor=0.02)
  column closes_at timestamp with time zone not null
  column id bigint not null generated always as identity
  column key text not null
  column kind text not null
  column pipeline_id integer not null
  column summed boolean not null default false
  column used numeric not null
  constraint quota_uses_kind_known CHECK ((kind = ANY (ARRAY['starts'::text, 'spending'::text])))
  constraint quota_uses_pkey PRIMARY KEY (id)
  CREATE INDEX quota_uses_by_end ON millrace.quota_uses USING btree (closes_at)
  CREATE INDEX quota_uses_by_key ON millrace.quota_uses USING btree (pipeline_id, key, kind, closes_at)
  CREATE INDEX quota_uses_to_sum ON millrace.quota_uses USING btree (id) WHERE (NOT summed)
  CREATE UNIQUE INDEX quota_uses_pkey ON millrace.quota_uses USING btree (id)
sequence millrace.quota_uses_id_seq
view millrace.quotas
  column allowed numeric
  column held bigint
  column key text
  column kind text
  column next_at timestamp with time zone
  column pipeline text
  column used numeric
  as  WITH used AS ( SELECT u_1.pipeline_id, u_1.key, u_1.kind, sum(u_1.used) AS used FROM millrace.quota_uses u_1 WHERE u_1.closes_at > millrace.now() GROUP BY u_1.pipeline_id, u_1.key, u_1.kind ), held AS ( SELECT r.quota_of AS pipeline_id, r.quota_key AS key, substr(a.error ->> 'code'::text, 7) AS kind, count(*) AS held, min(a.queue_at) AS next_at FROM millrace.attempts a JOIN millrace.runs r ON r.id = a.run_id WHERE a.held AND a.queue_at IS NOT NULL AND a.state = 'queued'::millrace.attempt_state GROUP BY r.quota_of, r.quota_key, (substr(a.error ->> 'code'::text, 7)) ) SELECT p.name AS pipeline, key, kind, COALESCE(u.used, 0::numeric) AS used, COALESCE(p.quota #>> ARRAY[kind, 'count'::text], p.quota #>> ARRAY[kind, 'usd'::text])::numeric AS allowed, COALESCE(h.held, 0::bigint) AS held, h.next_at FROM used u FULL JOIN held h USING (pipeline_id, key, kind) JOIN millrace.pipelines p ON p.id = pipeline_id ORDER BY p.name, (COALESCE(h.held, 0::bigint)) DESC, key, kind;
type millrace.ready
  column run_id bigint
  column stage_id integer
table millrace.releases
  column installed_at timestamp with time zone not null default millrace.now()
  column level integer not null
  column release text not null
  constraint releases_pkey PRIMARY KEY (level)
  CREATE UNIQUE INDEX releases_pkey ON millrace.releases USING btree (level)
view millrace.retained_tables
  column column_name text
  column days integer
  column pipeline_id integer
  column table_name text
  as  SELECT p.id AS pipeline_id, ''::text AS table_name, NULL::text AS column_name, millrace.retention_days(p.*) AS days FROM millrace.pipelines p UNION ALL SELECT p.id AS pipeline_id, t.name AS table_name, (array_agg(t."column" ORDER BY t.days))[1] AS column_name, min(t.days) AS days FROM millrace.pipelines p CROSS JOIN LATERAL jsonb_to_recordset(p.retention -> 'tables'::text) t(name text, "column" text, days integer) GROUP BY p.id, t.name;
view millrace.retention
  column began_at timestamp with time zone
  column days integer
  column due bigint
  column ended_at timestamp with time zone
  column oldest_due timestamp with time zone
  column pipeline text
  column removed bigint
  column table_name text
  as  SELECT p.name AS pipeline, NULLIF(t.table_name, ''::text) AS table_name, t.days, d.due, d.oldest AS oldest_due, g.removed, g.began_at, g.ended_at FROM millrace.retained_tables t JOIN millrace.pipelines p ON p.id = t.pipeline_id LEFT JOIN millrace.prune_progress g ON g.pipeline_id = t.pipeline_id AND g.table_name = t.table_name CROSS JOIN LATERAL millrace.due_to_prune(t.pipeline_id, t.table_name, t.column_name, t.days, CASE WHEN g.ended_at IS NULL THEN COALESCE(g.seen_at, '-infinity'::timestamp with time zone) ELSE '-infinity'::timestamp with time zone END) d(due, oldest) ORDER BY p.name, t.table_name;
table millrace.row_costs
  column cpu_ms real not null
  column learned_at timestamp with time zone not null
  column lives_cut integer not null default 0
  column memory_bytes bigint
  column stage_id integer not null
  constraint row_costs_cpu_bounds CHECK (((cpu_ms >= (0.1)::double precision) AND (cpu_ms <= (2000)::double precision)))
  constraint row_costs_pkey PRIMARY KEY (stage_id)
  constraint row_costs_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX row_costs_pkey ON millrace.row_costs USING btree (stage_id)
table millrace.rule_alerts
  column above numeric not null
  column acknowledged_at timestamp with time zone
  column acknowledged_by text
  column id bigint not null default nextval('millrace.alerts_id_seq'::regclass)
  column kind text not null
  column message text not null
  column pipeline text
  column pipeline_id integer not null
  column playbook text not null
  column raised_at timestamp with time zone not null
  column reminded_at timestamp with time zone
  column resolved_at timestamp with time zone
  column rule text not null
  column rule_id integer not null
  column settled boolean not null default false
  column since timestamp with time zone not null
  column stage text
  column stage_id integer not null
  column told_at timestamp with time zone
  column value numeric not null
  constraint rule_alerts_pkey PRIMARY KEY (id)
  CREATE INDEX rule_alerts_by_end ON millrace.rule_alerts USING btree (resolved_at)
  CREATE INDEX rule_alerts_unsettled ON millrace.rule_alerts USING btree (id) WHERE (NOT settled)
  CREATE UNIQUE INDEX rule_alerts_one_open ON millrace.rule_alerts USING btree (rule_id, pipeline_id, stage_id) WHERE (resolved_at IS NULL)
  CREATE UNIQUE INDEX rule_alerts_pkey ON millrace.rule_alerts USING btree (id)
table millrace.rule_states with (fillfactor=50)
  column above numeric not null
  column detail text
  column over_since timestamp with time zone not null
  column pipeline_id integer not null
  column rule_id integer not null
  column stage_id integer not null
  column under_since timestamp with time zone
  column value numeric not null
  constraint rule_states_pkey PRIMARY KEY (rule_id, pipeline_id, stage_id)
  constraint rule_states_rule_fkey FOREIGN KEY (rule_id) REFERENCES millrace.alert_rules(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX rule_states_pkey ON millrace.rule_states USING btree (rule_id, pipeline_id, stage_id)
table millrace.run_ages with (fillfactor=50)
  column ages bigint[] not null default array_fill(0, ARRAY[18])
  column counted_at timestamp with time zone
  column counting bigint[] not null default array_fill(0, ARRAY[18])
  column last_key text not null default ''::text
  column pipeline_id integer not null
  constraint run_ages_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint run_ages_pkey PRIMARY KEY (pipeline_id)
  CREATE UNIQUE INDEX run_ages_pkey ON millrace.run_ages USING btree (pipeline_id)
view millrace.run_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a running run owns a live attempt'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, ('run of entity '::text || r.entity_id) || ' has none'::text AS detail FROM millrace.runs r WHERE r.status = 'running'::millrace.run_status AND NOT (EXISTS ( SELECT FROM millrace.attempts a WHERE a.run_id = r.id AND (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state])))) UNION ALL SELECT 'a failed run, and no other, names the stage that failed it and the error'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, format('the run is %s'::text, r.status) AS detail FROM millrace.runs r WHERE (r.status = 'failed'::millrace.run_status) <> (r.failed_stage_id IS NOT NULL) OR (r.status = 'failed'::millrace.run_status) <> (r.error_code IS NOT NULL) OR r.status = 'failed'::millrace.run_status AND NOT (EXISTS ( SELECT FROM millrace.attempts a WHERE a.run_id = r.id AND a.stage_id = r.failed_stage_id AND a.state = 'failed'::millrace.attempt_state AND NOT a.superseded AND NOT (EXISTS ( SELECT FROM millrace.attempts n WHERE n.run_id = a.run_id AND n.stage_id = a.stage_id AND n.number > a.number)))) UNION ALL SELECT 'an attempt has a run, and one that is over has no live attempt'::text AS rule, a.run_id, a.id AS attempt_id, format('the run is %s, the attempt %s'::text, COALESCE(r.status::text, 'gone'::text), a.state) AS detail FROM millrace.attempts a LEFT JOIN millrace.runs r ON r.id = a.run_id WHERE r.id IS NULL OR (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state])) AND r.status <> 'running'::millrace.run_status UNION ALL SELECT 'no entity is under way both in a pipeline and in the one that replaces it'::text AS rule, n.id AS run_id, NULL::bigint AS attempt_id, format('entity %s, and run %s of the other'::text, n.entity_id, o.id) AS detail FROM millrace.pipelines p JOIN millrace.runs n ON n.pipeline_id = p.id AND n.status = 'running'::millrace.run_status JOIN millrace.runs o ON o.pipeline_id = p.replaces_id AND o.entity_id = n.entity_id AND o.status = 'running'::millrace.run_status;
table millrace.run_metadata
  column id bigint not null generated by default as identity
  column value jsonb not null
  constraint run_metadata_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX run_metadata_pkey ON millrace.run_metadata USING btree (id)
sequence millrace.run_metadata_id_seq
view millrace.run_slas
  column counted_at timestamp with time zone
  column median_bound double precision
  column median_seconds double precision
  column ok boolean
  column overdue bigint
  column p95_bound double precision
  column p95_seconds double precision
  column pipeline text
  column runs bigint
  as  SELECT p.name AS pipeline, c.runs, c.overdue, q.median_seconds, q.p95_seconds, b.median_bound, b.p95_bound, COALESCE(o.median_over, 0::double precision) <= (0.5 * c.runs::numeric)::double precision AND COALESCE(o.p95_over, 0::double precision) <= (0.05 * c.runs::numeric)::double precision AS ok, a.counted_at FROM millrace.pipelines p JOIN millrace.run_ages a ON a.pipeline_id = p.id CROSS JOIN LATERAL ( SELECT (p.sla ->> 'median_seconds'::text)::double precision AS median_bound, (p.sla ->> 'p95_seconds'::text)::double precision AS p95_bound) b CROSS JOIN LATERAL ( SELECT ARRAY[COALESCE(sum(m.r0), 0::bigint), COALESCE(sum(m.r1), 0::bigint), COALESCE(sum(m.r2), 0::bigint), COALESCE(sum(m.r3), 0::bigint), COALESCE(sum(m.r4), 0::bigint), COALESCE(sum(m.r5), 0::bigint), COALESCE(sum(m.r6), 0::bigint), COALESCE(sum(m.r7), 0::bigint), COALESCE(sum(m.r8), 0::bigint), COALESCE(sum(m.r9), 0::bigint), COALESCE(sum(m.r10), 0::bigint), COALESCE(sum(m.r11), 0::bigint), COALESCE(sum(m.r12), 0::bigint), COALESCE(sum(m.r13), 0::bigint), COALESCE(sum(m.r14), 0::bigint), COALESCE(sum(m.r15), 0::bigint)] AS ended FROM millrace.figure_rows(p.id, 0, millrace.now() - '01:00:00'::interval, millrace.now() + '00:01:00'::interval, true) m(pipeline_id, stage_id, minute, completed, ended, failed, retried, skipped, cancelled, copied, removed, cost_usd, input_tokens, output_tokens, run_ms, wait_ms, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15, codes)) f CROSS JOIN LATERAL ( SELECT array_agg(u.e + u.g ORDER BY u.place) AS counts, sum(u.e + u.g)::bigint AS runs, sum(u.g)::bigint AS overdue FROM UNNEST(f.ended, a.ages[:16]) WITH ORDINALITY u(e, g, place)) c CROSS JOIN LATERAL ( SELECT millrace.count_over(f.ended, b.median_bound * 1000::double precision) + a.ages[17]::double precision AS median_over, millrace.count_over(f.ended, b.p95_bound * 1000::double precision) + a.ages[18]::double precision AS p95_over) o CROSS JOIN LATERAL ( SELECT millrace.bucket_quantile(c.counts, 0.5::double precision) / 1000::double precision AS median_seconds, millrace.bucket_quantile(c.counts, 0.95::double precision) / 1000::double precision AS p95_seconds) q WHERE p.sla IS NOT NULL ORDER BY p.name;
table millrace.runs with (fillfactor=80, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05)
  column began_from text
  column created_at timestamp with time zone not null
  column ended_as text
  column entity_id text not null
  column error_code text
  column failed_stage_id integer
  column fan_out_id bigint
  column finished_at timestamp with time zone
  column given integer[]
  column id bigint not null generated always as identity
  column item_key text
  column metadata_id bigint
  column pipeline_id integer not null
  column priority smallint not null default 0
  column quota_key text
  column quota_of integer
  column since timestamp with time zone
  column status millrace.run_status not null default 'running'::millrace.run_status
  column took_place_of bigint
  column trace_id uuid not null default gen_random_uuid()
  column version_id integer not null
  constraint runs_pkey PRIMARY KEY (id)
  constraint runs_priority_bounds CHECK (((priority >= 0) AND (priority <= 9)))
  CREATE INDEX runs_by_entity ON millrace.runs USING btree (entity_id, pipeline_id, id)
  CREATE INDEX runs_by_metadata ON millrace.runs USING btree (metadata_id) WHERE (metadata_id IS NOT NULL)
  CREATE INDEX runs_by_trace ON millrace.runs USING btree (trace_id)
  CREATE INDEX runs_ended ON millrace.runs USING btree (pipeline_id, finished_at, id) WHERE (finished_at IS NOT NULL)
  CREATE INDEX runs_failed ON millrace.runs USING btree (pipeline_id, failed_stage_id, error_code, finished_at, id) WHERE (status = 'failed'::millrace.run_status)
  CREATE INDEX runs_failed_at ON millrace.runs USING btree (pipeline_id, finished_at, id) WHERE (status = 'failed'::millrace.run_status)
  CREATE INDEX runs_of_live_children ON millrace.runs USING btree (fan_out_id) WHERE ((status = 'running'::millrace.run_status) AND (fan_out_id IS NOT NULL))
  CREATE UNIQUE INDEX runs_by_item ON millrace.runs USING btree (fan_out_id, item_key) WHERE (fan_out_id IS NOT NULL)
  CREATE UNIQUE INDEX runs_one_live ON millrace.runs USING btree (pipeline_id, entity_id) WHERE (status = 'running'::millrace.run_status)
  CREATE UNIQUE INDEX runs_pkey ON millrace.runs USING btree (id)
sequence millrace.runs_id_seq
view millrace.schedules
  column command text
  column name text
  column schedule text
  as  SELECT name, schedule, command FROM ( VALUES ('millrace-sweep'::text,'10 seconds'::text,'call millrace.sweep_all()'::text), ('millrace-prune'::text,'17 3 * * *'::text,'select millrace.prune()'::text)) j(name, schedule, command);
table millrace.settings
  column comment text not null default ''::text
  column name text not null
  column value text not null
  constraint settings_pkey PRIMARY KEY (name)
  CREATE UNIQUE INDEX settings_pkey ON millrace.settings USING btree (name)
  CREATE TRIGGER settings_are_checked BEFORE INSERT OR UPDATE ON millrace.settings FOR EACH ROW EXECUTE FUNCTION millrace.check_setting()
view millrace.shared_limit_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a shared limit holds for the stages that name it'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, format('stage %s of %s'::text, s.name, p.name) AS detail FROM millrace.stages s JOIN millrace.pipelines p ON p.id = s.pipeline_id WHERE (ARRAY( SELECT l.name FROM millrace.limited_stages m JOIN millrace.shared_limits l ON l.id = m.limit_id WHERE m.stage_id = s.id ORDER BY l.name)) <> (ARRAY( SELECT n.value AS n FROM jsonb_array_elements_text(s.limits -> 'shared'::text) n(value) ORDER BY n.value)) UNION ALL SELECT 'a shared limit is what was declared, with its throttle over it'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, l.name AS detail FROM millrace.shared_limits l WHERE l.limits <> millrace.throttled(l.declared, COALESCE(l.throttle, '{}'::jsonb)) UNION ALL SELECT 'a shared limit has its whole rate, or says since when it has not'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, l.name AS detail FROM millrace.shared_limits l WHERE l.share < 0::double precision OR l.share > 1::double precision OR l.lowered_at IS NULL AND l.share <> 1::double precision OR (num_nulls(l.lowered_at, l.lowered_since, l.heed_from, l.refused_by) <> ALL (ARRAY[0, 4])) OR l.lowered_since > l.lowered_at UNION ALL SELECT 'a key of a shared limit has its whole rate, or says since when it has not'::text AS rule, NULL::bigint AS run_id, NULL::bigint AS attempt_id, format('%s of %s'::text, k.key, l.name) AS detail FROM millrace.limit_keys k JOIN millrace.shared_limits l ON l.id = k.limit_id WHERE k.share < 0::double precision OR k.share > 1::double precision OR k.lowered_at IS NULL AND k.share <> 1::double precision OR (num_nulls(k.lowered_at, k.lowered_since, k.heed_from, k.refused_by) <> ALL (ARRAY[0, 4])) OR k.lowered_since > k.lowered_at UNION ALL SELECT 'what is at work under a shared limit is counted in flight'::text AS rule, a.run_id, a.id AS attempt_id, format('stage %s'::text, s.name) AS detail FROM millrace.limited_stages m JOIN millrace.stages s ON s.id = m.stage_id JOIN millrace.attempts a ON a.stage_id = m.stage_id WHERE a.queue_at IS NOT NULL AND a.state = 'started'::millrace.attempt_state AND a.started_at > (m.since + '00:01:00'::interval) AND NOT (EXISTS ( SELECT FROM millrace.in_flight f WHERE f.attempt_id = a.id AND f.token = a.token));
view millrace.shared_limit_state
  column declared jsonb
  column in_flight bigint
  column learned_from text
  column learned_share numeric
  column learned_since timestamp with time zone
  column name text
  column refused_until timestamp with time zone
  column spent_for text[]
  column spent_tokens numeric
  column spent_usd numeric
  column stages text[]
  column throttled_for text
  column throttled_until timestamp with time zone
  column today jsonb
  column window_ends_at timestamp with time zone
  as  SELECT l.name, ARRAY( SELECT (p.name || '.'::text) || s.name FROM millrace.limited_stages m JOIN millrace.stages s ON s.id = m.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id WHERE m.limit_id = l.id ORDER BY s.id) AS stages, l.declared, CASE WHEN h.share < 1::double precision THEN jsonb_set(l.limits, '{rate,count}'::text[], to_jsonb(round((((l.limits #>> '{rate,count}'::text[])::double precision) * h.share)::numeric, 3))) ELSE l.limits END AS today, CASE WHEN l.throttle IS NOT NULL THEN l.reason ELSE NULL::text END AS throttled_for, l.until AS throttled_until, CASE WHEN h.share < 1::double precision THEN round(h.share::numeric, 3) ELSE NULL::numeric END AS learned_share, CASE WHEN h.share < 1::double precision THEN l.refused_by ELSE NULL::text END AS learned_from, CASE WHEN h.share < 1::double precision THEN l.lowered_since ELSE NULL::timestamp with time zone END AS learned_since, CASE WHEN l.refused_until > millrace.now() THEN l.refused_until ELSE NULL::timestamp with time zone END AS refused_until, ( SELECT count(*) AS count FROM millrace.limited_stages m JOIN millrace.in_flight f ON f.stage_id = m.stage_id WHERE m.limit_id = l.id) AS in_flight, u.usd AS spent_usd, u.tokens AS spent_tokens, u.window_ends_at, ARRAY( SELECT (p.name || '.'::text) || s.name FROM millrace.limited_stages m JOIN millrace.stages s ON s.id = m.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id WHERE m.limit_id = l.id AND u.window_ends_at IS NOT NULL AND millrace.is_spent_under(l.*, s.id) ORDER BY s.id) AS spent_for FROM millrace.shared_limits l CROSS JOIN LATERAL ( SELECT millrace.share_of(l.*) AS share) h CROSS JOIN LATERAL ( SELECT CASE WHEN l.limits ? 'spending'::text THEN (millrace.spent_under(l.*, 'usd'::text)).spent ELSE NULL::numeric END AS usd, CASE WHEN l.limits ? 'spending'::text THEN (millrace.spent_under(l.*, 'tokens'::text)).spent ELSE NULL::numeric END AS tokens, millrace.window_over(l.*) AS window_ends_at) u ORDER BY l.name;
table millrace.shared_limits with (fillfactor=50)
  column declared jsonb not null
  column heed_from timestamp with time zone
  column id integer not null generated always as identity
  column limits jsonb not null
  column line bigint
  column lowered_at timestamp with time zone
  column lowered_since timestamp with time zone
  column name text not null
  column reason text
  column refilled_at timestamp with time zone not null default millrace.now()
  column refused_by text
  column refused_until timestamp with time zone
  column share double precision not null default 1
  column throttle jsonb
  column throttled_at timestamp with time zone
  column tokens double precision not null default 'Infinity'::double precision
  column until timestamp with time zone
  constraint shared_limits_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint shared_limits_name_key UNIQUE (name)
  constraint shared_limits_pkey PRIMARY KEY (id)
  constraint shared_limits_throttle_whole CHECK ((num_nulls(throttle, until, reason, line, throttled_at) = ANY (ARRAY[0, 5])))
  CREATE UNIQUE INDEX shared_limits_name_key ON millrace.shared_limits USING btree (name)
  CREATE UNIQUE INDEX shared_limits_pkey ON millrace.shared_limits USING btree (id)
sequence millrace.shared_limits_id_seq
table millrace.silences
  column id bigint not null generated always as identity
  column kind text
  column line bigint not null
  column pipeline text
  column reason text not null
  column stage text
  column until timestamp with time zone not null
  constraint silences_pkey PRIMARY KEY (id)
  CREATE INDEX silences_by_end ON millrace.silences USING btree (until)
  CREATE UNIQUE INDEX silences_pkey ON millrace.silences USING btree (id)
sequence millrace.silences_id_seq
view millrace.stage_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a stage is completed once, and has one live attempt at most'::text AS rule, a.run_id, max(a.id) AS attempt_id, format('%s attempts of stage %s'::text, count(*), s.name) AS detail FROM millrace.attempts a JOIN millrace.stages s ON s.id = a.stage_id WHERE (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state, 'completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state])) AND NOT a.superseded GROUP BY a.run_id, a.stage_id, s.name HAVING count(*) > 1 UNION ALL SELECT 'a live attempt has its needs done'::text AS rule, a.run_id, a.id AS attempt_id, 'stage '::text || a.stage_id AS detail FROM millrace.attempts a JOIN millrace.runs r ON r.id = a.run_id JOIN millrace.version_stages vs ON vs.version_id = r.version_id AND vs.stage_id = a.stage_id WHERE (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'waiting'::millrace.attempt_state])) AND (EXISTS ( SELECT FROM unnest(vs.needs) n(n) WHERE NOT (EXISTS ( SELECT FROM millrace.done_attempts d WHERE d.run_id = a.run_id AND d.stage_id = n.n)))) UNION ALL SELECT 'a completed run has all stages completed or skipped'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, 'stage '::text || vs.stage_id AS detail FROM millrace.runs r JOIN millrace.version_stages vs ON vs.version_id = r.version_id WHERE r.status = 'completed'::millrace.run_status AND NOT (EXISTS ( SELECT FROM millrace.done_attempts d WHERE d.run_id = r.id AND d.stage_id = vs.stage_id)) UNION ALL SELECT 'a stage whose needs are done has begun'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, 'stage '::text || vs.stage_id AS detail FROM millrace.runs r JOIN millrace.version_stages vs ON vs.version_id = r.version_id WHERE r.status = 'running'::millrace.run_status AND NOT (EXISTS ( SELECT FROM millrace.attempts a WHERE a.run_id = r.id AND a.stage_id = vs.stage_id AND NOT a.superseded)) AND NOT (EXISTS ( SELECT FROM ( SELECT (t.value ->> 'map'::text)::integer AS int4 FROM jsonb_array_elements(vs.after) t(value) UNION ALL SELECT n_1.n FROM unnest(vs.needs) n_1(n)) n(id) WHERE NOT (EXISTS ( SELECT FROM millrace.done_attempts d WHERE d.run_id = r.id AND d.stage_id = n.id))));
view millrace.stage_health
  column at_once integer
  column batch_size integer
  column completed bigint
  column enabled boolean
  column failed bigint
  column in_backoff bigint
  column late bigint
  column live_workers bigint
  column max_workers integer
  column oldest_age interval
  column pipeline text
  column ready bigint
  column retries bigint
  column row_cpu_ms numeric
  column sla interval
  column stage text
  column started bigint
  column waiting bigint
  as  WITH moment AS MATERIALIZED ( SELECT millrace.now() AS now, millrace.alive_since() AS alive_since ), worker AS MATERIALIZED ( SELECT w_1.stage_id, count(*) AS n FROM millrace.workers w_1 WHERE w_1.left_at IS NULL AND w_1.heartbeat_at > (( SELECT m_1.alive_since FROM moment m_1)) GROUP BY w_1.stage_id ), pulse AS MATERIALIZED ( SELECT p_1.stage_id, sum(p_1.n) FILTER (WHERE p_1.outcome = 'completed'::text) AS completed, sum(p_1.n) FILTER (WHERE p_1.outcome = 'retried'::text) AS retried FROM ( SELECT o.stage_id, o.outcome, o.n FROM millrace.pulses o LIMIT 10000) p_1 GROUP BY p_1.stage_id ) SELECT p.name AS pipeline, s.name AS stage, s.enabled AND p.enabled AS enabled, c.ready, c.in_backoff, c.started, c.waiting, COALESCE(t.completed, 0::bigint) + COALESCE(u.completed, 0::bigint) AS completed, c.failed, COALESCE(t.retried, 0::bigint) + COALESCE(u.retried, 0::bigint) AS retries, CASE WHEN c.oldest_open_at <= m.now THEN m.now - c.oldest_open_at ELSE NULL::interval END AS oldest_age, COALESCE(w.n, 0::bigint) AS live_workers, s.sla, CASE WHEN s.sla IS NULL THEN 0::bigint ELSE COALESCE(l.late, 0::bigint) END AS late, x.at_once, x.batch_size, x.max_workers, x.row_cpu_ms FROM millrace.live_counts() c(stage_id, ready, in_backoff, started, waiting, failed, oldest_due_at, oldest_open_at) JOIN millrace.stages s ON s.id = c.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id CROSS JOIN moment m LEFT JOIN worker w ON w.stage_id = s.id LEFT JOIN millrace.totals t ON t.pipeline_id = s.pipeline_id AND t.stage_id = s.id LEFT JOIN pulse u ON u.stage_id = s.id LEFT JOIN millrace.late_counts() l(stage_id, late) ON l.stage_id = s.id LEFT JOIN LATERAL millrace.places_of(s.*) x(at_once, batch_size, max_workers, row_cpu_ms, row_memory, lives_cut) ON s.function_name IS NOT NULL ORDER BY p.name, s.id;
table millrace.stages
  column agent jsonb
  column apply text
  column batch_size integer not null
  column bypassed boolean not null default false
  column callback boolean not null default false
  column child jsonb
  column concurrency integer
  column counted boolean not null default false
  column counted_by_parent boolean not null default false
  column deadline interval
  column deadline_from text not null default 'start'::text
  column decision jsonb
  column enabled boolean not null default true
  column fan_in jsonb
  column function_name text
  column has_conditional_followers boolean not null default false
  column has_ends boolean not null default false
  column has_groups boolean not null default false
  column has_unchanged boolean not null default false
  column id integer not null generated always as identity
  column kind text not null
  column lease interval not null
  column limits jsonb
  column max_workers integer not null
  column name text not null
  column on_failure text not null
  column pipeline_id integer not null
  column poll_every interval
  column result_limit_bytes integer not null
  column retry jsonb not null
  column shows jsonb
  column sla interval
  column sla_changed_at timestamp with time zone
  column switched_line bigint
  column timeout interval not null
  column when_spent text not null default 'wait'::text
  constraint stages_batch_size_bounds CHECK (((batch_size >= 1) AND (batch_size <= 500)))
  constraint stages_concurrency_bounds CHECK (((concurrency >= 1) AND (concurrency <= 5000)))
  constraint stages_deadline_from_known CHECK ((deadline_from = ANY (ARRAY['submission'::text, 'start'::text])))
  constraint stages_kind_known CHECK ((kind = ANY (ARRAY['function'::text, 'external'::text, 'manual'::text, 'pipeline'::text, 'map'::text, 'agent'::text, 'gate'::text])))
  constraint stages_max_workers_bounds CHECK (((max_workers >= 1) AND (max_workers <= 1000)))
  constraint stages_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint stages_name_key UNIQUE (pipeline_id, name)
  constraint stages_on_failure_known CHECK ((on_failure = ANY (ARRAY['fail_run'::text, 'continue'::text])))
  constraint stages_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint stages_pkey PRIMARY KEY (id)
  constraint stages_when_spent_known CHECK ((when_spent = ANY (ARRAY['wait'::text, 'bypass'::text])))
  CREATE UNIQUE INDEX stages_name_key ON millrace.stages USING btree (pipeline_id, name)
  CREATE UNIQUE INDEX stages_pkey ON millrace.stages USING btree (id)
  CREATE TRIGGER stages_switched BEFORE UPDATE OF enabled ON millrace.stages FOR EACH ROW WHEN ((old.enabled IS DISTINCT FROM new.enabled)) EXECUTE FUNCTION millrace.note_switched()
sequence millrace.stages_id_seq
view millrace.status_moves
  column by text
  column drawn boolean
  column from_value text
  column means text
  column pipeline text
  column to_value text
  as  SELECT DISTINCT p.name AS pipeline, m.from_value, m.to_value, m.by, m.drawn, m.means FROM millrace.pipelines p JOIN millrace.version_moves m ON m.version_id = p.current_version_id AND NOT m.retired;
table millrace.status_values
  column category text not null
  column description text not null
  column is_terminal boolean not null
  column name text not null
  column pipeline_id integer not null
  column retired boolean not null default false
  column sort_order integer not null
  column value text not null
  constraint status_values_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint status_values_pkey PRIMARY KEY (pipeline_id, value)
  CREATE UNIQUE INDEX status_values_pkey ON millrace.status_values USING btree (pipeline_id, value)
view millrace.sum_faults
  column attempt_id bigint
  column children integer
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'the sums of a fan-out and its tallies are what its children came to'::text AS rule, f.run_id, f.attempt_id, format('fan-out %s: %s completed, %s failed, but %s and %s were counted'::text, f.id, c.completed, c.failed, f.completed + t.completed, f.failed + t.failed) AS detail, f.spawned AS children FROM millrace.fan_outs f CROSS JOIN LATERAL ( SELECT count(*) FILTER (WHERE r.status = 'completed'::millrace.run_status) AS completed, count(*) FILTER (WHERE r.status = 'failed'::millrace.run_status) AS failed FROM millrace.runs r WHERE r.fan_out_id = f.id) c CROSS JOIN LATERAL ( SELECT COALESCE(sum(t_1.completed), 0::bigint) AS completed, COALESCE(sum(t_1.failed), 0::bigint) AS failed, COALESCE(bool_or(t_1.recount), false) AS recount FROM millrace.child_tallies t_1 WHERE t_1.fan_out_id = f.id) t WHERE f.state = 'open'::text AND NOT t.recount AND (c.completed <> (f.completed + t.completed) OR c.failed <> (f.failed + t.failed));
table millrace.throttles
  column began_at timestamp with time zone not null
  column declared jsonb
  column limits jsonb not null
  column line bigint not null
  column reason text not null
  column stage_id integer not null
  column until timestamp with time zone not null
  constraint throttles_pkey PRIMARY KEY (stage_id)
  constraint throttles_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX throttles_pkey ON millrace.throttles USING btree (stage_id)
view millrace.told_figures
  column n bigint
  column outcome text
  column pipeline_id integer
  column stage_id integer
  as  SELECT t.pipeline_id, t.stage_id, o.outcome, o.n FROM millrace.totals t CROSS JOIN LATERAL ( VALUES ('completed'::text,t.completed), ('ended'::text,t.ended), ('failed'::text,t.failed), ('retried'::text,t.retried), ('skipped'::text,t.skipped), ('cancelled'::text,t.cancelled), ('copied'::text,t.copied), ('removed'::text,t.removed)) o(outcome, n) UNION ALL SELECT p.pipeline_id, p.stage_id, p.outcome, p.n FROM millrace.pulses p;
table millrace.totals with (fillfactor=50)
  column cancelled bigint not null default 0
  column codes jsonb
  column completed bigint not null default 0
  column copied bigint not null default 0
  column cost_usd numeric not null default 0
  column ended bigint not null default 0
  column failed bigint not null default 0
  column input_tokens numeric not null default 0
  column output_tokens numeric not null default 0
  column pipeline_id integer not null
  column r0 bigint not null default 0
  column r1 bigint not null default 0
  column r10 bigint not null default 0
  column r11 bigint not null default 0
  column r12 bigint not null default 0
  column r13 bigint not null default 0
  column r14 bigint not null default 0
  column r15 bigint not null default 0
  column r2 bigint not null default 0
  column r3 bigint not null default 0
  column r4 bigint not null default 0
  column r5 bigint not null default 0
  column r6 bigint not null default 0
  column r7 bigint not null default 0
  column r8 bigint not null default 0
  column r9 bigint not null default 0
  column removed bigint not null default 0
  column retried bigint not null default 0
  column run_ms double precision not null default 0
  column skipped bigint not null default 0
  column stage_id integer not null
  column w0 bigint not null default 0
  column w1 bigint not null default 0
  column w10 bigint not null default 0
  column w11 bigint not null default 0
  column w12 bigint not null default 0
  column w13 bigint not null default 0
  column w14 bigint not null default 0
  column w15 bigint not null default 0
  column w2 bigint not null default 0
  column w3 bigint not null default 0
  column w4 bigint not null default 0
  column w5 bigint not null default 0
  column w6 bigint not null default 0
  column w7 bigint not null default 0
  column w8 bigint not null default 0
  column w9 bigint not null default 0
  column wait_ms double precision not null default 0
  constraint totals_pkey PRIMARY KEY (pipeline_id, stage_id)
  CREATE UNIQUE INDEX totals_pkey ON millrace.totals USING btree (pipeline_id, stage_id)
table millrace.turns
  column attempt_id bigint not null
  column call_id text
  column content jsonb not null
  column created_at timestamp with time zone not null
  column execution integer not null
  column kind text not null
  column run_id bigint not null
  column seq integer not null
  column stage_id integer not null
  column usage jsonb
  constraint turns_kind_known CHECK ((kind = ANY (ARRAY['model'::text, 'tool'::text])))
  constraint turns_pkey PRIMARY KEY (run_id, stage_id, execution, seq)
  CREATE UNIQUE INDEX turns_pkey ON millrace.turns USING btree (run_id, stage_id, execution, seq)
view millrace.unchanged_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a stage that takes its former result uses nothing, and has that result'::text AS rule, a.run_id, a.id AS attempt_id, 'stage '::text || a.stage_id AS detail FROM millrace.attempts a LEFT JOIN millrace.attempts o ON o.id = a.parent_id WHERE a.service = 'unchanged'::text AND a.job_id IS NULL AND (a.state <> 'completed'::millrace.attempt_state OR a.usage IS NOT NULL OR a.input_hash IS NULL OR a.parent_id IS NULL OR o.output IS DISTINCT FROM a.output AND o.id IS NOT NULL);
table millrace.version_moves
  column at_stage_id integer
  column by text not null
  column declared boolean not null default false
  column drawn boolean not null default false
  column from_value text
  column means text not null
  column retired boolean not null default false
  column stage_id integer
  column to_value text not null
  column version_id integer not null
  constraint version_moves_by_known CHECK ((by = ANY (ARRAY['engine'::text, 'person'::text, 'call'::text])))
  constraint version_moves_version_fkey FOREIGN KEY (version_id) REFERENCES millrace.versions(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX version_moves_key ON millrace.version_moves USING btree (version_id, from_value, to_value, by, means, at_stage_id, stage_id) NULLS NOT DISTINCT
table millrace.version_stages
  column after jsonb not null default '[]'::jsonb
  column child_pipeline_id integer
  column dependents integer[] not null
  column ends jsonb
  column given_path jsonpath
  column is_sink boolean not null
  column needs integer[] not null
  column on_demand boolean not null default false
  column otherwise text
  column position integer not null
  column stage_id integer not null
  column unchanged_path jsonpath
  column unconditional boolean not null
  column version_id integer not null
  column when_path jsonpath
  constraint version_stages_pkey PRIMARY KEY (version_id, stage_id)
  constraint version_stages_stage_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  constraint version_stages_version_fkey FOREIGN KEY (version_id) REFERENCES millrace.versions(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX version_stages_pkey ON millrace.version_stages USING btree (version_id, stage_id)
table millrace.versions
  column created_at timestamp with time zone not null default millrace.now()
  column graph jsonb not null
  column id integer not null generated always as identity
  column number integer not null
  column pipeline_id integer not null
  constraint versions_number_key UNIQUE (pipeline_id, number)
  constraint versions_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint versions_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX versions_number_key ON millrace.versions USING btree (pipeline_id, number)
  CREATE UNIQUE INDEX versions_pkey ON millrace.versions USING btree (id)
sequence millrace.versions_id_seq
table millrace.wake_ups
  column id bigint not null generated always as identity
  column stage_id integer not null
  column woken_at timestamp with time zone not null
  constraint wake_ups_pkey PRIMARY KEY (id)
  CREATE INDEX wake_ups_by_stage ON millrace.wake_ups USING btree (stage_id, woken_at)
  CREATE UNIQUE INDEX wake_ups_pkey ON millrace.wake_ups USING btree (id)
sequence millrace.wake_ups_id_seq
type millrace.work
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
  column was millrace.attempt_state
table millrace.workers with (fillfactor=50)
  column heartbeat_at timestamp with time zone not null
  column held integer not null default 0
  column host uuid not null
  column id uuid not null
  column last_seq integer not null default 0
  column last_token uuid
  column leave_tries smallint not null default 0
  column left_at timestamp with time zone
  column signed_on_at timestamp with time zone not null
  column stage_id integer not null
  column taken integer not null default 0
  constraint workers_pkey PRIMARY KEY (id)
  CREATE INDEX workers_live ON millrace.workers USING btree (stage_id) WHERE ((left_at IS NULL) OR (held > 0))
  CREATE UNIQUE INDEX workers_pkey ON millrace.workers USING btree (id)
type millrace.written
  column dirty boolean
  column entity_id text
  column status text
view public.article_backlog with (security_invoker=true)
  column articles bigint
  column category text
  column code smallint
  column more boolean
  column name text
  column oldest_id uuid
  column oldest_since timestamp with time zone
  as  WITH asked AS ( SELECT ( SELECT is_curator() AS is_curator) OR CURRENT_USER <> 'authenticated'::name AS for_all ), seen AS ( SELECT q.id, q.status_code, q.status_changed_at, q.place FROM asked a JOIN ( SELECT DISTINCT k.code / 10 AS step FROM status_lookup k) s ON a.for_all CROSS JOIN LATERAL ( SELECT f.id, f.status_code, f.status_changed_at, row_number() OVER () AS place FROM ( SELECT e.id, e.status_code, e.status_changed_at FROM ingestion_queue e WHERE e.status_step >= s.step AND e.status_step <= s.step ORDER BY e.status_step, e.created_at LIMIT 1001) f) q UNION ALL SELECT q.id, q.status_code, q.status_changed_at, q.place FROM asked a CROSS JOIN LATERAL ( SELECT e.id, e.status_code, e.status_changed_at, row_number() OVER () AS place FROM ingestion_queue e WHERE e.added_by = (( SELECT auth.uid() AS uid)) LIMIT 1001) q WHERE NOT a.for_all ), counted AS ( SELECT s.id, s.status_code, s.status_changed_at, s.place, max(s.place) OVER (PARTITION BY (s.status_code / 10)) > 1000 AS more FROM seen s ) SELECT l.code, l.name, l.category, count(*) AS articles, min(c.status_changed_at) AS oldest_since, (array_agg(c.id ORDER BY c.status_changed_at, c.id))[1] AS oldest_id, bool_or(c.more) AS more FROM counted c JOIN status_lookup l ON l.code = c.status_code WHERE c.place <= 1000 GROUP BY l.code;
  grant select to authenticated
  grant select to service_role
table public.article_fingerprint row level security
  column fingerprint text not null
  column queue_id uuid not null
  constraint article_fingerprint_pkey PRIMARY KEY (fingerprint)
  constraint article_fingerprint_queue_fkey FOREIGN KEY (queue_id) REFERENCES ingestion_queue(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
  CREATE INDEX article_fingerprint_by_article ON public.article_fingerprint USING btree (queue_id)
  CREATE UNIQUE INDEX article_fingerprint_pkey ON public.article_fingerprint USING btree (fingerprint)
  grant select to service_role
view public.article_ready with (security_invoker=true)
  column id uuid
  column name text
  column ready_since timestamp with time zone
  column status_code smallint
  column title text
  column url text
  as  SELECT q.id, q.status_code, l.name, q.title, q.url, q.status_changed_at AS ready_since FROM ingestion_queue q JOIN status_lookup l ON l.code = q.status_code WHERE (q.status_step = ANY (ARRAY[11, 12, 21, 22, 23, 33])) AND (q.status_code = ANY (ARRAY[110, 120, 210, 220, 230, 330]));
  grant select to authenticated
  grant select to service_role
view public.article_state_times with (security_invoker=true)
  column code smallint
  column left_it bigint
  column longest_ms bigint
  column name text
  column p50_ms double precision
  column p95_ms double precision
  as  SELECT l.code, l.name, count(*) AS left_it, percentile_cont(0.5::double precision) WITHIN GROUP (ORDER BY (h.duration_ms::double precision)) AS p50_ms, percentile_cont(0.95::double precision) WITHIN GROUP (ORDER BY (h.duration_ms::double precision)) AS p95_ms, max(h.duration_ms) AS longest_ms FROM status_history h JOIN status_lookup l ON l.code = h.from_status WHERE h.changed_at > ((( SELECT max(n.changed_at) AS max FROM status_history n)) - '7 days'::interval) GROUP BY l.code;
  grant select to authenticated
  grant select to service_role
view public.book_costs with (security_invoker=true)
  column account_id uuid
  column books bigint
  column completed bigint
  column cost_usd numeric
  as  SELECT account_id, count(*) AS books, count(*) FILTER (WHERE assemble_status = 'completed'::text) AS completed, millrace_evidence.entity_costs('books'::text, array_agg(id::text)) AS cost_usd FROM books e GROUP BY account_id;
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
  CREATE TRIGGER millrace_books_deleted AFTER DELETE ON public.books REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.books__deleted()
  CREATE TRIGGER millrace_books_inserted AFTER INSERT ON public.books REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.books__intake()
  CREATE TRIGGER millrace_books_key BEFORE UPDATE OF id ON public.books FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.books__key()
  CREATE TRIGGER millrace_books_truncated AFTER TRUNCATE ON public.books FOR EACH STATEMENT EXECUTE FUNCTION millrace.books__deleted()
  CREATE TRIGGER millrace_books_updated AFTER UPDATE ON public.books REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.books__intake()
  CREATE TRIGGER millrace_toc_deleted AFTER DELETE ON public.books REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.toc__deleted()
  CREATE TRIGGER millrace_toc_key BEFORE UPDATE OF id ON public.books FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.toc__key()
  CREATE TRIGGER millrace_toc_truncated AFTER TRUNCATE ON public.books FOR EACH STATEMENT EXECUTE FUNCTION millrace.toc__deleted()
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
  CREATE TRIGGER millrace_chunks_deleted AFTER DELETE ON public.chunk REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.chunks__deleted()
  CREATE TRIGGER millrace_chunks_key BEFORE UPDATE OF id ON public.chunk FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.chunks__key()
  CREATE TRIGGER millrace_chunks_truncated AFTER TRUNCATE ON public.chunk FOR EACH STATEMENT EXECUTE FUNCTION millrace.chunks__deleted()
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
table public.companies row level security
  column created_at timestamp with time zone not null default now()
  column id bigint not null generated always as identity
  column linkedin_url text
  column name text not null
  column name_key text not null generated as company_key(name)
  column sector text
  column size text
  column updated_at timestamp with time zone not null default now()
  column website text
  constraint companies_name_key UNIQUE (name_key)
  constraint companies_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX companies_name_key ON public.companies USING btree (name_key)
  CREATE UNIQUE INDEX companies_pkey ON public.companies USING btree (id)
  grant delete, insert, select, update to service_role
sequence public.companies_id_seq
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
  CREATE TRIGGER millrace_document_monolith_deleted AFTER DELETE ON public.document REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.document_monolith__deleted()
  CREATE TRIGGER millrace_document_monolith_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.document_monolith__intake()
  CREATE TRIGGER millrace_document_monolith_key BEFORE UPDATE OF id ON public.document FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.document_monolith__key()
  CREATE TRIGGER millrace_document_monolith_truncated AFTER TRUNCATE ON public.document FOR EACH STATEMENT EXECUTE FUNCTION millrace.document_monolith__deleted()
  CREATE TRIGGER millrace_document_monolith_updated AFTER UPDATE ON public.document REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.document_monolith__intake()
  CREATE TRIGGER millrace_documents_deleted AFTER DELETE ON public.document REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.documents__deleted()
  CREATE TRIGGER millrace_documents_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.documents__intake()
  CREATE TRIGGER millrace_documents_key BEFORE UPDATE OF id ON public.document FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.documents__key()
  CREATE TRIGGER millrace_documents_truncated AFTER TRUNCATE ON public.document FOR EACH STATEMENT EXECUTE FUNCTION millrace.documents__deleted()
  CREATE TRIGGER millrace_documents_updated AFTER UPDATE ON public.document REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.documents__intake()
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
table public.ingestion_queue with (fillfactor=70) row level security
  column added_by uuid default auth.uid()
  column author text
  column canonical_url text
  column charged_to text generated as (COALESCE(added_by, id))::text
  column content text
  column created_at timestamp with time zone not null default now()
  column duplicate_of uuid
  column entered_as text not null
  column entry_type text not null default 'discovered'::text
  column id uuid not null default gen_random_uuid()
  column image_url text
  column is_copy boolean not null default false
  column language text
  column let_in boolean not null default true
  column no_duplicate boolean not null default false
  column published_at timestamp with time zone
  column revision integer not null default 0
  column score real
  column source_id uuid
  column status text
  column status_changed_at timestamp with time zone not null default now()
  column status_changes jsonb
  column status_code smallint
  column status_step smallint generated as (status_code / 10)
  column summary text
  column tags text[]
  column text_fingerprint text
  column thumbnail_url text
  column title text
  column topic_id uuid
  column url text
  column url_fingerprint text
  constraint ingestion_queue_author_length CHECK (((COALESCE(octet_length(author), 0) <= 1000) OR too_long('author'::text, (octet_length(author))::bigint, (1000)::bigint)))
  constraint ingestion_queue_canonical_url_length CHECK (((COALESCE(octet_length(canonical_url), 0) <= 2048) OR too_long('canonical_url'::text, (octet_length(canonical_url))::bigint, (2048)::bigint)))
  constraint ingestion_queue_content_length CHECK (((COALESCE(octet_length(content), 0) <= 1000000) OR too_long('content'::text, (octet_length(content))::bigint, (1000000)::bigint)))
  constraint ingestion_queue_duplicate_fkey FOREIGN KEY (duplicate_of) REFERENCES ingestion_queue(id) ON DELETE SET NULL
  constraint ingestion_queue_entered_as_known CHECK ((entered_as = ANY (ARRAY['discovered'::text, 'manual'::text, 'import'::text])))
  constraint ingestion_queue_entry_type_known CHECK ((entry_type = ANY (ARRAY['discovered'::text, 'manual'::text, 'import'::text, 'retry'::text])))
  constraint ingestion_queue_image_url_length CHECK (((COALESCE(octet_length(image_url), 0) <= 2048) OR too_long('image_url'::text, (octet_length(image_url))::bigint, (2048)::bigint)))
  constraint ingestion_queue_language_length CHECK (((COALESCE(octet_length(language), 0) <= 1000) OR too_long('language'::text, (octet_length(language))::bigint, (1000)::bigint)))
  constraint ingestion_queue_pkey PRIMARY KEY (id)
  constraint ingestion_queue_source_fkey FOREIGN KEY (source_id) REFERENCES source(id) ON DELETE SET NULL
  constraint ingestion_queue_summary_length CHECK (((COALESCE(octet_length(summary), 0) <= 8000) OR too_long('summary'::text, (octet_length(summary))::bigint, (8000)::bigint)))
  constraint ingestion_queue_tags_length CHECK (((COALESCE(octet_length((tags)::text), 0) <= 4000) OR too_long('tags'::text, (octet_length((tags)::text))::bigint, (4000)::bigint)))
  constraint ingestion_queue_thumbnail_form CHECK (((thumbnail_url !~* '^\s*[a-z][a-z0-9+.-]*:'::text) OR (thumbnail_url ~* '^https?://'::text)))
  constraint ingestion_queue_thumbnail_length CHECK (((COALESCE(octet_length(thumbnail_url), 0) <= 2048) OR too_long('thumbnail_url'::text, (octet_length(thumbnail_url))::bigint, (2048)::bigint)))
  constraint ingestion_queue_title_length CHECK (((COALESCE(octet_length(title), 0) <= 1000) OR too_long('title'::text, (octet_length(title))::bigint, (1000)::bigint)))
  constraint ingestion_queue_topic_fkey FOREIGN KEY (topic_id) REFERENCES topic(id) ON DELETE SET NULL
  constraint ingestion_queue_url_form CHECK ((url ~* '^https?://[^\s/]'::text))
  constraint ingestion_queue_url_length CHECK (((COALESCE(octet_length(url), 0) <= 2048) OR too_long('url'::text, (octet_length(url))::bigint, (2048)::bigint)))
  CREATE INDEX ingestion_queue_by_source ON public.ingestion_queue USING btree (source_id) WHERE (source_id IS NOT NULL)
  CREATE INDEX ingestion_queue_by_step ON public.ingestion_queue USING btree (status_step, created_at)
  CREATE INDEX ingestion_queue_by_time ON public.ingestion_queue USING btree (created_at)
  CREATE INDEX ingestion_queue_by_user ON public.ingestion_queue USING btree (added_by) WHERE (added_by IS NOT NULL)
  CREATE INDEX ingestion_queue_copies ON public.ingestion_queue USING btree (duplicate_of) WHERE (duplicate_of IS NOT NULL)
  CREATE UNIQUE INDEX ingestion_queue_pkey ON public.ingestion_queue USING btree (id)
  CREATE UNIQUE INDEX ingestion_queue_text_key ON public.ingestion_queue USING btree (text_fingerprint) WHERE (text_fingerprint IS NOT NULL)
  CREATE UNIQUE INDEX ingestion_queue_url_key ON public.ingestion_queue USING btree (url_fingerprint) WHERE (url_fingerprint IS NOT NULL)
  CREATE TRIGGER ingestion_queue_1_edit BEFORE UPDATE OF title, summary, tags, thumbnail_url ON public.ingestion_queue FOR EACH ROW WHEN (((old.title IS DISTINCT FROM new.title) OR (old.summary IS DISTINCT FROM new.summary) OR (old.tags IS DISTINCT FROM new.tags) OR (old.thumbnail_url IS DISTINCT FROM new.thumbnail_url))) EXECUTE FUNCTION edit_article()
  CREATE TRIGGER ingestion_queue_2_fetch BEFORE UPDATE OF status_code ON public.ingestion_queue FOR EACH ROW WHEN (((new.status_code = 110) AND (new.url IS NULL) AND (old.status_code <> ALL (ARRAY[100, 110, 111, 200])))) EXECUTE FUNCTION refuse_fetch()
  CREATE TRIGGER ingestion_queue_2_move BEFORE UPDATE OF status_code ON public.ingestion_queue FOR EACH ROW WHEN (((old.status_code IS DISTINCT FROM new.status_code) AND (((320 = old.status_code) OR (320 = new.status_code)) OR (old.status_code >= 500) OR (old.status_changes IS NOT NULL)))) EXECUTE FUNCTION move_article()
  CREATE TRIGGER ingestion_queue_3_entered BEFORE UPDATE OF entered_as ON public.ingestion_queue FOR EACH ROW WHEN ((old.entered_as IS DISTINCT FROM new.entered_as)) EXECUTE FUNCTION keep_article()
  CREATE TRIGGER ingestion_queue_4_delete BEFORE DELETE ON public.ingestion_queue FOR EACH ROW WHEN ((old.status_code = ANY (ARRAY[310, 320]))) EXECUTE FUNCTION keep_article()
  CREATE TRIGGER ingestion_queue_5_approve BEFORE UPDATE OF status_code ON public.ingestion_queue FOR EACH ROW WHEN (((old.status_code = ANY (ARRAY[310, 320])) AND (new.status_code = 330) AND (COALESCE(btrim(new.title), ''::text) = ''::text))) EXECUTE FUNCTION approve_article()
  CREATE TRIGGER ingestion_queue_6_let_in BEFORE UPDATE OF status_code ON public.ingestion_queue FOR EACH ROW WHEN (((new.status_code = 330) AND (NOT old.let_in))) EXECUTE FUNCTION let_article_in()
  CREATE TRIGGER ingestion_queue_claims AFTER INSERT ON public.ingestion_queue FOR EACH STATEMENT EXECUTE FUNCTION check_claims()
  CREATE TRIGGER ingestion_queue_enter BEFORE INSERT ON public.ingestion_queue FOR EACH ROW EXECUTE FUNCTION enter_article()
  CREATE TRIGGER ingestion_queue_withdraw AFTER UPDATE OF status_code ON public.ingestion_queue FOR EACH ROW WHEN (((old.status_code = ANY (ARRAY[400, 410])) AND (new.status_code = 300))) EXECUTE FUNCTION withdraw_article()
  CREATE TRIGGER millrace_articles_begun BEFORE INSERT ON public.ingestion_queue FOR EACH ROW WHEN ((new.status_code IS NOT NULL)) EXECUTE FUNCTION millrace.articles__since()
  CREATE TRIGGER millrace_articles_deleted AFTER DELETE ON public.ingestion_queue REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.articles__deleted()
  CREATE TRIGGER millrace_articles_inserted AFTER INSERT ON public.ingestion_queue REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.articles__intake()
  CREATE TRIGGER millrace_articles_key BEFORE UPDATE OF id ON public.ingestion_queue FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.articles__key()
  CREATE TRIGGER millrace_articles_since BEFORE UPDATE ON public.ingestion_queue FOR EACH ROW WHEN ((((old.status_code IS DISTINCT FROM new.status_code) OR (old.status_changed_at IS DISTINCT FROM new.status_changed_at)) AND ((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text))))) EXECUTE FUNCTION millrace.articles__since()
  CREATE TRIGGER millrace_articles_truncated AFTER TRUNCATE ON public.ingestion_queue FOR EACH STATEMENT EXECUTE FUNCTION millrace.articles__deleted()
  CREATE TRIGGER millrace_articles_updated AFTER UPDATE ON public.ingestion_queue REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.articles__intake()
  policy article_added permissive insert to authenticated with check ((added_by = ( SELECT auth.uid() AS uid)) AND (entered_as = ANY (
CASE
    WHEN ( SELECT is_curator() AS is_curator) THEN ARRAY['manual'::text, 'import'::text]
    ELSE ARRAY['manual'::text]
END)))
  policy article_decided permissive update to authenticated using ( SELECT is_curator() AS is_curator) with check ( SELECT is_curator() AS is_curator)
  policy article_removed permissive delete to authenticated using ( SELECT is_curator() AS is_curator)
  policy article_seen permissive select to authenticated using (( SELECT is_curator() AS is_curator) OR (added_by = ( SELECT auth.uid() AS uid)))
  grant delete, insert, select, update to service_role
  grant delete, select to authenticated
  grant insert (author) to authenticated
  grant insert (content) to authenticated
  grant insert (entry_type) to authenticated
  grant insert (id) to authenticated
  grant insert (image_url) to authenticated
  grant insert (language) to authenticated
  grant insert (published_at) to authenticated
  grant insert (url) to authenticated
  grant insert, update (status_code) to authenticated
  grant insert, update (summary) to authenticated
  grant insert, update (tags) to authenticated
  grant insert, update (thumbnail_url) to authenticated
  grant insert, update (title) to authenticated
  grant update (duplicate_of) to authenticated
table public.jobs row level security
  column application_url text
  column company_id bigint
  column created_at timestamp with time zone not null default now()
  column id bigint not null generated always as identity
  column jd text
  column link_id bigint
  column location text
  column salary text
  column title text not null
  column updated_at timestamp with time zone not null default now()
  column valid_through timestamp with time zone
  constraint jobs_company_fkey FOREIGN KEY (company_id) REFERENCES companies(id)
  constraint jobs_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE SET NULL
  constraint jobs_link_key UNIQUE (link_id)
  constraint jobs_pkey PRIMARY KEY (id)
  CREATE INDEX jobs_by_company ON public.jobs USING btree (company_id)
  CREATE UNIQUE INDEX jobs_link_key ON public.jobs USING btree (link_id)
  CREATE UNIQUE INDEX jobs_pkey ON public.jobs USING btree (id)
  grant delete, insert, select, update to service_role
sequence public.jobs_id_seq
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
  as  SELECT account_id, count(*) AS leads, count(*) FILTER (WHERE messaging_status = 'completed'::text) AS completed, millrace_evidence.entity_costs('leads'::text, array_agg(id::text)) AS cost_usd FROM leads e GROUP BY account_id;
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
  CREATE TRIGGER millrace_leads_deleted AFTER DELETE ON public.leads REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.leads__deleted()
  CREATE TRIGGER millrace_leads_inserted AFTER INSERT ON public.leads REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.leads__intake()
  CREATE TRIGGER millrace_leads_key BEFORE UPDATE OF id ON public.leads FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.leads__key()
  CREATE TRIGGER millrace_leads_truncated AFTER TRUNCATE ON public.leads FOR EACH STATEMENT EXECUTE FUNCTION millrace.leads__deleted()
  CREATE TRIGGER millrace_leads_updated AFTER UPDATE ON public.leads REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.leads__intake()
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
table public.link_events row level security
  column at timestamp with time zone not null
  column event text not null
  column id bigint not null generated always as identity
  column link_id bigint not null
  column trace_id uuid not null
  constraint link_events_event_known CHECK ((event = ANY (ARRAY['link.new'::text, 'link.classified'::text, 'raw.persisted'::text, 'staged.persisted'::text])))
  constraint link_events_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE CASCADE
  constraint link_events_pkey PRIMARY KEY (id)
  CREATE INDEX link_events_by_link ON public.link_events USING btree (link_id, id)
  CREATE UNIQUE INDEX link_events_pkey ON public.link_events USING btree (id)
  grant select to service_role
sequence public.link_events_id_seq
table public.link_history row level security
  column changed_at timestamp with time zone not null
  column changed_by text not null
  column changes jsonb
  column duration_ms bigint
  column from_status text
  column id bigint not null generated always as identity
  column link_id bigint not null
  column to_status text not null
  constraint link_history_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE CASCADE
  constraint link_history_pkey PRIMARY KEY (id)
  CREATE INDEX link_history_by_link ON public.link_history USING btree (link_id, id)
  CREATE UNIQUE INDEX link_history_pkey ON public.link_history USING btree (id)
  grant select to service_role
sequence public.link_history_id_seq
table public.link_page_drafts row level security
  column fetched_at timestamp with time zone not null default millrace.now()
  column fingerprint_hash text not null
  column http_status smallint not null
  column job_id text not null
  column link_id bigint not null
  column notes jsonb not null default '{}'::jsonb
  column raw_html bytea not null
  column raw_json jsonb not null
  constraint link_page_drafts_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE CASCADE
  constraint link_page_drafts_pkey PRIMARY KEY (link_id, job_id)
  CREATE INDEX link_page_drafts_by_age ON public.link_page_drafts USING btree (fetched_at)
  CREATE UNIQUE INDEX link_page_drafts_pkey ON public.link_page_drafts USING btree (link_id, job_id)
  grant delete, select to service_role
view public.link_queues with (security_invoker=true)
  column in_backoff bigint
  column in_work bigint
  column oldest_due_at timestamp with time zone
  column queue text
  column ready bigint
  as  SELECT queue, ready, in_backoff, in_work, oldest_due_at FROM millrace_evidence.link_queues() q(place, queue, ready, in_backoff, in_work, oldest_due_at) ORDER BY place;
  grant select to service_role
table public.link_sources row level security
  column address text not null
  column column_name text
  column created_at timestamp with time zone not null default now()
  column cursor jsonb
  column enabled boolean not null default true
  column every interval not null default '04:00:00'::interval
  column found integer not null default 0
  column id uuid not null default gen_random_uuid()
  column kind text not null
  column last_error text
  column last_polled_at timestamp with time zone
  column next_poll_at timestamp with time zone
  constraint link_sources_address_key UNIQUE NULLS NOT DISTINCT (address, column_name)
  constraint link_sources_address_length CHECK (((octet_length(address) >= 1) AND (octet_length(address) <= 2048)))
  constraint link_sources_column_length CHECK (((octet_length(column_name) >= 1) AND (octet_length(column_name) <= 500)))
  constraint link_sources_every_bounds CHECK (((every >= '00:01:00'::interval) AND (every <= '31 days'::interval)))
  constraint link_sources_kind_known CHECK ((kind = ANY (ARRAY['sheet'::text, 'notion'::text])))
  constraint link_sources_pkey PRIMARY KEY (id)
  CREATE INDEX link_sources_by_next_poll ON public.link_sources USING btree (next_poll_at, id) WHERE (next_poll_at IS NOT NULL)
  CREATE UNIQUE INDEX link_sources_address_key ON public.link_sources USING btree (address, column_name) NULLS NOT DISTINCT
  CREATE UNIQUE INDEX link_sources_pkey ON public.link_sources USING btree (id)
  CREATE TRIGGER link_sources_prepare BEFORE INSERT OR UPDATE OF kind, address, column_name, enabled, next_poll_at ON public.link_sources FOR EACH ROW EXECUTE FUNCTION prepare_link_source()
  CREATE TRIGGER millrace_link_sources_deleted AFTER DELETE ON public.link_sources REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.link_sources__deleted()
  CREATE TRIGGER millrace_link_sources_key BEFORE UPDATE OF id ON public.link_sources FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.link_sources__key()
  CREATE TRIGGER millrace_link_sources_truncated AFTER TRUNCATE ON public.link_sources FOR EACH STATEMENT EXECUTE FUNCTION millrace.link_sources__deleted()
  grant delete, insert, select, update to service_role
table public.linkedin_jobs_raw row level security
  column fetched_at timestamp with time zone not null
  column fingerprint_hash text
  column http_status smallint not null
  column link_id bigint not null
  column notes jsonb not null default '{}'::jsonb
  column raw_html bytea
  column raw_json jsonb
  constraint linkedin_jobs_raw_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE CASCADE
  constraint linkedin_jobs_raw_pkey PRIMARY KEY (link_id)
  CREATE INDEX linkedin_jobs_raw_by_age ON public.linkedin_jobs_raw USING btree (fetched_at)
  CREATE UNIQUE INDEX linkedin_jobs_raw_pkey ON public.linkedin_jobs_raw USING btree (link_id)
  grant delete, insert, select, update to service_role
table public.linkedin_jobs_stage row level security
  column company text
  column description text
  column extras jsonb not null default '{}'::jsonb
  column link_id bigint not null
  column location text
  column processed_at timestamp with time zone not null
  column salary text
  column title text
  constraint linkedin_jobs_stage_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE CASCADE
  constraint linkedin_jobs_stage_pkey PRIMARY KEY (link_id)
  CREATE INDEX linkedin_jobs_stage_by_age ON public.linkedin_jobs_stage USING btree (processed_at)
  CREATE UNIQUE INDEX linkedin_jobs_stage_pkey ON public.linkedin_jobs_stage USING btree (link_id)
  grant delete, insert, select, update to service_role
table public.linkedin_links row level security
  column attempt_count integer not null default 0
  column canonical_url text not null generated as canonical_url(raw_url)
  column classification text
  column classified_by text
  column created_at timestamp with time zone not null default now()
  column finished_at timestamp with time zone
  column id bigint not null generated always as identity
  column last_error text
  column next_attempt_at timestamp with time zone
  column note jsonb
  column raw_url text not null
  column source text not null default 'manual'::text
  column source_id uuid
  column source_place text
  column status text not null default 'new'::text
  column status_since timestamp with time zone
  column trace_id uuid not null default gen_random_uuid()
  column updated_at timestamp with time zone not null default now()
  constraint linkedin_links_canonical_url_key UNIQUE (canonical_url)
  constraint linkedin_links_classification_known CHECK ((classification = ANY (ARRAY['job'::text, 'post'::text, 'unknown'::text])))
  constraint linkedin_links_classified_by_known CHECK ((classified_by = ANY (ARRAY['rule'::text, 'model'::text, 'person'::text])))
  constraint linkedin_links_pkey PRIMARY KEY (id)
  constraint linkedin_links_source_fkey FOREIGN KEY (source_id) REFERENCES link_sources(id) ON DELETE SET NULL
  constraint linkedin_links_source_known CHECK ((source = ANY (ARRAY['sheet'::text, 'notion'::text, 'manual'::text])))
  constraint linkedin_links_url_length CHECK (((octet_length(raw_url) >= 1) AND (octet_length(raw_url) <= 2048)))
  CREATE INDEX linkedin_links_by_source ON public.linkedin_links USING btree (source_id) WHERE (source_id IS NOT NULL)
  CREATE UNIQUE INDEX linkedin_links_canonical_url_key ON public.linkedin_links USING btree (canonical_url)
  CREATE UNIQUE INDEX linkedin_links_pkey ON public.linkedin_links USING btree (id)
  CREATE TRIGGER linkedin_links_address BEFORE UPDATE OF raw_url ON public.linkedin_links FOR EACH ROW WHEN ((new.raw_url IS DISTINCT FROM old.raw_url)) EXECUTE FUNCTION check_link_address()
  CREATE TRIGGER linkedin_links_begin_where_rows_are BEFORE UPDATE OF status ON public.linkedin_links FOR EACH ROW WHEN (((new.status = ANY (ARRAY['scraped'::text, 'staged'::text])) AND (old.status = ANY (ARRAY['error'::text, 'dead'::text, 'extracted'::text])) AND ((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text))))) EXECUTE FUNCTION begin_where_rows_are()
  CREATE TRIGGER linkedin_links_classifier BEFORE UPDATE OF classification ON public.linkedin_links FOR EACH ROW EXECUTE FUNCTION note_classifier()
  CREATE TRIGGER linkedin_links_classifier_first BEFORE INSERT ON public.linkedin_links FOR EACH ROW WHEN (((new.classification IS NOT NULL) OR (new.classified_by IS NOT NULL))) EXECUTE FUNCTION note_classifier()
  CREATE TRIGGER linkedin_links_new AFTER INSERT ON public.linkedin_links REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_new_links()
  CREATE TRIGGER linkedin_links_updated BEFORE UPDATE ON public.linkedin_links FOR EACH ROW EXECUTE FUNCTION note_link_update()
  CREATE TRIGGER millrace_links_begun BEFORE INSERT ON public.linkedin_links FOR EACH ROW WHEN ((new.status IS NOT NULL)) EXECUTE FUNCTION millrace.links__since()
  CREATE TRIGGER millrace_links_deleted AFTER DELETE ON public.linkedin_links REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.links__deleted()
  CREATE TRIGGER millrace_links_inserted AFTER INSERT ON public.linkedin_links REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.links__intake()
  CREATE TRIGGER millrace_links_key BEFORE UPDATE OF id ON public.linkedin_links FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.links__key()
  CREATE TRIGGER millrace_links_since BEFORE UPDATE ON public.linkedin_links FOR EACH ROW WHEN ((((old.status IS DISTINCT FROM new.status) OR (old.status_since IS DISTINCT FROM new.status_since)) AND ((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text))))) EXECUTE FUNCTION millrace.links__since()
  CREATE TRIGGER millrace_links_truncated AFTER TRUNCATE ON public.linkedin_links FOR EACH STATEMENT EXECUTE FUNCTION millrace.links__deleted()
  CREATE TRIGGER millrace_links_updated AFTER UPDATE ON public.linkedin_links REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.links__intake()
  grant delete, insert, select, update to service_role
sequence public.linkedin_links_id_seq
table public.linkedin_posts_raw row level security
  column fetched_at timestamp with time zone not null
  column fingerprint_hash text
  column http_status smallint not null
  column link_id bigint not null
  column notes jsonb not null default '{}'::jsonb
  column raw_html bytea
  column raw_json jsonb
  constraint linkedin_posts_raw_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE CASCADE
  constraint linkedin_posts_raw_pkey PRIMARY KEY (link_id)
  CREATE INDEX linkedin_posts_raw_fetched_at_idx ON public.linkedin_posts_raw USING btree (fetched_at)
  CREATE UNIQUE INDEX linkedin_posts_raw_pkey ON public.linkedin_posts_raw USING btree (link_id)
  grant delete, insert, select, update to service_role
table public.linkedin_posts_stage row level security
  column author text
  column extras jsonb not null default '{}'::jsonb
  column language text
  column link_id bigint not null
  column processed_at timestamp with time zone not null
  column text text
  constraint linkedin_posts_stage_link_fkey FOREIGN KEY (link_id) REFERENCES linkedin_links(id) ON DELETE CASCADE
  constraint linkedin_posts_stage_pkey PRIMARY KEY (link_id)
  CREATE INDEX linkedin_posts_stage_by_age ON public.linkedin_posts_stage USING btree (processed_at)
  CREATE UNIQUE INDEX linkedin_posts_stage_pkey ON public.linkedin_posts_stage USING btree (link_id)
  grant delete, insert, select, update to service_role
table public.millrace_decisions row level security
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
  constraint millrace_decisions_apply TRIGGER DEFERRABLE INITIALLY DEFERRED
  constraint millrace_decisions_pkey PRIMARY KEY (attempt_id)
  CREATE INDEX millrace_decisions_by_entity ON public.millrace_decisions USING btree (entity_id)
  CREATE INDEX millrace_decisions_by_run ON public.millrace_decisions USING btree (run_id)
  CREATE INDEX millrace_decisions_open ON public.millrace_decisions USING btree (attempt_id) WHERE (closed_at IS NULL)
  CREATE UNIQUE INDEX millrace_decisions_pkey ON public.millrace_decisions USING btree (attempt_id)
  CREATE CONSTRAINT TRIGGER millrace_decisions_apply AFTER UPDATE ON public.millrace_decisions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.decided_at IS NULL) AND (new.decided_at IS NOT NULL))) EXECUTE FUNCTION millrace.apply_decisions()
  CREATE TRIGGER millrace_decisions_check BEFORE UPDATE OF decision ON public.millrace_decisions FOR EACH ROW EXECUTE FUNCTION millrace.check_answer()
  CREATE TRIGGER millrace_decisions_take AFTER UPDATE ON public.millrace_decisions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.take_answers()
  policy articles_answered permissive update to authenticated using ((pipeline = 'articles'::text) AND ( SELECT is_curator() AS is_curator))
  policy articles_asked permissive select to authenticated using ((pipeline = 'articles'::text) AND ( SELECT is_curator() AS is_curator))
  policy decide_on_own_books permissive update to authenticated using ((pipeline = 'books'::text) AND (EXISTS ( SELECT
   FROM books b
  WHERE ((b.id)::text = millrace_decisions.entity_id))))
  policy decisions_of_own_books permissive select to authenticated using ((pipeline = 'books'::text) AND (EXISTS ( SELECT
   FROM books b
  WHERE ((b.id)::text = millrace_decisions.entity_id))))
  grant select to authenticated
  grant select to service_role
  grant update (decision) to authenticated
  grant update (decision) to service_role
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
  CREATE TRIGGER millrace_pages_deleted AFTER DELETE ON public.pages REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.pages__deleted()
  CREATE TRIGGER millrace_pages_inserted AFTER INSERT ON public.pages REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.pages__intake()
  CREATE TRIGGER millrace_pages_key BEFORE UPDATE OF id ON public.pages FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.pages__key()
  CREATE TRIGGER millrace_pages_truncated AFTER TRUNCATE ON public.pages FOR EACH STATEMENT EXECUTE FUNCTION millrace.pages__deleted()
  CREATE TRIGGER millrace_pages_updated AFTER UPDATE ON public.pages REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.pages__intake()
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
  as  SELECT d.id, d.id AS document_id, j.current_phase, j.status, j.metadata, j.created_at, j.started_at, j.completed_at, j.updated_at, j.run_id, j.trace_id, j.pipeline FROM document d CROSS JOIN LATERAL millrace_evidence.document_job(d.id) j(run_id, trace_id, pipeline, current_phase, status, metadata, created_at, started_at, completed_at, updated_at);
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
  as  SELECT f.id, d.id AS pipeline_job_id, f.phase, f.status, l.input_location, CASE WHEN f.status = 'completed'::text THEN l.output_location ELSE NULL::text END AS output_location, f.error ->> 'message'::text AS error_message, f.error ->> 'code'::text AS error_type, f.retry_count, f.parent_phase_id, f.metadata, f.queued_at, f.started_at, f.completed_at, f.run_id, f.pipeline FROM document d CROSS JOIN LATERAL millrace_evidence.document_phases(d.id) f(id, run_id, pipeline, phase, status, output, error, retry_count, parent_phase_id, metadata, queued_at, started_at, completed_at) CROSS JOIN LATERAL ( SELECT CASE WHEN f.phase = ANY (ARRAY['extraction'::text, 'monolith'::text]) THEN 'documents/'::text || d.source_path WHEN f.phase = 'chunking'::text THEN ('extracted_text/'::text || d.id) || '.txt'::text WHEN f.phase = 'kg_ingest'::text THEN 'chunk?document_id=eq.'::text || d.id ELSE NULL::text END AS input_location, CASE WHEN f.phase = 'extraction'::text THEN f.output ->> 'text_location'::text WHEN f.phase = 'chunking'::text THEN f.output ->> 'output_location'::text WHEN f.phase = ANY (ARRAY['kg_ingest'::text, 'monolith'::text]) THEN 'kg_edge?select=*,chunk!inner(document_id)&chunk.document_id=eq.'::text || d.id ELSE NULL::text END AS output_location) l;
  grant select to authenticated
  grant select to service_role
table public.publication row level security
  column id uuid not null default gen_random_uuid()
  column published_at timestamp with time zone not null default now()
  column queue_id uuid not null
  column slug text not null
  column summary text
  column tags text[] not null default '{}'::text[]
  column thumbnail_url text
  column title text not null
  column updated_at timestamp with time zone not null default now()
  column url text
  constraint publication_pkey PRIMARY KEY (id)
  constraint publication_queue_fkey FOREIGN KEY (queue_id) REFERENCES ingestion_queue(id) ON DELETE CASCADE
  constraint publication_queue_key UNIQUE (queue_id)
  constraint publication_slug_key UNIQUE (slug)
  CREATE INDEX publication_by_time ON public.publication USING btree (published_at)
  CREATE UNIQUE INDEX publication_pkey ON public.publication USING btree (id)
  CREATE UNIQUE INDEX publication_queue_key ON public.publication USING btree (queue_id)
  CREATE UNIQUE INDEX publication_slug_key ON public.publication USING btree (slug)
  CREATE TRIGGER publication_keep BEFORE DELETE ON public.publication FOR EACH ROW EXECUTE FUNCTION keep_publication()
  CREATE TRIGGER publication_remove AFTER DELETE ON public.publication FOR EACH ROW EXECUTE FUNCTION remove_publication()
  policy published permissive select to anon, authenticated using true
  grant delete, insert, select, update to service_role
  grant select to anon
  grant select to authenticated
view public.publication_edit_history with (security_invoker=true)
  column changed_at timestamp with time zone
  column changed_by text
  column field_changes jsonb
  column history_id uuid
  column publication_id uuid
  column queue_id uuid
  as  SELECT p.id AS publication_id, h.queue_id, h.id AS history_id, h.changed_at, h.changed_by, h.changes AS field_changes FROM status_history h JOIN publication p ON p.queue_id = h.queue_id WHERE h.from_status = 320 AND h.to_status = 410 AND h.changes IS NOT NULL;
  grant select to authenticated
  grant select to service_role
table public.site_notice row level security
  column created_at timestamp with time zone not null default millrace.now()
  column id uuid not null default gen_random_uuid()
  column publication_id uuid not null
  column slug text not null
  column told_at timestamp with time zone
  column type text not null
  constraint site_notice_pkey PRIMARY KEY (id)
  constraint site_notice_type_known CHECK ((type = ANY (ARRAY['publication.published'::text, 'publication.updated'::text, 'publication.removed'::text])))
  CREATE INDEX site_notice_by_publication ON public.site_notice USING btree (publication_id)
  CREATE UNIQUE INDEX site_notice_pkey ON public.site_notice USING btree (id)
  CREATE TRIGGER millrace_site_notices_deleted AFTER DELETE ON public.site_notice REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.site_notices__deleted()
  CREATE TRIGGER millrace_site_notices_key BEFORE UPDATE OF id ON public.site_notice FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.site_notices__key()
  CREATE TRIGGER millrace_site_notices_truncated AFTER TRUNCATE ON public.site_notice FOR EACH STATEMENT EXECUTE FUNCTION millrace.site_notices__deleted()
  grant delete, select to service_role
table public.source row level security
  column address text not null
  column created_at timestamp with time zone not null default now()
  column cursor jsonb
  column enabled boolean not null default true
  column etag text
  column every interval not null default '01:00:00'::interval
  column found integer not null default 0
  column id uuid not null default gen_random_uuid()
  column kind text
  column last_error text
  column last_modified text
  column last_polled_at timestamp with time zone
  column name text
  column next_poll_at timestamp with time zone
  constraint source_address_key UNIQUE (address)
  constraint source_address_length CHECK (((octet_length(address) >= 1) AND (octet_length(address) <= 2048)))
  constraint source_every_bounds CHECK (((every >= '00:01:00'::interval) AND (every <= '31 days'::interval)))
  constraint source_kind_known CHECK ((kind = ANY (ARRAY['rss'::text, 'rdf'::text, 'atom'::text, 'sitemap'::text, 'sitemap_index'::text])))
  constraint source_name_length CHECK ((octet_length(name) <= 200))
  constraint source_pkey PRIMARY KEY (id)
  CREATE INDEX source_by_next_poll ON public.source USING btree (next_poll_at, id) WHERE (next_poll_at IS NOT NULL)
  CREATE UNIQUE INDEX source_address_key ON public.source USING btree (address)
  CREATE UNIQUE INDEX source_pkey ON public.source USING btree (id)
  CREATE TRIGGER millrace_sources_deleted AFTER DELETE ON public.source REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.sources__deleted()
  CREATE TRIGGER millrace_sources_key BEFORE UPDATE OF id ON public.source FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.sources__key()
  CREATE TRIGGER millrace_sources_truncated AFTER TRUNCATE ON public.source FOR EACH STATEMENT EXECUTE FUNCTION millrace.sources__deleted()
  CREATE TRIGGER source_prepare BEFORE INSERT OR UPDATE OF address, enabled, next_poll_at ON public.source FOR EACH ROW EXECUTE FUNCTION prepare_source()
  policy source_of_curators permissive all to authenticated using ( SELECT is_curator() AS is_curator) with check ( SELECT is_curator() AS is_curator)
  grant delete, insert, select, update to service_role
  grant delete, select to authenticated
  grant insert, update (address) to authenticated
  grant insert, update (enabled) to authenticated
  grant insert, update (every) to authenticated
  grant insert, update (name) to authenticated
  grant insert, update (next_poll_at) to authenticated
table public.status_history row level security
  column changed_at timestamp with time zone default now()
  column changed_by text
  column changes jsonb
  column duration_ms bigint
  column from_status smallint
  column id uuid not null default (lpad(to_hex(nextval('status_history_order'::regclass)), 32, '0'::text))::uuid
  column queue_id uuid
  column to_status smallint
  constraint status_history_from_fkey FOREIGN KEY (from_status) REFERENCES status_lookup(code)
  constraint status_history_pkey PRIMARY KEY (id)
  constraint status_history_queue_fkey FOREIGN KEY (queue_id) REFERENCES ingestion_queue(id) ON DELETE CASCADE
  constraint status_history_to_fkey FOREIGN KEY (to_status) REFERENCES status_lookup(code)
  CREATE INDEX idx_status_history_queue ON public.status_history USING btree (queue_id)
  CREATE INDEX idx_status_history_time ON public.status_history USING btree (changed_at)
  CREATE UNIQUE INDEX status_history_pkey ON public.status_history USING btree (id)
  policy history_of_seen_articles permissive select to authenticated using (EXISTS ( SELECT
   FROM ingestion_queue q
  WHERE (q.id = status_history.queue_id)))
  grant select to authenticated
  grant select to service_role
sequence public.status_history_order
table public.status_lookup row level security
  column category text not null
  column code smallint not null
  column description text
  column is_terminal boolean default false
  column name text not null
  column sort_order smallint
  constraint status_lookup_name_key UNIQUE (name)
  constraint status_lookup_pkey PRIMARY KEY (code)
  CREATE UNIQUE INDEX status_lookup_name_key ON public.status_lookup USING btree (name)
  CREATE UNIQUE INDEX status_lookup_pkey ON public.status_lookup USING btree (code)
  policy codes_seen permissive select to authenticated using true
  grant select to authenticated
  grant select to service_role
table public.tag row level security
  column created_at timestamp with time zone not null default now()
  column description text
  column id uuid not null default gen_random_uuid()
  column name text not null
  constraint tag_description_length CHECK ((octet_length(description) <= 8000))
  constraint tag_name_key UNIQUE (name)
  constraint tag_name_length CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 100)))
  constraint tag_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX tag_name_key ON public.tag USING btree (name)
  CREATE UNIQUE INDEX tag_pkey ON public.tag USING btree (id)
  policy tag_add permissive insert to authenticated with check ( SELECT is_curator() AS is_curator)
  policy tag_change permissive update to authenticated using ( SELECT is_curator() AS is_curator) with check ( SELECT is_curator() AS is_curator)
  policy tag_read permissive select to authenticated using true
  policy tag_remove permissive delete to authenticated using ( SELECT is_curator() AS is_curator)
  grant delete, insert, select, update to authenticated
  grant delete, insert, select, update to service_role
table public.topic row level security
  column created_at timestamp with time zone not null default now()
  column description text not null
  column id uuid not null default gen_random_uuid()
  column name text not null
  constraint topic_description_length CHECK ((octet_length(description) <= 8000))
  constraint topic_name_key UNIQUE (name)
  constraint topic_name_length CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 200)))
  constraint topic_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX topic_name_key ON public.topic USING btree (name)
  CREATE UNIQUE INDEX topic_pkey ON public.topic USING btree (id)
  policy topic_add permissive insert to authenticated with check ( SELECT is_curator() AS is_curator)
  policy topic_change permissive update to authenticated using ( SELECT is_curator() AS is_curator) with check ( SELECT is_curator() AS is_curator)
  policy topic_read permissive select to authenticated using ( SELECT is_curator() AS is_curator)
  policy topic_remove permissive delete to authenticated using ( SELECT is_curator() AS is_curator)
  grant delete, insert, select, update to authenticated
  grant delete, insert, select, update to service_role
function millrace.abandon_fan_outs(p_run_ids bigint[], p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c414323fa114bafac052693afca9b907
function millrace.acknowledge(p_alert bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8fdfb864bab94252821c973ab816cb22
function millrace.acknowledge_alert(p_caller millrace.caller, p_request jsonb) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 14682390772a46d82dc9aec16031f227
function millrace.act_fields() returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body e376dfd29acd07cbca6fab62a5c3efbc
function millrace.act_in_bulk(p_caller millrace.caller, p_request jsonb) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 101d8ae62fd9566b3415dc3ea17a97d5
function millrace.act_on_alert(p_caller millrace.caller, p_request jsonb, p_line bigint) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 88371df7fa65eef1340fdf7df0d91266
function millrace.act_on_bypass(p_caller millrace.caller, p_request jsonb, p_line bigint) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body eec8f3935380b29c9eaafab93c77071a
function millrace.act_on_limit(p_caller millrace.caller, p_request jsonb, p_line bigint) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body ecda90046bdd5ec610bb5b4971dac491
function millrace.act_on_operator(p_caller millrace.caller, p_request jsonb, p_line bigint) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 12f4eb302be8c9c12a6baebebb83c731
function millrace.act_on_run(p_caller millrace.caller, p_request jsonb) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 2d065b253f2983c57ab608cfe7be1bed
function millrace.act_on_stage(p_caller millrace.caller, p_request jsonb, p_line bigint) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 0188855ac5d88f600b87d121448f7225
function millrace.actor(p_table regclass) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body cadffed02d655753cf2c491f34a55513
function millrace.add_child_runs(p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[], OUT added bigint[], OUT joined integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 3db7bd623f19b033f9447d5e657d07fc
function millrace.add_children(p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c0048cfbdc839f04bc8c13b39d34444b
function millrace.add_codes(p_counts jsonb[]) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 624e05caf5dd639ea76cc4eab6fa6646
function millrace.add_columns(p_table regclass, VARIADIC p_stages text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 86c6cda9231aae411e4ff77532cbffed
function millrace.add_events(p_channel_id integer, p_events jsonb, p_count bigint, p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 72abf0ace3f65b7c7513d7cd4183c66a
function millrace.add_skipped(p_stage_id integer, p_run_ids bigint[], p_why jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4f32707afdc98477aa02eff044b80c60
function millrace.adding_sql(p_table text, p_time text) returns text language sql immutable set search_path=pg_catalog, pg_temp body f15bbaa821669400863820d64621cae3
function millrace.address_ends(p_items millrace.work[], p_locked bigint[], OUT items millrace.work[], OUT late integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body a0171385a8b7fbeabbfbd0dc1e90365c
function millrace.admit_arrivals(p_stage_id integer, p_limiter millrace.limiters, p_room integer) returns millrace.limiters language plpgsql volatile set search_path=pg_catalog, pg_temp body 4ecb2141302fa861a9f792b6edbcaa03
function millrace.adopt(p_pipeline text, p_old_column text, p_value_function text, p_dry_run boolean DEFAULT true, p_else text DEFAULT NULL::text, p_portion integer DEFAULT 250) returns TABLE(old_value text, rows bigint, value text, lands text, begins text, lacking bigint, lacks text, problem text) language plpgsql volatile set search_path=pg_catalog, pg_temp body cd30f153dd1aad96e9471a9ee212cb73
function millrace.adopt_attempts(p_stage millrace.stages, p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body afe540468b1abb7b8a3a259a6537f6f8
function millrace.adopt_portion(p_pipeline millrace.pipelines, p_call text, p_limit integer) returns TABLE(old_value text, rows bigint, value text, lands text, begins text, problem text) language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 52e4c9c33813452fa65af19c737f4833
function millrace.adopt_runs(p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 763f1e3953585c249eb39887f2056c58
function millrace.adopting_pipeline(p_pipeline text) returns millrace.pipelines language plpgsql stable set search_path=pg_catalog, pg_temp body 07d26cf71b538e34089673e479e99538
function millrace.advance(p_stage_id integer, p_run_ids bigint[], p_list boolean DEFAULT true, OUT ready millrace.ready[], OUT followers integer[], OUT names text[], OUT has_groups boolean, OUT all_ready boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 568c4767839d39d7a6e32589bd847f0d
function millrace.advance_each(p_stage_id integer, p_run_ids bigint[]) returns millrace.ready[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 52bb116a833de239148ff1e4c1e31aa6
function millrace.advance_others(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ee0744cf42aa4d289ccac0997b31bf90
function millrace.after_of(p_pipeline_id integer, p_stage jsonb) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body eb21b62303c5a0be6d339ee062098b49
function millrace.ages_behind(p_pipeline_id integer, p_after text, p_limit integer) returns TABLE(entity_id text, age double precision) language sql volatile set search_path=pg_catalog, pg_temp body 2565ec5b40469d660227049cf0678d33
function millrace.alert_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 538deb4ef1ab43652a9d2a26b189155e
function millrace.alert_seen(p_caller millrace.caller, p_alert bigint) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 1f6960dd634f50f415e67aeadc66af5f
function millrace.alive_since() returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 86db8dcca44d038c8b54ccbf63e38454
function millrace.alternative_for(p_schema jsonb, p_value jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 4d8cf556a99ad8745cea3f9aa3479dca
function millrace.answer_by_value(p_pipeline_id integer, p_stage_id integer, p_value text, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6975366b08c7ea3e91e8cb399f741982
function millrace.answer_in_sequence(p_call millrace.call, p_seq integer, p_limit integer, p_verdicts json, p_ready integer[], p_goodbye boolean DEFAULT false) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 9f756c8a879788a420d23aac0a4f9fe9
function millrace.answer_remedy(p_function text, p_status integer) returns text language sql immutable set search_path=pg_catalog, pg_temp body fefd42ca0f3729efa2baebc4f068a210
function millrace.answered_before(p_caller millrace.caller, p_request jsonb) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 9c8418891f4303f5d1cccb914e4ccddd
function millrace.answered_before(p_pipeline_id integer, p_entity_id text, p_now text) returns text language sql stable set search_path=pg_catalog, pg_temp body 90a0f7ee36f8f319cf050829efd7e18e
function millrace.append_turns(p_attempt millrace.attempts, p_turns jsonb, OUT added integer, OUT next_seq integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 169772da5d1ffe9053e336784fafbae5
function millrace.apply_decisions() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, lock_timeout=200ms, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body a1db2f72f6640029efed72471605b1b9
function millrace.apply_outcomes(p_items millrace.work[], p_uniform_limit integer DEFAULT NULL::integer, OUT items millrace.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 12b248bb41a389c4e0f8a51107a2cddf
function millrace.apply_outcomes_guarded(p_items millrace.work[], p_uniform_limit integer DEFAULT NULL::integer, p_until timestamp with time zone DEFAULT (millrace.now() + '00:00:02'::interval), OUT items millrace.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 74c278ce7dc6611034af8ab05ce4a5a9
function millrace.apply_outcomes_in_halves(p_items millrace.work[], p_until timestamp with time zone, p_transient boolean, OUT items millrace.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 5f73a57865aa410d842f7956e840f8bc
function millrace.apply_outcomes_unprojected(p_items millrace.work[], OUT items millrace.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body ba8fafeef8fd92e40eaab5cb7700bd7d
function millrace.apply_results(p_stage_id integer, p_items millrace.work[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body f0249c06d39f89c557170360a63676d4
function millrace.array_fault(p_root jsonb, p_schema jsonb, p_value jsonb, p_path text) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp body d926bc4a4063fc5d55726fa0eca16706
function millrace.articles__apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body d2ac247ff52442fb8f3ddf5c9248e20f
function millrace.articles__asked(p_ids text[], p_each bigint) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body f3949ae43bcb1aef2f81e685e15b115c
function millrace.articles__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 249ab9c8d9dead1dfa1f7f30b721f1c3
function millrace.articles__intake() returns trigger language plpgsql volatile security definer set enable_nestloop=off, enable_seqscan=off, work_mem=32MB, search_path=pg_catalog, pg_temp body a31069e83addccd29af68e46f0d0fee8
function millrace.articles__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.articles__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7d2a6fd655068f76d510796c7cdd9931
function millrace.articles__queued(p_stage text, p_dependents text[], p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 9078a8eb6ebbe24daaade62d09bbb0ab
function millrace.articles__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 81ecce999202fa8069c3fadf0b374e8d
function millrace.articles__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c0dd24eef19adf4e20ca5b644f7ffc0b
function millrace.articles__since() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 0afc6f0b39efea1e29ba345a9857c0d4
function millrace.articles__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a2c7af3c3370524bda36d757d2a2dee4
function millrace.articles__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body aeb7a36991119c4bc087f4cdcf1029c9
function millrace.asked_cursor(p_asked jsonb, p_by_end boolean DEFAULT false) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 225a95930afaa7d18ae8718194b2a433
function millrace.asked_end(p_request jsonb) returns timestamp with time zone language sql stable set search_path=pg_catalog, pg_temp body 8cad38f75274cfd93a08b56c3ae0f252
function millrace.asked_of_entities(p_pipeline_id integer, p_ids text[], p_each bigint) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9802a15c79c1aa67a242c4f89ddc5be6
function millrace.asked_of_rows(p_pipeline_id integer, p_ids text[]) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 54ff5271530184e076575a5eda491667
function millrace.asked_silence(p_caller millrace.caller, p_request jsonb) returns millrace.silences language plpgsql stable set search_path=pg_catalog, pg_temp body 55e568a75b9470e0a9064591355291fa
function millrace.asked_time(p_asked jsonb, p_field text) returns timestamp with time zone language plpgsql stable set search_path=pg_catalog, pg_temp body 29b4146cb9ed082de4686f40125cdd52
function millrace.assign_groups(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9f612b53f97b8280e85ebd4af064f544
function millrace.attach(p_pipeline text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9f5c41dfc2c5a8ae72b2e7e57722f9c3
function millrace.attach_groups(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 565c8fa54f4c066344eff98b8d5c686f
function millrace.attach_quota(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 88f3b43624f96557e6022a23e2639170
function millrace.attempt_costs(p_runs bigint[]) returns TABLE(run_id bigint, stage_id integer, attempt_id bigint, paid_by bigint, cost_usd numeric) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, jit=off, plan_cache_mode=force_generic_plan body 511bd957d37917825b553cd9ab211442
function millrace.attempt_of_job(p_job_id text) returns millrace.attempts language plpgsql stable set search_path=pg_catalog, pg_temp body dcb6b6f25744d2a967dbf64edb5237b7
function millrace.average_use(p_stage_id integer, p_kind text) returns numeric language plpgsql volatile set search_path=pg_catalog, pg_temp body d3ee1b8ff7949a3281ba1367214f0e07
function millrace.backoff_seconds(p_backoff jsonb, p_retry_count integer) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp body 569c3714442c408d27c284fb7882bb29
function millrace.batch_bytes() returns bigint language plpgsql stable set search_path=pg_catalog, pg_temp body 39f774ee2022ff6a2ef36acba00b2a25
function millrace.batch_bytes(p_setting text) returns bigint language plpgsql immutable set search_path=pg_catalog, pg_temp body 22b2c09dc4617a9ba41b799b3e03a2bf
function millrace.batch_of(p_stage millrace.stages, p_token uuid, p_items millrace.claimed[], p_entity_ids text[], p_each bigint, p_built millrace.built[] DEFAULT NULL::millrace.built[]) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 9b70810fc0b4373d844dc296081a6c91
function millrace.begin(p_pipeline text, p_value text, p_limit integer) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body b8689d52f1b05243fcf0a39b4461b705
function millrace.begin_adopted(p_pipeline millrace.pipelines, p_keys text[], p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 73a50d83101f9ffc11aaa2ce5351ab3a
function millrace.begin_adoption(p_pipeline millrace.pipelines, p_old_column text, p_function text, p_else text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4b441aca72a99ceaaf27213bea138bc0
function millrace.begin_at_value(p_pipeline_id integer, p_stage_id integer, p_means text, p_was text, p_value text, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body bcc3086f1360cf433e2d1d5a1df2d459
function millrace.begin_bypass(p_stage millrace.stages, p_reason text, p_until timestamp with time zone, p_line bigint) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 30d964dc552e4b0effa09c7283208ecb
function millrace.begin_followers(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 95eb11bd16faa8b7ec1d75c07f4d1823
function millrace.begin_open(p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 4b4971dc44fc29e9f50503ea4bfb4af6
function millrace.begin_pruning() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 43d8f25e4a0b3a0597b1d30f83120564
function millrace.begin_roots(p_pipeline_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 90823fc0fbda4d40e3a7289dc4160bc1
function millrace.begin_stage(p_stage_id integer, p_run_ids bigint[], p_by_name boolean DEFAULT false, p_shown boolean DEFAULT false, p_anew boolean DEFAULT false) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a95f6567c9ca70fa2f8ee32326149538
function millrace.begin_unless_unchanged(p_stage_id integer, p_run_ids bigint[], p_shown boolean) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c6d819cd5b0ac67b08b796bdaa5dcb1c
function millrace.begins_runs(p_pipeline_id integer, p_stage_id integer) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body 9a5cd49394ed06defd064b18fae4e255
function millrace.begun_branch(p_pipeline millrace.pipelines, p_key_type text, p_stage millrace.stages) returns text language sql stable set search_path=pg_catalog, pg_temp body 0b7c0f11f1e6c3967af8c4a06fb03df5
function millrace.books__apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body ec8bdd523da246fa6efcc8dea00ac785
function millrace.books__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body cb63a1907638043f8412d8e898ab089a
function millrace.books__intake() returns trigger language plpgsql volatile security definer set enable_nestloop=off, search_path=pg_catalog, pg_temp body cc25249d201cdc6a7ea4950a8612babe
function millrace.books__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.books__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 52a832c041f64f5cf0f4b817f3ffdb07
function millrace.books__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a8db355bd45d2af4e252dd000a1a562f
function millrace.books__queued(p_stage text, p_dependents text[], p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 4a6151367a14ebffec8b0c224baaff98
function millrace.books__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2326437f01156fdea20782aa490a8052
function millrace.books__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 5127f20f4fe8ceb454ff568df26afee4
function millrace.books__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9270927b9b559bd9eeeed6bd5ae95b5c
function millrace.books__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body d7b19966a4dffb40cf3b242a1ce2c0aa
function millrace.bounded_cpu(p_cpu_ms double precision) returns real language sql immutable set search_path=pg_catalog, pg_temp body ac86d5b82b594236d2aff35dcc1e16f5
function millrace.branches(p_ids integer[], p_branches text[]) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body a429c2aa7a2a4f65a7b5f07eaf59d51e
function millrace.brought_along(p_pipeline_id integer, p_version_id integer, p_entity_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7f2960789a9fab72c13e5e48cdd9b416
function millrace.bucket_bounds() returns double precision[] language sql immutable set search_path=pg_catalog, pg_temp body 8880778828afbbf473e086555db6c3c8
function millrace.bucket_of(p_limit millrace.shared_limits) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp body 1786476421fa9b09970705ac9005715c
function millrace.bucket_quantile(p_counts bigint[], p_share double precision) returns double precision language plpgsql immutable set search_path=pg_catalog, pg_temp body 3be17dad1fe806a1bb7e1b093cd88dc7
function millrace.built_row(p_stage millrace.stages, p_item millrace.claimed) returns millrace.built language plpgsql volatile set search_path=pg_catalog, pg_temp body f0be7c1550441f31881b00ec80718e1f
function millrace.bulk_fault(p_bulk millrace.bulks) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 121278ff3ced85b0501809d4436d8e08
function millrace.bulk_seen(p_caller millrace.caller, p_bulk bigint) returns millrace.bulks language plpgsql volatile set search_path=pg_catalog, pg_temp body eee406889613be003d0683cbb44f5429
function millrace.bury_message(p_message millrace.alert_messages, p_status integer, p_error text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 447c877f7573b8abb07a5687ccdc5acb
function millrace.bypass(p_pipeline text, p_stage text, p_reason text, p_until timestamp with time zone DEFAULT NULL::timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 3ad660ac8ee9d877934003e916944532
function millrace.bypass_charged(p_stage millrace.stages, p_attempt_ids bigint[], p_reason text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body a9d3f6ea0fa8d180029116136c5c7305
function millrace.bypass_due(p_stage_id integer, OUT begins boolean, OUT why text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body ca0f6b3c1b523f791a096a8b761c507b
function millrace.bypass_held(p_stage millrace.stages, p_attempt_ids bigint[], p_reason text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 760e9f26866162d8b9624a7e92eebd19
function millrace.bypass_portion(p_stage millrace.stages, p_attempt_ids bigint[], p_reason text, p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body e8305e789403ed32ccbc4534c4febcd3
function millrace.bypass_queued(p_stage millrace.stages, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body f3f2de5de51a06b62d97d70e1611ea43
function millrace.call_of(p_worker millrace.workers, p_stage_id integer) returns millrace.call language plpgsql volatile set search_path=pg_catalog, pg_temp body 87a8b387ac62654fb0ef077d71ca12cd
function millrace.caller() returns millrace.caller language plpgsql volatile set search_path=pg_catalog, pg_temp body 08fd4fc56b17a73177965f038a0ca4ea
function millrace.cancel(p_run bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body a825e3ee6389d4ae82ffb55c249e5e45
function millrace.cancel_attempts(p_run_ids bigint[], p_stage_ids integer[]) returns millrace.cancelled[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ae318badca9c8b1ce086580772cba3fd
function millrace.cancel_children(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 2f57e5f338f7a81f4adc513aa3b6add2
function millrace.cancel_given_up(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 0e7bee26d902912b98a7eaf281aafc9d
function millrace.cancel_held(p_run_ids bigint[], p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 717810708e498a10b234fa05a322c43a
function millrace.cancel_one(p_run bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 73330b4393ac3814799a8008d09f3f6b
function millrace.capped(p_count bigint, p_cap integer) returns text language sql immutable set search_path=pg_catalog, pg_temp body 16a58d0acd7073070f7abfd5e43cb0c4
function millrace.carry_since(p_pipeline millrace.pipelines, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d2f3eb3b3b36e8839a5eea90bd349d7b
function millrace.change_of(p_entity_id text, p_status text, p_job_id text DEFAULT NULL::text, p_error text DEFAULT NULL::text, p_started_at timestamp with time zone DEFAULT NULL::timestamp with time zone, p_completed_at timestamp with time zone DEFAULT NULL::timestamp with time zone) returns millrace.change language plpgsql immutable set search_path=pg_catalog, pg_temp body 4352ee366908348e092f1e4c499edfdf
function millrace.changed_values(p_definition jsonb) returns TABLE(was text, now text[]) language sql stable set search_path=pg_catalog, pg_temp body 4d3685b3edcb710429d6d982e004417b
function millrace.channel_named(p_channel text) returns millrace.alert_channels language plpgsql stable set search_path=pg_catalog, pg_temp body c97ae5b29025e6b6e703bbf0b6113246
function millrace.charge_starts(p_stage millrace.stages, p_payer millrace.payer, p_attempt_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ecabb0f8e136bdb47fbb0ec86e5c2e45
function millrace.check_alerts(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 66ebc7e4e379e8b18fac500e58cf2381
function millrace.check_answer() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 38f54185c3a74423c81b69fd85612255
function millrace.check_asked(p_asked jsonb, p_fields jsonb, p_name text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body d564ad3f67081d1417fcfa1e5901ca86
function millrace.check_back_pressure(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 4dd520b4a08f334daf81ea997891f7de
function millrace.check_between(p_after bigint, p_until bigint) returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language sql stable set search_path=pg_catalog, pg_temp body ffa0b902a3571fe19063f836fc100278
function millrace.check_bulk(p_do jsonb, p_filter jsonb) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp body 83130e0d275472a4f991037363d14bce
function millrace.check_changed_children(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 03513b969bbfe8b442f64515699f9401
function millrace.check_changed_kinds(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2af56a993c0f13852aef07a3fd1788cd
function millrace.check_child(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 7ddbe56acb5a948e3b0f3d8c02f8c259
function millrace.check_columns(p_pipeline millrace.pipelines, p_stages text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ac14b04f6aa5d5eb963dc7d42233ea94
function millrace.check_condition(p_pipeline text, p_condition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fa916425b8ca2eae94f44d05d983d741
function millrace.check_condition_names(p_stage jsonb, p_definition jsonb, p_path text[], p_roots text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body df8e6711b40bb8762f3cb5a26c2c582f
function millrace.check_condition_path(p_stage jsonb, p_path text[], p_roots text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 6de1bad4426de34d0b9457bb97191078
function millrace.check_conditions(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 5a4e1d7e66d67ac30b5e8ce302081acf
function millrace.check_counted_stages(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 558a7621878e90adcf349af20e1224eb
function millrace.check_definition(p_definition jsonb) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body bf4701582bb682396b185ae9f703a484
function millrace.check_dropped_stages(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7abbee021a9fca41c1929be21bf11013
function millrace.check_due(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body f66811d4c82d8a4129f13e63b3a078d7
function millrace.check_ends(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body ed30a05228cbe78ae1d674c2e77647b8
function millrace.check_entity(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 857f9c2b9401b48068b9024fa6e32d6f
function millrace.check_fan_in(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body f2688e36581c45d1dfbabe75913201d7
function millrace.check_fencing(p_items millrace.work[], p_locked bigint[], p_late integer[] DEFAULT '{}'::integer[]) returns millrace.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2aa5d39add18f6e6f57a294626b31095
function millrace.check_flag(p_new millrace.pipelines, p_mode text, p_share numeric, p_groups text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 889c0139b792a758abad05a37745fb6f
function millrace.check_foreign_pressure(p_stage jsonb, p_place text[], p_pipeline text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body dad3753fe8b4c707146e4b7504320a04
function millrace.check_inserted(p_insert regprocedure, p_items jsonb, p_item_keys text[], p_entity_ids text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body d46e08575e10c42f65ab5b2a0909be73
function millrace.check_invariants() returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language sql stable set search_path=pg_catalog, pg_temp body 84c867491bd64eddeef1ac0c39215e8b
function millrace.check_items(p_items jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 36b45cf827224e4bf7aabd151a237fee
function millrace.check_job_states(p_jobs jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 74040adcc0f4dffb6fa898f6996f68f7
function millrace.check_json_schema(p_schema jsonb, p_path text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 1c7e44bc4e0162c06cd4d49dfe88fc7c
function millrace.check_key(p_pipeline millrace.pipelines) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body fdae3a0903b231b5fa641fddee3ea96d
function millrace.check_key_rate(p_name text, p_limits jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body ce99cfeffc4bd604c081c16b7795b3f0
function millrace.check_label(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 4cf30e4744bcbbe7432f9b7391960e5b
function millrace.check_layers(p_definition jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body da810f53f06f5c70dc72db09892fabda
function millrace.check_limits(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 520116a5502494a6f0e4201aaa20bd6c
function millrace.check_moved(p_pipeline text, p_table regclass, p_key text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9b5545761fb93585bd1f772eec7b3387
function millrace.check_needs(p_stage jsonb, p_names text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body ea7963ac4d02ad61c2f9b73af264da97
function millrace.check_numbers(p_fan_out millrace.fan_outs, p_item_keys text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7de5db5714032fd66a87b941d6591d73
function millrace.check_on_demand(p_stage jsonb, p_stages jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body d9275d0fba4e63491ed1f5612c125d90
function millrace.check_parents(p_pipeline text, p_table regclass, p_key text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 496260d67e8a091067a3135f79e7b3e7
function millrace.check_predicate(p_stage jsonb, p_definition jsonb, p_path text[], p_roots text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body a07323a329e2159369d8ec060186d500
function millrace.check_projected(p_pipeline millrace.pipelines, p_stages text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b3803dd8ed49e5f2c551f07c1740d32c
function millrace.check_quota(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body b224b44de38c0fcd3100e36297989f3b
function millrace.check_replaced(p_pipeline text, p_table regclass, p_key text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 6148142ea04d1e94cb986d7bb297e897
function millrace.check_replaces(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body eba8289d6a3180869a3c78e436a7fe68
function millrace.check_retention(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 731dfb9a8870311eddcd65fb2c449b88
function millrace.check_rival(p_stage jsonb, p_stages jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 73b3594fff7465fd8178139a14367d2b
function millrace.check_rows_differ(p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5a7aa21a53ddb3930f1b64da6a85a8b6
function millrace.check_rows_exist(p_child millrace.pipelines, p_item_keys text[], p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4591d604e89046c7cb216b2761b2fae9
function millrace.check_rule() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 1c0907aa6ab2984226640c39e9b22cc6
function millrace.check_schema_bounds(p_schema jsonb, p_path text, p_low text, p_high text, p_count boolean) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 8fd333089db8b5ebf74fe1b25224d303
function millrace.check_schema_keywords(p_schema jsonb, p_path text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body c28f9e0f33c9d0a58568d4f61dcce3df
function millrace.check_schema_object(p_schema jsonb, p_path text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body d2450d1ccb1566073ceb7b81666b20b5
function millrace.check_schema_pattern(p_schema jsonb, p_path text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body e512ad2b016bcf397c7eb1c8ca133e66
function millrace.check_series(p_from timestamp with time zone, p_to timestamp with time zone, p_step interval) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 3344bbdf86d77d21d364bd840bddb993
function millrace.check_setting() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 021ab9dbb744974baafc3fbb55131741
function millrace.check_shape(p_definition jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 2a0312a6110a7fd228487e1cf1882d37
function millrace.check_shared_limit(p_name text, p_limits jsonb, p_is_throttle boolean) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body f117061ea4b6f5fb9f1bab6b6458c265
function millrace.check_shared_names(p_stage jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 82df0c9986ca3c15999ce3b609be0a31
function millrace.check_slice(p_after bigint, p_limit integer) returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body b3fe1c28c455ffa0fd8f130fc40c6019
function millrace.check_slots(p_stage_id integer, p_worker_id uuid, p_checked_to bigint) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body ef3c0392446c497365c8c13d5d09cdbe
function millrace.check_stage(p_stage jsonb, p_names text[], p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 37f1d77fb95cd3436e8e4171d031c7ad
function millrace.check_status(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body b940ae0d0fb5a771e168a6f3cc4fe50a
function millrace.check_status_chain(p_definition jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body fb885d2290894d3c96cbca519f9d0eb2
function millrace.check_status_columns(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body aa710c5483d67ff17cf66cc61231e5ee
function millrace.check_status_names(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 36e7fa93d568ff94bf4b300659dac0ae
function millrace.check_status_tables(p_status jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 86fd2522b91b653bec0ddce2fb6b4d01
function millrace.check_status_values(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 2a73a2a8554fc72ecef31b6f0bd472a6
function millrace.check_status_words(p_table regclass, p_stages text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 816c3b09d3e04247cc29de0c6edfe9f8
function millrace.check_table(p_table regclass) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 3b86ccb7e62a0585a619badc1ccd76c4
function millrace.check_take_up(p_stage millrace.stages, p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 242e4fc906196b30164e9a9bd528328d
function millrace.check_thresholds(p_stage jsonb, p_stages jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body c50ed28c5bf90a38977173e1d28ee195
function millrace.check_throttle(p_limits jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body ba54e11bb44c7664ee26cfc537c98239
function millrace.check_throttle_end(p_until timestamp with time zone, p_reason text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 76cc5c6e8db07ca783d206c7164aa011
function millrace.check_trace(p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 6fe9b725ffe76d16708c692c367b2446
function millrace.check_turns(p_turns jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body afa787d05030e00e27df7c1e1f92ab9d
function millrace.check_unchanged(p_stage jsonb, p_definition jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 2b805bfa32e8162a0cbd724605c6e714
function millrace.check_untied(p_old millrace.pipelines, p_new text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 3a575654a4b6da5eb1323a0cb6f51a47
function millrace.check_when_spent(p_stage jsonb) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 0c2b6b9a1b086333be1dec46863b31fc
function millrace.child_failure(p_fan_out millrace.fan_outs) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 47ccea5593df374a8ab9e394de9a4f57
function millrace.choose_places(p_stage_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 61a11680f2dcca45cec2f45a00902f3e
function millrace.chunks__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 0389e83cf894bb2dcb6662214fe034fc
function millrace.chunks__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.chunks__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 766a80f2943983c970b357417fc17211
function millrace.chunks__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6d113d1ec0d1bec56cdf5db7abc3996e
function millrace.chunks__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 26e25d6ef4de64897cc58b3ce51e9a79
function millrace.claim(p_stage millrace.stages, p_worker millrace.workers, p_limit integer, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT items millrace.claimed[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 81380c4f98dd111da64a2cbceb68f537
function millrace.claim_allowed(p_call millrace.call, p_limit integer, p_may_wait boolean, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT items millrace.claimed[], OUT taken integer, OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 17e2701e4921cec0b52f6c6c720117ed
function millrace.claim_alone(p_stage millrace.stages, p_worker_id uuid, p_host uuid, p_attempt_id bigint, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT items millrace.claimed[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body e27b864d5a57d50f62b07beb99e30479
function millrace.claim_alone_of_group(p_stage millrace.stages, p_worker millrace.workers, p_attempt_id bigint, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body bb36fbbfb4a06e0fcf805e1298f85da7
function millrace.claim_answer(p_call millrace.call, p_status text, p_reason text, p_batch json, p_wake integer[], p_verdicts json, p_wait_ms integer DEFAULT NULL::integer, p_cut boolean DEFAULT false, p_left boolean DEFAULT false) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 99e623de8dc1f119eeae782e743ba73a
function millrace.claim_groups(p_stage millrace.stages, p_worker millrace.workers, p_room integer, INOUT limiter millrace.limiters, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body a9788336a530dbc6476c141cd527ecc1
function millrace.claim_limited(p_stage millrace.stages, p_worker millrace.workers, p_limit integer, p_may_wait boolean, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT items millrace.claimed[], OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 85308f3732d5a68f65839a97766315d6
function millrace.claim_next(p_call millrace.call, p_seq integer, p_limit integer, p_verdicts json, p_ready integer[], p_goodbye boolean) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 7182ee584c080e0d4826ec33d4aedeb7
function millrace.claim_together(p_stage millrace.stages, p_worker_id uuid, p_host uuid, p_limit integer, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[], OUT items millrace.claimed[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 4123593f6bfda10ebb7e7a333beae29c
function millrace.clear_entities(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4e632601898f8e7ae1a088d2d114ee41
function millrace.clear_stages(p_run millrace.runs, p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7883ab65e44f22767c5cca64fc272d03
function millrace.clear_the_way(p_fan_out millrace.fan_outs, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a0476f9f92a8bbb2f3818fc2f427d8a8
function millrace.close_completed(p_items millrace.work[], p_now timestamp with time zone, p_uniform boolean, p_names text[], p_ready millrace.ready[]) returns millrace.change[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 4447348829655f385fe417526b1bbfdd
function millrace.close_decisions(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 50e224cb69feca01fb2913c14bb57b9d
function millrace.close_failed(p_items millrace.work[], OUT changes millrace.change[], OUT dead bigint[], OUT due_now boolean, OUT grouped bigint[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body bc7557341bd00587155116003611d891
function millrace.close_held(p_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 9371a3d3bda299402d2cd90cb8c8405b
function millrace.codes_sql(p_table text, p_time text, p_at text) returns text language sql immutable set search_path=pg_catalog, pg_temp body c9f943c323279563911fd345e58a940a
function millrace.collect_children(p_fan_out_id bigint, OUT wake integer[], OUT busy boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 7b1dd4a07d63000dfd650952799167e4
function millrace.collect_reported(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 654d6fa3b7adf07194cfa88c08e9ac1c
function millrace.commonest_error(p_pipeline_id integer, p_stage_id integer, p_from timestamp with time zone, p_to timestamp with time zone) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body de438407193da38d8c1c9b8a6d6cef31
function millrace.complete(p_stage_id integer, p_items millrace.work[], p_uniform_limit integer DEFAULT NULL::integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a0f8020403f42e7bc5151e8ddff84ff4
function millrace.complete_and_end(p_stage_id integer, p_items millrace.work[], p_run_ids bigint[], p_names text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body bb8425b78c0692d4f8300a9128b91341
function millrace.complete_or_end(p_stage_id integer, p_items millrace.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a0d39b6fc044fd4c4c786146e1bdf5c4
function millrace.complete_stage(p_run bigint, p_stage text, p_result jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body ceec9f895a3c8ff2a21c88c1a5c07088
function millrace.completed_targets(p_stage millrace.stages) returns text language sql stable set search_path=pg_catalog, pg_temp body 512822c85af133f58a6429a9dd81aec1
function millrace.consume_child_tallies(p_fan_out_id bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fe53bd5cd0cdc35ea1714a71fd40b6cc
function millrace.contains_pipeline(p_pipeline_id integer, p_name text) returns boolean language sql stable set search_path=pg_catalog, pg_temp body fc442e4e3093d9548a0b02c435a85eb5
function millrace.continue_after_skip(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body df4d524d22ae684c7022c67ea7accafb
function millrace.contracts() returns text[] language plpgsql stable set search_path=pg_catalog, pg_temp body f96d337281b75b3885cff79c20b76e4d
function millrace.copy_earlier_results(p_run_ids bigint[], p_keep integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1b704daf14e585a2ea3fd8d9d0833e3c
function millrace.copy_metadata(p_pipeline_id integer, p_entity_ids text[], OUT ids bigint[], OUT faults text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 056ab389e3eaed92588161cd188a4b46
function millrace.cost_of(p_run bigint) returns numeric language sql stable set search_path=pg_catalog, pg_temp body b35bb0f2d737df30abc3d7b083faa02c
function millrace.count_ages(p_pipeline millrace.pipelines, p_after text, p_limit integer, OUT ages bigint[], OUT last_key text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 78b33961ffae334e1a03b3592ef5db5d
function millrace.count_attempts(p_stage millrace.stages, p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 93623b8646c99b91ac1e115f65b38195
function millrace.count_consecutive(p_fan_out millrace.fan_outs, p_stage_id integer, p_wanted integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 3adb0615a0c890a244cde90b2b80f309
function millrace.count_in_words(p_count numeric) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 9935953d7cecd710c344f89016a86274
function millrace.count_over(p_counts bigint[], p_ms double precision) returns double precision language plpgsql immutable set search_path=pg_catalog, pg_temp body cd24aab6db99b42fcd0d83a995c9f9f0
function millrace.count_unadopted(p_pipeline millrace.pipelines, p_old_column text, p_call text, p_else text) returns TABLE(old_value text, rows bigint, value text, lands text, begins text, lacking bigint, lacks text, problem text) language plpgsql stable set search_path=pg_catalog, pg_temp body 282a012efdcf41f651acf4cd8db8f3f2
function millrace.counters() returns json language plpgsql stable set search_path=pg_catalog, pg_temp body 949ce05ad145e7ffad6854f60bd77b83
function millrace.counts_in_flight(p_limits jsonb) returns boolean language sql immutable set search_path=pg_catalog, pg_temp body 971254c54ab0e6e1db4a49058de23842
function millrace.cut_over_way(p_pipeline text, p_entity_id text, OUT way text, OUT why text) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body d06d40e95e9dd4f536f54456b1badb50
function millrace.cut_text(p_text text, p_most integer DEFAULT 2000) returns text language sql immutable set search_path=pg_catalog, pg_temp body ca6a170cd21e8329302ca792bd792203
function millrace.deadline_of(p_stage jsonb) returns interval language sql immutable set search_path=pg_catalog, pg_temp body fedeac609903ee6fdde1527ce0d553ff
function millrace.deciding_attempts(p_pipeline_id integer, p_ids text[]) returns TABLE(id text, version_id integer, ended_as text, began_from text, run_status millrace.run_status, attempt_id bigint, stage_id integer, shows jsonb, phase text, code text, output jsonb, done_id integer, via text, retry_count smallint, state millrace.attempt_state, parent_id bigint, held boolean, queue_at timestamp with time zone, error jsonb) language plpgsql stable set search_path=pg_catalog, pg_temp body 1d62d310cfcbf3929645a1e71249d741
function millrace.decision_faults(p_after bigint DEFAULT 0, p_until bigint DEFAULT '9223372036854775807'::bigint) returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language sql stable set search_path=pg_catalog, pg_temp body 821bde8688193cbc630d0cc84105f71a
function millrace.declared_window_start(p_limit millrace.shared_limits) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body b758151cd428a06c27d76a8f180227af
function millrace.deed_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body c307a7de011ab6376a060a8231f619c8
function millrace.define(p_definition jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 44c0b3a29fc2cc360b8e79da52f77cde
function millrace.define_limit(p_name text, p_limits jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 69a26aefe149c5ac3b787bf37dcb232e
function millrace.definition_schema() returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body b6b1e9befa59861a0bb03061ab8f49b4
function millrace.delete_runs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 0c57c867580144e77fdf24eff6bb6a8d
function millrace.delivery_pause(p_tries integer) returns interval language sql immutable set search_path=pg_catalog, pg_temp body cb0cca53cb619ba5b9d4924705b9cd8f
function millrace.delivery_time() returns interval language sql immutable set search_path=pg_catalog, pg_temp body 79eda1c830b9a6dc959b9fa1c1f078da
function millrace.delta_sql() returns text language sql immutable set search_path=pg_catalog, pg_temp body edbc712ed759d457617ddb7ca8b6c595
function millrace.detach_old(p_pipeline millrace.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d8e39ac131ba492c17041438206a12ac
function millrace.digest_at(p_stage_id integer, p_document jsonb, p_path jsonpath) returns uuid language plpgsql stable set search_path=pg_catalog, pg_temp body 644b992d3cde3780336e9f6a76527e21
function millrace.dirty_condition(p_row text, p_stage text, p_with_status boolean) returns text language sql immutable set search_path=pg_catalog, pg_temp body 0e4bf2670e4ecd16bad75d3cfa19ecbf
function millrace.do_act(p_caller millrace.caller, p_request jsonb, p_line bigint) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 2e59456bf0dbfb79fe907577ebc4c1b0
function millrace.do_to_each(p_bulk millrace.bulks, p_run_ids bigint[], OUT done bigint[], OUT faulty bigint[], OUT busy bigint[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 8c47c64f079295d7cd20d34821db3794
function millrace.do_to_held(p_bulk millrace.bulks, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fa95a95b0c328b49db53cd8577e1309f
function millrace.do_to_run(p_run bigint, p_request jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d2f6bccd2e2675877a9dd11ee8f43e0a
function millrace.do_to_slice(p_bulk millrace.bulks, p_run_ids bigint[], OUT done bigint[], OUT faulty bigint[], OUT busy bigint[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body c2593fc9e693b105d2225d15c760af55
function millrace.doctor(p_deep boolean DEFAULT false) returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 8d92324b35d113109804eb640451f110
function millrace.document_monolith__apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 8cab6a3cd8e21519a914486b7598e2ee
function millrace.document_monolith__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 8ccc3522830f4ec830de372067144755
function millrace.document_monolith__intake() returns trigger language plpgsql volatile security definer set enable_nestloop=off, search_path=pg_catalog, pg_temp body 3498027e8818b1ba43f9eb8de5227558
function millrace.document_monolith__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.document_monolith__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 26603b29fe34dd999c50f910e4f7d35a
function millrace.document_monolith__metadata(p_ids text[]) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body efde1512caf95e2f5c338819c6a8ef15
function millrace.document_monolith__queued(p_stage text, p_dependents text[], p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body bbcfe61ff269511a3a916c8b54c0d8d3
function millrace.document_monolith__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0139e7f626fac2b440979cea77b694f9
function millrace.document_monolith__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 52b78350b92750c3e04feeac955a15da
function millrace.document_monolith__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body d2faf38a9d7705e775dc7b747097ad8b
function millrace.document_monolith__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body bcba088c178e70d11721caf5c4cd15c2
function millrace.documents__apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body a691f207da97c01a57e17ab532583f06
function millrace.documents__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body f9e88e3793e3f6c3349920f2ac5afd77
function millrace.documents__intake() returns trigger language plpgsql volatile security definer set enable_nestloop=off, search_path=pg_catalog, pg_temp body 1b1ebb916582fd1df906870f0471bc92
function millrace.documents__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.documents__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 74c944b068a16b9ba8b1720382907a02
function millrace.documents__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 26603b29fe34dd999c50f910e4f7d35a
function millrace.documents__metadata(p_ids text[]) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 3ef1288ecae338ad987a8e4534f1a82b
function millrace.documents__queued(p_stage text, p_dependents text[], p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 01303eb23365df346889ef583773c660
function millrace.documents__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6149e8dae9101d73c51bf0d8566ee405
function millrace.documents__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 8cb625751a6ecdc8f60480bcf2aa8226
function millrace.documents__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body bb91eb164dbb3457e7ff509ba3ff4b8f
function millrace.documents__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 109e86bcabc23f0dfac847950eaef9b0
function millrace.done_before(p_run_id bigint, p_version_id integer, p_place integer, OUT done_id integer, OUT via text) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body 4989a3a4cf57da9dda8b2190e939c046
function millrace.done_until(p_pipeline_id integer, p_stage_id integer, p_was text) returns integer language sql stable set search_path=pg_catalog, pg_temp body b7aa6272745f83d07674812ead88674d
function millrace.done_value(p_shows jsonb, p_output jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body eaca1563bdd6bc1664dca30f44a013ef
function millrace.done_values(p_shows jsonb, p_manual boolean) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body 4077f317e3020e8f1bb00ee4a9262d52
function millrace.doorbell_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 187368335ac4cdbea87546a082f1df1e
function millrace.drop_claims(p_worker_id uuid, p_token uuid DEFAULT NULL::uuid, p_ended integer DEFAULT NULL::integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 297e0de56f1cfd757f838a49c3d6f479
function millrace.drop_limit(p_name text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9158f7d9d30c68fa66fc72e24c9438fb
function millrace.drop_old_news(p_stage_id integer) returns void language sql volatile set search_path=pg_catalog, pg_temp body 6eae141e31ee64d4beec19bef1d88bf0
function millrace.drop_turns(p_stage millrace.stages, p_verdicts json) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 34ac92ca0a1d41f859164dda2f686edb
function millrace.due_findings() returns TABLE(what text, ok boolean, detail text) language sql stable set search_path=pg_catalog, pg_temp body c21d67dce253aa11cd9478a1079924c9
function millrace.due_messages() returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 89b2ac801e647588c52db671146fef44
function millrace.due_of_payer(p_stage millrace.stages, p_payer millrace.payer, p_uncounted boolean) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 55cdca7c84dd7688f79c6f08a193ad99
function millrace.due_rows(p_pipeline millrace.pipelines, p_after timestamp with time zone, p_after_key text, p_limit integer) returns TABLE(key text, due timestamp with time zone) language plpgsql volatile set search_path=pg_catalog, pg_temp body 769c535251184ca196c288f56bd9b098
function millrace.due_to_prune(p_pipeline_id integer, p_table_name text, p_column text, p_days integer, p_from timestamp with time zone, OUT due bigint, OUT oldest timestamp with time zone) returns record language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off body 5975c99d30c7e977b7b1f13d4cea738d
function millrace.edges_to(p_stage jsonb) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body 496ecac29a6a509d55d9c917c971ccd7
function millrace.end_adoption(p_pipeline millrace.pipelines) returns TABLE(old_value text, rows bigint, value text, lands text, begins text, problem text) language plpgsql volatile set search_path=pg_catalog, pg_temp body cd6e2921439163c3f5f50f2c4ff09f33
function millrace.end_bypass(p_pipeline text, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 95871a278a0c01ae3a1cfa57730f0d22
function millrace.end_bypass_of(p_stage millrace.stages) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5526c06103779af0bcdcbc689c3e3d1c
function millrace.end_bypass_of_changed(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5a386f3bb0186475645c0cfece6eeede
function millrace.end_runs(p_run_ids bigint[], p_status millrace.run_status, p_failed_stage_id integer DEFAULT NULL::integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 56bb4f602a586e2f171e72668041d96b
function millrace.end_stage(p_run bigint, p_stage text, p_outcome text, p_result jsonb, p_error jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a76f98d34d647b4f4559d3d6cd77eddd
function millrace.end_throttles() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 621d8b694afa1b981a4b2b64a2538506
function millrace.end_turns(p_stage millrace.stages, p_groups text[], p_served text[], p_last_turn bigint, p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4b0220d910419f57dc39e8fdc1f5e7a4
function millrace.ended_runs(p_filter jsonb, p_cursor text, p_limit integer) returns text language sql immutable set search_path=pg_catalog, pg_temp body 55ebc008834c1cb13c50e67d29811b90
function millrace.endings_of(p_stage_id integer, p_items millrace.work[]) returns TABLE(run_id bigint, name text) language plpgsql volatile set search_path=pg_catalog, pg_temp body 612e4c8e50a249c7f475ad0d3e6a79ab
function millrace.engine(OUT level integer, OUT release text, OUT contracts integer[]) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body 57f2d6f789b69a90763bf0ffc5cd01d4
function millrace.engine_values() returns TABLE(pipeline_id integer, stage_id integer, value numeric, above numeric, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off body db84c188ef5f783455dfa2ae3b71a4b0
function millrace.enqueue_stage(p_run_ids bigint[], p_stage_id integer, p_by_name boolean DEFAULT false, p_shown boolean DEFAULT false) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body e592919fee24736c3472e931eed1c983
function millrace.enter() returns millrace.caller language plpgsql volatile set search_path=pg_catalog, pg_temp body de8d4259bc02dd41a1e567fe2d01594a
function millrace.enter_gate(p_stage_id integer) returns millrace.limiters language plpgsql volatile set search_path=pg_catalog, pg_temp body d795b5ff6ff5b198a7289d2dbe2144b6
function millrace.enter_to_act(p_operator text) returns millrace.caller language plpgsql volatile set search_path=pg_catalog, pg_temp body ef481525b282efc751df5c49f6a8770e
function millrace.entities_under_way(p_pipeline millrace.pipelines, p_stage_id integer, p_entity_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 3982a245808d6dd45635c7bc1e0f543d
function millrace.error_finding() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off body 425cf67a06d4a3ea20b99a6fe01ecebd
function millrace.error_kind(p_sqlstate text, p_context text DEFAULT NULL::text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 68a5def6974b0d6321412294facb854d
function millrace.errors_shown(p_pipeline_id integer, p_ids text[]) returns text[] language plpgsql stable set search_path=pg_catalog, pg_temp body 98136009fbc61daa4545e15224e50152
function millrace.estimate_cost(p_pipeline_id integer, p_do jsonb, p_run_ids bigint[]) returns numeric language sql stable set search_path=pg_catalog, pg_temp body 58add9bd82aa825eef380b8e1900edec
function millrace.event_of(p_alert millrace.rule_alerts, p_event text, p_now timestamp with time zone) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 1406dac1638c50ca0c8f4a28d4a6959a
function millrace.events_to_tell(p_now timestamp with time zone) returns TABLE(alert_id bigint, event text, channel_id integer) language plpgsql stable set search_path=pg_catalog, pg_temp body 13d65dfd7be8318ec5404d0b359c71a7
function millrace.execution_began(p_run_id bigint, p_stage_id integer, p_execution integer) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 361f5df4418f59348b714fd666e620ff
function millrace.explain(p_pipeline text) returns TABLE(stage text, at_once integer, batch_size integer, max_workers integer, row_cpu_ms numeric, row_memory text, why text) language plpgsql stable set search_path=pg_catalog, pg_temp body 164735d34350548c3d184fdd53122972
function millrace.fail(p_stage_id integer, p_items millrace.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9c0a6c57542f16dd92026f847b5e764d
function millrace.fail_lost(p_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 3b44a7bd92084b17a19d4bd57a63e769
function millrace.fail_one(p_run bigint, p_stage text, p_message text, p_permanent boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e1215871ffa35eaec289b30d5377794f
function millrace.fail_overdue(p_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 2031b29cdb10474311cc7a1a4d68a9ca
function millrace.fail_stage(p_run bigint, p_stage text, p_message text, p_permanent boolean DEFAULT false) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 1682d06771d8beba770228cb376e4e83
function millrace.fail_tired(p_stage_id integer, p_items millrace.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 09094b42cac5e0769a843249583548b1
function millrace.fan_in_output(p_fan_out millrace.fan_outs, p_kind text) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 27a03b34860f77b63492447eb30c44b6
function millrace.fan_in_verdict(p_fan_out millrace.fan_outs, p_fan_in jsonb, p_deadline_at timestamp with time zone, OUT outcome text, OUT error jsonb) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body cdf8b99df7a8ae40ecb5d90571c50c66
function millrace.fan_out_of(p_attempt millrace.attempts, p_child_pipeline_id integer) returns millrace.fan_outs language plpgsql volatile set search_path=pg_catalog, pg_temp body 58571f71d0a29d1a7f112bdc37063d56
function millrace.fault_of(p_pipeline text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 3750b3daedc8f91103e00ee4d8b6e0f3
function millrace.fault_of(p_schema jsonb, p_sentence text, p_otherwise text, p_required boolean) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 0c231b98fdad60c03e2ed18719122d2f
function millrace.faulty_jobs() returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 00e922ec328f17fdd674861fd94773e4
function millrace.figure_columns() returns text[] language sql immutable set search_path=pg_catalog, pg_temp body f02a7943aa7490557cb34b7f01278f57
function millrace.figure_rows(p_pipeline_id integer, p_stage_id integer, p_from timestamp with time zone, p_to timestamp with time zone, p_by_minute boolean) returns SETOF millrace.minutes language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_bitmapscan=off, jit=off body 02061d2052a63bf79a3c2ad14cd58195
function millrace.figure_values(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns TABLE(rule_id integer, pipeline_id integer, stage_id integer, value numeric, above numeric, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off body 63e3e179b575b9f1335f772d410d4a3c
function millrace.figures(p_pipeline text, p_stage text DEFAULT NULL::text, p_from timestamp with time zone DEFAULT NULL::timestamp with time zone, p_to timestamp with time zone DEFAULT NULL::timestamp with time zone) returns TABLE(completed bigint, ended bigint, failed bigint, retried bigint, skipped bigint, cancelled bigint, run_p50_ms double precision, run_p95_ms double precision, wait_p50_ms double precision, wait_p95_ms double precision, cost_usd numeric, input_tokens numeric, output_tokens numeric, codes jsonb) language plpgsql stable set search_path=pg_catalog, pg_temp body af36bc7cf49883e1bbcec096dd7aac7c
function millrace.figures_of(p_pipeline text, p_stage text, OUT pipeline_id integer, OUT stage_id integer) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body dfe2c3aea5b5836287fd185f134510f2
function millrace.fill_batch(p_stage millrace.stages, p_token uuid, p_items millrace.claimed[], p_entity_ids text[], p_bytes bigint, OUT batch json, OUT kept integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body fd0b088427af7603d1e79411027a21e2
function millrace.filter_conditions(p_filter jsonb) returns text language sql immutable set search_path=pg_catalog, pg_temp body 1620b83e4b08f764d4ce9f46082ce8cc
function millrace.filter_fields() returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body e650dc9a67cf94da74a463189c08a73d
function millrace.filter_portion(p_filter jsonb) returns integer language sql immutable set search_path=pg_catalog, pg_temp body 1642b2dce64a468eef02292b9664e4de
function millrace.filter_source(p_filter jsonb, p_behind text, p_most integer) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 58e2928120fb4df84eb858864784fe0a
function millrace.find_ended(p_filter jsonb, p_cursor text, p_limit integer, OUT run_ids bigint[], OUT next text) returns record language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_bitmapscan=off, enable_sort=off, jit=off body 33c94ff9a8a232edee0cf57034f03bb6
function millrace.find_fault(p_root jsonb, p_schema jsonb, p_value jsonb, p_path text, p_required boolean) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp body 95d897f5ddf8491ae7e8cd57419dabe0
function millrace.find_lines(p_table text, p_condition text, p_asked jsonb, OUT ids bigint[], OUT next text) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body c98fb3404372fedfcc423922b399348a
function millrace.find_runs(p_filter jsonb, p_after bigint, p_limit integer, p_up boolean DEFAULT false, OUT run_ids bigint[], OUT next bigint) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body e6e498ac64b72edb3bce731d3f9f1afe
function millrace.finish_bypass(p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 337ff2fc51d2e411cff13332295107e2
function millrace.finish_runs(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9a79414818bc561947cadf0a9264b1b7
function millrace.first_stage(p_pipeline_id integer) returns integer language plpgsql stable set search_path=pg_catalog, pg_temp body 36a076734521d92077ac2ae4267d6968
function millrace.fold_figures(p_limit integer DEFAULT 3000) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=on, enable_hashjoin=on, enable_sort=off, enable_memoize=off, work_mem=16MB, jit=off body 43087c22f3ccdc830f0f24608e66d2d0
function millrace.follow_ages(p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 50b4c6f64a62a0254d9b9e4d50772807
function millrace.follow_bound(p_stage_id integer, p_limit integer, OUT differ integer, OUT changed integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 7f5268a3e91b2de69167cf04994dc7d3
function millrace.follow_bounds(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body eec3c65f870ce5bdbb8023f7478bc388
function millrace.followers_with_work(p_stage_id integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0e213167c0c03c62f864526b23f132ca
function millrace.forget(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 96b89ce069a3e08cc9770152bb1d1824
function millrace.forget_alerts(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 137c2f5a0fe0264bd9d60c00ab03b81e
function millrace.forget_begun(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 909ca523eca4ebb7b0bfbd818b1e1624
function millrace.forget_bypassed(p_stage_id integer, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a159f51fc1e4c5e6e308b48aafa36d8c
function millrace.forget_decisions(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 59896128c44f592331901227c9a2690e
function millrace.forget_fan_outs(p_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6592b032c208fc6b00a42dc3bd2fbcee
function millrace.forget_given(p_run_ids bigint[], p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b8b75da51f2c4887e0f4ef491149a279
function millrace.forget_groups(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e45390a6a88bf6918aa0dd8832201db0
function millrace.forget_leftovers() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6d3058ca246078885ce0746a2bc4ceb0
function millrace.forget_refusals(p_limit millrace.shared_limits, p_key text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 781826159038e78be6a4684bd7cc495e
function millrace.forget_worked(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9e05adb31e274a22544fd9c867adad9c
function millrace.former_results(p_stage_id integer, p_run_ids bigint[]) returns TABLE(run_id bigint, former_id bigint, hash uuid) language plpgsql volatile set search_path=pg_catalog, pg_temp body 105a99227924c1721b3840913a37c70e
function millrace.free_of_key(p_stage millrace.stages, p_group text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 86bb7088d66687cdb3194317c890d47c
function millrace.free_places(p_stage millrace.stages, p_worker millrace.workers, p_may_wait boolean, OUT places integer, OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body abb2bceecf6b5d3d341b593d5908b99d
function millrace.free_slots(p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5692665caf5242c842ad02249e809597
function millrace.function_named(p_name text, p_arguments text) returns regprocedure language plpgsql stable set search_path=pg_catalog, pg_temp body f48b4621479c622604016f45152b66ca
function millrace.give_back(p_stage millrace.stages, p_token uuid, p_kept bigint[], p_back bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 77062e81e6ca5ae7acc079a210c5d976
function millrace.give_back_limits(p_stage millrace.stages, p_kept bigint[], p_back bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 01084d81a8d6d00c326527355ffcb7bf
function millrace.give_back_turns(p_stage millrace.stages, p_kept bigint[], p_back bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body aedc6496cf1d0d4d1efc122a49ab8a9e
function millrace.give_up_by_value(p_pipeline_id integer, p_was text, p_value text, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6642e40419e937738f132671b8a915d6
function millrace.given_at_first(p_pipeline_id integer, p_version_id integer, p_entity_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 57be4ff0a0d2ae07daa98c57ff477b2d
function millrace.given_expressions(p_pipeline millrace.pipelines, OUT counted text, OUT document text) returns record language sql stable set search_path=pg_catalog, pg_temp body 12a2e6964b4775ece48f59efec18650e
function millrace.given_runs(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body e8791b409545214a28054f5fae4f0260
function millrace.go_on_checking(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 7f96ceb9dcc970785bd5f8cca30f784d
function millrace.graph_of(p_definition jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body b39e5578dcdaaadd053ab677baa0ef2a
function millrace.group_key(p_value text, p_part text) returns text language sql immutable set search_path=pg_catalog, pg_temp body bc2fdf468acc978f8c3615ff87e9def1
function millrace.group_keys(p_stage millrace.stages, p_entity_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 64ab7182646daa59274d4f4391c67636
function millrace.groups_sorted_by(p_limits jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body d6788d3927b6b3ab92870f8cbc7dba11
function millrace.groups_with_arrivals(p_stage_id integer, p_after text, p_limit integer) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0dfd16e62b758893a5c8e122d8ce1645
function millrace.hand_out(p_call millrace.call, p_token uuid, p_items millrace.claimed[], p_attempt_ids bigint[], p_entity_ids text[], OUT batch json, OUT kept integer, OUT cut boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 39b89a3b5ab928fa3f2745fdf48bfe3b
function millrace.has_column(p_definition jsonb, p_column text) returns boolean language sql stable set search_path=pg_catalog, pg_temp body 64b57c8e1ef7737b3528f46711f99238
function millrace.has_columns(p_pipeline millrace.pipelines, p_stage text) returns boolean language sql stable set search_path=pg_catalog, pg_temp body da5ee22e39b65e9a281eab9d901301d7
function millrace.has_ready_work(p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body fdfc5980206644ad5c6144f576a060b5
function millrace.heed_clock(p_pipeline_id integer) returns void language sql volatile set search_path=pg_catalog, pg_temp body 73dda19e5a041401c34e106bc761347b
function millrace.held_batch(p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[], p_bytes bigint, OUT batch json, OUT kept integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body ceb0f7610e3cfb782ff2b8e996a7b97d
function millrace.held_by(p_worker_id uuid) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body d0ead5c3b46e89996fd5a307208937b3
function millrace.held_counts() returns TABLE(stage_id integer, started bigint, waiting bigint, since timestamp with time zone) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_bitmapscan=off, enable_mergejoin=off, jit=off body 98cb8f4281d9eba77bc5bd829262fb2f
function millrace.held_items(p_token uuid, p_attempt_ids bigint[]) returns millrace.claimed[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 5e176c6d4e6ae7b8279836e45bd4a821
function millrace.history_faults(p_pipeline millrace.pipelines) returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, jit=off, plan_cache_mode=force_generic_plan body 543d6660ca9c16828d6890017f8ab0e1
function millrace.history_of_written(p_pipeline millrace.pipelines) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body b1f643c6783de8067dbd1f16fa1f3cad
function millrace.hold_back(p_stage millrace.stages, p_payer millrace.payer, p_kind text, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 93bb02ba3ea75809b848f8256e2e3bad
function millrace.hold_fan_out(p_fan_out_id bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body d35cf39f594c6785c874621ba4ca339c
function millrace.hold_free_runs(p_pipeline_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body d09536e6b1ce0fd5e9f9ee6a0426fb1e
function millrace.hold_message(p_quota jsonb, p_kind text, p_due_at timestamp with time zone) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body ab6e5bacaa447ed5ca620d46454ba230
function millrace.hold_parent(p_run_id bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body f95b5c7b10f82ae099d644b9b06559a0
function millrace.hold_runs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7f97715c1602f50a652274eef11d7626
function millrace.hold_stage(p_run bigint, p_stage text, OUT run millrace.runs, OUT version_stage millrace.version_stages, p_whole boolean DEFAULT false) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 7ead50d50997c8bd17a1fa735e6c9ba5
function millrace.hurry(p_run bigint, p_stage text DEFAULT NULL::text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body de8cd6918f6de5b8b93ea321531f8671
function millrace.hurry_one(p_run bigint, p_stage text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 372dc24d595ed08a4f38b920357708da
function millrace.in_flight_at(p_stage_id integer, p_most integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 0844d6284a40aa6b996aa68444ba8f3a
function millrace.in_flight_under(p_limit_id integer, p_most integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body d2665c551eee9d253bba8a0b3966582d
function millrace.in_words(p_interval interval) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body ad57b084a9326509ae145c2147f00fb0
function millrace.inherit_place(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 01a39a69ad94849241896fd2ea6cfa40
function millrace.inherit_quotas(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4283d0546950eceb2ad0a00ac6e9f553
function millrace.inputs_now(p_stage_id integer, p_run_ids bigint[]) returns TABLE(run_id bigint, hash uuid) language plpgsql volatile set search_path=pg_catalog, pg_temp body 3d09123248ebc08e4d3ad38689b22b94
function millrace.intake_body(p_pipeline millrace.pipelines, p_key_type text, p_from text, p_was text) returns text language sql stable set search_path=pg_catalog, pg_temp body 33d8f345345cb9a50cb5e0fccd2628eb
function millrace.intake_of_retries(p_pipeline millrace.pipelines, p_from text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 28dbf242c3cccf8267b66a9151dbfc6c
function millrace.invariant_findings(p_deep boolean) returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off body f92c64314ae91cf51090cc65bfc35dd8
function millrace.is_done(p_run_id bigint, p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 6c00ef1704b1167140fd89b472a25776
function millrace.is_last(p_stage millrace.stages) returns boolean language sql stable set search_path=pg_catalog, pg_temp body c8c6b37caaadae029b9f009f6d4cf4fe
function millrace.is_last_word(p_attempt millrace.attempts) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 656d381baa126644249710ba8188051d
function millrace.is_latest_run(p_run_id bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 3b9a300ee8596cf8862ff42ce1c98035
function millrace.is_only_root(p_stage millrace.version_stages) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body 8385d31aefb722ca77e228cb875b57ab
function millrace.is_plain_root(p_stage millrace.stages, p_status jsonb) returns boolean language sql stable set search_path=pg_catalog, pg_temp body 94c1fca994afdd879aac658512d71d68
function millrace.is_rested(p_ways integer[], p_key text, p_due timestamp with time zone) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 5bcf198b0519f76e23b2191a927b5a21
function millrace.is_short(p_span interval) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body 3e747d92606876bac2ba2278deb482e4
function millrace.is_silenced(p_pipeline text, p_stage text, p_kind text) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body e013fbfc25af6ba2ba881eb43bc7040b
function millrace.is_spent(p_stage millrace.stages) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 2f423a3b239fa36a916e125a9afc4bce
function millrace.is_spent_out(p_stage millrace.stages) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 75693bd258dc0cf4ba04b3e3541bcb47
function millrace.is_spent_under(p_limit millrace.shared_limits, p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body c355b7e30a1fed7d4a8e62bb936aec3f
function millrace.item_fault(p_item jsonb, p_key text, p_id bigint) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 70d7fef8271db1dd9acf403b61d234a6
function millrace.item_numbers(p_keys text[]) returns integer[] language plpgsql immutable set search_path=pg_catalog, pg_temp body 5cd2a065766807aa4af18473cc75d532
function millrace.items_of(p_items json) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 368028c5f168b565f049d053e6413364
function millrace.join_children(p_fan_out millrace.fan_outs, OUT ready integer[], OUT busy boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body ffedb9d4aabffbccfa88f819206a23bc
function millrace.json_path(p_path text, p_key text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body a239d4169f2317dd11ee7b93e1f8cb36
function millrace.judge_kind(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a8a5b8dfacc4ea6b96c6acb8d31eb36a
function millrace.judge_or_report(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2fc3fdfff6f4a401be55aff13c4d00d2
function millrace.judge_rules() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 7e4c61e891014bc87d41b0153d753ba2
function millrace.judged_values(p_pipeline_id integer, p_ids text[], p_was text[], p_now text[]) returns TABLE(version_id integer, live_id integer, until integer, fresh boolean, was text, now text, ids text[], means text, stage_id integer) language plpgsql stable set search_path=pg_catalog, pg_temp body 09061d933046af3016b8da83d8e88071
function millrace.keep_costs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_hashjoin=on, jit=off, plan_cache_mode=force_custom_plan body 9f0b4b9b29bb291606932b79c694d52a
function millrace.keep_former_runs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_hashjoin=on, jit=off, plan_cache_mode=force_custom_plan body 1a29a2f38971d683045001a5d4b5fe04
function millrace.keep_inputs(p_stage millrace.stages, p_batch json) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 12fc04eeaebe2f41fbfd8c5205c5c7ec
function millrace.keep_journal() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 83525a800a26ccdc6434a48ea382c23d
function millrace.keep_polling() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 91443ea7d7ffaf82cabd4d196479eddc
function millrace.keep_throttles(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f4c39fc9795899113ee98cf98c16a969
function millrace.keep_to_quota(p_stage millrace.stages, p_payer millrace.payer, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c91788da18d42a8265341757baad7900
function millrace.keep_to_quotas(p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[]) returns millrace.claimed[] language plpgsql volatile set search_path=pg_catalog, pg_temp body db79c803af15373b085d3332dce38b6b
function millrace.kept_values(p_version_id integer) returns TABLE(value text, stage_id integer) language sql stable set search_path=pg_catalog, pg_temp body 337511261d1fb901f1079d65e3b4d8dd
function millrace.key_of_row(p_pipeline millrace.pipelines, p_entity_id text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body b93532e5b200b182013546f7aa73b95a
function millrace.key_type(p_pipeline millrace.pipelines) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 32e87e96208956cb6b531d0627f72ac7
function millrace.keyed(p_limit millrace.shared_limits, p_key millrace.limit_keys) returns millrace.shared_limits language plpgsql volatile set search_path=pg_catalog, pg_temp body 18316ee1d6c5d4bcb9dc9bc061d9828d
function millrace.keys_expression(p_pipeline millrace.pipelines, p_key_type text, p_column text, p_part text) returns text language sql stable set search_path=pg_catalog, pg_temp body 28c1a0c10413723a556fc4e5cc446581
function millrace.keys_named(p_pipeline millrace.pipelines, p_entity_ids text[]) returns text[] language plpgsql stable set search_path=pg_catalog, pg_temp body 9dffea8400d6e34bdaf293886fbd8a52
function millrace.keys_of_entities(p_pipeline_id integer, p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9a6c0839e8ededaadbe87cbae9c4ff5a
function millrace.keys_refused_at(p_stage_id integer) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body f76a4a35ed4c1945931d7c7cd83c9c8d
function millrace.kind_fault(p_root jsonb, p_schema jsonb, p_value jsonb, p_path text) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp body d1036b7c07623c0c1aa9fc36f732ed7f
function millrace.known_pipelines() returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 78f487edca3cd6ebea0b52b0d547dc68
function millrace.label_findings() returns TABLE(what text, ok boolean, detail text) language sql stable set search_path=pg_catalog, pg_temp body 9d48c508be1e6e15d30dd1243971e711
function millrace.label_of(p_pipeline millrace.pipelines, p_entity_id text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body dc2685119a4df5969456a67f9f9d1ebc
function millrace.label_search(p_pipeline millrace.pipelines) returns text language sql stable set search_path=pg_catalog, pg_temp body 1c404aa80d9b05eb727e995e945067dc
function millrace.landings(p_pipeline_id integer) returns TABLE(value text, lands text, stage_id integer) language sql stable set search_path=pg_catalog, pg_temp body 5b320def309232b0b7fdd92b4f94b686
function millrace.last_answers(p_limit integer) returns TABLE(function_name text, posted_at timestamp with time zone, status_code integer, error_msg text, content text) language plpgsql stable set search_path=pg_catalog, pg_temp body 5c1f26af3825f742fe28d04c19ad859f
function millrace.late_attempts(p_items millrace.work[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6f8ac036198f48cddc165c8977404024
function millrace.late_counts() returns TABLE(stage_id integer, late bigint) language plpgsql volatile set search_path=pg_catalog, pg_temp body ff9ecbf36d5b98bea65b74a30da774a5
function millrace.late_runs(p_stage_id integer) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body 7f798ab5b6d7bb3659a728de4500f9c0
function millrace.late_values(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns TABLE(rule_id integer, pipeline_id integer, stage_id integer, value numeric, above numeric, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 48edd239c3bc4f52ca7047fa3b2a26ce
function millrace.latest_version(p_stage_id integer, OUT id integer, OUT number integer, OUT needs integer[], OUT names text[]) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body 41fc5270adf775409ff53b3cee039622
function millrace.leads__apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 5e5f5101ce0f7c10e4659b15cd2ad7b8
function millrace.leads__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 5b560e47aeeae65a7cb18d0b56f66917
function millrace.leads__intake() returns trigger language plpgsql volatile security definer set enable_nestloop=off, search_path=pg_catalog, pg_temp body 3b27a7388dc4b01d8e15092fd127e1a0
function millrace.leads__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.leads__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9096cb4ddfa2e0c9500cba5a65160c1f
function millrace.leads__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6238de4f825c96ed2e5c77bdca3fdfe4
function millrace.leads__queued(p_stage text, p_dependents text[], p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 6ff137df9896b79d6667817070029f2c
function millrace.leads__quota_keys(p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 9e298927b3d181f5ac201be2a190f012
function millrace.leads__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body e00bdfe8e82b3c9679d08eb6b4c2dfca
function millrace.leads__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 28286bc6787d05db3872ddccd05a9727
function millrace.leads__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 7eeb43e0b58de1e678c4685a6881d880
function millrace.leads_back(p_pipeline_id integer, p_ids text[], p_value text) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body a4f6afad86988cc5c5a52e202d68cdd5
function millrace.learn(p_limit_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b5e7a2cb0ec75fbc1f20ae94dcd2b43d
function millrace.learn_from_loss(p_stage_id integer, p_hosts uuid[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 863be3f29ec5f79f21b1f5657ef5802e
function millrace.learn_of_key(p_limit millrace.shared_limits, p_refusal millrace.limit_refusals) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4b8442d3ea512af8d14d8520e82113fc
function millrace.learn_row_cost(p_stage_id integer, p_cpu_ms real, p_bytes bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ae34c7b8cf428e46be42fdb9e90e73b3
function millrace.learned_in_words(p_name text) returns text language sql stable set search_path=pg_catalog, pg_temp body ce871f4d4560889f2e8e8db185d2254e
function millrace.leave_children(p_stage millrace.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e87af4d31ac4d10c385e141b0c4167d1
function millrace.let_go(p_pipeline millrace.pipelines, p_limit integer, OUT held boolean, OUT gone integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 417ced2258bd1ec7b451358aaa06327f
function millrace.limit_seen(p_caller millrace.caller, p_name text) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 4a4ff4bf8b1647e0daead4891f5b0f0c
function millrace.limits_of(p_stage jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 3e6e71f5812c91b38e550e1307b4367b
function millrace.line_condition(p_caller millrace.caller, p_asked jsonb) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body c46d7c457d686e4d621ff70a4138e962
function millrace.link_sources__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 208da1963f61a0efaf999d815436fd26
function millrace.link_sources__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.link_sources__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ab99e79774caaecf556bdf4a651fe73d
function millrace.link_sources__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 99d418ba3a6bc05e6fe90ed5c449816d
function millrace.link_sources__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 017574294261ee3816b825c02edd930c
function millrace.links__apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body b7256b4c284db98c3e0c011c7ebad084
function millrace.links__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 29ee10acd9abbd21d50222ec064d22b0
function millrace.links__intake() returns trigger language plpgsql volatile security definer set enable_nestloop=off, enable_seqscan=off, work_mem=32MB, search_path=pg_catalog, pg_temp body 21ba586f59b8cc8539535d828bd148d2
function millrace.links__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.links__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 8e29f027e81fa1e14b77bd5979cab0b7
function millrace.links__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2e8a1c019d4a85f8d5803ba61fdc20d5
function millrace.links__queued(p_stage text, p_dependents text[], p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 7f654156d088667cc0c5a2da1eb7c5e4
function millrace.links__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 517e5eae64e0484b149350d03231925e
function millrace.links__since() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body d3c94c7bf816bc349cea826513fa11e0
function millrace.links__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body aaadb4cd3c9d893b421da676bc45c41b
function millrace.links__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body fb3356927b2a20368fa8f7870e884704
function millrace.links__traces(p_ids text[]) returns uuid[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 548827c97c345b6b9d30d9a47072753e
function millrace.live_counts(p_most integer DEFAULT 1000) returns TABLE(stage_id integer, ready bigint, in_backoff bigint, started bigint, waiting bigint, failed bigint, oldest_due_at timestamp with time zone, oldest_open_at timestamp with time zone) language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_sort=off, jit=off body fb17603f46eb57b5ea7881325925a823
function millrace.live_values(p_shows jsonb) returns text[] language plpgsql immutable set search_path=pg_catalog, pg_temp body 9c95ed1e330b109d17acd0856f2262c5
function millrace.live_workers(p_stage_id integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 02cdbaa02e164dd755986a7bd32e86bd
function millrace.lock_attempts(p_attempt_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 03e38bf14e495cf0bfb5790bf3b19ecd
function millrace.lock_before_stages(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9b878131c7cea148e38c447d0c94c65c
function millrace.lock_due(p_pipeline millrace.pipelines, p_keys text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 1a0143bbd27a7a0c345ed123f2b7ea15
function millrace.lock_entities(p_pipeline_id integer, p_ids text[], p_wait boolean) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c5189fb74741f289d569ce255b2d8380
function millrace.lock_limiters(p_pipeline text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8a677e7fc177f32dc2b8f4ee2e8e6200
function millrace.lock_prunable(p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 5ffb82e763e57dd09fff726ff6583a45
function millrace.lock_rows_named(p_pipeline millrace.pipelines, p_entity_ids text[], p_wait boolean) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c161126eaff15f0c7aa372fe24c4a687
function millrace.lock_shared_limit(p_limit_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 05da14f8e7c44604889714fe850e9cb9
function millrace.lock_table(p_definition jsonb, p_table regclass) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6c4cb3fe2bab5ca083ed4e9ecb7b6526
function millrace.lock_uniform_batch(p_items millrace.work[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body fa41b20ef0e71fd5afe563df6e6952c9
function millrace.lock_waiting(p_pipeline millrace.pipelines, p_value text, p_limit integer) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 09ddd8a709957734ce3cab145902f6e3
function millrace.lowered(p_limit millrace.shared_limits, p_refusal millrace.limit_refusals) returns millrace.shared_limits language plpgsql volatile set search_path=pg_catalog, pg_temp body 5ae5c50770a3429f168e6d9b88e6321e
function millrace.mark_acknowledged(p_alert bigint, p_by text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2362c83a626bfe95adb2d5defa5c2a1d
function millrace.mark_drawn(p_version_id integer) returns void language sql volatile set search_path=pg_catalog, pg_temp body 5189f9da314afc3b296e197c68a74505
function millrace.mark_late(p_items millrace.work[], p_late bigint[]) returns millrace.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 36b0ff4e58198b315cfcb95eb8e9f03a
function millrace.may_claim(p_stage millrace.stages) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 20da2c3dd6914ea9e66982ba50dcc120
function millrace.may_scale_out(p_stage millrace.stages) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 20923fa77561dca9ddaa8169ec302efa
function millrace.measured_rows(p_stage millrace.stages, p_items millrace.claimed[], p_entity_ids text[], p_bytes bigint) returns millrace.built[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6b1f3f926f8503370f54d73eea101668
function millrace.metadata_of(p_run bigint) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body 495d34cabecb8381850e25a0841b56e6
function millrace.metadata_of_entities(p_pipeline_id integer, p_ids text[]) returns jsonb[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 5ed74a5449c610a66344d9c6a389181b
function millrace.missing_due_index(p_pipeline millrace.pipelines) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 01dcaa5d66e88f3770e4bd47c824372b
function millrace.missing_function_finding() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off body 8a5d71d1fe685b0bc218e20f6006cb78
function millrace.missing_label_index(p_pipeline millrace.pipelines) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 95f26ab9cc7c469af35aca4dac68834b
function millrace.missing_time_index(p_table regclass, p_column text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 03694680cdf6d9b1c526ff122bb425d7
function millrace.most_events() returns integer language sql immutable set search_path=pg_catalog, pg_temp body 09657a2d7ddcb4b30daf1b82c8f97eed
function millrace.moves_between(p_version_id integer) returns TABLE(from_value text, to_value text, means text) language sql stable set search_path=pg_catalog, pg_temp body 98f30e293b22817ff10a522c14c56e87
function millrace.moves_of_calls(p_version_id integer) returns TABLE(from_value text, to_value text, means text) language sql stable set search_path=pg_catalog, pg_temp body 1563cc1011951a903b67f38851678141
function millrace.moves_of_people(p_version_id integer) returns TABLE(from_value text, to_value text, means text, at_stage_id integer, stage_id integer, declared boolean) language sql stable set search_path=pg_catalog, pg_temp body baff91812cceda36eb6c0a177706e94b
function millrace.moves_of_questions(p_version_id integer) returns TABLE(from_value text, to_value text, means text, at_stage_id integer, stage_id integer, declared boolean) language sql stable set search_path=pg_catalog, pg_temp body afb012b93da115fe773ef38d4a6dfcf6
function millrace.moves_to_nothing(p_version_id integer) returns TABLE(from_value text, to_value text, means text) language sql stable set search_path=pg_catalog, pg_temp body 99ef022457693e40581a24c7a99b803b
function millrace.moves_within(p_version_id integer) returns TABLE(from_value text, to_value text, means text) language sql stable set search_path=pg_catalog, pg_temp body 1268749574aa904aaee58c0a178fcb4f
function millrace.ms_between(p_from timestamp with time zone, p_to timestamp with time zone) returns real language sql immutable set search_path=pg_catalog, pg_temp body 1652e97bf1bd5bfdbbd311149d86dce7
function millrace.must_see_both_ways(p_ways integer[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 784095b8cc50a77c8cb5f1ad5f7d19b9
function millrace.must_stay(p_worker millrace.workers) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 7500047635bf96bb98034820e4a3ac62
function millrace.name_parents(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9bab523be997db32ff83d01b79176f5c
function millrace.name_payers(p_pipeline_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2375a07f26dc51041a415fe6dc221de3
function millrace.names_stage(p_pipeline_id integer, p_stage_id integer) returns boolean language sql stable set search_path=pg_catalog, pg_temp body d54e121934e19905a5cd394da8072c04
function millrace.need_fields(p_request jsonb, VARIADIC p_fields text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body bffac573764846b1e705cde5803a84a1
function millrace.needing(p_version_id integer, p_stage_id integer) returns integer[] language sql stable set search_path=pg_catalog, pg_temp body b14f5016febbd222252cce5244acf4fa
function millrace.needs_of(p_run_id bigint, p_version_id integer, p_stage_id integer, p_each bigint) returns json language plpgsql stable set search_path=pg_catalog, pg_temp body 169f25c256021e320e3037b3c7980509
function millrace.new_runs(p_pipeline_id integer, p_entity_ids text[], p_stage_id integer, p_done_before integer DEFAULT NULL::integer) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 459e53d36b330a20199183d249ecb8f8
function millrace.new_way_ids(p_new millrace.pipelines, p_entity_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 99251d3c5e02a0466a405d2f363e17d4
function millrace.next_alone(p_stage millrace.stages, p_first boolean, p_retired boolean) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body 33bad023e3c04c344028fbc39f6f7f58
function millrace.next_due(p_pipeline millrace.pipelines, p_progress millrace.due_progress, p_limit integer) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body f2950d8a446d4b423c527be2f39bcbb9
function millrace.next_gate(p_stage_ids integer[], p_after_at timestamp with time zone[], p_after_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 6b8ed19ba6f56c0bdbd88a1205f1ec5d
function millrace.next_unadopted(p_pipeline millrace.pipelines, p_call text, p_limit integer, OUT old_column text, OUT keys text[], OUT old text[], OUT codes text[], OUT lands text[], OUT stage_ids integer[], OUT has_run boolean[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 906fe35f6d0e1cfb4bc3b3bb0da06f80
function millrace.note(p_verb text, p_pipeline text, p_stage text DEFAULT NULL::text, p_run_ids bigint[] DEFAULT '{}'::bigint[], p_said jsonb DEFAULT '{}'::jsonb) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body a77823f23a88a078e6d65393a6f2f5a9
function millrace.note_awaited(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1c6447d71b8ff409aca0d343edbd977c
function millrace.note_beginning(p_pipeline_id integer, p_stage_id integer, p_was text, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f3e8f9950f3dcfa7c92021262f2c657f
function millrace.note_delivery(p_said jsonb) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 4bc75930d1686510f0c0851a1acaa61c
function millrace.note_done_before(p_run_ids bigint[], p_stage_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e54130eed9f997b91980d6dbca0cc4b1
function millrace.note_given(p_pipeline_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 525d533e9fb7aaef410713f34fff3154
function millrace.note_in_flight(p_stage millrace.stages, p_attempt_ids bigint[], p_groups text[], p_token uuid, p_worker_id uuid) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e4a66024b9b30016b5df2b6c6c7cd233
function millrace.note_on_attempts(p_faults jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body ee329290fcad8446da4f194707aa080f
function millrace.note_operator() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body f87087547fe5b84b4215e7284fc8e5d0
function millrace.note_pulses(p_outcome text, p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 91be7aed42020f61924621b165fd9d53
function millrace.note_refusals(p_stage_id integer, p_items millrace.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1901043d59122d4995c6f2e0a5a55b1f
function millrace.note_run(p_verb text, p_run bigint, p_stage text DEFAULT NULL::text, p_outcome jsonb DEFAULT '{}'::jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f6eed3052f5602e29f2c61dc8844e28f
function millrace.note_share(p_stage_id integer, p_room integer, p_short_of integer, p_taken integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ee24c97f092f116f1ee7ae307c66464d
function millrace.note_shared(p_stage_id integer, p_items millrace.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c688ce589f74cc8d7615e27df805c529
function millrace.note_spending(p_items millrace.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body aa17b9c94638db47d5805da02e8ec3d0
function millrace.note_starts(p_run_ids bigint[], p_since timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body bff7b735950e8bc32a43ade9922441ad
function millrace.note_sweep() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 899eb30b946b5f9e1343abb186c15f79
function millrace.note_switched() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body db760fbad0561eefeec3ca885c4183fb
function millrace.note_values(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 0a9d668a4fb87646d7baee7a701b2824
function millrace.nothing_done(p_version_id integer) returns TABLE(value text, before integer[]) language sql stable set search_path=pg_catalog, pg_temp body f8b9b72d87929a7ae35800022bb177ac
function millrace.now() returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 29396b4a64060706b0495e01ebaeb830
function millrace.object_fault(p_root jsonb, p_schema jsonb, p_value jsonb, p_path text) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp body cc8cfbd960667cc6084fc8f8aa427063
function millrace.old_means(p_pipeline_id integer, p_old text, p_value text) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body e397f3a078bcf861c87c45c18cecb3fc
function millrace.old_rows(p_table regclass, p_column text, p_before timestamp with time zone, p_progress millrace.prune_progress, p_limit integer, OUT rows tid[], OUT free tid[], OUT last_at timestamp with time zone) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 8c58bfd25552d7ad65e9ac8404f0e9af
function millrace.old_value_of(p_pipeline_id integer, p_value text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 2fc15073e62ae0f637a0331b243ff4c6
function millrace.on_retries_moved(p_pipeline_id integer, p_ids text[], p_was timestamp with time zone[], p_at timestamp with time zone[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_nestloop=on, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body ac3d01acdc00d02d3b58f2c6b1ca3528
function millrace.on_status_written(p_pipeline_id integer, p_stage text, p_status text, p_entity_ids text[], p_dirty_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_nestloop=on, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 2bc940eb0d06166bbc3cfb63469c3223
function millrace.on_the_clock(p_limit millrace.shared_limits) returns millrace.shared_limits language plpgsql volatile set search_path=pg_catalog, pg_temp body c43cfdc7781d113d1db93a39b64aa40a
function millrace.on_values_written(p_pipeline_id integer, p_ids text[], p_was text[], p_now text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_nestloop=on, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 3ec56297c9689d58eb7efc5ff8b575b2
function millrace.open_decisions(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6d38078030935be34d545e4bfd5d1092
function millrace.open_moves(p_version_id integer, p_live_id integer, p_until integer, p_fresh boolean, p_was text) returns TABLE(to_value text, means text, stage_id integer, declared boolean, place integer) language plpgsql stable set search_path=pg_catalog, pg_temp body 8a8e686b6c4b5af2e7fbcf63e17c2631
function millrace.open_runs(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 82e18e0591e7bdbbfe5b4f38e1594bd4
function millrace.order_stages(p_stages jsonb) returns text[] language plpgsql immutable set search_path=pg_catalog, pg_temp body 49e17667c9723d9e85a592042e7316e9
function millrace.ordered_values(p_version_id integer, p_status jsonb) returns TABLE(value text, place bigint) language sql stable set search_path=pg_catalog, pg_temp body f9b058e1483bb969ef0fa942a0479331
function millrace.outcomes_of_answers(p_attempt_ids bigint[]) returns millrace.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 54dda48c27b51586769beab3b8a0ef4a
function millrace.owner_message(p_error jsonb, p_attempt_id bigint) returns text language sql immutable set search_path=pg_catalog, pg_temp body 7b5ccf7b4f0b824d4af6e0fb8e51397f
function millrace.pages__apply_outcomes(p_stage text, p_changes millrace.change[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 16e5432c800efb2c47e4a69561e7c8b0
function millrace.pages__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 7c9ddc0e64a377cdc619ad0370acf262
function millrace.pages__intake() returns trigger language plpgsql volatile security definer set enable_nestloop=off, search_path=pg_catalog, pg_temp body 6a9d7c859de5fc870d1a8432e409c7ef
function millrace.pages__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.pages__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 60703e756886ca771b3e3380cac8ec9d
function millrace.pages__queued(p_stage text, p_dependents text[], p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 64cda08c7f194bc3978e1e2af5784f03
function millrace.pages__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ebf2b7ed1cf1f4216918555333a77837
function millrace.pages__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body cb4f503474d4c84519d0aea253f32282
function millrace.pages__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body f51fd5229b3afceb788468c2a4f9ee50
function millrace.parents_to_collect(p_except bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 682e786f66d7eb86e74fa51e94c4aaa0
function millrace.parents_without_child(p_child millrace.pipelines, p_stage_id integer, p_run_ids bigint[], p_free text[], p_faults text[]) returns millrace.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b3192ee5b99d2d2e1c000f8a2e78313a
function millrace.parse_items(p_items json, p_key text) returns millrace.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7b7bbc3f284af271143080b7583449ed
function millrace.pass(p_stage millrace.stages, p_items millrace.work[], p_guarded boolean DEFAULT false, OUT passed integer, OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body ea4f1f0fc7ce4ec49c5990c247a16aa6
function millrace.pass_at_once(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 4518111345a125577a97de09c915a046
function millrace.pass_back_pressure(p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 98d4dbc6ea24cc9e24c3ac9d207b1232
function millrace.pass_if_open(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body df9f21f1d1e2cc48d5bbd71220fa71fc
function millrace.pass_limiter(p_stage_id integer, p_may_wait boolean) returns millrace.limiters language plpgsql volatile set search_path=pg_catalog, pg_temp body 7cd7141085aa8e303453b1580a780493
function millrace.pass_next(p_stage_id integer, p_after_at timestamp with time zone, p_after_id bigint, p_limit integer, OUT passed integer, OUT last_at timestamp with time zone, OUT last_id bigint, OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 28833fd250300b4c74bdc938ff1c4909
function millrace.pass_over_written(p_pipeline millrace.pipelines, p_from text, p_moved text, p_was text, p_began text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 9e2c6cee807da88e5e45c2dee5214a49
function millrace.pass_set(p_stage millrace.stages, p_attempt_ids bigint[], OUT passed integer, OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 21e0580b6124efe7bab05067d915a531
function millrace.pass_shared(p_stage_id integer, p_may_wait boolean) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 184ad1705063a692862787802330db32
function millrace.pass_thresholds(p_fan_out millrace.fan_outs) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b675541c399f58cd5d3c89e904d91ed7
function millrace.pass_thresholds_guarded(p_fan_out millrace.fan_outs, OUT wake integer[], OUT busy boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 82588bfd68f838425c50ea81c9b740db
function millrace.paths_of(p_condition jsonpath) returns TABLE(names text[]) language sql immutable set search_path=pg_catalog, pg_temp body c05a83ed658c6873bb5f5ac1c7546c6c
function millrace.pause(p_pipeline text, p_stage text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body bb1877dca101fd42714b25afae7457bd
function millrace.pipeline_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 236bdac807b510dcc658ecc38f117d9d
function millrace.pipeline_seen(p_caller millrace.caller, p_pipeline text) returns millrace.pipelines language plpgsql stable set search_path=pg_catalog, pg_temp body 45040b937cad75df132502adf488f205
function millrace.pipelines_to_sweep() returns TABLE(part text, id bigint) language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 3a3b94722874ceac38048b543fc20f2e
function millrace.place_attempts(p_stage millrace.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 43d555bb4e16887c56bd5abeac01afe7
function millrace.places_of(p_stage millrace.stages, OUT at_once integer, OUT batch_size integer, OUT max_workers integer, OUT row_cpu_ms numeric, OUT row_memory bigint, OUT lives_cut integer) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body f4fd8a6e44f5cf287703c26c888e82de
function millrace.plain_text(p_text text, p_most integer) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body dcdd6c1b222dfaa0fcc9d521c961ca5d
function millrace.playbook_of(p_kind text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body ad34521307e77b4c998fe1feb178ab43
function millrace.portion() returns integer language sql immutable set search_path=pg_catalog, pg_temp body dae2c94fe4969506d197808974d46b55
function millrace.post(p_function text, p_body jsonb) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 8efe5b3981d6ab5423acbd50cdb57974
function millrace.pressures_in(p_limits jsonb) returns TABLE(place text[], stage text, backlog integer) language sql immutable set search_path=pg_catalog, pg_temp body ffd7fddaa6c8a3b2d6de3ed02123298c
function millrace.preview_bulk(p_caller millrace.caller, p_do jsonb, p_filter jsonb, p_reason text) returns millrace.bulks language plpgsql volatile set search_path=pg_catalog, pg_temp body 07634b0086d2a1a26b96970b7dc8213c
function millrace.preview_of(p_pipeline_id integer, p_do jsonb, p_conditions jsonb) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 9dd6a07fa519982e613f289bb1407546
function millrace.prioritise(p_run bigint, p_priority integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6f2903887e6ea07aec284cac377dc62b
function millrace.prioritise_entities(p_pipeline_id integer, p_entity_ids text[], p_priority integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7631937754d59cb4b41f0e5a219d6912
function millrace.prioritise_one(p_run bigint, p_priority integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fccc3d67d4741c84db2c486e1c757f29
function millrace.project(p_stage_id integer, p_changes millrace.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 0ddc326e354c35f80aed1485044a919f
function millrace.project_cancelled(p_cancelled millrace.cancelled[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1e5f15e02673b9815dbcb13f06f2357d
function millrace.project_entities(p_pipeline_id integer, p_how text, p_stage text, p_changes millrace.change[], p_ids text[], p_dependents text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body a86aa6a959693c10649bceb6112e4690
function millrace.project_queued(p_pipeline_id integer, p_stage_id integer, p_dependents integer[], p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8875ac5f91cd40e127fdbf870c1502c8
function millrace.project_started(p_stage millrace.stages, p_entity_ids text[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body ee1b6defad94fdcb449f23c60ae5e5e2
function millrace.projection_branch(p_pipeline millrace.pipelines, p_stage_id integer, p_stage text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 5ed696910fecfaaa7dba8666c34e1990
function millrace.prune() returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 3d1165c5362124cce2134972b8df7a4c
function millrace.prune_alerts(p_before timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 52cf688e6d79170930a8d4610480b745
function millrace.prune_decisions() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2cb0643d1f7e2b374c820bef4c192c67
function millrace.prune_figures(p_limit integer DEFAULT 10000) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body d5fb59ee2e5c0100d4958e1544796c8e
function millrace.prune_journal() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 876923512547f3e3855c4e5cf08813af
function millrace.prune_old() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9d0d318c0458d7021e82ad630b5c283e
function millrace.prune_pipeline(p_pipeline millrace.pipelines, p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 1beb9cdd11efc46f18185b53ac9d4712
function millrace.prune_rows(p_table regclass, p_rows tid[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms, enable_tidscan=on body b8b80b58770f74bbe1b1a2e73d57fba4
function millrace.prune_rule_alerts(p_before timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 42b61363b51cde42b2e26d0db1e538b1
function millrace.prune_runs(p_run_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 7964ef7b71033c4eefefac6f21953680
function millrace.prune_table(p_pipeline millrace.pipelines, p_table_name text, p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 4f05a4cad350f470cdc52b81925ac837
function millrace.put_back(p_stage millrace.stages, p_attempt_ids bigint[], p_due_at timestamp with time zone, p_why jsonb DEFAULT NULL::jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fc9325a2806ded097faa25e10d1a19ac
function millrace.put_off(p_items millrace.work[], p_why text) returns millrace.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c1fcf17fee9c2b845dda0cab7e801b88
function millrace.queue_at_gate(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 1f48b4c7161c20f25d0f8a292d453ff4
function millrace.queue_attempts(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 47997115b4fa5ffc2844760489a1944c
function millrace.queue_here(p_pipeline_id integer, p_stage_id integer, p_entity_ids text[], p_dirty_ids text[], p_by_name boolean DEFAULT true, p_done_before integer DEFAULT NULL::integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2156f9c6738bedb51ee3f323446c0a46
function millrace.queue_one_way(p_pipeline_id integer, p_other_id integer, p_stage_id integer, p_entity_ids text[], p_dirty_ids text[], p_by_name boolean) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 8ba78172a4dc374ca9057225517db284
function millrace.queue_stage(p_pipeline_id integer, p_stage_id integer, p_entity_ids text[], p_dirty_ids text[], p_by_name boolean DEFAULT true, p_done_before integer DEFAULT NULL::integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fc49bd07a21d9001a130820ed0a6ff54
function millrace.queue_values(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns TABLE(rule_id integer, pipeline_id integer, stage_id integer, value numeric, above numeric, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body c3f71ddea81e365311beaabde3af3ff4
function millrace.queued_at_gate(p_stage_id integer, p_run_ids bigint[]) returns millrace.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7758448783a5eeffc956ffbf8b9d49ab
function millrace.quota_keys(p_pipeline_id integer, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body fd252456b8becdf74a7ed94156f2c8f7
function millrace.quote_field(p_name text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 2d5af45e7de00c8ab395d4b42885d517
function millrace.raise_alerts(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body e4dc77cf85078293037f125a28e33882
function millrace.read_arrivals(p_stage_id integer, p_groups text[], p_each integer, p_last_turn bigint, p_now timestamp with time zone) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6056cea0c148314926ee4ff806394b37
function millrace.read_by_given(p_pipeline_id integer, p_columns name[], OUT named boolean, OUT reads text, OUT names text, OUT pairs text) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body f0b4c17857fb987b32f226396f5d9f4c
function millrace.read_filter(p_caller millrace.caller, p_asked jsonb) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 27386b5ae3dcb032c7a73a2109f1aa2c
function millrace.ready_work_finding() returns TABLE(what text, ok boolean, detail text) language sql stable set search_path=pg_catalog, pg_temp body 835e4a26bc9e90da78c7352376ffeba7
function millrace.record_ends(p_items millrace.work[], OUT verdicts json, OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=2s body 50b2793c8fd68195f9a8c40d3721bc0e
function millrace.record_items(p_items millrace.work[], OUT verdicts json, OUT ready integer[], OUT uniform boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=2s body cfd1d8c5d598a74ddf55ab1f68e17e37
function millrace.recount_children(p_fan_out_id bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b2599cc7c15d886addd46eb3a8b77fce
function millrace.refile_items(p_fan_out_id bigint, p_item_keys text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e64753f01998ba550ea1b007b351fbdc
function millrace.refusal_values(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns TABLE(rule_id integer, pipeline_id integer, stage_id integer, value numeric, above numeric, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body d1a695e0491591eb6c41c5efa0bfabce
function millrace.refuse_bulk(p_bulk millrace.bulks, p_verb text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body a0fa82cfa222d65573086c629a791bbb
function millrace.refuse_contract() returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 24b357448727c1b0b38f35b5a3614330
function millrace.refuse_metadata(p_faults text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body cae94d1edc7578e40fb3aa8bad94251d
function millrace.refuse_missing_needs(p_run_ids bigint[], p_stage_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 465ca1036342917000c4fbb1794f9584
function millrace.refuse_missing_rows(p_pipeline millrace.pipelines, p_keys text[], p_found text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp, enable_hashjoin=on body 674a4175531b69ea157c1610e384e5bc
function millrace.refuse_move(p_pipeline_id integer, p_version_id integer, p_live_id integer, p_until integer, p_fresh boolean, p_was text, p_now text, p_ids text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 3f2aff47cdc35361129129b1f90279a1
function millrace.refuse_operation(p_run bigint, p_stage text, p_verb text, p_state text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 81af31429c4671c8dbf7b52938c6e6d2
function millrace.refuse_orphan(p_run millrace.runs) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 3ce73f60b3019bf07917c8e0426fb469
function millrace.refuse_other_way(p_pipeline_id integer, p_stage_id integer, p_other_id integer, p_entity_ids text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 7ed4a12c56104d01b37d5545df24b123
function millrace.refuse_retry(p_pipeline_id integer, p_ids text[], p_was timestamp with time zone[], p_at timestamp with time zone[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 43f551a75ebc46c8fcd304f93f77a1c5
function millrace.refuse_schema(p_path text, p_value jsonb, p_wanted text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 2cde110fe1ce6f76c8b83aa0f0ffb775
function millrace.refuse_start(p_pipeline_id integer, p_was text, p_value text, p_ids text[], p_why text, p_hint text) returns void language plpgsql stable set search_path=pg_catalog, pg_temp body 5b485ef8a597e908ca1d93870f858f5e
function millrace.refuse_status(p_field text, p_found text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 5189a16e4abdca62c07ca8ba67fa5bfd
function millrace.refuse_value(p_stage jsonb, p_path text[], p_wanted text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 4b95c6c2b9b8465954210d8132ffde86
function millrace.release(p_stage_id integer, p_items millrace.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body f614fd002a1e6a7feb7a36a5741a438f
function millrace.release_limit(p_name text, p_key text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6c3e7d3e317543b160606bcaf9c9a611
function millrace.remedy_at_question(p_shows jsonb, p_now text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 17e08b713bf9241e1fddae212d5120d7
function millrace.remedy_of_move(p_version_id integer, p_live_id integer, p_was text, p_now text) returns text language sql stable set search_path=pg_catalog, pg_temp body f7453b26e263a6459d59aec283342794
function millrace.remedy_of_waiting(p_version_id integer, p_live_id integer, p_was text) returns text language sql stable set search_path=pg_catalog, pg_temp body 67dde94c23a8ddc39d1aef1d2f5af79a
function millrace.remember_begun(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 69465398f3cc3417c000bf5ba5345733
function millrace.rename_values(p_pipeline millrace.pipelines, p_was text[], p_now text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1332d739e41102863816c8afd886baec
function millrace.reopen_fan_outs(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f5d2e7d043ec94989afa8cebc077ffe4
function millrace.reopen_run(p_run millrace.runs, p_except integer[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c5e01908e392af950870ce62015250e7
function millrace.repeat_answer(p_call millrace.call, p_verdicts json) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 2e58bfff3f1bdca7753b011eabdaef62
function millrace.replacing_pipeline(p_pipeline text) returns millrace.pipelines language plpgsql stable set search_path=pg_catalog, pg_temp body 2fdca3798599fe1999bf7afa742ab53a
function millrace.replay(p_pipeline text, p_condition jsonb DEFAULT '{}'::jsonb, p_dry_run boolean DEFAULT true) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body a5b3b77f6328d4fe3d3fa9e42b73bd18
function millrace.report(p_level text, p_code text, p_message text, p_detail jsonb DEFAULT '{}'::jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8d5407c3366a9df1726a8592ec1a439a
function millrace.report_caught(p_sqlstate text, p_context text, p_code text, p_message text, p_detail jsonb DEFAULT '{}'::jsonb) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 18b1b07b9ba5981eeb308419eaed11e5
function millrace.report_passed_over(p_pipeline text, p_stage text, p_entity_id text, p_why text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 15615c45cc254d9dc8c1dc2521caf574
function millrace.resend(p_channel text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body efd77bb17d03ed80273761b0ab2d8a35
function millrace.reset(p_run bigint, p_stage text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body ff936191f4ea9ba163cf3660836839e8
function millrace.reset_children(p_run bigint, p_stage text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 2f7bafc553f7962b2add4c08fe92ac7f
function millrace.reset_failed_children(p_run bigint, p_stage text) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body ce75849d0943bfba1ba26cb4803ea573
function millrace.reset_one(p_run bigint, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e8358a045708b36dddda142adbbf4635
function millrace.resolve_alerts(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body d59ccea54071286a294b31100568a3ce
function millrace.resolve_ref(p_root jsonb, p_schema jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 853d483876af8d243a383be2477d819d
function millrace.resolve_unwatched(p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b9ead80c8108b16f29125f3e1b9f18c2
function millrace.rest_to_sweep() returns TABLE(part text, id bigint) language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body bf62ccb1978cfbd432962d911fc2fe7b
function millrace.resting_values(p_version_id integer) returns TABLE(value text, live_id integer, until integer, done boolean) language sql stable set search_path=pg_catalog, pg_temp body 9e4894aab89a5a47827927cc6a1c9100
function millrace.retention_days(p_pipeline millrace.pipelines) returns integer language plpgsql stable set search_path=pg_catalog, pg_temp body 5fd9d43c5e28ead63a477b201ef9bbac
function millrace.retention_fault(p_table_name text, p_column text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 071c857e78541ba27d1f9b5fd83ae6d6
function millrace.retention_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body cc125d9e382052a312b28b370824ee9b
function millrace.retry(p_run bigint, p_stage text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 6876bc836b2198b3041888d5689165e2
function millrace.retry_child_runs(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body bbde4aeb1c6786cf620437cbdb8f1215
function millrace.retry_due(p_stage_id integer, p_error jsonb, p_retry_count integer) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body b9a654bfb2b3f0e8382e11391528c86a
function millrace.retry_failed_children(p_fan_out millrace.fan_outs) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 15f114c2a6d34252b7ad7f253b5fa410
function millrace.retry_items(p_fan_out millrace.fan_outs, p_item_keys text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 0ec613359366dc94fcdc0914aacdff3e
function millrace.retry_one(p_run bigint, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c660177ce3fc137e0b47480fcd9003cd
function millrace.retry_runs(p_run_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 82a351130f98c581c1b5b91605e24b48
function millrace.retry_stage(p_stage_id integer, p_kind text, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body cb2a2a6f7bb773c0598fc459927ddb28
function millrace.rivals_of(p_limit_id integer, p_stage_id integer, OUT rivals integer, OUT is_next boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body bff7f83a04730b3b4ef59565e46bdcf8
function millrace.room_at(p_stage millrace.stages, p_limiter millrace.limiters, p_wanted integer, OUT room integer, OUT wait_ms integer, OUT short_of integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 02826798d40f2cc6ca49a972ffc28358
function millrace.room_before_later(p_stage_id integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 1d9b5f400ff65c2f75bf787189f0434b
function millrace.room_in_budget(p_limit millrace.shared_limits, p_stage millrace.stages, p_wanted integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 064cc160e86b633e38848b26d839610d
function millrace.room_of_key(p_stage_id integer, p_key text, OUT room double precision, OUT opens_at timestamp with time zone) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 0100b3ccab8ef4767bf178bd5d4203cb
function millrace.room_under(p_limit millrace.shared_limits, p_stage millrace.stages, p_wanted integer, OUT room integer, OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body fdc78fc03e51ebbc509fc3e0edf30625
function millrace.row_faults(p_after bigint DEFAULT 0, p_until bigint DEFAULT '9223372036854775807'::bigint) returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 2885362cca474e092816719601ee1c32
function millrace.rows_for_items(p_stage millrace.stages, p_parent text, p_items jsonb, OUT item_keys text[], OUT entity_ids text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 8804e540a575889290a16714ff6228c1
function millrace.rows_gone(p_pipeline_id integer, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body da351cc53172379a0986125f9ce6c00a
function millrace.rows_labelled(p_pipeline millrace.pipelines, p_text text, p_limit integer) returns TABLE(entity_id text, label text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, gin_fuzzy_search_limit=10000 body f58935ba7c764c574dcd716cc763b8fb
function millrace.rows_named(p_ids text[]) returns text language sql immutable set search_path=pg_catalog, pg_temp body 818b715224dc349fc07f9692cf83905a
function millrace.rows_of_entities(p_pipeline_id integer, p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 445c0f92525abfcaf66e25f3a004bda6
function millrace.rows_shown_wrong(p_pipeline millrace.pipelines, p_values text[], p_after bigint DEFAULT NULL::bigint, p_until bigint DEFAULT NULL::bigint) returns TABLE(id text, shown text, value text) language plpgsql stable set search_path=pg_catalog, pg_temp, jit=off, plan_cache_mode=force_generic_plan body 28b9a0a341a6e6e360b50179fa35279e
function millrace.rule_fault(p_rule millrace.alert_rules) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body e7b526499fa8b664f713d05a40462847
function millrace.rule_message(p_rule millrace.alert_rules, p_state millrace.rule_states, p_now timestamp with time zone) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 8425546cdd2891294a84d0171db87329
function millrace.rule_of(p_pipeline text, p_name text, p_given jsonb) returns millrace.alert_rules language plpgsql stable set search_path=pg_catalog, pg_temp body 0c4dc0cab044afacb5bfe0d2559978c3
function millrace.rule_targets(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns TABLE(rule_id integer, kind text, above numeric, fewest integer, since timestamp with time zone, short boolean, pipeline_id integer, pipeline text, stage_id integer) language plpgsql stable set search_path=pg_catalog, pg_temp body 2ad096e333965066a7cc9cdb4f56f112
function millrace.rule_values(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns TABLE(rule_id integer, pipeline_id integer, stage_id integer, value numeric, above numeric, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 39cd1f7a66897e409c72e20de84b4d72
function millrace.run_of(p_pipeline text, p_entity_id text) returns bigint language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off body 835a37039c538f22c1ff77b0c0c83572
function millrace.run_seen(p_caller millrace.caller, p_run bigint) returns millrace.runs language plpgsql stable set search_path=pg_catalog, pg_temp body cf4d797aad618388c9244a98e505f287
function millrace.run_sla_findings() returns TABLE(what text, ok boolean, detail text) language sql stable set search_path=pg_catalog, pg_temp body ab8de17797dda35e9f2a9acccfac8974
function millrace.run_sla_values(p_rules millrace.alert_rules[], p_now timestamp with time zone) returns TABLE(rule_id integer, pipeline_id integer, stage_id integer, value numeric, above numeric, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 745993d3512eaea159828af6c3d167ea
function millrace.run_under_way(p_pipeline_id integer, p_stage_id integer, p_entity_id text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body e2846ed5225697334124a10096b5b09c
function millrace.running_of(p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b4745df4cad4704b6bd9e187d354bb7f
function millrace.runs_found(p_text text, p_pipeline text, p_limit integer) returns TABLE(run_id bigint, found_by text, place integer) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off body ab4e6c671b3fe36efaf6c1160f8dbd06
function millrace.runs_to_begin(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 750c7dcd5466252b93987bc41147139a
function millrace.runs_to_replay(p_pipeline text, p_condition jsonb, p_limit integer) returns bigint[] language plpgsql stable set search_path=pg_catalog, pg_temp body 12e93d87806ad72da43d9d17509278bc
function millrace.runs_to_skip(p_stage_id integer, p_run_ids bigint[], p_by_name boolean) returns TABLE(run_ids bigint[], why jsonb) language plpgsql volatile set search_path=pg_catalog, pg_temp body 1c3b9ccefbc6faa4ee5e28b76fcdcd4f
function millrace.save_alerts(p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 10c31bdbbd2794db4f6a323c83911d19
function millrace.save_back_pressures(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b7759c00192623c4aa47fa76b842bf5b
function millrace.save_bypass(p_stage_id integer, p_reason text, p_until timestamp with time zone, p_spent boolean, p_line bigint) returns millrace.stages language plpgsql volatile set search_path=pg_catalog, pg_temp body 948effbfb177ba4cf0319e35d67980fa
function millrace.save_cut_over(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b6531a1e95a06f48788750895418b6bf
function millrace.save_due(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d8bf28fe19b3181852842f756c49e746
function millrace.save_endings(p_pipeline_id integer, p_version_id integer, p_stages jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2489bf25c15f7cdab9b5fff26ab307c9
function millrace.save_label(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 01a038184f62951ea52f811d29da9d95
function millrace.save_limit_key(p_limit millrace.shared_limits, p_key text) returns void language sql volatile set search_path=pg_catalog, pg_temp body 6e39901f15a8674bb07a5352aabc1bbe
function millrace.save_limiter(p_stage millrace.stages, p_limiter millrace.limiters, p_taken integer, p_room integer DEFAULT NULL::integer, p_short_of integer DEFAULT NULL::integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b6c668d50cd3da3caab80b7c5007df63
function millrace.save_moves(p_version_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 886a2a894a82d439365d782016e20699
function millrace.save_pipeline(p_definition jsonb, p_table regclass) returns integer language sql volatile set search_path=pg_catalog, pg_temp body 8f2f3b8c19fd746179f9df24444d33a7
function millrace.save_quota(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 30172af856d8ef4242ffbee2c64e887f
function millrace.save_retention(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 86351f95c8b08b5b9c6f6d36dab7b1a0
function millrace.save_run_sla(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b10ffed2e4e5bd587acb32018aaffd93
function millrace.save_shared_names(p_pipeline_id integer) returns void language sql volatile set search_path=pg_catalog, pg_temp body 3b3dee7f92c4247163b1c325f63a17fe
function millrace.save_slice(p_bulk millrace.bulks, p_next bigint, p_held bigint[], p_counts integer[]) returns millrace.bulks language plpgsql volatile set search_path=pg_catalog, pg_temp body b1f3e298786161ca8bbb53364c5b6de6
function millrace.save_stages(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body cba4158e40d2cd58095789946a49d236
function millrace.save_status(p_pipeline_id integer, p_version_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b55364b1d24a257f40bd1529b8119676
function millrace.save_trace(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 9fa8a734dd68a50411621cb66467bf7c
function millrace.save_unchanged(p_pipeline_id integer, p_version_id integer, p_stages jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5e059a14c1db49ca8ba005a8f44c8f16
function millrace.save_values(p_pipeline_id integer, p_version_id integer, p_status jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ad529a9a2282601074d8a95505357a55
function millrace.save_version(p_pipeline_id integer, p_definition jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 050c8df05c244dc67aedeb9225e5f047
function millrace.save_version_stages(p_pipeline_id integer, p_version_id integer, p_stages jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 36c2c761b204a0984ab1c95bf9762706
function millrace.save_when_spent(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 2c63e98732f6948d068f41541f3f951d
function millrace.scalar_fault(p_schema jsonb, p_value jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body cec16c6615d5f2dc0b4c07f5b5ca48f3
function millrace.schedule_bulks() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 8fcf3e31abb326c1fc7a7a8d65967fe6
function millrace.schedule_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body d47d9de508a40e5a27c5ef874062a7f8
function millrace.schedule_polls() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 7e702c9f8abcf7b5ef3f5b7401115bb6
function millrace.schedule_pruning(p_more boolean) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2517cda677c541ec650b833392c15114
function millrace.schema_fault(p_schema jsonb, p_value jsonb, p_path text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 82a142311e3dcdbbc944a5f125e3d4b3
function millrace.search(p_text text, p_pipeline text DEFAULT NULL::text, p_limit integer DEFAULT 20) returns TABLE(pipeline text, run_id bigint, entity_id text, label text, status millrace.run_status, created_at timestamp with time zone, finished_at timestamp with time zone, found_by text) language plpgsql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off body 662bb99f019bca7b9701ce7db025d40f
function millrace.search_runs(p_caller millrace.caller, p_text text, p_pipelines text[]) returns bigint[] language plpgsql stable set search_path=pg_catalog, pg_temp body ceed355b6d3afb88533e2b6667fa4b61
function millrace.sees(p_caller millrace.caller, p_pipeline text) returns boolean language sql immutable set search_path=pg_catalog, pg_temp body 131ef7e7b1ea7eefd6dbb054357b8c8a
function millrace.send_messages() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body adad1d17d89624d5f37bdafd356430af
function millrace.series(p_pipeline text, p_stage text, p_from timestamp with time zone, p_to timestamp with time zone, p_step interval) returns TABLE(at timestamp with time zone, completed bigint, ended bigint, failed bigint, retried bigint, skipped bigint, cancelled bigint, run_p50_ms double precision, run_p95_ms double precision, wait_p50_ms double precision, wait_p95_ms double precision, cost_usd numeric, input_tokens numeric, output_tokens numeric, codes jsonb) language plpgsql stable set search_path=pg_catalog, pg_temp body 2814e5553d209659c03cd9afc25dbbd0
function millrace.set_cut_over(p_pipeline text, p_mode text, p_share numeric DEFAULT NULL::numeric, p_groups text[] DEFAULT NULL::text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e00d47bc1ebf16c4299199bed6748cd7
function millrace.set_limits(p_stage_id integer, p_limits jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 35562b0e26a82c1ed3572c6ee2508b30
function millrace.set_overtaken_apart(p_bulk millrace.bulks, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 32d56f6fb30fc2156191cdeec21ee047
function millrace.set_shared_limit(p_limit millrace.shared_limits, p_limits jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8d716c3fae8b9923013c4d4d19aecfdd
function millrace.setting(p_name text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body adcc17bf9b4c937c88d8945f67444e37
function millrace.setting_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 475b574bbea1845efb4d4f7c3639ac93
function millrace.settle_bypass(p_stage millrace.stages) returns millrace.stages language plpgsql volatile set search_path=pg_catalog, pg_temp body 1c61db3984e9110c384f42c39a68d23d
function millrace.share_for(p_amount double precision, p_rivals integer, p_is_next boolean) returns integer language sql immutable set search_path=pg_catalog, pg_temp body 4ff6030580dde217370fa7f9ae741d8c
function millrace.share_of(p_entity_id text) returns numeric language sql immutable set search_path=pg_catalog, pg_temp body 5eefb653d30737537fc232f54fa03d45
function millrace.share_of(p_limit millrace.shared_limits) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp body e333befc7d958eb8d8a459c2d1a9ad87
function millrace.shared_limit_findings() returns TABLE(what text, ok boolean, detail text) language sql stable set search_path=pg_catalog, pg_temp body 38c892bcd5d38c50d6b98adf5de48f13
function millrace.shared_limit_named(p_name text) returns millrace.shared_limits language plpgsql volatile set search_path=pg_catalog, pg_temp body be717c2d34bc2081ff1a895017a04faa
function millrace.shared_limit_schema() returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body df2d4442eb02d57d335c96d8b3eeca9a
function millrace.shared_room(p_stage millrace.stages, p_wanted integer, OUT room integer, OUT wait_ms integer, OUT short_of integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body efb238ded7ad24f1c348590f5b537959
function millrace.short_json(p_value jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 05b6d8ce1cee03ef3b550959ed83cdae
function millrace.show_changed(p_pipeline_id integer, p_changed jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6b0cd1bdcf414d64b64c674496d51a6e
function millrace.show_due(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 6924bea410c725195a3fe312172f9d5f
function millrace.show_going(p_stage millrace.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2198940359084752a06173876039a3f4
function millrace.show_held(p_stage millrace.stages, p_attempt_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body feca8b9413287b1d326ab44b251c8ebc
function millrace.show_new_runs(p_pipeline_id integer, p_stage_id integer, p_run_ids bigint[], p_entity_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2f91d4b8d01a19ca70a499ebcb5af979
function millrace.show_queued(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2b37f0845cb98094f90e2dc4086c0179
function millrace.show_skipped_rest(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 9a1e4c106c4435da2fa2474e6dde14e4
function millrace.show_stage(p_stage_id integer, p_run_ids bigint[], p_status text, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone, p_job_id text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 72013712d8d74732c8ea1ee276952a14
function millrace.show_statement(p_pipeline millrace.pipelines, p_key_type text, p_targets text, p_claim boolean) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 1fd5bbc2adbcd3bea4594157f164cfde
function millrace.show_status(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 08ee4030d88076e23c6b4ca2a0cf44a0
function millrace.show_with_history(p_history jsonb, p_values text[]) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 551dd6454db8860cfb010bb19fffe4f2
function millrace.shown_attempts(p_run_id bigint, p_payloads boolean) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body 139f9b73ac7cff69f0e59c5c09db4b25
function millrace.shown_bulk(p_bulk millrace.bulks) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body d0a4f32ee99070b8526d9e624c1a4189
function millrace.shown_bypass(p_stage_id integer) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body 4d502ff7201a7caa9dca3489d8565349
function millrace.shown_children(p_run_id bigint) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body 575cd6d1a433e991a7e6a843f4730f4f
function millrace.shown_error(p_error jsonb, p_payloads boolean) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 1d87a6dee50add8d74c5a4e305a6e900
function millrace.shown_in_backoff(p_pipeline_id integer, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2245745c5b869e1d1aa3b51f5415f184
function millrace.shown_limits(p_caller millrace.caller) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body db209239c565107b48317db5669baa17
function millrace.shown_line(p_line millrace.journal) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 3718306b6e4650406310c581f96ba82c
function millrace.shown_pause(p_line bigint) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body da4f340f6a00da598764011206dc2263
function millrace.shown_payload(p_value jsonb) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp body 20531730084001642cd55705743e4c0f
function millrace.shown_places(p_status jsonb, p_stages jsonb) returns TABLE(place text, value text) language sql immutable set search_path=pg_catalog, pg_temp body f808cf6ebe7339840d8e09bd32cf3d3e
function millrace.shown_runs(p_run_ids bigint[]) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body 6f4b0381ce589a577742c0310740d91b
function millrace.shown_stages(p_pipelines text[]) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body f88d38c4a051263be68c8dad3b3c0be6
function millrace.shown_stages(p_version_id integer) returns TABLE(id integer, name text, place integer, shows jsonb, manual boolean, on_demand boolean, demanded boolean, may_skip boolean, may_fail boolean, ready text, ends text[]) language sql stable set search_path=pg_catalog, pg_temp body 88da64305ff6b1ab8ab22eb315b679eb
function millrace.silence(p_for interval, p_reason text, p_pipeline text DEFAULT NULL::text, p_stage text DEFAULT NULL::text, p_kind text DEFAULT NULL::text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body 6d9d0820ab59f22ff974ff57c0194ae5
function millrace.site_notices__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body a6309d6cb73043ea301140610fe6dcdc
function millrace.site_notices__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.site_notices__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a3e1c36df77e74c3981274d62e4b2dc8
function millrace.site_notices__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 992f63e5d63e81e6d95074d7cd5ce35c
function millrace.site_notices__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body fead7d5f8343fff92d9dab2a2201f8d1
function millrace.size_expression(p_table regclass, p_columns name[], p_at_most boolean) returns text language sql stable set search_path=pg_catalog, pg_temp body d5353612f8489946bb35362a442e02be
function millrace.size_fault(p_item millrace.work, p_stage millrace.stages) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 5080474327507cae5d2e77aba8837377
function millrace.size_of_needs(p_run_id bigint, p_version_id integer, p_stage_id integer) returns bigint language plpgsql stable set search_path=pg_catalog, pg_temp body 63d5a2a2f612aa12900e17b5b74e61d2
function millrace.sizes_of_entities(p_pipeline_id integer, p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 54a026b4620e02cd6708cb538d3fbccf
function millrace.skip(p_run bigint, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 9bf35bed64b68e383ae0a240e1b6d324
function millrace.skip_failed_stage(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b05ea3c09a617bd1f60d5de4d9e1bf10
function millrace.skip_given_needs(p_run_ids bigint[], p_stage_id integer) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 1e351485a3d8763f97529fa7a03ddc61
function millrace.skip_one(p_run bigint, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body aa13db0e92882ada7ef966e92846c7c1
function millrace.skip_stage(p_stage_id integer, p_run_ids bigint[], p_why jsonb) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 4073a40afe58b4df790940e8a2dbcde7
function millrace.skip_the_rest(p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0dc3aebf6da94b0487881a3ef4703595
function millrace.slice_end(p_after bigint, p_limit integer) returns bigint language sql stable set search_path=pg_catalog, pg_temp, enable_seqscan=off body cf23d440cf2b1ad9ea73737b948d531e
function millrace.sources__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 7a74690a7baf21d623fa04f72f35327c
function millrace.sources__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.sources__keys(p_stage text, p_ids text[]) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2a77d1dadf971107835aac03d1bae3c1
function millrace.sources__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 749ee7bd5d95dffa669e5065c805ef3b
function millrace.sources__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 223022266de7995559eab8b73dae4817
function millrace.sources__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 84dc17ee73e6b16a7c863d3f86f91ed5
function millrace.spawn_chunk(p_attempt millrace.attempts, p_items jsonb, p_last boolean, OUT fan_out millrace.fan_outs, OUT wake integer[], OUT busy text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 58fd62a895aee135b18582a6114a151a
function millrace.spent_under(p_limit millrace.shared_limits, p_kind text, OUT spent numeric, OUT bound numeric) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 19a19da226b13a5b25131993bda0fe40
function millrace.stage_columns(p_stage text) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body ea36b99b95a99a4f0fcd269555958124
function millrace.stage_columns_ddl(p_table text, p_stage text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 9805781d8679b8fca113b94f78b2f222
function millrace.stage_costs(p_run bigint) returns TABLE(stage text, attempts integer, cost_usd numeric) language plpgsql stable set search_path=pg_catalog, pg_temp, plan_cache_mode=force_generic_plan body baf468c4a14ac5021a8c0afeffd6907a
function millrace.stage_gauges() returns json language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_mergejoin=off, jit=off body fd69904950bb5c5ca04a85c7542765fa
function millrace.stage_named(p_pipeline text, p_stage text) returns millrace.stages language plpgsql stable set search_path=pg_catalog, pg_temp body 760769cdae224920fe545779d90c7b96
function millrace.stage_seen(p_pipeline millrace.pipelines, p_stage text) returns millrace.stages language plpgsql stable set search_path=pg_catalog, pg_temp body c77801bb1d63fbcd86141845ea4fe430
function millrace.stage_with_column(p_definition jsonb, p_column text) returns text language sql stable set search_path=pg_catalog, pg_temp body 9d069962a2d39f37d79272dd70da89b3
function millrace.stages_after(p_stage text, p_stages jsonb) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body 49318f59d2e2c208f19c342ce3cdd70d
function millrace.stages_lacking(p_pipeline millrace.pipelines, p_value text, p_asked jsonb) returns text[] language sql stable set search_path=pg_catalog, pg_temp body dd9174dfe6fdc207d71cf260c1266fdc
function millrace.stages_to(p_later_id integer) returns SETOF integer language sql stable set search_path=pg_catalog, pg_temp body 4b02a2e3161359c3cc31d39354c0092f
function millrace.stages_to_wake(p_stage_ids integer[], p_scaling_out integer DEFAULT NULL::integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body d019e0e749229c0b568d963a964e89f1
function millrace.stale_reason(p_state millrace.attempt_state, p_error jsonb) returns text language sql immutable set search_path=pg_catalog, pg_temp body e6cb99336d16009087f2c5f32b3eb5cd
function millrace.standing_of(p_run_id bigint) returns jsonb language sql stable set search_path=pg_catalog, pg_temp body 2a8a345dce50be5b8ac52b9a1fa63a4c
function millrace.standings(p_pipeline_id integer, p_ids text[], p_was text[] DEFAULT NULL::text[], p_now text[] DEFAULT NULL::text[]) returns TABLE(id text, was text, now text, place bigint, run_id bigint, status millrace.run_status, version_id integer, live_id integer, until integer) language plpgsql stable set search_path=pg_catalog, pg_temp body e5278c12c4915bb6e16c93ba793dcc91
function millrace.start(p_pipeline text, p_entity_id text, p_stage text DEFAULT NULL::text, p_priority integer DEFAULT NULL::integer, p_restart boolean DEFAULT false) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 2e7f96b411737d868a06f5a29fd2b7a8
function millrace.start(p_pipeline text, p_entity_ids text[], p_stage text DEFAULT NULL::text, p_priority integer DEFAULT NULL::integer, p_restart boolean DEFAULT false) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body d389416f35691e8ee7a54b3fc229b09e
function millrace.start_at_value(p_pipeline_id integer, p_stage_id integer, p_was text, p_value text, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body bd279c2a567f41b97739cb7f0ecac39a
function millrace.start_bypassed(p_stage millrace.stages, p_ids text[], p_first boolean, p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 593450f8b4e702dc47869772e0e9ea3c
function millrace.start_child_runs(p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7772dac5b92bad9f827e46dc30be53e0
function millrace.start_due_runs(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body fe0f881abfba6f1360fe0b6c535b94bc
function millrace.start_held(p_pipeline millrace.pipelines, p_stage_id integer, p_keys text[], p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 6848b9077c6427b5b27d2848043c1364
function millrace.start_over(p_run_ids bigint[], p_stage_id integer, p_by_name boolean) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 052ab7a70a9a41bc47dc1af6fdd45589
function millrace.start_sibling_branches(p_pipeline_id integer, p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 51935e594afa729a1679704730416529
function millrace.start_stage(p_run bigint, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 88bd90f0c93b8cde1860f9700d66972c
function millrace.state_of(p_run_id bigint, p_stage_id integer) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body 837aab0ca4fb9013ee79c44bcf25e020
function millrace.states_of_bypassed(p_stage millrace.stages, p_ids text[]) returns TABLE(id text, state text) language plpgsql volatile set search_path=pg_catalog, pg_temp body 590e3f4673221f98875b062427ae210a
function millrace.status_columns(p_status jsonb) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body d8781045ba0130c6abcd5fd8bced7c26
function millrace.status_columns_of(p_pipeline millrace.pipelines) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body 89e71e288100cf92871390abf9120b3d
function millrace.status_faults(p_after bigint DEFAULT NULL::bigint, p_until bigint DEFAULT NULL::bigint) returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp, jit=off, plan_cache_mode=force_generic_plan body 75e0f7f072e0246121b49d0371b692b8
function millrace.status_figures(p_status jsonb, p_claim boolean, OUT assigned text, OUT differs text) returns record language sql immutable set search_path=pg_catalog, pg_temp body 1c4e4b5c74c09695f5f1019782e27c7f
function millrace.status_path(p_was text, p_value text, p_phase text, p_stage_id integer, p_done_id integer, p_via text, OUT steps text[], OUT actors text[]) returns record language plpgsql stable set search_path=pg_catalog, pg_temp body 6c2b4dcbc3b440f87f25a0710cf8d3a6
function millrace.status_states(p_pipeline_id integer, p_ids text[]) returns TABLE(id text, value text, phase text, stage_id integer, done_id integer, via text, attempts integer, retry_at timestamp with time zone, error text) language plpgsql stable set search_path=pg_catalog, pg_temp body faeb1f741996865a70b7eb5660800dfc
function millrace.status_type(p_pipeline millrace.pipelines) returns text language sql stable set search_path=pg_catalog, pg_temp body 910577ede16ab9edf26b611b941e5c05
function millrace.still_late(p_alert_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 0350d78dae0e3076f467f39c0e988c06
function millrace.storable_item(p_item json) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 0c44aa4be84100fa98a8997b4293a616
function millrace.successor_of(p_attempt millrace.attempts) returns millrace.attempts language plpgsql volatile set search_path=pg_catalog, pg_temp body d0f06740d954e543a46817c6268c1978
function millrace.sum_costs(p_one jsonb, p_other jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 097f1912e8096970f3035cd85e268fd6
function millrace.sum_limit_uses(p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e015402f2f3e49a7019310ef2b1deaa9
function millrace.sum_usage(p_usages jsonb[], p_kind text) returns numeric language sql immutable strict set search_path=pg_catalog, pg_temp body ff14f24e9eb5b4b190bc1a938bf16a2a
function millrace.sum_uses(p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 987594b3a2017402fed53ba8a05b4362
function millrace.summed_figures(p_pipeline_id integer, p_stage_id integer, p_from timestamp with time zone, p_to timestamp with time zone, p_step interval) returns TABLE(at timestamp with time zone, completed bigint, ended bigint, failed bigint, retried bigint, skipped bigint, cancelled bigint, run_p50_ms double precision, run_p95_ms double precision, wait_p50_ms double precision, wait_p95_ms double precision, cost_usd numeric, input_tokens numeric, output_tokens numeric, codes jsonb) language plpgsql stable set search_path=pg_catalog, pg_temp body e23fc4da5f57ed4433626b8a0bdb2254
function millrace.supersede(p_run_id bigint, p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2aca81faab808e830653aefbdf01484d
function millrace.supersede(p_run_ids bigint[], p_stage_ids integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d054ad77da2e40cb4788b16a0af84c2f
function millrace.sweep() returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 48d5489e1796dfb79e8088409497ba12
procedure millrace.sweep_all() language plpgsql volatile body ab80a025f1f97660a44869df4a1038d6
function millrace.sweep_bypasses(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body a5d94851ab6f555e5917d66d1fdf7055
function millrace.sweep_deadlines(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body f40ebfecfb94d36a6f792d3d2df0d7fe
function millrace.sweep_due() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 291acb070a50d484083c2ad73150abc9
function millrace.sweep_due(p_last_sweep_at text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 2e506de4c32901e23e73cd5982a65eac
function millrace.sweep_fan_out(p_fan_out_id bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 1b6ce2b3590663749e9e88e9ef3d4c9c
function millrace.sweep_gates(p_limit integer DEFAULT 2000) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 010eae3c424b5bf05aed8d92ebf257dc
function millrace.sweep_leases(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body a8501f4962de9340d23e558749ce8ade
function millrace.sweep_limit_keys(p_limit_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 78139fa7e3fa20d166090a16cfc65d17
function millrace.sweep_limits(p_pipeline_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e1aa2839e55addc8bfdff9d06bf06e0b
function millrace.sweep_metadata(p_limit integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ebc8fd83fe4634c42e41f505068c616a
function millrace.sweep_part(p_part text, p_id bigint) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 74ebbec3667f3d1e7c75900252680828
function millrace.sweep_portion(p_part text, p_id bigint, OUT done integer, OUT more boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=2s, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 5e3a33905cc1b59773f02723d7837350
function millrace.sweep_pulses() returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 1c7e6b09da291955c654e946f0378c66
function millrace.sweep_quotas(p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body bf19476778bb30b0fcd6c0eec1297e97
function millrace.sweep_shared_limits() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b29f17ea3bc527204c6974e11dceae92
function millrace.switch(p_pipeline text, p_stage text, p_enabled boolean, p_line bigint) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2239b7e737cec6ca2316397c1fb38b59
function millrace.switch_on(p_pipeline text, p_stage text, p_line bigint) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body de01352bca12a371c11cb4955a8776b7
function millrace.switch_stages(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 51405dc129e3e0458c911e85613a6875
function millrace.table_named(p_name text) returns regclass language plpgsql stable set search_path=pg_catalog, pg_temp body 465dff35e91165144d4e65f5661f000b
function millrace.take_answers() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 24cd2a4e69b12d970afb9c6701d09184
function millrace.take_by_turns(p_stage millrace.stages, p_worker_id uuid, p_room integer, p_token uuid, p_now timestamp with time zone, INOUT last_turn bigint, OUT attempt_ids bigint[], OUT wait_ms integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 697447cf190a82ba632d8d878f0e1fd0
function millrace.take_ending_back(p_run millrace.runs) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5af314c03a50c8f167a5fe8548c200df
function millrace.take_from_groups(p_stage millrace.stages, p_groups text[], p_share integer, p_token uuid, p_now timestamp with time zone, OUT attempt_ids bigint[], OUT groups text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 868d4b800312ab87dd86303fb1718281
function millrace.take_of_keys(p_stage_id integer, p_groups text[], p_each integer) returns void language sql volatile set search_path=pg_catalog, pg_temp body 160fbe92c266724a8bdbb54d858d2e01
function millrace.take_question_back(p_pipeline_id integer, p_stage_id integer, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a710954099088807793d00272ea73bb6
function millrace.take_shared(p_stage_id integer, p_taken integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body faa42fb6ceb7f2633d8b48db951336bc
function millrace.take_unadopted(p_pipeline millrace.pipelines, p_call text, p_adoption millrace.adoptions, p_limit integer) returns TABLE(key text, old_value text, value text, lands text, stage_id integer) language plpgsql volatile set search_path=pg_catalog, pg_temp body 818fde04d7ef157826c9931c17427bb7
function millrace.take_up(p_pipeline text, p_stage text, p_limit integer DEFAULT 1000) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 88a981b591d34a4c4e731c3dc593fa80
function millrace.take_up_portion(p_stage millrace.stages, p_ids text[], p_limit integer, p_until timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body a56626ff45af358a540d126a0bfec6c7
function millrace.take_up_rows(p_stage millrace.stages, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body b5a409451867889b9609fc8226b6c1ec
function millrace.taken_messages(p_ids bigint[]) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 0a783c32f300f57aa14f5ea9214950db
function millrace.taking_of_told(p_pipeline millrace.pipelines) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body aca72d21728afcc5af84c2e7d700865a
function millrace.tally_done(p_stage_ids integer[], p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 095420fb6f42fe6ee234e7c48fafa471
function millrace.test_channel(p_channel text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp body 91793dc971541ab928fdbf056565c286
function millrace.thresholds_hold(p_run_id bigint, p_after jsonb) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body e503e0061c1496ef639575e566581db5
function millrace.throttle(p_pipeline text, p_stage text, p_limits jsonb, p_until timestamp with time zone, p_reason text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5b2feaec8ee71719bd8be800b6d1fd8a
function millrace.throttle_limit(p_name text, p_limits jsonb, p_until timestamp with time zone, p_reason text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ee0bb345baa2105ffbd229dfb0d0acce
function millrace.throttle_shared(p_name text, p_limits jsonb, p_until timestamp with time zone, p_reason text, p_line bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f8578722bc05e87519a4959a67a54b5e
function millrace.throttle_stage(p_stage millrace.stages, p_limits jsonb, p_until timestamp with time zone, p_reason text, p_line bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 493c403aa9aa493e26b3883956bc502a
function millrace.throttled(p_declared jsonb, p_limits jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 1fce71bc283cc21d6ce9dcddbae5d7c3
function millrace.time_findings() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 170ff937c79eaa6cdf870d02585cc427
function millrace.timeline(p_run bigint) returns TABLE(attempt_id bigint, stage text, number integer, state millrace.attempt_state, parent_id bigint, retry_count integer, queued_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone, took interval, service text, job_id text, error_code text, error_message text, usage jsonb, superseded boolean, error_stack text) language sql stable set search_path=pg_catalog, pg_temp body 3f68ddb57a3fbdbee70071d76c231213
function millrace.to_sweep(p_done text[]) returns TABLE(part text, id bigint, name text) language plpgsql volatile set search_path=pg_catalog, pg_temp body a4a17e759556a78ea48a24908865c91e
function millrace.toc__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 9dae0e90d6f15f3f8363083d17036279
function millrace.toc__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4470e9b26b58c02f30dda2c973ff5efe
function millrace.toc__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body a8db355bd45d2af4e252dd000a1a562f
function millrace.toc__rows(p_ids text[], p_each bigint) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b08092c79c3d1346627ae2ea260216db
function millrace.toc__sizes(p_ids text[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 93feb70934b41e4fd454725f6a995ba9
function millrace.token_claims() returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body f70f7f9fdde2cd1be7c06d566ded6097
function millrace.tokens_of(p_rate jsonb, p_limiter millrace.limiters) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp body 9e1dee57fb6acfbcb639a00744130152
function millrace.traces_of_entities(p_pipeline_id integer, p_ids text[]) returns uuid[] language plpgsql volatile set search_path=pg_catalog, pg_temp body ec3d3a49bcae8784267847613ff4df09
function millrace.turn_fault(p_turn jsonb, p_first text, p_place bigint, OUT fault text, OUT hint text) returns record language plpgsql immutable set search_path=pg_catalog, pg_temp body e56304d875cca0600097e7ae8ff5a6dc
function millrace.undemanded_runs(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 88c3796b61b8ebcf3ec20bf0860efacf
function millrace.unmet_runs(p_stage_id integer, p_run_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 414aedf62b4c1d5c13c995ba1725f1ac
function millrace.unpause(p_pipeline text, p_stage text DEFAULT NULL::text) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body 3cd97b62b0c628d16d7ef187e9cdf5a7
function millrace.unsilence(p_silence bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f599ec5271d1331f46012eaf8a960291
function millrace.unthrottle(p_pipeline text, p_stage text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 11c04b224ca3d8f73b1b403e3af82ab1
function millrace.unthrottle_limit(p_name text, p_key text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7222af159a984b6cc2d276b8dd31dbd5
function millrace.unthrottle_shared(p_name text) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body fd2d3d2065aa791531567b2938cad86e
function millrace.unthrottle_stage(p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 76755c3018e1f298e1f7f8a73c58d854
function millrace.upkeep_to_sweep() returns TABLE(part text, id bigint) language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 1c464ee9ad914ecc1f1bc21acdbdf8cf
function millrace.use_new_pipeline() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 984a0695a99e6cfd4153ac66d9abd7ab
function millrace.used_by(p_payer millrace.payer, p_kind text) returns numeric language plpgsql volatile set search_path=pg_catalog, pg_temp body 64fc67c08e4f9ae6b0710dd840b96ac9
function millrace.value_call(p_pipeline millrace.pipelines, p_old_column text, p_function text, p_row text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body d1c3ca25784659e0a27018114cebee29
function millrace.value_fault(p_schema jsonb, p_value jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 3f0636d01f9be27ead4ab19e689db40a
function millrace.value_meant(p_pipeline_id integer, p_old text, p_value text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body f91dce5479a50358a0dafa5e60157561
function millrace.values_used(p_definition jsonb) returns TABLE(value text, place text) language sql immutable set search_path=pg_catalog, pg_temp body 372eda0f6a305dead845853eb35118f0
function millrace.verdict_of(p_items millrace.work[], p_item millrace.work, p_attempt millrace.attempts, p_kind text, p_elsewhere boolean, p_twice boolean, p_locked boolean, p_late boolean, p_too_large boolean) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body c5f98882636d7c8eb2ef831d0e2bf0cc
function millrace.verdict_on_end(p_attempt millrace.attempts, p_item millrace.work, p_late boolean, p_too_large boolean) returns text language sql immutable set search_path=pg_catalog, pg_temp body b32ccf97cec1aaf84649153c05bca557
function millrace.verdict_on_report(p_attempt millrace.attempts, p_item millrace.work, p_kind text) returns text language plpgsql volatile set search_path=pg_catalog, pg_temp body 0ecae3ff6440dacfbdaf2ef3a7dc80a5
function millrace.verdicts_of(p_items millrace.work[]) returns json language plpgsql immutable set search_path=pg_catalog, pg_temp body 6126efb4e96e462ef3553cc57401eb91
function millrace.void_reason(p_attempt millrace.attempts, p_token uuid) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 38631efa826fa31b7d20c8b20ef8caca
function millrace.wait(p_stage_id integer, p_items millrace.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6376566881a0cef409432356047a904e
function millrace.wait_for_child_runs(p_stage_id integer, p_run_ids bigint[], p_at timestamp with time zone) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7eca003460b5399383077b90120eb137
function millrace.wait_for_turn(p_stage millrace.stages, p_now timestamp with time zone) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 977667ea49789e411c92f30e603ec25e
function millrace.wake(p_stage_ids integer[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 685e7fb23f0f276a165db53364c880ea
function millrace.wake_alerts_send() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body a0113a6aeefcd847905c04d6de738035
function millrace.wake_headers() returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 0aaa3832af09316d60b151eefe607037
function millrace.wake_job_poll() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 1b241bbf733a0d41a98832e6888ff001
function millrace.wake_keys(p_limit_id integer, p_key text) returns void language sql volatile set search_path=pg_catalog, pg_temp body 28cf4e7896fb1c7cdfc652357d646383
function millrace.wake_list(p_stage_ids integer[]) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 4f35ec88e45dd0019bda8043a4144a2e
function millrace.wake_ready(p_pipeline_id integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body ee96c1f886bb43e0e181a2477a6bffa7
function millrace.wake_secret_remedy() returns text language sql immutable set search_path=pg_catalog, pg_temp body 44e70cfdc28487b51e1efd911a305424
function millrace.wakes_for_freed(p_attempt_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body aecce4db49a0ecc74ccca0e5b9db1b5a
function millrace.wanted_by(p_schema jsonb) returns text language sql immutable set search_path=pg_catalog, pg_temp body dc638d7388a1f912a2c07f143a9a48e5
function millrace.was_left_out(p_error jsonb) returns boolean language sql immutable set search_path=pg_catalog, pg_temp body 6912a0544cb378f47f9842bb85b196a5
function millrace.ways_of(p_pipeline_id integer) returns integer[] language plpgsql stable set search_path=pg_catalog, pg_temp body ac46e40c0db6860c9daae2f82ebbb41d
function millrace.whole(p_limit millrace.shared_limits) returns millrace.shared_limits language plpgsql immutable set search_path=pg_catalog, pg_temp body c842406bcc0a3eb5ef885f0bb208bceb
function millrace.why_bypassed(p_reason text) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 2578efa1b6fc8c41a6e9b836cb412190
function millrace.why_given() returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 6a6131deadbb28ddb2a5b5bb7f2f0690
function millrace.why_undecided(p_state millrace.attempt_state, p_error jsonb) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 322a8082ccbeeac470d9b6fcd29ca09b
function millrace.why_undemanded() returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body c57454e505555b45cf34a3c13c2d0168
function millrace.why_unmet() returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body 8741f89b12681fe44efa749e1a168862
function millrace.window_end(p_quota jsonb, p_kind text) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 808af7ad92408d257d3f7d0a4c6e52b0
function millrace.window_over(p_limit millrace.shared_limits) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body fb8ca7c6d0ce9fa41dcc5c825ff165bd
function millrace.window_start(p_limit millrace.shared_limits) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 2f5bc5c05481776c2233b373e813f1a4
function millrace.with_defaults(p_root jsonb, p_schema jsonb, p_value jsonb) returns jsonb language plpgsql immutable set search_path=pg_catalog, pg_temp body 661e49b8fd1d4c2de2e18909c7fc5fce
function millrace.without(p_ids bigint[], p_others bigint[]) returns bigint[] language sql immutable set search_path=pg_catalog, pg_temp body f59fd56794f463d567b66ff4bcc86be6
function millrace.without_late(p_all millrace.work[], p_group millrace.work[], OUT all_items millrace.work[], OUT in_time millrace.work[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 08478bd0b2eb62a0e79c112b249a4cf0
function millrace.work_bulks() returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body bb78c387e8c2a85cb87ca7a073c30db4
function millrace.work_on(p_attempt millrace.attempts, p_entity_id text, p_outcome text, p_result jsonb DEFAULT NULL::jsonb, p_error jsonb DEFAULT NULL::jsonb, p_ord integer DEFAULT 1) returns millrace.work language plpgsql immutable set search_path=pg_catalog, pg_temp body 6b0b0f0828dbe022d248e4d74e80d0e4
function millrace.work_on(p_host uuid, p_stage_id integer, OUT busy boolean, OUT alone boolean) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 2b8e53ee74934c838ad7f1d1d2ec5f9e
function millrace.work_slice(p_bulk_id bigint) returns millrace.bulks language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=200ms body 15c0b48aefabf30cef2910b08c7237e8
function millrace.write_adopted(p_pipeline millrace.pipelines, p_old_column text, p_keys text[], p_old text[], p_lands text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 64a534ae0c2dc3b56fc1967e123f9c74
function millrace.write_asked(p_pipeline millrace.pipelines, p_key_type text, p_engine_columns text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body df1f54367df1b137a094a95d1951b513
function millrace.write_by_stage(p_function text, p_arguments text, p_branches text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6b620d2ab75ec5247fb2bdf16fdc786d
function millrace.write_dispatch() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f9ad8a33ef036cd6a92884a8744b06bc
function millrace.write_entities(p_pipeline_id integer, p_how text, p_stage text, p_changes millrace.change[], p_ids text[], p_dependents text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a3b7d3c61240bd56d2e82b06687346e6
function millrace.write_follower(p_pipeline millrace.pipelines, p_old_column text, p_function text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, lock_timeout=500ms body 8ef56fa5a8bff5d52d471b83e35b4c2a
function millrace.write_function(p_head text, p_body text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1aa700be8538f052120b8c89957a0bf6
function millrace.write_group_keys(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e14d51fb5397138b7bfe20415948ab23
function millrace.write_intake(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5e6b310eaa9de262405da0668226f445
function millrace.write_lock(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e104ad8e839954def38b7098331e7a5d
function millrace.write_messages(p_now timestamp with time zone) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body cd51da150227aea5a71e90c0365dcc9a
function millrace.write_metadata(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body daa1e68a65df08da34307d7efa867c7c
function millrace.write_project_entities(p_ids integer[], p_names text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b84d33de8f72c00a9b8003991056468d
function millrace.write_projection(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b431d14a89f598e4a47f5e86b1c58268
function millrace.write_row_triggers(p_pipeline millrace.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body eee7eb01df2b68ae6b3abcc247a716a8
function millrace.write_rows(p_pipeline millrace.pipelines, p_key_type text, p_engine_columns text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ebf3afd66c54bd08b789e0e253d718ec
function millrace.write_status(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 02cc3f43d22c07d868eb6c45f3a311eb
function millrace.write_status_intake(p_pipeline millrace.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 415c813577baff5ffb8d98e8b1d14ae7
function millrace.write_status_outcomes(p_pipeline millrace.pipelines, p_key_type text, p_stages millrace.stages[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8ec22331d48ef01ab761e325c82d7f60
function millrace.write_status_queued(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body cff0dd82dfe8edf598c3460c9138a23e
function millrace.write_status_since(p_pipeline millrace.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 4ffbf2288879f832d48f517d55259c27
function millrace.write_status_started(p_pipeline millrace.pipelines, p_key_type text, p_stages millrace.stages[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d4997252cccc06a5d6e3a656e402b75c
function millrace.write_status_triggers(p_pipeline millrace.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8776b926dbb0e4c887a8c84546eb7878
function millrace.write_trace_dispatch() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7483068e2ddbece60b6334f4bfea47c2
function millrace.write_traces(p_pipeline millrace.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 036b59faaa430f948dea0a5602f99034
function millrace.write_way(p_function text, p_signature text, p_ids integer[], p_branches text[], p_comment text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body bb984ce4f6a0012efebe40136f2bc0c5
function millrace.writes_entities(p_pipeline_id integer) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body 7dc409d1de940886bb01a8c77dc4acc4
function millrace.written_rows(p_pipeline millrace.pipelines, p_stage text, p_ancestors text[], p_dependents text[], p_was text) returns text language plpgsql immutable set search_path=pg_catalog, pg_temp body 62d775bf3376b504957c5bd3983dd2e2
function millrace_evidence.document_costs(p_document_id uuid) returns jsonb language sql stable security definer set search_path=pg_catalog, pg_temp body d77e0368296a5bae81aa4da7c364f2d3
function millrace_evidence.document_job(p_document_id uuid) returns TABLE(run_id bigint, trace_id uuid, pipeline text, current_phase text, status text, metadata jsonb, created_at timestamp with time zone, started_at timestamp with time zone, completed_at timestamp with time zone, updated_at timestamp with time zone) language sql stable security definer set search_path=pg_catalog, pg_temp body dde3771461a326463c79f4809a487091
  grant execute to authenticated
  grant execute to service_role
function millrace_evidence.document_phases(p_document_id uuid) returns TABLE(id bigint, run_id bigint, pipeline text, phase text, status text, output jsonb, error jsonb, retry_count integer, parent_phase_id bigint, metadata jsonb, queued_at timestamp with time zone, started_at timestamp with time zone, completed_at timestamp with time zone) language sql stable security definer set search_path=pg_catalog, pg_temp body ab9a30feec704cbe538c84a06e072467
  grant execute to authenticated
  grant execute to service_role
function millrace_evidence.entity_costs(p_pipeline text, p_entity_ids text[]) returns numeric language sql stable security definer set search_path=pg_catalog, pg_temp body f920fe9d1aeab958595f74c0b45e9655
  grant execute to authenticated
  grant execute to service_role
function millrace_evidence.link_queues() returns TABLE(place integer, queue text, ready bigint, in_backoff bigint, in_work bigint, oldest_due_at timestamp with time zone) language sql volatile security definer set search_path=pg_catalog, pg_temp body 017e39ce0c2c33a03ad8682024f02e3b
  grant execute to service_role
function public.add_found_articles(p_items jsonb) returns TABLE(source_id uuid) language plpgsql volatile set search_path=pg_catalog, pg_temp body 6d2f39ce20fb6d95002f75a104b6e626
function public.apply_chunks(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b26c75c6aecb335e954102cf618bc6f8
function public.apply_classified(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body b8a7093a0985e04c10da5502fc5b6ba9
function public.apply_document(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1e4f229a69eab52dbc3d2bb3e7d6c59e
function public.apply_drafts(p_table regclass, p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 2a1d7a08da5aef802446fc6ab6c63891
function public.apply_extracted(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body c264c1290a3b5d60074bec75ddf067e8
function public.apply_facts(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1b93d921933609e0ed67abb0d9edeb43
function public.apply_graphiti(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body a065bbe30b1dedb2d2b4317c1eafd9da
function public.apply_link_polls(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 54a15ea66bd885943888f8d04b0ed9c7
function public.apply_polls(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7dcdfcc810fa969706b7f69a547a6e21
function public.apply_scraped_jobs(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 8d04f89883bfcb4edeb172279129f162
function public.apply_scraped_posts(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 72b9c0ce806e02bf63553cc720bbf0c6
function public.apply_staged(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 7b70ce423ca0321f3d674544d8de0fcf
function public.approve_article() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp body 0890e8fed70b7439676dc48dee4b35ca
function public.article_entry_code(p_article ingestion_queue) returns smallint language sql stable set search_path=pg_catalog, pg_temp body aab53078e2b70af8621537b235fb2cea
function public.article_lacks(p_article ingestion_queue) returns text language sql immutable set search_path=pg_catalog, pg_temp body 5f91b24113c2d046a0edb8f2e1c203fa
function public.articles_apply_fetch(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 1bac49a5957ae294f959d8eb8c5ae704
function public.articles_apply_publish(p_items jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 369e354a50b54e4c1e5d4a0e44448784
function public.articles_apply_score(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 00af79218e5c23b845e40bb327b8e305
function public.articles_apply_summarize(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body fb8ab10993be79bfe4915308aa1d684b
function public.articles_apply_tag(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body a5cc5358031e8788302949d46296bced
function public.articles_apply_thumbnail(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body c0996d600cdb9b22e101c4aacf9a79c6
function public.awaits_page(p_link_id bigint) returns boolean language sql volatile set search_path=pg_catalog, pg_temp body b85ed0d2e1c1c0e070822d13c2450de0
function public.begin_where_rows_are() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body f2e42c4962e2a958d778521482b28a19
function public.board_url(p_host text, p_path text, p_query text) returns text language plpgsql immutable parallel safe set search_path=pg_catalog, pg_temp body 8155ab090a98479174269aa5c33ff775
  grant execute to service_role
function public.canonical_host(p_host text) returns text language sql immutable parallel safe set search_path=pg_catalog, pg_temp body 908460221d8ba9d634242f03b8930411
  grant execute to service_role
function public.canonical_query(p_host text, p_query text) returns text language sql immutable parallel safe set search_path=pg_catalog, pg_temp body a3160d238550c7233be0b75df25478c8
  grant execute to service_role
function public.canonical_url(p_text text) returns text language plpgsql immutable parallel safe set search_path=pg_catalog, pg_temp body a116b65c4992bab91cc556adefd90777
  grant execute to service_role
function public.check_claims() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off body 7bb23a3c94575ea32e1f2e86428ecd85
function public.check_link_address() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 92a7f21ae45422183f71b421962cb7ce
function public.claim_articles(p_queue_ids uuid[]) returns SETOF uuid language plpgsql volatile set search_path=pg_catalog, pg_temp body a43c46981ad1558fbad0026f37b95206
function public.claim_entered(p_article ingestion_queue) returns ingestion_queue language plpgsql volatile set search_path=pg_catalog, pg_temp body 921af209dad763bb07f43183c40661b7
function public.claim_fingerprint(p_fingerprint text, p_queue_id uuid) returns uuid language plpgsql volatile set search_path=pg_catalog, pg_temp body 63a036d2a0b39798799a9561f773be55
function public.clerk_org_id() returns text language sql stable set search_path=pg_catalog, pg_temp body 79308d2512ad14a1411ef6afd8e23472
  grant execute to authenticated
  grant execute to service_role
function public.company_key(p_name text) returns text language sql immutable parallel safe set search_path=pg_catalog, pg_temp body 81aa28d7fb33b89378ab9658ce7b36ab
  grant execute to service_role
function public.draft_link_page(p_link_id bigint, p_job_id text, p_page jsonb) returns void language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 7df3b0fcb4df4397b1a4d2ef17c8906a
  grant execute to service_role
function public.edit_article() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp body 623c53384c88ab44120b6162c13758f0
function public.enter_article() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 8a35734efa95f1a7302621b11635c4e6
function public.fingerprint_scope(p_let_in boolean, p_added_by uuid) returns text language sql immutable set search_path=pg_catalog, pg_temp body 832a6a7ec7892fb5c9c7baaafbc4413d
function public.insert_links(p_source link_sources, p_links jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 0b5545ebd6efa9b1e6b6331f43669f44
function public.insert_pages(p_parent text, p_items jsonb) returns TABLE(item_key text, entity_id text) language sql volatile set search_path=pg_catalog, pg_temp body 4f3e620ce379cd8e4624653c6293bcfe
function public.is_curator() returns boolean language sql stable set search_path=pg_catalog, pg_temp body ef2fd14165bf3e0d3de0ff62a8b05e8b
  grant execute to authenticated
  grant execute to service_role
function public.keep_article() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp body 1f8be248133952e16c73f9c0c0dad463
function public.keep_publication() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp body eccc4e53434692abde0abcaa0e85bb13
function public.kg_key(p_name text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 0cd05e24769a7ff7ea1d4dd881896a89
function public.let_article_in() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 56f268be05e339400f8b594c718aeddb
function public.link_was_at(p_link_id bigint, VARIADIC p_stages text[]) returns boolean language sql stable set search_path=pg_catalog, pg_temp body a1b90f34d25bbf9cba74b0ce5328af91
function public.millrace_act(p_request jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 559856e2c7713bfd93cf30fbcf7efe2b
  grant execute to authenticated
  grant execute to service_role
function public.millrace_alerts(p_query jsonb DEFAULT '{}'::jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_memoize=off, jit=off body e734177935bdcc1cebbd4279e422949e
  grant execute to authenticated
  grant execute to service_role
function public.millrace_attempt(p_query jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off body 9c1866aa51c54d602d32ed98cf1a3115
  grant execute to authenticated
  grant execute to service_role
function public.millrace_checkpoint(p_worker uuid, p_attempt bigint, p_token uuid, p_turns jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 4961ba9ed37ea89b73cb7da99c31bd85
  grant execute to service_role
function public.millrace_claim(p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq integer, p_limit integer) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body d2eb76bc32139d8510e739eb8679a7eb
  grant execute to service_role
function public.millrace_collect_children(p_fan_outs bigint[]) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body fdb7af03108954746e987f9d324b8e7a
  grant execute to service_role
function public.millrace_complete(p_worker uuid, p_seq integer, p_items json, p_limit integer, p_goodbye boolean DEFAULT false) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 7c01d1ed99e8925711413a7e4682b1b3
  grant execute to service_role
function public.millrace_dead_letters(p_query jsonb DEFAULT '{}'::jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_memoize=off, jit=off body 076bf1539d1c4d3287cce87aebd08c3e
  grant execute to authenticated
  grant execute to service_role
function public.millrace_decide(p_attempt bigint, p_decision jsonb) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 629a7a7b43809a165b3c14c6864673ae
  grant execute to authenticated
  grant execute to service_role
function public.millrace_health() returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp body eb3afafeb96fa51f11a6f9af1720078c
  grant execute to service_role
function public.millrace_job_owner(p_job jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body f7356c361294f34958631ddeb28f0322
  grant execute to service_role
function public.millrace_journal(p_query jsonb DEFAULT '{}'::jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_memoize=off, jit=off body 70d5dd5d16b3623a02bdaa5579b55ab2
  grant execute to authenticated
  grant execute to service_role
function public.millrace_leave(p_worker uuid, p_hand_over boolean DEFAULT false, p_row_cpu_ms real DEFAULT NULL::real, p_row_bytes bigint DEFAULT NULL::bigint) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 2f67939175920cd776f6cd571ebf8930
  grant execute to service_role
function public.millrace_metrics() returns json language plpgsql stable security definer set search_path=pg_catalog, pg_temp body 4c329a76c29230dc701fc193a78aeedb
  grant execute to service_role
function public.millrace_note_deliveries(p_deliveries jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6667829db38756f625fe9fafb9024639
  grant execute to service_role
function public.millrace_note_faults(p_faults jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 16cab7425679a85dcf9d0570bd2e7754
  grant execute to service_role
function public.millrace_note_jobs(p_jobs jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 862a31033eddb9293e36e0d352e5c9c6
  grant execute to service_role
function public.millrace_overview(p_query jsonb DEFAULT '{}'::jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_memoize=off, jit=off body d2d03296a4e19bed1a6ea89a20447166
  grant execute to authenticated
  grant execute to service_role
function public.millrace_pipeline(p_query jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_memoize=off, jit=off body 43defd37c637be4f35e176807e8ad9f3
  grant execute to authenticated
  grant execute to service_role
function public.millrace_poll(p_limit integer, p_poll_ms integer DEFAULT NULL::integer) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body e53b0cafb06f271ef7206c976988be25
  grant execute to service_role
function public.millrace_renew(p_worker uuid, p_attempts bigint[]) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 91b4e5b12cf877bc16d4d14fdefd4063
  grant execute to service_role
function public.millrace_resume(p_items json) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 61e3b128b155f6837948515d304405b0
  grant execute to service_role
function public.millrace_run(p_query jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off body 0e7303b48183ae26c2be6d149c61216a
  grant execute to authenticated
  grant execute to service_role
function public.millrace_runs(p_query jsonb DEFAULT '{}'::jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off body 7c078e2fd1267efcd02c1a2ce2f6b626
  grant execute to authenticated
  grant execute to service_role
function public.millrace_search(p_query jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off body 9c089487f9a6eac90f39fe88e8eec5bd
  grant execute to authenticated
  grant execute to service_role
function public.millrace_series(p_query jsonb) returns jsonb language plpgsql stable security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_memoize=off, jit=off body 9b8d4c92e26fe322e529cdfae7e0dec8
  grant execute to authenticated
  grant execute to service_role
function public.millrace_spawn(p_worker uuid, p_attempt bigint, p_token uuid, p_items jsonb, p_last boolean) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 7e21454734bd91e393d6b09550b63987
  grant execute to service_role
function public.millrace_sweep() returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, statement_timeout=60s body feafee0ec8d00ae38e41e60fe53cade6
  grant execute to service_role
function public.millrace_take_messages(p_limit integer) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body f3ee5dca7738ee1134b707842c4c8d91
  grant execute to service_role
function public.millrace_turns(p_worker uuid, p_attempt bigint, p_token uuid) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 8bf4396d5fa0d7cb56ed713aee7e77c3
  grant execute to service_role
function public.millrace_wake(p_stages jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_indexonlyscan=off, enable_bitmapscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 58f05ff5e5b7a036880ec0cd65f5e8ef
  grant execute to service_role
function public.move_article() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp body e4cec738cf2e3d5207d2721e6547eac4
function public.names_in_chunks(p_items jsonb) returns TABLE(chunk_id uuid, clerk_org_id text, key text, name text, type text, description text) language sql stable set search_path=pg_catalog, pg_temp body 6e516c18ddcf5bbdbe8581ef7fbb86ad
function public.note_classifier() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp body f46c63d112cac6d5b1b1ba667982884a
function public.note_link_events(p_event text, p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 42777c64a6453e4f6a19b5598767f2c0
function public.note_link_update() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 210ef5d1683fe81853c339f1b7661542
function public.note_new_links() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body cd74175ca16229ed4f90980bb09b8092
function public.note_unknown_link(p_link_id bigint) returns void language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 4767c96eb60015782a2279b8425665c9
  grant execute to service_role
function public.postpone_link_source(p_source_id uuid, p_error text) returns void language sql volatile security definer set search_path=pg_catalog, pg_temp body 64cb269dbf52f5eea38ac5a7dd6282ec
  grant execute to service_role
function public.postpone_source(p_source_id uuid, p_error text) returns void language sql volatile security definer set search_path=pg_catalog, pg_temp body 7dd2aeafbaf97cb9397350b26302cee4
  grant execute to service_role
function public.prepare_link_source() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body dd80ecb1aade52fdcc7abc7db033655b
function public.prepare_source() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 9a76c220c882198b64d8b1727c33432a
function public.refuse_fetch() returns trigger language plpgsql volatile set search_path=pg_catalog, pg_temp body aa0245b2ebdcb1b0681064959f62cd34
function public.remove_publication() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 7ee5950844a8b17af9ee512331c2cec2
function public.save_companies(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 292cec6d3fd578f8a0b95d4c1a432d79
function public.save_links(p_source_id uuid, p_links jsonb, p_before jsonb, p_cursor jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 130c47c3cdb6f5a8d6fd12b78942b4b3
  grant execute to service_role
function public.site_notice_told(p_items jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body 04a5cea24405025bd376f1cbf15ade83
function public.text_fingerprint(p_text text) returns text language sql immutable strict set search_path=pg_catalog, pg_temp body 6ae0faea56118b04078b235d970823f9
function public.too_long(p_field text, p_bytes bigint, p_most bigint) returns boolean language plpgsql immutable set search_path=pg_catalog, pg_temp body 551a41baf37d12b7317ed3d90faeb0ef
  grant execute to authenticated
  grant execute to service_role
function public.track_publication_edit(p_publication_id uuid, p_queue_id uuid, p_old jsonb, p_new jsonb, p_changed_by text) returns uuid language plpgsql volatile set search_path=pg_catalog, pg_temp body 0eef42d9cffaa00f9f355370cf51059f
  grant execute to authenticated
  grant execute to service_role
function public.tracking_parameters(p_host text) returns text language sql immutable parallel safe set search_path=pg_catalog, pg_temp body 5a5c1b1f977ec8478124dd265bc50b3a
  grant execute to service_role
function public.unknown_urls(p_urls text[]) returns text[] language sql stable set search_path=pg_catalog, pg_temp body b7cb181274ab1ecedb28aa758bb4d56b
  grant execute to service_role
function public.url_fingerprint(p_url text) returns text language plpgsql immutable strict set search_path=pg_catalog, pg_temp body 35252a0918ed48dc0831a036da6bc0ff
  grant execute to service_role
function public.withdraw_article() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 29ec9b442cbf49406c676f8b19d19427
schedule millrace-prune "17 3 * * *" select millrace.prune()
schedule millrace-sweep "10 seconds" call millrace.sweep_all()
