-- The tables, types and views that the migrations make, with their rights, as text, written by `npm run check -- --write`:
-- in a review it shows what a change does to them.
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
view millrace.agent_log
  column arguments text
  column asked text
  column at timestamp with time zone
  column attempt_id bigint
  column cost_usd numeric
  column entity_id text
  column kind text
  column output text
  column pipeline text
  column run_id bigint
  column seq integer
  column stage text
  column stage_run integer
  column tokens numeric
  column tool text
  column what text
  as  SELECT p.name AS pipeline, s.name AS stage, t.run_id, r.entity_id, t.stage_run, t.seq, t.kind, CASE WHEN (t.content -> 'failed'::text) = 'true'::jsonb THEN 'fails'::text WHEN t.content ? 'discarded'::text THEN 'discarded: '::text || (t.content ->> 'discarded'::text) ELSE COALESCE('calls '::text || m.calls, 'answers'::text) END AS what, COALESCE(m.calls, t.content ->> 'name'::text) AS tool, COALESCE(m.arguments, t.content ->> 'arguments'::text) AS arguments, CASE t.kind WHEN 'tool'::text THEN t.content ->> 'output'::text ELSE m.said END AS output, ((t.usage ->> 'input_tokens'::text)::numeric) + ((t.usage ->> 'output_tokens'::text)::numeric) AS tokens, (t.usage ->> 'cost_usd'::text)::numeric AS cost_usd, t.content ->> 'asked'::text AS asked, t.attempt_id, t.created_at AS at FROM millrace.turns t JOIN millrace.stages s ON s.id = t.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id LEFT JOIN millrace.runs r ON r.id = t.run_id CROSS JOIN LATERAL ( SELECT string_agg(o.i ->> 'name'::text, ', '::text ORDER BY o.n) AS calls, string_agg(o.i ->> 'arguments'::text, ', '::text ORDER BY o.n) AS arguments, string_agg(jsonb_path_query_first(o.i, '$."content"[*]."text"'::jsonpath) #>> '{}'::text[], ' '::text ORDER BY o.n) AS said FROM jsonb_path_query( CASE t.kind WHEN 'model'::text THEN t.content ELSE NULL::jsonb END, '$."output"[*]'::jsonpath) WITH ORDINALITY o(i, n)) m ORDER BY t.run_id, t.stage_id, t.stage_run, t.seq;
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
view millrace.alert_findings
  column detail text
  column ok boolean
  column what text
  as  SELECT 'alerts reach somebody'::text AS what, count(*) = 0 AS ok, COALESCE(string_agg(f.detail, '; '::text ORDER BY f.detail), ( SELECT string_agg(c.name, ', '::text ORDER BY c.name) AS string_agg FROM millrace.alert_channels c WHERE c.enabled), 'no channel: nobody is told; see docs/alerting.md'::text) AS detail FROM ( SELECT format('messages that channel %s could not deliver: %s, the last because: %s; correct it, then update millrace.alert_messages set state = ''waiting'', first_tried_at = null, ended_at = null where state = ''dead'''::text, c.name, count(*), (array_agg(m.error ORDER BY m.id DESC))[1]) AS detail FROM millrace.alert_messages m JOIN millrace.alert_channels c ON c.id = m.channel_id WHERE m.state = 'dead'::text GROUP BY c.name UNION ALL SELECT format('channel %s has a message that waits since %s: %s'::text, c.name, date_trunc('second'::text, m.created_at), COALESCE(m.error, millrace.answer_remedy('millrace'::text, 500))) AS format FROM millrace.alert_channels c CROSS JOIN LATERAL ( SELECT o.created_at, o.error FROM millrace.alert_messages o WHERE o.channel_id = c.id AND o.state = 'waiting'::text ORDER BY o.id LIMIT 1) m WHERE c.enabled AND m.created_at <= ((( SELECT millrace.now() AS now)) - '00:05:00'::interval) UNION ALL SELECT format('rule %s names channel %s, which there is not: correct it in millrace.alert_rules'::text, r.name, u.u) AS format FROM millrace.alert_rules r CROSS JOIN LATERAL unnest(r.channels) u(u) WHERE NOT (EXISTS ( SELECT FROM millrace.alert_channels c WHERE c.name = u.u))) f UNION ALL SELECT 'messages link to the operator''s page'::text AS what, true AS ok, COALESCE(( SELECT NULLIF(s.value, ''::text) AS "nullif" FROM millrace.settings s WHERE s.name = 'page_url'::text), 'page_url is empty, so they name commands alone: npx millrace connect --page=URL writes it'::text) AS detail;
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
  constraint alert_messages_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES millrace.alert_channels(id) ON DELETE CASCADE
  constraint alert_messages_pkey PRIMARY KEY (id)
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
  column source text not null default 'sql'::text
  column span interval not null default '00:10:00'::interval
  column stage text
  constraint alert_rules_kind_known CHECK ((kind = ANY (ARRAY['run_sla'::text, 'error_share'::text, 'backlog'::text, 'dead'::text, 'spend'::text, 'late'::text, 'refused'::text, 'unattended'::text, 'engine'::text])))
  constraint alert_rules_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint alert_rules_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX alert_rules_key ON millrace.alert_rules USING btree (pipeline, name) NULLS NOT DISTINCT
  CREATE UNIQUE INDEX alert_rules_pkey ON millrace.alert_rules USING btree (id)
  CREATE TRIGGER alert_rules_are_checked BEFORE INSERT OR UPDATE ON millrace.alert_rules FOR EACH ROW EXECUTE FUNCTION millrace.check_rule()
sequence millrace.alert_rules_id_seq
table millrace.alerts
  column above numeric not null
  column channels text[]
  column detail text
  column id bigint not null generated always as identity
  column kind text not null
  column notified_at timestamp with time zone
  column pipeline text
  column pipeline_id integer not null
  column playbook text
  column raised_at timestamp with time zone not null
  column resolved_at timestamp with time zone
  column rule text not null
  column rule_id integer not null
  column settled boolean not null default false
  column since timestamp with time zone not null
  column span interval not null
  column stage text
  column stage_id integer not null
  column value numeric not null
  constraint alerts_pkey PRIMARY KEY (id)
  CREATE INDEX alerts_by_end ON millrace.alerts USING btree (resolved_at)
  CREATE INDEX alerts_by_rule ON millrace.alerts USING btree (rule_id, pipeline_id, stage_id, raised_at)
  CREATE INDEX alerts_unsettled ON millrace.alerts USING btree (id) WHERE (NOT settled)
  CREATE UNIQUE INDEX alerts_one_open ON millrace.alerts USING btree (rule_id, pipeline_id, stage_id) WHERE (resolved_at IS NULL)
  CREATE UNIQUE INDEX alerts_pkey ON millrace.alerts USING btree (id)
sequence millrace.alerts_id_seq
table millrace.attempts with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05)
  column concurrency_group text
  column created_at timestamp with time zone not null
  column deadline_at timestamp with time zone
  column deleted_after smallint
  column error jsonb
  column finished_at timestamp with time zone
  column id bigint not null generated always as identity
  column isolated boolean not null default false
  column job_id text
  column job_started_at timestamp with time zone
  column late_at timestamp with time zone
  column lost_alone boolean not null default false
  column number smallint not null
  column output jsonb
  column parent_id bigint
  column poll_at timestamp with time zone
  column queue_at timestamp with time zone
  column quota_blocked boolean not null default false
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
  constraint attempts_pkey PRIMARY KEY (id)
  constraint attempts_run_id_stage_id_number_key UNIQUE (run_id, stage_id, number)
  CREATE INDEX attempts_by_deadline ON millrace.attempts USING btree (deadline_at) WHERE (deadline_at IS NOT NULL)
  CREATE INDEX attempts_by_group ON millrace.attempts USING btree (stage_id, concurrency_group, queue_at, id) WHERE ((concurrency_group IS NOT NULL) AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_by_job ON millrace.attempts USING btree (hashtextextended(job_id, (0)::bigint)) WHERE ((job_id IS NOT NULL) AND (service <> ALL (ARRAY['children'::text, 'decision'::text, 'by_hand'::text])))
  CREATE INDEX attempts_by_submission ON millrace.attempts USING btree (submission_id) WHERE (submission_id IS NOT NULL)
  CREATE INDEX attempts_isolated ON millrace.attempts USING btree (stage_id, queue_at, id) WHERE (isolated AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_late ON millrace.attempts USING btree (late_at) WHERE (late_at IS NOT NULL)
  CREATE INDEX attempts_quota_blocked ON millrace.attempts USING btree (stage_id, queue_at, id) WHERE (quota_blocked AND (queue_at IS NOT NULL))
  CREATE INDEX attempts_ready ON millrace.attempts USING btree (stage_id, queue_at, id) WHERE (queue_at IS NOT NULL)
  CREATE INDEX attempts_to_poll ON millrace.attempts USING btree (poll_at) WHERE (poll_at IS NOT NULL)
  CREATE INDEX attempts_waiting ON millrace.attempts USING btree (stage_id, concurrency_group) WHERE (deadline_at IS NOT NULL)
  CREATE UNIQUE INDEX attempts_pkey ON millrace.attempts USING btree (id) WITH (fillfactor='90')
  CREATE UNIQUE INDEX attempts_run_id_stage_id_number_key ON millrace.attempts USING btree (run_id, stage_id, number)
sequence millrace.attempts_id_seq
table millrace.back_pressures
  column backlog integer not null
  column later_id integer not null
  column on_the_way integer[] not null
  column stage_id integer not null
  constraint back_pressures_later_id_fkey FOREIGN KEY (later_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  constraint back_pressures_pkey PRIMARY KEY (stage_id, later_id)
  constraint back_pressures_stage_id_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE INDEX back_pressures_by_later ON millrace.back_pressures USING btree (later_id, stage_id)
  CREATE UNIQUE INDEX back_pressures_pkey ON millrace.back_pressures USING btree (stage_id, later_id)
view millrace.backlogs
  column later_id integer
  column stage_id integer
  column with_due boolean
  as ( SELECT b.later_id, b.later_id AS stage_id, true AS with_due FROM millrace.back_pressures b UNION SELECT b.later_id, w.w AS stage_id, true AS with_due FROM millrace.back_pressures b CROSS JOIN LATERAL unnest(b.on_the_way) w(w) ) UNION ALL SELECT b.later_id, b.stage_id, false AS with_due FROM millrace.back_pressures b;
table millrace.buckets with (fillfactor=50)
  column key text not null
  column limit_id integer not null
  column refilled_at timestamp with time zone not null
  column tokens double precision not null
  constraint buckets_limit_id_fkey FOREIGN KEY (limit_id) REFERENCES millrace.limits(id) ON DELETE CASCADE
  constraint buckets_pkey PRIMARY KEY (limit_id, key)
  CREATE UNIQUE INDEX buckets_pkey ON millrace.buckets USING btree (limit_id, key)
type millrace.built
  column entity json
  column failure json
  column needs json
table millrace.bulks with (fillfactor=50)
  column args jsonb not null
  column began_at timestamp with time zone
  column created_at timestamp with time zone not null
  column cursor text
  column done integer not null default 0
  column ended_at timestamp with time zone
  column faults integer not null default 0
  column faults_by_run jsonb[] not null default '{}'::jsonb[]
  column filter jsonb not null
  column id bigint not null generated always as identity
  column key text not null
  column locked bigint[] not null default '{}'::bigint[]
  column passed_over integer not null default 0
  column pipeline_id integer not null
  column preview jsonb not null
  column reason text
  column slices integer not null default 0
  column state text not null default 'previewed'::text
  column subject text
  column tried bigint
  column why text
  constraint bulks_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint bulks_pkey PRIMARY KEY (id)
  CREATE INDEX bulks_by_pipeline ON millrace.bulks USING btree (pipeline_id)
  CREATE INDEX bulks_running ON millrace.bulks USING btree (id) WHERE (state = 'running'::text)
  CREATE UNIQUE INDEX bulks_pkey ON millrace.bulks USING btree (id)
sequence millrace.bulks_id_seq
table millrace.bypassed
  column at timestamp with time zone not null
  column entity_id text not null
  column reason text not null
  column run_id bigint not null
  column stage_id integer not null
  constraint bypassed_pkey PRIMARY KEY (stage_id, entity_id)
  constraint bypassed_stage_id_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE INDEX bypassed_by_run ON millrace.bypassed USING btree (run_id)
  CREATE INDEX bypassed_in_order ON millrace.bypassed USING btree (stage_id, at, run_id)
  CREATE UNIQUE INDEX bypassed_pkey ON millrace.bypassed USING btree (stage_id, entity_id)
table millrace.bypasses
  column began_at timestamp with time zone not null
  column journal_entry bigint not null
  column reason text not null
  column stage_id integer not null
  column until timestamp with time zone
  constraint bypasses_pkey PRIMARY KEY (stage_id)
  constraint bypasses_stage_id_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX bypasses_pkey ON millrace.bypasses USING btree (stage_id)
type millrace.call
  column is_child boolean
  column open boolean
  column row_cpu_ms real
  column stage millrace.stages
  column sweep_due boolean
  column worker millrace.workers
type millrace.caller
  column key text
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
  column ended_at timestamp with time zone
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
  column stage_id integer not null
  column token uuid not null
  column worker_id uuid not null
  constraint claims_pkey PRIMARY KEY (token)
  CREATE INDEX claims_by_host ON millrace.claims USING btree (host)
  CREATE INDEX claims_by_stage ON millrace.claims USING btree (stage_id)
  CREATE INDEX claims_by_worker ON millrace.claims USING btree (worker_id)
  CREATE UNIQUE INDEX claims_pkey ON millrace.claims USING btree (token)
table millrace.costs with (fillfactor=70)
  column at timestamp with time zone not null
  column model text not null
  column stage_id integer not null
  column tenant text not null
  column unit text not null
  column usd numeric not null
  constraint costs_pkey PRIMARY KEY (unit, at, stage_id, model, tenant)
  CREATE UNIQUE INDEX costs_pkey ON millrace.costs USING btree (unit, at, stage_id, model, tenant)
view millrace.counted_figures
  column n bigint
  column outcome text
  column pipeline_id integer
  column stage_id integer
  as  SELECT t.pipeline_id, t.stage_id, t.outcome, t.n FROM millrace.sums t WHERE t.unit = 'total'::text UNION ALL SELECT p.pipeline_id, p.stage_id, p.outcome, p.n FROM millrace.pulses p;
view millrace.dead_letter_counts
  column error_code text
  column newest timestamp with time zone
  column oldest timestamp with time zone
  column pipeline text
  column runs bigint
  column stage text
  as  WITH RECURSIVE cause AS ( SELECT 0 AS pipeline_id, 0 AS failed_stage_id, ''::text AS error_code UNION ALL SELECT n_1.pipeline_id, n_1.failed_stage_id, n_1.error_code FROM cause c_1 CROSS JOIN LATERAL ( SELECT r.pipeline_id, r.failed_stage_id, r.error_code FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status AND ((ROW(r.pipeline_id, r.failed_stage_id, r.error_code) > ROW(c_1.pipeline_id, c_1.failed_stage_id, c_1.error_code))) ORDER BY r.pipeline_id, r.failed_stage_id, r.error_code LIMIT 1) n_1 ) SELECT p.name AS pipeline, s.name AS stage, c.error_code, n.runs, e.oldest, e.newest FROM ( SELECT cause.pipeline_id, cause.failed_stage_id, cause.error_code FROM cause LIMIT 1001) c JOIN millrace.pipelines p ON p.id = c.pipeline_id JOIN millrace.stages s ON s.id = c.failed_stage_id CROSS JOIN LATERAL ( SELECT min(r.finished_at) AS oldest, max(r.finished_at) AS newest FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status AND r.pipeline_id = c.pipeline_id AND r.failed_stage_id = c.failed_stage_id AND r.error_code = c.error_code) e CROSS JOIN LATERAL ( SELECT count(*) AS runs FROM ( SELECT FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status AND r.pipeline_id = c.pipeline_id AND r.failed_stage_id = c.failed_stage_id AND r.error_code = c.error_code LIMIT 10000) l) n;
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
  as  SELECT (d.attempt).id AS attempt_id, d.run_id, p.name AS pipeline, s.name AS stage, d.entity_id, d.error_code, concat_ws(' '::text, (d.attempt).error ->> 'message'::text, (d.attempt).error ->> 'detail'::text) AS error_message, (d.attempt).retry_count AS retry_count, d.failed_at, d.can_retry FROM ( SELECT r.id AS run_id, r.pipeline_id, r.failed_stage_id AS stage_id, r.entity_id, r.error_code, r.finished_at AS failed_at, ( SELECT a.*::millrace.attempts AS a FROM millrace.attempts a WHERE a.run_id = r.id AND a.stage_id = r.failed_stage_id ORDER BY a.number DESC LIMIT 1) AS attempt, NOT (EXISTS ( SELECT FROM millrace.runs o WHERE o.entity_id = r.entity_id AND o.pipeline_id = r.pipeline_id AND o.id > r.id)) AND NOT (EXISTS ( SELECT FROM millrace.fan_outs f WHERE f.id = r.fan_out_id AND (f.state = ANY (ARRAY['abandoned'::text, 'closed'::text])))) AS can_retry FROM millrace.runs r WHERE r.status = 'failed'::millrace.run_status) d LEFT JOIN millrace.pipelines p ON p.id = d.pipeline_id LEFT JOIN millrace.stages s ON s.id = d.stage_id;
view millrace.default_settings
  column name text
  column value text
  as  SELECT name, value FROM ( VALUES ('worker_seconds'::text,'60'::text), ('batch_bytes'::text,'12582912'::text), ('retention_days'::text,'90'::text), ('history_gb'::text,'50'::text), ('last_sweep_at'::text,'-infinity'::text), ('upgrade_patience'::text,'15 seconds'::text), ('rules_judged_at'::text,''::text), ('minutes_hours'::text,'48'::text), ('hours_days'::text,'400'::text), ('operators_need_aal2'::text,'false'::text), ('journal_days'::text,'400'::text), ('page_url'::text,''::text), ('playbooks_url'::text,''::text)) s(name, value);
view millrace.done_attempts
  column created_at timestamp with time zone
  column deleted_after smallint
  column error jsonb
  column finished_at timestamp with time zone
  column id bigint
  column number smallint
  column output jsonb
  column retry_count smallint
  column run_id bigint
  column stage_id integer
  column started_at timestamp with time zone
  column state millrace.attempt_state
  as  SELECT id, run_id, stage_id, number, state, retry_count, created_at, started_at, finished_at, error, output, deleted_after FROM millrace.attempts a WHERE (state = ANY (ARRAY['completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state])) AND NOT superseded;
table millrace.dropped_metadata
  column id bigint not null generated always as identity
  column metadata_id bigint not null
  constraint dropped_metadata_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX dropped_metadata_pkey ON millrace.dropped_metadata USING btree (id)
sequence millrace.dropped_metadata_id_seq
view millrace.due_findings
  column detail text
  column ok boolean
  column what text
  as  SELECT format('due rows of pipeline %s are found by an index'::text, p.name) AS what, i.found AS ok, CASE WHEN i.found THEN p.due_column ELSE format('each sweep reads the whole table: create index concurrently on %s (%I, %I);'::text, p.entity_table, p.due_column, p.entity_key) END AS detail FROM millrace.pipelines p CROSS JOIN LATERAL ( SELECT (EXISTS ( SELECT FROM pg_index i_1 JOIN pg_class c ON c.oid = i_1.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'::name JOIN pg_attribute a ON a.attrelid = i_1.indrelid AND a.attnum = i_1.indkey[0] WHERE i_1.indrelid = p.entity_table::oid AND a.attname = p.due_column AND i_1.indisvalid)) AS found) i WHERE p.due_column IS NOT NULL;
view millrace.due_messages
  column id bigint
  as  SELECT m.id FROM millrace.alert_channels c CROSS JOIN LATERAL ( SELECT o.id, o.tried_at + o.wait AS next_at FROM millrace.alert_messages o WHERE o.channel_id = c.id AND o.state = 'waiting'::text ORDER BY o.id LIMIT 1) m WHERE c.enabled AND COALESCE(m.next_at <= (( SELECT millrace.now() AS now)), true);
table millrace.due_progress with (fillfactor=50)
  column lap_at timestamp with time zone
  column lap_key text
  column pipeline_id integer not null
  constraint due_progress_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint due_progress_pkey PRIMARY KEY (pipeline_id)
  CREATE UNIQUE INDEX due_progress_pkey ON millrace.due_progress USING btree (pipeline_id)
view millrace.fan_out_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'an attempt that waits for children has an open fan-out, and an open fan-out a live attempt'::text AS rule, run_id, attempt_id, detail FROM ( SELECT a.run_id, a.id AS attempt_id, COALESCE('fan-out '::text || f.id, 'none'::text) AS detail FROM millrace.attempts a LEFT JOIN millrace.fan_outs f ON f.attempt_id = a.id AND f.state = 'open'::text WHERE a.state = 'waiting'::millrace.attempt_state AND a.service = 'children'::text AND f.total IS NULL UNION ALL SELECT f.run_id, f.attempt_id, 'fan-out '::text || f.id FROM millrace.fan_outs f WHERE f.state = 'open'::text AND NOT (EXISTS ( SELECT FROM millrace.attempts a WHERE a.id = f.attempt_id AND a.state = 'waiting'::millrace.attempt_state AND a.service = 'children'::text)) AND NOT (EXISTS ( SELECT FROM millrace.attempts s WHERE s.run_id = f.run_id AND s.stage_id = f.stage_id AND (s.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state])) AND NOT s.superseded))) o;
table millrace.fan_outs with (fillfactor=50)
  column attempt_id bigint not null
  column cancelled integer not null default 0
  column child_pipeline_id integer not null
  column completed integer not null default 0
  column created_at timestamp with time zone not null default millrace.now()
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
  CREATE INDEX fan_outs_abandoned ON millrace.fan_outs USING btree (id) WHERE (state = 'abandoned'::text)
  CREATE INDEX fan_outs_by_attempt ON millrace.fan_outs USING btree (attempt_id)
  CREATE INDEX fan_outs_by_run ON millrace.fan_outs USING btree (run_id, stage_id)
  CREATE UNIQUE INDEX fan_outs_one_open ON millrace.fan_outs USING btree (run_id, stage_id) WHERE (state = 'open'::text)
  CREATE UNIQUE INDEX fan_outs_pkey ON millrace.fan_outs USING btree (id)
sequence millrace.fan_outs_id_seq
table millrace.fan_progress with (fillfactor=50)
  column done integer not null default 0
  column fan_out_id bigint not null
  column stage_id integer not null
  constraint fan_progress_pkey PRIMARY KEY (fan_out_id, stage_id)
  CREATE UNIQUE INDEX fan_progress_pkey ON millrace.fan_progress USING btree (fan_out_id, stage_id)
type millrace.fault
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
type millrace.figure
  column at timestamp with time zone
  column cancelled bigint
  column codes jsonb
  column completed bigint
  column cost_usd numeric
  column ended bigint
  column failed bigint
  column input_tokens numeric
  column oldest_ms double precision
  column output_tokens numeric
  column ready bigint
  column retried bigint
  column run_p50_ms double precision
  column run_p95_ms double precision
  column skipped bigint
  column wait_p50_ms double precision
  column wait_p95_ms double precision
type millrace.finding
  column detail text
  column ok boolean
  column what text
table millrace.former_costs
  column cost_usd numeric not null
  column fan_out_id bigint not null
  column id bigint not null generated always as identity
  constraint former_costs_pkey PRIMARY KEY (fan_out_id, id)
  CREATE UNIQUE INDEX former_costs_pkey ON millrace.former_costs USING btree (fan_out_id, id)
sequence millrace.former_costs_id_seq
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
  constraint former_runs_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint former_runs_pkey PRIMARY KEY (pipeline_id, entity_id)
  CREATE UNIQUE INDEX former_runs_pkey ON millrace.former_runs USING btree (pipeline_id, entity_id)
view millrace.history_findings
  column detail text
  column ok boolean
  column what text
  as  SELECT 'history stays below history_gb'::text AS what, GREATEST(size, later) <= most AS ok, format('%s now; a day brings %s, which comes to %s by the time it is pruned%s'::text, pg_size_pretty(size), pg_size_pretty(daily), pg_size_pretty(later), CASE WHEN GREATEST(size, later) > most THEN ': keep runs or their results for fewer days (retention), return smaller results, or raise the setting history_gb'::text ELSE NULL::text END) AS detail FROM ( SELECT s.size, trunc(s.each * d.n) AS daily, trunc(s.each * d.kept) AS later, ( SELECT s_1.value::integer::numeric * '1000000000'::numeric FROM millrace.settings s_1 WHERE s_1.name = 'history_gb'::text) AS most FROM ( SELECT sum(t.t) AS size, COALESCE(sum(t.t) / max(c.reltuples) FILTER (WHERE c.relname = 'attempts'::name AND c.reltuples >= 10000::double precision)::numeric, 1200::numeric) AS each FROM pg_class c CROSS JOIN LATERAL pg_total_relation_size(c.oid::regclass) t(t) WHERE c.relnamespace = 'millrace'::regnamespace::oid AND c.relkind = 'r'::"char" AND pg_relation_size(c.oid::regclass) > 0) s CROSS JOIN ( SELECT COALESCE(sum(m.n), 0::numeric) AS n, COALESCE(sum(m.n * COALESCE(p.retention_days, millrace.setting('retention_days'::text)::integer)), 0::numeric) AS kept FROM millrace.pipelines p JOIN millrace.stages s_1 ON s_1.pipeline_id = p.id JOIN millrace.sums m ON m.unit = 'hour'::text AND m.pipeline_id = p.id AND m.stage_id = s_1.id AND m.at > ((( SELECT millrace.now() AS now)) - '1 day'::interval) AND (m.outcome = ANY (ARRAY['completed'::text, 'failed'::text, 'retried'::text, 'skipped'::text]))) d) h;
view millrace.in_flight
  column attempt_id bigint
  column key text
  column stage_id integer
  as  SELECT s.id AS stage_id, f.attempt_id, f.key FROM millrace.stages s CROSS JOIN LATERAL millrace.in_flight_at(s.id) f(attempt_id, key);
table millrace.journal
  column at timestamp with time zone not null
  column bulk_id bigint
  column filter jsonb
  column id bigint not null generated always as identity
  column key text not null
  column outcome jsonb not null default '{}'::jsonb
  column pipeline text
  column reason text
  column run_ids bigint[] not null default '{}'::bigint[]
  column runs integer not null
  column session jsonb not null
  column stage text
  column subject text
  column verb text not null
  constraint journal_pkey PRIMARY KEY (id)
  CREATE INDEX journal_by_pipeline ON millrace.journal USING btree (pipeline, id)
  CREATE INDEX journal_by_run ON millrace.journal USING gin (run_ids) WITH (fastupdate=off)
  CREATE INDEX journal_by_time ON millrace.journal USING btree (at)
  CREATE UNIQUE INDEX journal_pkey ON millrace.journal USING btree (id)
  CREATE TRIGGER journal_is_kept BEFORE UPDATE OR TRUNCATE ON millrace.journal FOR EACH STATEMENT EXECUTE FUNCTION millrace.keep_journal()
  CREATE TRIGGER journal_is_not_deleted AFTER DELETE ON millrace.journal REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION millrace.keep_journal()
sequence millrace.journal_id_seq
view millrace.label_findings
  column detail text
  column ok boolean
  column what text
  as  SELECT format('labels of pipeline %s are found by an index'::text, p.name) AS what, s.how IS NOT NULL AS ok, CASE WHEN s.how IS NULL THEN format('nothing is found by them: create index concurrently on %s (%I text_pattern_ops);'::text, p.entity_table, p.label_column) ELSE format('%s, %s'::text, p.label_column, s.how) END AS detail FROM millrace.pipelines p CROSS JOIN LATERAL millrace.label_search(p.*) s(how) WHERE p.label_column IS NOT NULL;
table millrace.last_findings
  column detail text
  column what text not null
  constraint last_findings_pkey PRIMARY KEY (what)
  CREATE UNIQUE INDEX last_findings_pkey ON millrace.last_findings USING btree (what)
view millrace.late_counts
  column late bigint
  column longest bigint
  column pipeline_id integer
  column stage_id integer
  as  SELECT s.pipeline_id, s.id AS stage_id, count(*) AS late, (array_agg(l.run_id ORDER BY l.late_at))[1] AS longest FROM millrace.late_attempts(10001) l(id, run_id, stage_id, state, late_at) JOIN millrace.stages s ON s.id = l.stage_id GROUP BY s.pipeline_id, s.id;
view millrace.late_runs
  column attempt_id bigint
  column entity_id text
  column late_at timestamp with time zone
  column pipeline text
  column run_id bigint
  column sla interval
  column stage text
  column state millrace.attempt_state
  as  SELECT p.name AS pipeline, s.name AS stage, a.run_id, ( SELECT r.entity_id FROM millrace.runs r WHERE r.id = a.run_id) AS entity_id, a.id AS attempt_id, a.state, s.sla, a.late_at FROM millrace.late_attempts(10000) a(id, run_id, stage_id, state, late_at) JOIN millrace.stages s ON s.id = a.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id ORDER BY a.late_at;
view millrace.limit_pauses
  column key text
  column name text
  column since timestamp with time zone
  column until timestamp with time zone
  as  SELECT l.name, CASE WHEN l.limits ? 'key_rate'::text THEN u.key ELSE NULL::text END AS key, min(lower(u.during)) AS since, max(upper(u.during)) AS until FROM millrace.limit_uses u JOIN millrace.limits l ON l.id = u.limit_id WHERE u.kind = 'pause'::text AND u.during @> (( SELECT millrace.now() AS now)) GROUP BY l.name, ( CASE WHEN l.limits ? 'key_rate'::text THEN u.key ELSE NULL::text END) ORDER BY l.name, ( CASE WHEN l.limits ? 'key_rate'::text THEN u.key ELSE NULL::text END);
table millrace.limit_uses with (autovacuum_vacuum_scale_factor=0.02)
  column during tstzrange not null
  column id bigint not null generated always as identity
  column key text not null default ''::text
  column kind text not null
  column limit_id integer not null
  column summed boolean not null default false
  column used numeric not null
  constraint limit_uses_pkey PRIMARY KEY (id)
  CREATE INDEX limit_uses_by_end ON millrace.limit_uses USING btree (upper(during))
  CREATE INDEX limit_uses_by_key ON millrace.limit_uses USING btree (limit_id, key, kind, during)
  CREATE INDEX limit_uses_to_sum ON millrace.limit_uses USING btree (id) WHERE (NOT summed)
  CREATE UNIQUE INDEX limit_uses_pkey ON millrace.limit_uses USING btree (id)
sequence millrace.limit_uses_id_seq
table millrace.limited_stages with (fillfactor=50)
  column limit_id integer not null
  column short_at timestamp with time zone
  column stage_id integer not null
  column taken_at timestamp with time zone
  constraint limited_stages_limit_id_fkey FOREIGN KEY (limit_id) REFERENCES millrace.limits(id) ON DELETE CASCADE
  constraint limited_stages_pkey PRIMARY KEY (limit_id, stage_id)
  constraint limited_stages_stage_id_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE INDEX limited_stages_by_stage ON millrace.limited_stages USING btree (stage_id, limit_id)
  CREATE UNIQUE INDEX limited_stages_pkey ON millrace.limited_stages USING btree (limit_id, stage_id)
table millrace.limits with (fillfactor=50)
  column declared jsonb not null
  column id integer not null generated always as identity
  column journal_entry bigint
  column last_group text not null default ''::text
  column limits jsonb not null generated as (declared || COALESCE(throttle, '{}'::jsonb))
  column name text
  column pipeline_id integer
  column reason text
  column stage_id integer
  column throttle jsonb
  column throttled_at timestamp with time zone
  column until timestamp with time zone
  constraint limits_name_key UNIQUE (name)
  constraint limits_of_one CHECK ((num_nonnulls(name, stage_id, pipeline_id) = 1))
  constraint limits_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint limits_pipeline_key UNIQUE (pipeline_id)
  constraint limits_pkey PRIMARY KEY (id)
  constraint limits_stage_id_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  constraint limits_stage_key UNIQUE (stage_id)
  CREATE UNIQUE INDEX limits_name_key ON millrace.limits USING btree (name)
  CREATE UNIQUE INDEX limits_pipeline_key ON millrace.limits USING btree (pipeline_id)
  CREATE UNIQUE INDEX limits_pkey ON millrace.limits USING btree (id)
  CREATE UNIQUE INDEX limits_stage_key ON millrace.limits USING btree (stage_id)
sequence millrace.limits_id_seq
table millrace.log
  column at timestamp with time zone not null default millrace.now()
  column code text not null
  column detail jsonb not null default '{}'::jsonb
  column id bigint not null generated always as identity
  column level text not null
  column message text not null
  constraint log_pkey PRIMARY KEY (id)
  CREATE INDEX log_by_code ON millrace.log USING btree (code, at)
  CREATE INDEX log_by_time ON millrace.log USING btree (at)
  CREATE UNIQUE INDEX log_pkey ON millrace.log USING btree (id)
sequence millrace.log_id_seq
view millrace.misconfigured_findings
  column detail text
  column ok boolean
  column what text
  as  SELECT 'no stage is misconfigured'::text AS what, count(*) = 0 AS ok, COALESCE(string_agg(format('%s of %s since %s (attempts: %s): %s'::text, s.name, p.name, CASE WHEN h.minute < (h.hour + '01:00:00'::interval) THEN h.minute ELSE h.hour END, h.n, rtrim(e.message, '.'::text)), '. '::text ORDER BY p.name, s.name) || '. Once it is set right, hurry or retry these runs'::text, 'none is'::text) AS detail FROM millrace.stages s JOIN millrace.pipelines p ON p.id = s.pipeline_id JOIN LATERAL ( SELECT sum((m.codes ->> 'misconfigured'::text)::bigint) FILTER (WHERE m.unit = 'hour'::text) AS n, min(m.at) FILTER (WHERE m.unit = 'hour'::text) AS hour, min(m.at) FILTER (WHERE m.unit = 'minute'::text) AS minute FROM millrace.sums m WHERE (m.unit = ANY ('{minute,hour}'::text[])) AND m.pipeline_id = s.pipeline_id AND m.stage_id = s.id AND m.at > ((( SELECT millrace.now() AS now)) - '1 day'::interval) AND m.codes ? 'misconfigured'::text) h ON h.n > 0::numeric CROSS JOIN LATERAL ( SELECT f.error ->> 'message'::text AS message FROM (( SELECT a.parent_id AS id FROM millrace.attempts a WHERE a.stage_id = s.id AND a.queue_at IS NOT NULL ORDER BY a.queue_at DESC, a.id DESC LIMIT 200) UNION ALL ( SELECT o.id FROM millrace.runs r JOIN millrace.attempts o ON o.run_id = r.id AND o.stage_id = s.id WHERE r.pipeline_id = s.pipeline_id AND r.failed_stage_id = s.id AND r.status = 'failed'::millrace.run_status AND r.error_code = 'misconfigured'::text AND r.finished_at > ((( SELECT millrace.now() AS now)) - '1 day'::interval) ORDER BY r.finished_at DESC LIMIT 20)) c JOIN millrace.attempts f ON f.id = c.id WHERE (f.error ->> 'code'::text) = 'misconfigured'::text LIMIT 1) e WHERE (s.id IN ( SELECT m.stage_id FROM millrace.sums m WHERE m.unit = 'total'::text AND m.codes ?| '{misconfigured,other}'::text[]));
view millrace.missing_set_up
  column what text
  as  SELECT 'setting '::text || d.name AS what FROM millrace.default_settings d WHERE NOT (EXISTS ( SELECT FROM millrace.settings s WHERE s.name = d.name)) UNION ALL SELECT 'release '::text || e.release AS what FROM millrace.engine() e(level, release, contracts) WHERE NOT (EXISTS ( SELECT FROM millrace.releases r WHERE r.level = e.level)) UNION ALL SELECT 'the progress of the invariants'' check'::text AS what WHERE NOT (EXISTS ( SELECT FROM millrace.check_progress)) UNION ALL SELECT 'policy millrace_progress'::text AS what WHERE to_regclass('realtime.messages'::text) IS NOT NULL AND NOT (EXISTS ( SELECT FROM pg_policy p WHERE p.polname = 'millrace_progress'::name)) UNION ALL SELECT 'cron job '::text || j.name AS what FROM millrace.schedules j WHERE NOT (EXISTS ( SELECT FROM cron.job c WHERE c.jobname = j.name));
table millrace.operators
  column added_at timestamp with time zone not null default millrace.now()
  column note text not null default ''::text
  column payloads boolean not null default false
  column pipelines text[]
  column role text not null
  column subject text not null
  constraint operators_pkey PRIMARY KEY (subject)
  constraint operators_role_known CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text])))
  constraint operators_subject_length CHECK (((length(subject) >= 1) AND (length(subject) <= 500)))
  CREATE UNIQUE INDEX operators_pkey ON millrace.operators USING btree (subject)
  CREATE TRIGGER operators_are_noted BEFORE INSERT OR DELETE OR UPDATE ON millrace.operators FOR EACH ROW EXECUTE FUNCTION millrace.note_operator()
view millrace.paused
  column pipeline text
  column remedy text
  column stage text
  as  SELECT p.name AS pipeline, s.name AS stage, format('select millrace.unpause(%s);'::text, concat_ws(', '::text, quote_literal(p.name), quote_literal(s.name))) AS remedy FROM millrace.pipelines p CROSS JOIN LATERAL ( SELECT NULL::text AS name, 0 AS "position" WHERE NOT p.enabled UNION ALL SELECT t.name, vs."position" FROM millrace.version_stages vs JOIN millrace.stages t ON t.id = vs.stage_id WHERE vs.version_id = p.current_version_id AND NOT t.enabled) s ORDER BY p.name, s."position";
view millrace.pipeline_findings
  column detail text
  column ok boolean
  column what text
  as  WITH forged AS ( SELECT c.oid::regclass AS entity_table, r.rolname AS role, string_agg(DISTINCT v.name, ', '::text) AS verbs FROM ( SELECT w.table_id, array_agg(DISTINCT w.name) AS names, bool_or(w.name = '*'::text) AS whole FROM millrace.pipelines p CROSS JOIN LATERAL ( SELECT p.entity_table::oid AS entity_table, c_1.c FROM millrace.stages s CROSS JOIN LATERAL unnest(millrace.stage_columns(s.name)) c_1(c) WHERE p.projection = 'columns'::text AND s.pipeline_id = p.id AND c_1.c !~~ '%\_status'::text UNION ALL SELECT p.entity_table::oid AS entity_table, p.status ->> f.f FROM unnest('{attempts,retry_at,error}'::text[]) f(f) UNION ALL SELECT to_regclass(t.t) AS to_regclass, '*'::text FROM unnest(ARRAY[p.status #>> '{history,table}'::text[], p.status ->> 'lookup'::text]) t(t)) w(table_id, name) GROUP BY w.table_id) k JOIN pg_class c ON c.oid = k.table_id JOIN pg_roles api ON api.rolname = 'authenticator'::name JOIN pg_roles r ON pg_has_role(api.oid, r.oid, 'member'::text) AND r.oid <> api.oid AND NOT r.rolbypassrls AND NOT r.rolsuper CROSS JOIN ( VALUES ('delete'::text,'d'::text), ('insert'::text,'a'::text), ('update'::text,'w'::text)) v(name, policy) WHERE CASE WHEN v.name = 'delete'::text THEN k.whole AND has_table_privilege(r.oid, c.oid, 'delete'::text) ELSE has_any_column_privilege(r.oid, c.oid, v.name) AND (EXISTS ( SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND (k.whole OR (a.attname = ANY (k.names))) AND has_column_privilege(r.oid, c.oid, a.attnum, v.name))) END AND (NOT c.relrowsecurity OR (EXISTS ( SELECT FROM pg_policy y CROSS JOIN LATERAL unnest(y.polroles) o(o) WHERE y.polrelid = c.oid AND y.polpermissive AND (y.polcmd = '*'::"char" OR y.polcmd::text = v.policy) AND (o.o = 0::oid OR pg_has_role(r.oid, o.o, 'usage'::text))))) GROUP BY c.oid, r.rolname ) SELECT 'ready work is taken within 30 seconds'::text AS what, count(*) = 0 AS ok, COALESCE(string_agg(format('%s of %s: %s; %s'::text, u.stage, u.pipeline, u.why, u.remedy), '. '::text), 'nothing waits'::text) AS detail FROM ( SELECT unattended.stage_id, unattended.function_name, unattended.pipeline, unattended.stage, unattended.since, unattended.cause, unattended.why, unattended.remedy FROM millrace.unattended() unattended(stage_id, function_name, pipeline, stage, since, cause, why, remedy) LIMIT 10) u UNION ALL SELECT 'only the engine can write results'::text AS what, count(*) = 0 AS ok, COALESCE(string_agg(format('%s may %s what the engine writes in %s: revoke %2$s on %3$s from public, %1$I; and grant it its own columns by name'::text, f.role, f.verbs, f.entity_table), '. '::text ORDER BY f.entity_table, f.role), 'no role of the Data API can'::text) AS detail FROM forged f UNION ALL SELECT 'nothing is paused'::text AS what, count(*) = 0 AS ok, COALESCE(string_agg(((COALESCE(('stage '::text || d.stage) || ' of '::text, 'pipeline '::text) || d.pipeline) || ': '::text) || d.remedy, ' '::text), 'nothing is'::text) AS detail FROM millrace.paused d;
table millrace.pipelines
  column current_version_id integer
  column details_to text[] not null
  column digest text
  column due_column text
  column enabled boolean not null default true
  column entity_key text not null
  column entity_table regclass not null
  column has_given boolean not null default false
  column id integer not null generated always as identity
  column is_child boolean not null default false
  column label_column text
  column metadata_column text
  column name text not null
  column outputs_days integer
  column projection text not null
  column quota jsonb
  column required_columns text[] not null
  column retention_days integer
  column sla jsonb
  column status jsonb
  column switched_entry bigint
  column trace_column text
  constraint pipelines_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint pipelines_name_key UNIQUE (name)
  constraint pipelines_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX pipelines_name_key ON millrace.pipelines USING btree (name)
  CREATE UNIQUE INDEX pipelines_pkey ON millrace.pipelines USING btree (id)
sequence millrace.pipelines_id_seq
table millrace.posts unlogged
  column function_name text
  column posted_at timestamp with time zone not null default transaction_timestamp()
  column request_id bigint not null
  constraint posts_pkey PRIMARY KEY (posted_at, request_id)
  CREATE UNIQUE INDEX posts_pkey ON millrace.posts USING btree (posted_at, request_id)
table millrace.prune_progress with (fillfactor=50)
  column began_at timestamp with time zone not null
  column ended_at timestamp with time zone
  column outputs_at timestamp with time zone not null default '-infinity'::timestamp with time zone
  column outputs_id bigint not null default 0
  column pipeline_id integer not null
  column removed bigint not null default 0
  column seen_at timestamp with time zone not null default '-infinity'::timestamp with time zone
  column seen_id bigint not null default 0
  constraint prune_progress_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint prune_progress_pkey PRIMARY KEY (pipeline_id)
  CREATE UNIQUE INDEX prune_progress_pkey ON millrace.prune_progress USING btree (pipeline_id)
table millrace.pulses with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
  column at timestamp with time zone not null
  column codes text[]
  column cost_usd numeric
  column input_tokens numeric
  column model text
  column n integer not null
  column outcome text not null
  column output_tokens numeric
  column pipeline_id integer not null
  column run_ms real[]
  column stage_id integer not null
  column tenant text
  column wait_ms real[]
view millrace.quotas
  column allowed numeric
  column key text
  column kind text
  column next_at timestamp with time zone
  column pipeline text
  column quota_blocked bigint
  column used numeric
  as  WITH used AS ( SELECT l.pipeline_id, u_1.key, u_1.kind, sum(u_1.used) AS used FROM millrace.limit_uses u_1 JOIN millrace.limits l ON l.id = u_1.limit_id AND l.pipeline_id IS NOT NULL WHERE upper(u_1.during) > (( SELECT millrace.now() AS now)) GROUP BY l.pipeline_id, u_1.key, u_1.kind ), quota_blocked AS ( SELECT r.quota_of AS pipeline_id, r.quota_key AS key, substr(a.error ->> 'code'::text, 7) AS kind, count(*) AS quota_blocked, min(a.queue_at) AS next_at FROM millrace.attempts a JOIN millrace.runs r ON r.id = a.run_id WHERE a.quota_blocked AND a.queue_at IS NOT NULL AND a.state = 'queued'::millrace.attempt_state GROUP BY r.quota_of, r.quota_key, (substr(a.error ->> 'code'::text, 7)) ) SELECT p.name AS pipeline, key, kind, COALESCE(u.used, 0::numeric) AS used, COALESCE(p.quota #>> ARRAY[kind, 'count'::text], p.quota #>> ARRAY[kind, 'usd'::text])::numeric AS allowed, COALESCE(h.quota_blocked, 0::bigint) AS quota_blocked, h.next_at FROM used u FULL JOIN quota_blocked h USING (pipeline_id, key, kind) JOIN millrace.pipelines p ON p.id = pipeline_id ORDER BY p.name, (COALESCE(h.quota_blocked, 0::bigint)) DESC, key, kind;
type millrace.ready
  column run_id bigint
  column stage_id integer
type millrace.refusal
  column code text
  column key text
  column later boolean
  column others integer
  column why text
table millrace.releases
  column installed_at timestamp with time zone not null default millrace.now()
  column level integer not null
  column release text not null
  constraint releases_pkey PRIMARY KEY (level)
  CREATE UNIQUE INDEX releases_pkey ON millrace.releases USING btree (level)
view millrace.retention
  column began_at timestamp with time zone
  column days integer
  column ended_at timestamp with time zone
  column outputs_days integer
  column pipeline text
  column removed bigint
  as  SELECT p.name AS pipeline, COALESCE(p.retention_days, millrace.setting('retention_days'::text)::integer) AS days, p.outputs_days, g.removed, g.began_at, g.ended_at FROM millrace.pipelines p LEFT JOIN millrace.prune_progress g ON g.pipeline_id = p.id ORDER BY p.name;
table millrace.row_costs
  column cpu_ms real not null
  column learned_at timestamp with time zone not null
  column lives_cut integer not null default 0
  column memory_bytes bigint
  column stage_id integer not null
  constraint row_costs_pkey PRIMARY KEY (stage_id)
  constraint row_costs_stage_id_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX row_costs_pkey ON millrace.row_costs USING btree (stage_id)
type millrace.row_values
  column keys text[]
  column metadata jsonb[]
  column payers text[]
  column traces uuid[]
table millrace.rule_states with (fillfactor=50)
  column above numeric not null
  column below_since timestamp with time zone
  column detail text
  column over_since timestamp with time zone not null
  column pipeline_id integer not null
  column rule_id integer not null
  column stage_id integer not null
  column value numeric not null
  constraint rule_states_pkey PRIMARY KEY (rule_id, pipeline_id, stage_id)
  constraint rule_states_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES millrace.alert_rules(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX rule_states_pkey ON millrace.rule_states USING btree (rule_id, pipeline_id, stage_id)
view millrace.run_faults
  column attempt_id bigint
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'a running run owns a live attempt'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, ('run of entity '::text || r.entity_id) || ' has none'::text AS detail FROM millrace.runs r WHERE r.status = 'running'::millrace.run_status AND NOT (EXISTS ( SELECT FROM millrace.attempts a WHERE a.run_id = r.id AND a.state < 'completed'::millrace.attempt_state)) UNION ALL SELECT 'a failed run, and no other, names the stage that failed it and the error'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, format('the run is %s'::text, r.status) AS detail FROM millrace.runs r WHERE (r.status = 'failed'::millrace.run_status) <> (r.failed_stage_id IS NOT NULL) OR (r.status = 'failed'::millrace.run_status) <> (r.error_code IS NOT NULL) OR r.status = 'failed'::millrace.run_status AND (( SELECT a.state = 'failed'::millrace.attempt_state AND NOT a.superseded FROM millrace.attempts a WHERE a.run_id = r.id AND a.stage_id = r.failed_stage_id ORDER BY a.number DESC LIMIT 1)) IS NOT TRUE UNION ALL SELECT f.rule, a.run_id, a.id AS attempt_id, format('stage %s is %s, the run %s'::text, s.name, a.state, COALESCE(r.status::text, 'gone'::text)) AS detail FROM millrace.attempts a JOIN millrace.stages s ON s.id = a.stage_id LEFT JOIN millrace.runs r ON r.id = a.run_id LEFT JOIN millrace.claims c ON c.token = a.token CROSS JOIN LATERAL ( SELECT a.state < 'completed'::millrace.attempt_state AS live) l CROSS JOIN LATERAL ( VALUES ('an attempt has a run, and one that is over has no live attempt'::text,r.id IS NULL OR l.live AND r.status <> 'running'::millrace.run_status), ('a queued attempt has a due time, a started one a lease, a waiting one a deadline'::text, CASE a.state WHEN 'queued'::millrace.attempt_state THEN a.queue_at IS NULL OR a.token IS NOT NULL WHEN 'started'::millrace.attempt_state THEN c.token IS NULL OR a.queue_at IS NULL OR (a.id <> ALL (c.attempt_ids)) WHEN 'waiting'::millrace.attempt_state THEN a.deadline_at IS NULL OR a.queue_at IS NOT NULL OR a.job_id IS NULL ELSE a.queue_at IS NOT NULL END OR a.state <> 'waiting'::millrace.attempt_state AND (a.poll_at IS NOT NULL OR a.deadline_at IS NOT NULL)), ('an attempt that is over cannot be late'::text,a.late_at IS NOT NULL AND NOT l.live), ('no worker is awaited for a stage that none runs'::text,(s.kind = ANY (ARRAY['manual'::text, 'pipeline'::text])) AND (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state])) OR s.kind = 'gate'::text AND (a.state = ANY (ARRAY['started'::millrace.attempt_state, 'waiting'::millrace.attempt_state]))), ('a superseded attempt is not live'::text,a.superseded AND l.live), ('a completed attempt has its result, and no other has one'::text,(a.state = 'completed'::millrace.attempt_state) <> (a.output IS NOT NULL)), ('a job is heard to run while its attempt waits'::text,a.job_started_at IS NOT NULL AND (a.state = ANY (ARRAY['queued'::millrace.attempt_state, 'started'::millrace.attempt_state, 'skipped'::millrace.attempt_state])))) f(rule, broken) WHERE f.broken UNION ALL SELECT 'a stage is completed once, and has one live attempt at most'::text AS rule, a.run_id, max(a.id) AS attempt_id, format('%s attempts of stage %s'::text, count(*), s.name) AS detail FROM millrace.attempts a JOIN millrace.stages s ON s.id = a.stage_id WHERE (a.state <> ALL (ARRAY['failed'::millrace.attempt_state, 'cancelled'::millrace.attempt_state])) AND NOT a.superseded GROUP BY a.run_id, a.stage_id, s.name HAVING count(*) > 1 UNION ALL SELECT 'a live attempt has its needs done'::text AS rule, a.run_id, a.id AS attempt_id, 'stage '::text || a.stage_id AS detail FROM millrace.attempts a JOIN millrace.runs r ON r.id = a.run_id JOIN millrace.version_stages vs ON vs.version_id = r.version_id AND vs.stage_id = a.stage_id WHERE a.state < 'completed'::millrace.attempt_state AND (EXISTS ( SELECT FROM unnest(vs.needs) n(n) WHERE NOT (EXISTS ( SELECT FROM millrace.done_attempts d WHERE d.run_id = a.run_id AND d.stage_id = n.n)))) UNION ALL SELECT 'a completed run has all stages completed or skipped'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, 'stage '::text || vs.stage_id AS detail FROM millrace.runs r JOIN millrace.version_stages vs ON vs.version_id = r.version_id WHERE r.status = 'completed'::millrace.run_status AND NOT (EXISTS ( SELECT FROM millrace.done_attempts d WHERE d.run_id = r.id AND d.stage_id = vs.stage_id)) UNION ALL SELECT 'a stage whose needs are done has begun'::text AS rule, r.id AS run_id, NULL::bigint AS attempt_id, 'stage '::text || vs.stage_id AS detail FROM millrace.runs r JOIN millrace.version_stages vs ON vs.version_id = r.version_id WHERE r.status = 'running'::millrace.run_status AND NOT (EXISTS ( SELECT FROM millrace.attempts a WHERE a.run_id = r.id AND a.stage_id = vs.stage_id AND NOT a.superseded)) AND NOT (EXISTS ( SELECT FROM ( SELECT (t.value ->> 'map'::text)::integer AS int4 FROM jsonb_array_elements(vs.after) t(value) UNION ALL SELECT n_1.n FROM unnest(vs.needs) n_1(n)) n(id) WHERE NOT (EXISTS ( SELECT FROM millrace.done_attempts d WHERE d.run_id = r.id AND d.stage_id = n.id))));
table millrace.run_metadata
  column id bigint not null generated by default as identity
  column value jsonb not null
  constraint run_metadata_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX run_metadata_pkey ON millrace.run_metadata USING btree (id)
sequence millrace.run_metadata_id_seq
view millrace.run_slas
  column broken text
  column median_bound double precision
  column median_seconds double precision
  column ok boolean
  column overdue bigint
  column p95_bound double precision
  column p95_seconds double precision
  column pipeline text
  column runs bigint
  as  SELECT p.name AS pipeline, c.runs, cardinality(l.ages)::bigint AS overdue, q.median_seconds, q.p95_seconds, b.median_bound, b.p95_bound, o.broken IS NULL AS ok, o.broken FROM millrace.pipelines p CROSS JOIN LATERAL ( SELECT (p.sla ->> 'median_seconds'::text)::double precision AS median_bound, (p.sla ->> 'p95_seconds'::text)::double precision AS p95_bound) b CROSS JOIN LATERAL ( SELECT millrace.ages_over(p.id, LEAST(b.median_bound, b.p95_bound) * 1000::double precision) AS ages) l CROSS JOIN LATERAL ( SELECT array_agg(n.n ORDER BY n.ordinal) AS counts, sum(n.n)::bigint AS runs FROM ( SELECT u.ordinal, u.n + (( SELECT count(*) AS count FROM unnest(l.ages) a(a) WHERE width_bucket(a.a, millrace.bucket_bounds()) = (u.ordinal - 1))) AS n FROM unnest(( SELECT millrace.add_buckets(array_agg(m.runs) || array_fill(0::bigint, '{1,16}'::integer[])) AS add_buckets FROM millrace.figure_rows(p.id, 0, (( SELECT millrace.now() AS now)) - '01:00:00'::interval, (( SELECT millrace.now() AS now)) + '00:01:00'::interval, true) m(unit, pipeline_id, stage_id, at, outcome, n, cost_usd, input_tokens, output_tokens, run_ms, wait_ms, runs, waits, codes))) WITH ORDINALITY u(n, ordinal)) n) c CROSS JOIN LATERAL ( SELECT millrace.bucket_quantile(c.counts, 0.5::double precision) / 1000::double precision AS median_seconds, millrace.bucket_quantile(c.counts, 0.95::double precision) / 1000::double precision AS p95_seconds) q CROSS JOIN LATERAL ( SELECT min(k.name) AS broken FROM ( VALUES ('p95'::text,q.p95_seconds,b.p95_bound,0.05), ('the median'::text,q.median_seconds,b.median_bound,0.5)) k(name, seconds, bound, share) WHERE k.seconds > k.bound OR (( SELECT count(*) AS count FROM unnest(l.ages) a(a) WHERE a.a > (k.bound * 1000::double precision)))::numeric > (k.share * c.runs::numeric)) o WHERE p.sla IS NOT NULL ORDER BY p.name;
view millrace.run_verbs
  column destroys boolean
  column does text
  column in_sets boolean
  column is_open boolean
  column needs text[]
  column states text[]
  column verb text
  as  SELECT verb, needs::text[] AS needs, states::text[] AS states, is_open, in_sets, destroys, does FROM ( VALUES ('retry'::text,'{}'::text,'{failed,cancelled}'::text,true,true,false,'millrace.do_to_all(array[($1).id], ''retry'')'::text), ('cancel'::text,'{}'::text,NULL::text,true,true,true,'millrace.do_to_all(array[($1).id], ''cancel'')'::text), ('reset'::text,'{}'::text,NULL::text,true,false,true,'millrace.reset_one($1, $2)'::text), ('reset_children'::text,'{stage}'::text,NULL::text,false,false,false,'millrace.reset_failed_children($1, $2)'::text), ('start_stage'::text,'{stage}'::text,'{pending}'::text,false,false,false,'millrace.start_one($1, $2)'::text), ('edit'::text,'{stage,attempt}'::text,NULL::text,true,false,true,'millrace.edit_one($1, $2, $3)'::text), ('complete'::text,'{stage,result}'::text,'{queued,started,waiting}'::text,false,false,true,'millrace.end_stage($1, $2, $3)'::text), ('fail'::text,'{stage}'::text,'{queued,started,waiting}'::text,true,false,true,'millrace.end_stage($1, $2, $3)'::text), ('skip'::text,'{stage}'::text,'{pending,queued,started,waiting,failed,cancelled}'::text,true,false,true,'millrace.skip_one($1, $2)'::text), ('hurry'::text,'{}'::text,NULL::text,true,false,false,'millrace.hurry_one($1, $2)'::text)) v(verb, needs, states, is_open, in_sets, destroys, does);
table millrace.runs with (fillfactor=80, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05)
  column began_from text
  column copy_key text
  column copy_of bigint
  column created_at timestamp with time zone not null
  column edited jsonb
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
  column quota_key text
  column quota_of integer
  column status millrace.run_status not null default 'running'::millrace.run_status
  column trace_id uuid not null default gen_random_uuid()
  column version_id integer not null
  constraint runs_pkey PRIMARY KEY (id)
  CREATE INDEX runs_by_entity ON millrace.runs USING btree (entity_id, pipeline_id, id)
  CREATE INDEX runs_by_metadata ON millrace.runs USING btree (metadata_id) WHERE (metadata_id IS NOT NULL)
  CREATE INDEX runs_by_trace ON millrace.runs USING btree (trace_id)
  CREATE INDEX runs_ended ON millrace.runs USING btree (pipeline_id, finished_at, id) WHERE (finished_at IS NOT NULL)
  CREATE INDEX runs_failed ON millrace.runs USING btree (pipeline_id, failed_stage_id, error_code, finished_at, id) WHERE (status = 'failed'::millrace.run_status)
  CREATE INDEX runs_failed_at ON millrace.runs USING btree (pipeline_id, finished_at, id) WHERE (status = 'failed'::millrace.run_status)
  CREATE INDEX runs_of_copies ON millrace.runs USING btree (pipeline_id, copy_key) WHERE (copy_key IS NOT NULL)
  CREATE INDEX runs_of_live_children ON millrace.runs USING btree (fan_out_id) WHERE ((status = 'running'::millrace.run_status) AND (fan_out_id IS NOT NULL))
  CREATE UNIQUE INDEX runs_by_item ON millrace.runs USING btree (fan_out_id, item_key) WHERE (fan_out_id IS NOT NULL)
  CREATE UNIQUE INDEX runs_one_live ON millrace.runs USING btree (pipeline_id, entity_id) WHERE (status = 'running'::millrace.run_status)
  CREATE UNIQUE INDEX runs_pkey ON millrace.runs USING btree (id)
sequence millrace.runs_id_seq
view millrace.schedules
  column command text
  column name text
  column schedule text
  as  SELECT name, schedule, command FROM ( VALUES ('millrace-sweep'::text,'10 seconds'::text,'do $do$declare s jsonb; begin loop s := millrace.sweep_next(s); exit when s is null; commit; end loop; end$do$'::text), ('millrace-prune'::text,'17 3 * * *'::text,'select millrace.prune()'::text)) j(name, schedule, command);
table millrace.settings
  column name text not null
  column value text not null
  constraint settings_pkey PRIMARY KEY (name)
  CREATE UNIQUE INDEX settings_pkey ON millrace.settings USING btree (name)
  CREATE TRIGGER settings_are_checked BEFORE INSERT OR UPDATE ON millrace.settings FOR EACH ROW EXECUTE FUNCTION millrace.check_setting()
view millrace.shared_limit_findings
  column detail text
  column ok boolean
  column what text
  as  SELECT ('shared limit '::text || name) || ' lets its stages work'::text AS what, spent_for = '{}'::text[] AND NOT (EXISTS ( SELECT FROM millrace.limit_pauses k WHERE k.name = l.name AND k.until > (k.since + '00:10:00'::interval))) AS ok, COALESCE(NULLIF(concat_ws('; '::text, ('throttled until '::text || to_char(throttled_until, 'YYYY-MM-DD HH24:MI:SS: '::text)) || throttled_for, millrace.pauses_in_words(name) || format(': select millrace.unthrottle_limit(%L) asks again at once'::text, name), CASE WHEN spent_for <> '{}'::text[] THEN format('its budget pays for nothing more at %s until %s: select millrace.throttle_limit(%L, '::text || '''{"spending": …}'', until, ''reason'') raises it for a while'::text, array_to_string(spent_for, ' and '::text), to_char(window_ends_at, 'YYYY-MM-DD HH24:MI:SS'::text), name) ELSE NULL::text END), ''::text), 'as declared'::text) AS detail FROM millrace.shared_limit_state l;
view millrace.shared_limit_state
  column declared jsonb
  column in_flight bigint
  column name text
  column paused_until timestamp with time zone
  column spent_for text[]
  column spent_tokens numeric
  column spent_usd numeric
  column stages text[]
  column throttled_for text
  column throttled_until timestamp with time zone
  column today jsonb
  column window_ends_at timestamp with time zone
  as  SELECT l.name, n.stages, l.declared, l.limits AS today, l.reason AS throttled_for, l.until AS throttled_until, ( SELECT p.until FROM millrace.limit_pauses p WHERE p.name = l.name AND p.key IS NULL) AS paused_until, ( SELECT count(*) AS count FROM millrace.limited_stages m CROSS JOIN LATERAL millrace.in_flight_at(m.stage_id) in_flight_at(attempt_id, key) WHERE m.limit_id = l.id) AS in_flight, u.usd AS spent_usd, u.tokens AS spent_tokens, u.window_ends_at, n.spent_for FROM millrace.limits l CROSS JOIN LATERAL ( SELECT max(b.spent) FILTER (WHERE b.kind = 'usd'::text) AS usd, max(b.spent) FILTER (WHERE b.kind = 'tokens'::text) AS tokens, upper(millrace.window_of(l.limits -> 'spending'::text)) AS window_ends_at FROM millrace.budgets_of(l.*, NULL::integer) b(kind, spent, reserved, unspent, average, is_spent) WHERE l.limits ? 'spending'::text) u CROSS JOIN LATERAL ( SELECT COALESCE(array_agg(s.name ORDER BY s.id), '{}'::text[]) AS stages, COALESCE(array_agg(s.name ORDER BY s.id) FILTER (WHERE (EXISTS ( SELECT FROM millrace.budgets_of(l.*, s.id) b(kind, spent, reserved, unspent, average, is_spent) WHERE b.is_spent))), '{}'::text[]) AS spent_for FROM ( SELECT t.id, (p.name || '.'::text) || t.name AS name FROM millrace.limited_stages m JOIN millrace.stages t ON t.id = m.stage_id JOIN millrace.pipelines p ON p.id = t.pipeline_id WHERE m.limit_id = l.id) s) n WHERE l.name IS NOT NULL ORDER BY l.name;
view millrace.shown_stages
  column demanded boolean
  column id integer
  column name text
  column ordinal integer
  column ready text
  column shows jsonb
  column version_id integer
  as  SELECT vs.version_id, s.id, s.name, vs."position" AS ordinal, s.shows, vs.on_demand OR (EXISTS ( SELECT FROM millrace.version_stages d WHERE d.version_id = vs.version_id AND d.on_demand AND (vs.stage_id = ANY (d.dependents)))) AS demanded, COALESCE(s.shows ->> 'queued'::text, s.shows ->> 'asked'::text) AS ready FROM millrace.version_stages vs JOIN millrace.stages s ON s.id = vs.stage_id;
table millrace.silences
  column id bigint not null generated always as identity
  column journal_entry bigint not null
  column kind text
  column pipeline text
  column reason text not null
  column stage text
  column until timestamp with time zone not null
  constraint silences_pkey PRIMARY KEY (id)
  CREATE INDEX silences_by_end ON millrace.silences USING btree (until)
  CREATE UNIQUE INDEX silences_pkey ON millrace.silences USING btree (id)
sequence millrace.silences_id_seq
view millrace.stage_health
  column at_least text[]
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
  as  WITH total AS MATERIALIZED ( SELECT u.stage_id, sum(u.n) FILTER (WHERE u.outcome = 'completed'::text) AS completed, sum(u.n) FILTER (WHERE u.outcome = 'retried'::text) AS retried FROM ( SELECT c_1.stage_id, c_1.outcome, c_1.n FROM millrace.sums c_1 WHERE c_1.unit = 'total'::text UNION ALL ( SELECT o.stage_id, o.outcome, o.n FROM millrace.pulses o LIMIT 10000)) u GROUP BY u.stage_id ) SELECT p.name AS pipeline, s.name AS stage, s.enabled AND p.enabled AS enabled, c.ready, c.in_backoff, c.started, c.waiting, COALESCE(t.completed, 0::numeric)::bigint AS completed, c.failed, COALESCE(t.retried, 0::numeric)::bigint AS retries, CASE WHEN c.oldest_open_at <= (( SELECT millrace.now() AS now)) THEN (( SELECT millrace.now() AS now)) - c.oldest_open_at ELSE NULL::interval END AS oldest_age, c.live_workers, s.sla, COALESCE(l.late, 0::bigint) AS late, COALESCE(f.concurrency, f.batch_size * f.max_workers) AS at_once, f.batch_size, f.max_workers, round(k.cpu_ms::numeric, 1) AS row_cpu_ms, CASE WHEN sum(l.late) OVER () > 10000::numeric THEN c.at_least || '{late}'::text[] ELSE c.at_least END AS at_least FROM millrace.live_counts() c(stage_id, ready, in_backoff, started, waiting, failed, oldest_due_at, oldest_open_at, at_least, live_workers) JOIN millrace.stages s ON s.id = c.stage_id JOIN millrace.pipelines p ON p.id = s.pipeline_id LEFT JOIN millrace.stages f ON f.id = s.id AND f.function_name IS NOT NULL LEFT JOIN total t ON t.stage_id = s.id LEFT JOIN millrace.late_counts l ON l.stage_id = s.id LEFT JOIN millrace.row_costs k ON k.stage_id = s.id ORDER BY p.name, s.id;
view millrace.stage_runs
  column attempt_id bigint
  column can_start boolean
  column entity_id text
  column error text
  column fails_after integer
  column failures integer
  column is_done boolean
  column is_started boolean
  column kind text
  column pipeline text
  column progress text
  column run_id bigint
  column stage text
  column state text
  as  SELECT r.id AS run_id, p.name AS pipeline, r.entity_id, s.name AS stage, s.kind, COALESCE(a.state::text, 'pending'::text) AS state, CASE WHEN a.state = ANY (ARRAY['completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state]) THEN 'complete'::text WHEN a.state < 'completed'::millrace.attempt_state THEN 'in progress'::text WHEN a.state = ANY (ARRAY['failed'::millrace.attempt_state, 'cancelled'::millrace.attempt_state]) THEN 'failed'::text ELSE 'not started'::text END AS progress, r.status = 'running'::millrace.run_status AND a.id IS NULL AND cardinality(vs.needs) = (( SELECT count(*) AS count FROM millrace.done_attempts n WHERE n.run_id = r.id AND (n.stage_id = ANY (vs.needs)))) AND millrace.thresholds_hold(r.id, vs.after) AS can_start, COALESCE(a.state <> ALL (ARRAY['failed'::millrace.attempt_state, 'cancelled'::millrace.attempt_state]), false) AS is_started, (a.state = ANY (ARRAY['completed'::millrace.attempt_state, 'skipped'::millrace.attempt_state, 'failed'::millrace.attempt_state, 'cancelled'::millrace.attempt_state])) IS TRUE AS is_done, COALESCE(a.retry_count::integer, 0) + COALESCE((a.state = 'failed'::millrace.attempt_state)::integer, 0) AS failures, COALESCE((s.retry ->> 'max_attempts'::text)::integer, 3) AS fails_after, a.id AS attempt_id, NULLIF(concat_ws(' '::text, a.error ->> 'message'::text, a.error ->> 'detail'::text), ''::text) AS error FROM millrace.runs r JOIN millrace.pipelines p ON p.id = r.pipeline_id JOIN millrace.version_stages vs ON vs.version_id = r.version_id JOIN millrace.stages s ON s.id = vs.stage_id LEFT JOIN LATERAL ( SELECT o.id, o.run_id, o.parent_id, o.submission_id, o.queue_at, o.created_at, o.started_at, o.finished_at, o.deadline_at, o.poll_at, o.job_started_at, o.late_at, o.token, o.stage_id, o.state, o.number, o.retry_count, o.releases, o.isolated, o.superseded, o.uncounted, o.quota_blocked, o.service, o.job_id, o.error, o.concurrency_group, o.output, o.usage, o.lost_alone, o.deleted_after FROM millrace.attempts o WHERE o.run_id = r.id AND o.stage_id = s.id AND NOT o.superseded ORDER BY o.number DESC LIMIT 1) a ON true;
table millrace.stages
  column agent jsonb
  column apply text
  column batch_size integer not null
  column bypassed boolean not null default false
  column callback boolean not null
  column child jsonb
  column concurrency integer
  column deadline interval
  column decision jsonb
  column enabled boolean not null default true
  column fan_in jsonb
  column form jsonb
  column function_name text
  column has_conditional_followers boolean not null default false
  column has_ends boolean not null default false
  column has_groups boolean not null
  column has_quota boolean not null default false
  column host text
  column id integer not null generated always as identity
  column kind text not null
  column lease interval not null
  column limits jsonb
  column max_workers integer not null
  column name text not null
  column on_failure text not null
  column pipeline_id integer not null
  column poll_every interval
  column reports_to_parent boolean not null default false
  column result_limit_bytes integer not null
  column retry jsonb not null
  column seen jsonb
  column shows jsonb
  column sla interval
  column switched_entry bigint
  column timeout interval not null
  column when_spent text not null
  constraint stages_name_key UNIQUE (pipeline_id, name)
  constraint stages_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint stages_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX stages_name_key ON millrace.stages USING btree (pipeline_id, name)
  CREATE UNIQUE INDEX stages_pkey ON millrace.stages USING btree (id)
sequence millrace.stages_id_seq
view millrace.started_attempts
  column concurrency_group text
  column expires_at timestamp with time zone
  column id bigint
  column stage_id integer
  column worker_id uuid
  as  SELECT c.worker_id, c.stage_id, c.expires_at, a.id, a.concurrency_group FROM millrace.claims c CROSS JOIN LATERAL ( SELECT t.id, t.concurrency_group FROM millrace.attempts t WHERE (t.id = ANY (c.attempt_ids)) AND t.token = c.token AND t.state = 'started'::millrace.attempt_state OFFSET 0) a;
view millrace.status_moves
  column by text
  column drawn boolean
  column from_value text
  column means text
  column pipeline text
  column to_value text
  as  SELECT DISTINCT p.name AS pipeline, m.from_value, m.to_value, m.by, m.drawn, m.means FROM millrace.pipelines p JOIN millrace.version_moves m ON m.version_id = p.current_version_id AND NOT m.retired;
table millrace.status_values
  column adopted_as text not null
  column before text[] not null
  column begins text
  column category text not null
  column description text not null
  column is_terminal boolean not null
  column name text not null
  column pipeline_id integer not null
  column retired boolean not null
  column sort_order integer not null
  column value text not null
  constraint status_values_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint status_values_pkey PRIMARY KEY (pipeline_id, value)
  CREATE UNIQUE INDEX status_values_pkey ON millrace.status_values USING btree (pipeline_id, value)
view millrace.sum_faults
  column attempt_id bigint
  column children integer
  column detail text
  column rule text
  column run_id bigint
  as  SELECT 'the sums of a fan-out and its tallies are what its children came to'::text AS rule, f.run_id, f.attempt_id, format('fan-out %s: %s completed and failed, but %s were counted'::text, f.id, c.ended, t.ended) AS detail, f.spawned AS children FROM millrace.fan_outs f CROSS JOIN LATERAL ( SELECT ARRAY[count(*) FILTER (WHERE r.status = 'completed'::millrace.run_status), count(*) FILTER (WHERE r.status = 'failed'::millrace.run_status)] AS ended FROM millrace.runs r WHERE r.fan_out_id = f.id) c CROSS JOIN LATERAL ( SELECT ARRAY[f.completed + COALESCE(sum(t_1.completed), 0::bigint), f.failed + COALESCE(sum(t_1.failed), 0::bigint)] AS ended, bool_or(t_1.recount) AS recount FROM millrace.child_tallies t_1 WHERE t_1.fan_out_id = f.id) t WHERE f.state = 'open'::text AND t.recount IS NOT TRUE AND c.ended <> t.ended;
table millrace.sums with (fillfactor=70)
  column at timestamp with time zone not null
  column codes jsonb
  column cost_usd numeric not null default 0
  column input_tokens numeric not null default 0
  column n bigint not null
  column outcome text not null
  column output_tokens numeric not null default 0
  column pipeline_id integer not null
  column run_ms double precision not null default 0
  column runs bigint[] not null default array_fill((0)::bigint, '{16}'::integer[])
  column stage_id integer not null
  column unit text not null
  column wait_ms double precision not null default 0
  column waits bigint[] not null default array_fill((0)::bigint, '{16}'::integer[])
  constraint sums_pkey PRIMARY KEY (unit, pipeline_id, stage_id, at, outcome)
  CREATE UNIQUE INDEX sums_pkey ON millrace.sums USING btree (unit, pipeline_id, stage_id, at, outcome)
view millrace.throttles
  column began_at timestamp with time zone
  column declared jsonb
  column journal_entry bigint
  column limits jsonb
  column name text
  column reason text
  column stage_id integer
  column until timestamp with time zone
  as  SELECT stage_id, name, throttle AS limits, NULLIF(declared, '{}'::jsonb) AS declared, until, reason, journal_entry, throttled_at AS began_at FROM millrace.limits l WHERE throttle IS NOT NULL;
table millrace.turns
  column attempt_id bigint not null
  column call_id text
  column content jsonb not null
  column created_at timestamp with time zone not null
  column kind text not null
  column run_id bigint not null
  column seq integer not null
  column stage_id integer not null
  column stage_run integer not null
  column usage jsonb
  constraint turns_pkey PRIMARY KEY (run_id, stage_id, stage_run, seq)
  CREATE UNIQUE INDEX turns_pkey ON millrace.turns USING btree (run_id, stage_id, stage_run, seq)
type millrace.used
  column outcome text
  column run_id bigint
  column usage jsonb
view millrace.verbs
  column about text
  column acts text
  column destroys boolean
  column does text
  column is_open boolean
  column needs text[]
  column verb text
  as  SELECT verb, about, needs, is_open, destroys, does, CASE about WHEN 'run'::text THEN 'millrace.act_on_run($1, $2)'::text WHEN 'stage'::text THEN 'millrace.act_on_stage($1, $2, $3, $4)'::text WHEN 'alert'::text THEN 'millrace.act_on_alert($1, $2, $3)'::text WHEN 'channel'::text THEN 'millrace.act_on_channel($2)'::text ELSE 'millrace.act_in_bulk($1, $2)'::text END AS acts FROM ( SELECT r.verb, 'run'::text AS about, r.needs, r.is_open, r.destroys, r.does FROM millrace.run_verbs r UNION ALL SELECT t.verb, t.about, t.needs::text[] AS needs, true, t.destroys, t.does FROM ( VALUES ('pause'::text,'stage'::text,'{pipeline}'::text,false,'millrace.switch($1, $2, $3, $4)'::text), ('unpause'::text,'stage'::text,'{pipeline}'::text,false,'millrace.switch($1, $2, $3, $4)'::text), ('throttle'::text,'stage'::text,'{pipeline,stage,reason}'::text,false,'millrace.put_throttle($2, $3, $4)'::text), ('unthrottle'::text,'stage'::text,'{pipeline,stage}'::text,false,'millrace.end_throttle_of($1, $2, $3)'::text), ('bypass'::text,'stage'::text,'{pipeline,stage,reason}'::text,true,'millrace.begin_bypass($2, $3, $4)'::text), ('end_bypass'::text,'stage'::text,'{pipeline,stage}'::text,false,'millrace.finish_bypass($2)'::text), ('take_up'::text,'stage'::text,'{pipeline,stage}'::text,false,'millrace.take_up_rows($2, $3)'::text), ('silence'::text,'alert'::text,'{}'::text,false,NULL::text), ('unsilence'::text,'alert'::text,'{silence}'::text,false,NULL::text), ('test_channel'::text,'channel'::text,'{channel}'::text,false,NULL::text), ('preview'::text,'bulk'::text,'{do,filter}'::text,false,NULL::text), ('try'::text,'bulk'::text,'{bulk}'::text,false,NULL::text), ('begin'::text,'bulk'::text,'{bulk}'::text,false,NULL::text), ('continue'::text,'bulk'::text,'{bulk}'::text,false,NULL::text), ('abort'::text,'bulk'::text,'{bulk}'::text,true,NULL::text)) t(verb, about, needs, destroys, does)) v;
table millrace.version_moves
  column at_stage_id integer
  column by text not null
  column declared boolean not null
  column drawn boolean not null
  column from_value text
  column id integer not null generated always as identity
  column means text not null
  column retired boolean not null default false
  column stage_id integer
  column to_value text not null
  column version_id integer not null
  constraint version_moves_pkey PRIMARY KEY (id)
  constraint version_moves_version_id_fkey FOREIGN KEY (version_id) REFERENCES millrace.versions(id) ON DELETE CASCADE
  CREATE UNIQUE INDEX version_moves_key ON millrace.version_moves USING btree (version_id, from_value, to_value, by, means, at_stage_id, stage_id) NULLS NOT DISTINCT
  CREATE UNIQUE INDEX version_moves_pkey ON millrace.version_moves USING btree (id)
sequence millrace.version_moves_id_seq
table millrace.version_stages
  column after jsonb not null
  column child_pipeline_id integer
  column dependents integer[] not null
  column ends jsonb
  column given_path jsonpath
  column is_first boolean not null generated as ((needs = '{}'::integer[]) AND (after = '[]'::jsonb))
  column is_sink boolean not null
  column needs integer[] not null
  column on_demand boolean not null
  column otherwise text
  column position integer not null
  column stage_id integer not null
  column unconditional boolean not null
  column version_id integer not null
  column when_path jsonpath
  constraint version_stages_pkey PRIMARY KEY (version_id, stage_id)
  constraint version_stages_stage_id_fkey FOREIGN KEY (stage_id) REFERENCES millrace.stages(id) ON DELETE CASCADE
  constraint version_stages_version_id_fkey FOREIGN KEY (version_id) REFERENCES millrace.versions(id) ON DELETE CASCADE
  CREATE INDEX version_stages_by_stage ON millrace.version_stages USING btree (stage_id, version_id)
  CREATE UNIQUE INDEX version_stages_pkey ON millrace.version_stages USING btree (version_id, stage_id)
table millrace.versions
  column created_at timestamp with time zone not null default millrace.now()
  column graph jsonb not null
  column id integer not null generated always as identity
  column number integer not null
  column pipeline_id integer not null
  constraint versions_pipeline_id_fkey FOREIGN KEY (pipeline_id) REFERENCES millrace.pipelines(id) ON DELETE CASCADE
  constraint versions_pipeline_id_number_key UNIQUE (pipeline_id, number)
  constraint versions_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX versions_pipeline_id_number_key ON millrace.versions USING btree (pipeline_id, number)
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
table millrace.watches unlogged with (fillfactor=50)
  column entity_id text not null
  column pipeline_id integer not null
  column sent_at timestamp with time zone not null default '-infinity'::timestamp with time zone
  column topic text not null
  column until timestamp with time zone not null
  constraint watches_pkey PRIMARY KEY (pipeline_id, entity_id, topic)
  CREATE INDEX watches_by_topic ON millrace.watches USING btree (topic, until)
  CREATE UNIQUE INDEX watches_pkey ON millrace.watches USING btree (pipeline_id, entity_id, topic)
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
  column reported_token text
  column result jsonb
  column run_id bigint
  column service text
  column stage_id integer
  column token uuid
  column usage jsonb
  column verdict text
  column was millrace.attempt_state
table millrace.workers with (fillfactor=50)
  column heartbeat_at timestamp with time zone not null
  column host uuid not null
  column id uuid not null
  column in_work integer not null default 0
  column last_seq integer not null default 0
  column last_token uuid
  column leave_tries smallint not null default 0
  column left_at timestamp with time zone
  column stage_id integer not null
  column taken integer not null default 0
  column working boolean not null generated as ((left_at IS NULL) OR (in_work > 0))
  constraint workers_pkey PRIMARY KEY (id)
  CREATE INDEX workers_working ON millrace.workers USING btree (stage_id) WHERE working
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
  as  SELECT b.id, b.title, b.account_id, c.status, c.stages AS current_stages, c.error AS current_error, p.pages, p.read AS pages_read, p.blended AS pages_blended, p.labelled AS pages_labelled, p.failed AS pages_failed, b.split_status, b.metadata_status, b.toc_status, b.page_numbers_status, b.headings_status, b.structure_status, b.review_status, b.assemble_status, b.assemble_result ->> 'path'::text AS document_path, b.created_at, b.assemble_completed_at AS completed_at FROM books b CROSS JOIN LATERAL ( SELECT count(*)::integer AS pages, count(*) FILTER (WHERE g.ocr_status = ANY (ARRAY['completed'::text, 'skipped'::text]))::integer AS read, count(*) FILTER (WHERE g.blend_status = 'completed'::text)::integer AS blended, count(*) FILTER (WHERE g.label_status = 'completed'::text)::integer AS labelled, count(*) FILTER (WHERE 'failed'::text = g.text_layer_status OR 'failed'::text = g.ocr_status OR 'failed'::text = g.blend_status OR 'failed'::text = g.label_status)::integer AS failed FROM pages g WHERE g.book_id = b.id) p CROSS JOIN LATERAL ( SELECT CASE WHEN b.assemble_status = ANY (ARRAY['completed'::text, 'skipped'::text]) THEN 'completed'::text WHEN b.review_status = 'started'::text THEN 'waiting for a person'::text WHEN bool_or(s.status = ANY (ARRAY['queued'::text, 'started'::text])) THEN 'running'::text WHEN bool_or(s.status = 'failed'::text) THEN 'failed'::text ELSE 'pending'::text END AS status, COALESCE(array_agg(s.stage ORDER BY s.place) FILTER (WHERE s.status = ANY (ARRAY['queued'::text, 'started'::text])), '{}'::text[]) AS stages, (array_agg((s.stage || ': '::text) || s.error ORDER BY (s.error = 'cancelled'::text), s.place) FILTER (WHERE s.status = 'failed'::text))[1] AS error FROM ( VALUES (1,'split'::text,b.split_status,b.split_error), (2,'metadata'::text,b.metadata_status,b.metadata_error), (3,'toc'::text,b.toc_status,b.toc_error), (4,'page_numbers'::text,b.page_numbers_status,b.page_numbers_error), (5,'headings'::text,b.headings_status,b.headings_error), (6,'structure'::text,b.structure_status,b.structure_error), (7,'review'::text,b.review_status,b.review_error), (8,'assemble'::text,b.assemble_status,b.assemble_error)) s(place, stage, status, error)) c;
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
  CREATE TRIGGER millrace_books_deleted AFTER DELETE ON public.books REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('4', 'id')
  CREATE TRIGGER millrace_books_inserted AFTER INSERT ON public.books REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.books__intake()
  CREATE TRIGGER millrace_books_key BEFORE UPDATE OF id ON public.books FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('4', 'id')
  CREATE TRIGGER millrace_books_truncated AFTER TRUNCATE ON public.books FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('4')
  CREATE TRIGGER millrace_books_updated AFTER UPDATE ON public.books REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.books__intake()
  CREATE TRIGGER millrace_toc_deleted AFTER DELETE ON public.books REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('3', 'id')
  CREATE TRIGGER millrace_toc_key BEFORE UPDATE OF id ON public.books FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('3', 'id')
  CREATE TRIGGER millrace_toc_truncated AFTER TRUNCATE ON public.books FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('3')
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
  CREATE TRIGGER millrace_chunks_deleted AFTER DELETE ON public.chunk REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('5', 'id')
  CREATE TRIGGER millrace_chunks_key BEFORE UPDATE OF id ON public.chunk FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('5', 'id')
  CREATE TRIGGER millrace_chunks_truncated AFTER TRUNCATE ON public.chunk FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('5')
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
  column merged jsonb
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
  column reading text generated as 
CASE
    WHEN (COALESCE(extraction_result, monolith_result) ? 'partly_read'::text) THEN 'partly'::text
    WHEN (COALESCE(extraction_result, monolith_result) IS NOT NULL) THEN 'whole'::text
    ELSE NULL::text
END
  column source_path text not null
  constraint document_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text))
  constraint document_metadata_length CHECK ((octet_length((metadata)::text) <= 65536))
  constraint document_org_form CHECK ((clerk_org_id ~ '^[A-Za-z0-9_-]{1,100}$'::text))
  constraint document_pkey PRIMARY KEY (id)
  constraint document_source_in_own_folder CHECK ((starts_with(source_path, ((metadata ->> 'clerk_org_id'::text) || '/'::text)) AND (source_path ~ '^[A-Za-z0-9_/!.*''() &$=@;:+,-]+$'::text) AND (source_path !~ '(^|/)\.{1,2}(/|$)'::text)))
  constraint document_source_path_length CHECK ((octet_length(source_path) <= 1024))
  CREATE INDEX document_by_org ON public.document USING btree (clerk_org_id, created_at)
  CREATE UNIQUE INDEX document_pkey ON public.document USING btree (id)
  CREATE TRIGGER document_goes_one_way BEFORE INSERT OR UPDATE OF extraction_status, chunking_status, kg_ingest_status, monolith_status ON public.document FOR EACH ROW EXECUTE FUNCTION document_goes_one_way()
  CREATE TRIGGER millrace_document_monolith_deleted AFTER DELETE ON public.document REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('6', 'id')
  CREATE TRIGGER millrace_document_monolith_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.document_monolith__intake()
  CREATE TRIGGER millrace_document_monolith_key BEFORE UPDATE OF id ON public.document FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('6', 'id')
  CREATE TRIGGER millrace_document_monolith_truncated AFTER TRUNCATE ON public.document FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('6')
  CREATE TRIGGER millrace_document_monolith_updated AFTER UPDATE ON public.document REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text)))) EXECUTE FUNCTION millrace.document_monolith__intake()
  CREATE TRIGGER millrace_documents_deleted AFTER DELETE ON public.document REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('7', 'id')
  CREATE TRIGGER millrace_documents_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.documents__intake()
  CREATE TRIGGER millrace_documents_key BEFORE UPDATE OF id ON public.document FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('7', 'id')
  CREATE TRIGGER millrace_documents_truncated AFTER TRUNCATE ON public.document FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('7')
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
table public.document_way row level security
  column one boolean not null default true
  column orgs text[] not null default '{}'::text[]
  column share numeric
  constraint document_way_one_row CHECK (one)
  constraint document_way_pkey PRIMARY KEY (one)
  constraint document_way_share_bounds CHECK (((share >= (0)::numeric) AND (share <= (1)::numeric)))
  CREATE UNIQUE INDEX document_way_pkey ON public.document_way USING btree (one)
view public.document_ways with (security_invoker=true)
  column completed bigint
  column cost_usd numeric
  column failed bigint
  column median_time interval
  column pipeline text
  column runs bigint
  as  SELECT p.name AS pipeline, count(*) AS runs, count(*) FILTER (WHERE r.status = 'completed'::millrace.run_status) AS completed, count(*) FILTER (WHERE r.status = 'failed'::millrace.run_status) AS failed, percentile_cont(0.5::double precision) WITHIN GROUP (ORDER BY (r.finished_at - r.created_at)) FILTER (WHERE r.status = 'completed'::millrace.run_status) AS median_time, sum(( SELECT sum(c.cost_usd) AS sum FROM millrace.attempt_costs(ARRAY[r.id]) c(run_id, stage_id, attempt_id, cost_usd))) AS cost_usd FROM millrace.runs r JOIN millrace.pipelines p ON p.id = r.pipeline_id WHERE p.name = ANY (ARRAY['documents'::text, 'document_monolith'::text]) GROUP BY p.name;
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
  CREATE INDEX ingestion_queue_by_topic ON public.ingestion_queue USING btree (topic_id) WHERE (topic_id IS NOT NULL)
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
  CREATE TRIGGER millrace_articles_deleted AFTER DELETE ON public.ingestion_queue REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('1', 'id')
  CREATE TRIGGER millrace_articles_inserted AFTER INSERT ON public.ingestion_queue REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.articles__intake()
  CREATE TRIGGER millrace_articles_key BEFORE UPDATE OF id ON public.ingestion_queue FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('1', 'id')
  CREATE TRIGGER millrace_articles_since BEFORE UPDATE ON public.ingestion_queue FOR EACH ROW WHEN ((((old.status_code IS DISTINCT FROM new.status_code) OR (old.status_changed_at IS DISTINCT FROM new.status_changed_at)) AND ((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text))))) EXECUTE FUNCTION millrace.articles__since()
  CREATE TRIGGER millrace_articles_truncated AFTER TRUNCATE ON public.ingestion_queue FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('1')
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
  CREATE INDEX leads_by_email ON public.leads USING btree (email text_pattern_ops)
  CREATE UNIQUE INDEX leads_pkey ON public.leads USING btree (id)
  CREATE TRIGGER millrace_leads_deleted AFTER DELETE ON public.leads REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('8', 'id')
  CREATE TRIGGER millrace_leads_inserted AFTER INSERT ON public.leads REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.leads__intake()
  CREATE TRIGGER millrace_leads_key BEFORE UPDATE OF id ON public.leads FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('8', 'id')
  CREATE TRIGGER millrace_leads_truncated AFTER TRUNCATE ON public.leads FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('8')
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
view public.link_counters with (security_invoker=true)
  column dead bigint
  column enqueued bigint
  column failed bigint
  column retries bigint
  column stage text
  column started bigint
  column succeeded bigint
  as  SELECT stage, enqueued, started, succeeded, failed, retries, dead FROM millrace_evidence.link_counters() link_counters(stage, enqueued, started, succeeded, failed, retries, dead);
  grant select to service_role
table public.link_events row level security
  column at timestamp with time zone not null
  column details jsonb
  column event text not null
  column id bigint not null generated always as identity
  column link_id bigint not null
  column trace_id uuid not null
  constraint link_events_event_known CHECK ((event = ANY (ARRAY['link.new'::text, 'link.classified'::text, 'link.merged'::text, 'raw.persisted'::text, 'staged.persisted'::text])))
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
  CREATE TRIGGER millrace_link_sources_deleted AFTER DELETE ON public.link_sources REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('9', 'id')
  CREATE TRIGGER millrace_link_sources_key BEFORE UPDATE OF id ON public.link_sources FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('9', 'id')
  CREATE TRIGGER millrace_link_sources_truncated AFTER TRUNCATE ON public.link_sources FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('9')
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
  CREATE TRIGGER millrace_links_deleted AFTER DELETE ON public.linkedin_links REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('10', 'id')
  CREATE TRIGGER millrace_links_inserted AFTER INSERT ON public.linkedin_links REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.links__intake()
  CREATE TRIGGER millrace_links_key BEFORE UPDATE OF id ON public.linkedin_links FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('10', 'id')
  CREATE TRIGGER millrace_links_since BEFORE UPDATE ON public.linkedin_links FOR EACH ROW WHEN ((((old.status IS DISTINCT FROM new.status) OR (old.status_since IS DISTINCT FROM new.status_since)) AND ((current_setting('millrace.projecting'::text, true) IS DISTINCT FROM (pg_trigger_depth())::text) OR (NOT has_schema_privilege('millrace'::text, 'create'::text))))) EXECUTE FUNCTION millrace.links__since()
  CREATE TRIGGER millrace_links_truncated AFTER TRUNCATE ON public.linkedin_links FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('10')
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
table public.memo_chunks with (fillfactor=50) row level security
  column digest text not null
  column embedding real[] not null
  column is_current boolean not null default false
  column memo_id uuid not null
  column model text not null
  column text text not null
  constraint memo_chunks_embedding_length CHECK ((cardinality(embedding) = 1536))
  constraint memo_chunks_memo_fkey FOREIGN KEY (memo_id) REFERENCES memos(id) ON DELETE CASCADE
  constraint memo_chunks_pkey PRIMARY KEY (memo_id, digest)
  CREATE UNIQUE INDEX memo_chunks_pkey ON public.memo_chunks USING btree (memo_id, digest)
  policy memo_chunks_of_seen_memos permissive select to authenticated using (is_current AND (EXISTS ( SELECT
   FROM memos m
  WHERE ((m.id = memo_chunks.memo_id) AND (strpos(m.body, memo_chunks.text) > 0)))))
  grant delete, insert, select, update to service_role
  grant select to authenticated
table public.memos row level security
  column account_id uuid not null
  column body text not null
  column embed_at timestamp with time zone
  column id uuid not null default gen_random_uuid()
  column revision integer not null default 1
  constraint memos_body_length CHECK ((octet_length(body) <= 400000))
  constraint memos_pkey PRIMARY KEY (id)
  CREATE INDEX memos_by_account ON public.memos USING btree (account_id)
  CREATE INDEX memos_by_embed_at ON public.memos USING btree (embed_at, id)
  CREATE UNIQUE INDEX memos_pkey ON public.memos USING btree (id)
  CREATE TRIGGER memo_is_due BEFORE INSERT OR UPDATE OF body ON public.memos FOR EACH ROW EXECUTE FUNCTION memo_is_due()
  CREATE TRIGGER millrace_memos_deleted AFTER DELETE ON public.memos REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('14', 'id')
  CREATE TRIGGER millrace_memos_key BEFORE UPDATE OF id ON public.memos FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('14', 'id')
  CREATE TRIGGER millrace_memos_truncated AFTER TRUNCATE ON public.memos FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('14')
  policy memos_of_own_account permissive all to authenticated using (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid) with check (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid)
  grant delete, insert, select, update to service_role
  grant delete, select to authenticated
  grant insert (account_id) to authenticated
  grant insert, update (body) to authenticated
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
  constraint millrace_decisions_pkey PRIMARY KEY (attempt_id)
  CREATE INDEX millrace_decisions_by_entity ON public.millrace_decisions USING btree (entity_id)
  CREATE INDEX millrace_decisions_by_run ON public.millrace_decisions USING btree (run_id)
  CREATE INDEX millrace_decisions_open ON public.millrace_decisions USING btree (attempt_id) WHERE (closed_at IS NULL)
  CREATE UNIQUE INDEX millrace_decisions_pkey ON public.millrace_decisions USING btree (attempt_id)
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
table public.model_answers row level security
  column answer jsonb not null
  column expires_at timestamp with time zone not null
  column key text not null
  constraint model_answers_pkey PRIMARY KEY (key)
  CREATE INDEX model_answers_by_expiry ON public.model_answers USING btree (expires_at)
  CREATE UNIQUE INDEX model_answers_pkey ON public.model_answers USING btree (key)
  grant delete, insert, select, update to service_role
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
  column text_layer_completed_at timestamp with time zone
  column text_layer_error text
  column text_layer_job_id text
  column text_layer_result jsonb
  column text_layer_retry_count integer not null default 0
  column text_layer_started_at timestamp with time zone
  column text_layer_status text not null default 'pending'::text
  constraint pages_book_fkey FOREIGN KEY (book_id) REFERENCES books(id) ON DELETE CASCADE
  constraint pages_number_from_one CHECK ((number >= 1))
  constraint pages_number_key UNIQUE (book_id, number)
  constraint pages_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX pages_number_key ON public.pages USING btree (book_id, number)
  CREATE UNIQUE INDEX pages_pkey ON public.pages USING btree (id)
  CREATE TRIGGER millrace_pages_deleted AFTER DELETE ON public.pages REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('2', 'id')
  CREATE TRIGGER millrace_pages_inserted AFTER INSERT ON public.pages REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION millrace.pages__intake()
  CREATE TRIGGER millrace_pages_key BEFORE UPDATE OF id ON public.pages FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('2', 'id')
  CREATE TRIGGER millrace_pages_truncated AFTER TRUNCATE ON public.pages FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('2')
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
  grant update (text_layer_status) to authenticated
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
  CREATE TRIGGER refuse_evidence INSTEAD OF INSERT ON public.pipeline_job FOR EACH ROW EXECUTE FUNCTION millrace_evidence.refuse_evidence()
  as  SELECT d.id, d.id AS document_id, j.current_phase, j.status, j.metadata, j.created_at, j.started_at, j.completed_at, j.updated_at, j.run_id, j.trace_id, j.pipeline FROM document d CROSS JOIN LATERAL millrace_evidence.document_job(d.id) j(run_id, trace_id, pipeline, current_phase, status, metadata, created_at, started_at, completed_at, updated_at);
  grant insert, select to service_role
  grant select to authenticated
view public.pipeline_phase with (security_invoker=true)
  column attempt_id bigint
  column completed_at timestamp with time zone
  column error_message text
  column error_type text
  column id uuid
  column input_location text
  column metadata jsonb
  column output_location text
  column parent_phase_id uuid
  column phase text
  column pipeline text
  column pipeline_job_id uuid
  column queued_at timestamp with time zone
  column retry_count integer
  column run_id bigint
  column started_at timestamp with time zone
  column status text
  CREATE TRIGGER refuse_evidence INSTEAD OF INSERT ON public.pipeline_phase FOR EACH ROW EXECUTE FUNCTION millrace_evidence.refuse_evidence()
  as  SELECT f.id, d.id AS pipeline_job_id, f.phase, f.status, l.input_location, CASE WHEN f.status = 'completed'::text THEN l.output_location ELSE NULL::text END AS output_location, f.error ->> 'message'::text AS error_message, f.error ->> 'code'::text AS error_type, f.retry_count, f.parent_phase_id, f.metadata, f.queued_at, f.started_at, f.completed_at, f.run_id, f.pipeline, f.attempt_id FROM document d CROSS JOIN LATERAL millrace_evidence.document_phases(d.id) f(id, attempt_id, run_id, pipeline, phase, status, output, error, retry_count, parent_phase_id, metadata, queued_at, started_at, completed_at) CROSS JOIN LATERAL ( SELECT CASE WHEN f.phase = ANY (ARRAY['extraction'::text, 'monolith'::text]) THEN 'documents/'::text || d.source_path WHEN f.phase = 'chunking'::text THEN ('extracted_text/'::text || d.id) || '.txt'::text WHEN f.phase = 'kg_ingest'::text THEN 'chunk?document_id=eq.'::text || d.id ELSE NULL::text END AS input_location, CASE WHEN f.phase = 'extraction'::text THEN f.output ->> 'text_location'::text WHEN f.phase = 'chunking'::text THEN f.output ->> 'output_location'::text WHEN f.phase = ANY (ARRAY['kg_ingest'::text, 'monolith'::text]) THEN 'kg_edge?select=*,chunk!inner(document_id)&chunk.document_id=eq.'::text || d.id ELSE NULL::text END AS output_location) l;
  grant insert, select to service_role
  grant select to authenticated
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
  CREATE TRIGGER millrace_site_notices_deleted AFTER DELETE ON public.site_notice REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('11', 'id')
  CREATE TRIGGER millrace_site_notices_key BEFORE UPDATE OF id ON public.site_notice FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('11', 'id')
  CREATE TRIGGER millrace_site_notices_truncated AFTER TRUNCATE ON public.site_notice FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('11')
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
  constraint source_kind_known CHECK ((kind = ANY (ARRAY['rss'::text, 'rdf'::text, 'atom'::text, 'json'::text, 'sitemap'::text, 'sitemap_index'::text])))
  constraint source_name_length CHECK ((octet_length(name) <= 200))
  constraint source_pkey PRIMARY KEY (id)
  CREATE INDEX source_by_next_poll ON public.source USING btree (next_poll_at, id) WHERE (next_poll_at IS NOT NULL)
  CREATE UNIQUE INDEX source_address_key ON public.source USING btree (address)
  CREATE UNIQUE INDEX source_pkey ON public.source USING btree (id)
  CREATE TRIGGER millrace_sources_deleted AFTER DELETE ON public.source REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('12', 'id')
  CREATE TRIGGER millrace_sources_key BEFORE UPDATE OF id ON public.source FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION millrace.on_rows_gone('12', 'id')
  CREATE TRIGGER millrace_sources_truncated AFTER TRUNCATE ON public.source FOR EACH STATEMENT EXECUTE FUNCTION millrace.on_rows_gone('12')
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
schedule links-delete-old-pages "*/10 * * * *" select public.delete_old_link_pages(60) /* pruned by millrace */
schedule millrace-prune "17 3 * * *" select millrace.prune()
schedule millrace-sweep "10 seconds" do $do$declare s jsonb; begin loop s := millrace.sweep_next(s); exit when s is null; commit; end loop; end$do$
schedule model-answers-expire "7 * * * *" delete from public.model_answers where expires_at < now() /* pruned by millrace */
