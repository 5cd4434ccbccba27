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
table pipeline.attempts with (fillfactor=60, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05)
  column alone boolean not null default false
  column created_at timestamp with time zone not null
  column deadline_at timestamp with time zone
  column error jsonb
  column finished_at timestamp with time zone
  column id bigint not null generated always as identity
  column job_id text
  column number smallint not null
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
  constraint attempts_number_key UNIQUE (run_id, stage_id, number)
  constraint attempts_pkey PRIMARY KEY (id)
  CREATE INDEX attempts_by_deadline ON pipeline.attempts USING btree (deadline_at) WHERE (deadline_at IS NOT NULL)
  CREATE INDEX attempts_by_submission ON pipeline.attempts USING btree (submission_id) WHERE (submission_id IS NOT NULL)
  CREATE INDEX attempts_ready ON pipeline.attempts USING btree (stage_id, queue_at, id) WHERE (queue_at IS NOT NULL)
  CREATE INDEX attempts_to_poll ON pipeline.attempts USING btree (poll_at) WHERE (poll_at IS NOT NULL)
  CREATE UNIQUE INDEX attempts_number_key ON pipeline.attempts USING btree (run_id, stage_id, number)
  CREATE UNIQUE INDEX attempts_pkey ON pipeline.attempts USING btree (id) WITH (fillfactor='90')
sequence pipeline.attempts_id_seq
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
table pipeline.claims with (fillfactor=50)
  column alone boolean not null
  column attempt_ids bigint[] not null
  column expires_at timestamp with time zone not null
  column token uuid not null
  column worker_id uuid not null
  constraint claims_pkey PRIMARY KEY (token)
  CREATE INDEX claims_by_worker ON pipeline.claims USING btree (worker_id)
  CREATE UNIQUE INDEX claims_pkey ON pipeline.claims USING btree (token)
view pipeline.dead_letters
  column attempt_id bigint
  column entity_id text
  column error_code text
  column error_message text
  column failed_at timestamp with time zone
  column pipeline text
  column retry_count smallint
  column run_id bigint
  column stage text
  as  SELECT a.id AS attempt_id, r.id AS run_id, p.name AS pipeline, s.name AS stage, r.entity_id, a.error ->> 'code'::text AS error_code, a.error ->> 'message'::text AS error_message, a.retry_count, a.finished_at AS failed_at FROM pipeline.runs r JOIN pipeline.pipelines p ON p.id = r.pipeline_id JOIN pipeline.attempts a ON a.run_id = r.id AND a.state = 'failed'::pipeline.attempt_state AND NOT a.superseded JOIN pipeline.stages s ON s.id = a.stage_id WHERE r.status = 'failed'::pipeline.run_status AND NOT (EXISTS ( SELECT FROM pipeline.attempts n WHERE n.run_id = a.run_id AND n.stage_id = a.stage_id AND n.number > a.number));
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
table pipeline.pipelines
  column created_at timestamp with time zone not null default pipeline.now()
  column current_version_id integer
  column enabled boolean not null default true
  column entity_key text not null
  column entity_table regclass not null
  column id integer not null generated always as identity
  column name text not null
  column projection text not null
  constraint pipelines_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint pipelines_name_key UNIQUE (name)
  constraint pipelines_pkey PRIMARY KEY (id)
  constraint pipelines_projection_known CHECK ((projection = ANY (ARRAY['columns'::text, 'none'::text])))
  CREATE UNIQUE INDEX pipelines_name_key ON pipeline.pipelines USING btree (name)
  CREATE UNIQUE INDEX pipelines_pkey ON pipeline.pipelines USING btree (id)
sequence pipeline.pipelines_id_seq
view pipeline.queue_depth
  column in_backoff bigint
  column oldest_due_at timestamp with time zone
  column pipeline text
  column ready bigint
  column stage text
  column started bigint
  as  SELECT p.name AS pipeline, s.name AS stage, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at <= pipeline.now()) AS ready, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at > pipeline.now()) AS in_backoff, count(a.id) FILTER (WHERE a.state = 'started'::pipeline.attempt_state) AS started, min(a.queue_at) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state) AS oldest_due_at FROM pipeline.stages s JOIN pipeline.pipelines p ON p.id = s.pipeline_id LEFT JOIN pipeline.attempts a ON a.stage_id = s.id AND a.queue_at IS NOT NULL GROUP BY p.name, s.id, s.name ORDER BY p.name, s.id;
type pipeline.ready
  column run_id bigint
  column stage_id integer
table pipeline.results
  column attempt_id bigint not null
  column output jsonb
  column usage jsonb
  constraint results_pkey PRIMARY KEY (attempt_id)
  CREATE UNIQUE INDEX results_pkey ON pipeline.results USING btree (attempt_id)
table pipeline.rings
  column id bigint not null generated always as identity
  column rung_at timestamp with time zone not null
  column stage_id integer not null
  constraint rings_pkey PRIMARY KEY (id)
  CREATE INDEX rings_by_stage ON pipeline.rings USING btree (stage_id, rung_at)
  CREATE UNIQUE INDEX rings_pkey ON pipeline.rings USING btree (id)
sequence pipeline.rings_id_seq
table pipeline.runs with (fillfactor=80)
  column created_at timestamp with time zone not null
  column entity_id text not null
  column finished_at timestamp with time zone
  column id bigint not null generated always as identity
  column pipeline_id integer not null
  column status pipeline.run_status not null default 'running'::pipeline.run_status
  column trace_id uuid not null default gen_random_uuid()
  column version_id integer not null
  constraint runs_pkey PRIMARY KEY (id)
  CREATE INDEX runs_by_entity ON pipeline.runs USING btree (entity_id, pipeline_id, id)
  CREATE UNIQUE INDEX runs_one_live ON pipeline.runs USING btree (pipeline_id, entity_id) WHERE (status = 'running'::pipeline.run_status)
  CREATE UNIQUE INDEX runs_pkey ON pipeline.runs USING btree (id)
sequence pipeline.runs_id_seq
table pipeline.settings
  column comment text not null default ''::text
  column name text not null
  column value text not null
  constraint settings_pkey PRIMARY KEY (name)
  CREATE UNIQUE INDEX settings_pkey ON pipeline.settings USING btree (name)
view pipeline.stage_health
  column completed bigint
  column enabled boolean
  column failed bigint
  column in_backoff bigint
  column live_workers bigint
  column oldest_age interval
  column pipeline text
  column ready bigint
  column retries bigint
  column stage text
  column started bigint
  column waiting bigint
  as  SELECT p.name AS pipeline, s.name AS stage, s.enabled AND p.enabled AS enabled, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at <= pipeline.now()) AS ready, count(a.id) FILTER (WHERE a.state = 'queued'::pipeline.attempt_state AND a.queue_at > pipeline.now()) AS in_backoff, count(a.id) FILTER (WHERE a.state = 'started'::pipeline.attempt_state) AS started, count(a.id) FILTER (WHERE a.state = 'waiting'::pipeline.attempt_state) AS waiting, count(a.id) FILTER (WHERE a.state = 'completed'::pipeline.attempt_state AND NOT a.superseded) AS completed, count(DISTINCT a.run_id) FILTER (WHERE a.state = 'failed'::pipeline.attempt_state AND r.status = 'failed'::pipeline.run_status AND NOT a.superseded) AS failed, count(a.id) FILTER (WHERE a.retry_count > 0) AS retries, pipeline.now() - min(COALESCE(a.queue_at, a.started_at)) FILTER (WHERE (a.state = ANY (ARRAY['queued'::pipeline.attempt_state, 'started'::pipeline.attempt_state, 'waiting'::pipeline.attempt_state])) AND COALESCE(a.queue_at, a.started_at) <= pipeline.now()) AS oldest_age, ( SELECT count(*) AS count FROM pipeline.workers w WHERE w.stage_id = s.id AND w.left_at IS NULL AND w.heartbeat_at > (pipeline.now() - '00:00:15'::interval)) AS live_workers FROM pipeline.stages s JOIN pipeline.pipelines p ON p.id = s.pipeline_id LEFT JOIN pipeline.attempts a ON a.stage_id = s.id LEFT JOIN pipeline.runs r ON r.id = a.run_id GROUP BY p.name, p.enabled, s.id, s.name, s.enabled ORDER BY p.name, s.id;
table pipeline.stages
  column apply text
  column batch_size integer not null
  column callback boolean not null default false
  column deadline interval
  column enabled boolean not null default true
  column function_name text not null
  column id integer not null generated always as identity
  column kind text not null
  column lease interval not null
  column max_workers integer not null
  column name text not null
  column pipeline_id integer not null
  column poll_every interval
  column result_limit_bytes integer not null
  column retry jsonb not null
  column timeout interval not null
  constraint stages_batch_size_bounds CHECK (((batch_size >= 1) AND (batch_size <= 1000)))
  constraint stages_kind_known CHECK ((kind = ANY (ARRAY['function'::text, 'external'::text])))
  constraint stages_max_workers_bounds CHECK (((max_workers >= 1) AND (max_workers <= 1000)))
  constraint stages_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,40}$'::text))
  constraint stages_name_key UNIQUE (pipeline_id, name)
  constraint stages_pipeline_fkey FOREIGN KEY (pipeline_id) REFERENCES pipeline.pipelines(id) ON DELETE CASCADE
  constraint stages_pkey PRIMARY KEY (id)
  CREATE UNIQUE INDEX stages_name_key ON pipeline.stages USING btree (pipeline_id, name)
  CREATE UNIQUE INDEX stages_pkey ON pipeline.stages USING btree (id)
sequence pipeline.stages_id_seq
table pipeline.version_stages
  column dependents integer[] not null
  column is_sink boolean not null
  column needs integer[] not null
  column position integer not null
  column stage_id integer not null
  column version_id integer not null
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
  as  SELECT l.id, l.email, l.company_url, l.account_id, c.stage AS current_stage, c.status AS current_status, c.error AS current_error, l.scrape_status, l.intel_status, l.strategy_status, l.subject_status, l.messaging_status, l.created_at, l.messaging_completed_at AS completed_at FROM leads l CROSS JOIN LATERAL ( SELECT s.stage, s.status, s.error FROM ( VALUES (1,'scrape'::text,l.scrape_status,l.scrape_error), (2,'intel'::text,l.intel_status,l.intel_error), (3,'strategy'::text,l.strategy_status,l.strategy_error), (4,'subject'::text,l.subject_status,l.subject_error), (5,'messaging'::text,l.messaging_status,l.messaging_error), (6,'completed'::text,'completed'::text,NULL::text)) s(place, stage, status, error) WHERE s.place = 6 OR s.status <> 'completed'::text ORDER BY s.place LIMIT 1) c;
  grant delete, insert, maintain, references, select, trigger, truncate, update to service_role
  grant select to authenticated
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
  constraint leads_pkey PRIMARY KEY (id)
  CREATE INDEX leads_by_account ON public.leads USING btree (account_id, created_at)
  CREATE UNIQUE INDEX leads_pkey ON public.leads USING btree (id)
  CREATE TRIGGER millrace_leads_deleted AFTER DELETE ON public.leads REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION pipeline.leads__deleted()
  CREATE TRIGGER millrace_leads_inserted AFTER INSERT ON public.leads REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.leads__intake()
  CREATE TRIGGER millrace_leads_key BEFORE UPDATE OF id ON public.leads FOR EACH ROW WHEN ((old.id IS DISTINCT FROM new.id)) EXECUTE FUNCTION pipeline.leads__key()
  CREATE TRIGGER millrace_leads_truncated AFTER TRUNCATE ON public.leads FOR EACH STATEMENT EXECUTE FUNCTION pipeline.leads__deleted()
  CREATE TRIGGER millrace_leads_updated AFTER UPDATE ON public.leads REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline.leads__intake()
  policy leads_of_own_account permissive all to authenticated using (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid) with check (account_id = (((( SELECT auth.jwt() AS jwt) -> 'app_metadata'::text) ->> 'account_id'::text))::uuid)
  grant delete, insert, maintain, references, select, trigger, truncate, update to service_role
  grant delete, select to authenticated
  grant insert (account_id) to authenticated
  grant insert, update (company_url) to authenticated
  grant insert, update (email) to authenticated
  grant update (intel_status) to authenticated
  grant update (messaging_status) to authenticated
  grant update (scrape_status) to authenticated
  grant update (strategy_status) to authenticated
  grant update (subject_status) to authenticated
function pipeline.advance(p_stage_id integer, p_run_ids bigint[]) returns pipeline.ready[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 1ad23c3b39f32693f1341a3cc95a0672
function pipeline.answer_in_sequence(p_stage pipeline.stages, p_worker pipeline.workers, p_seq integer, p_limit integer, p_done record) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 339058fea0a02ab827aaf47f5cc61b83
function pipeline.apply_results(p_stage_id integer, p_items pipeline.work[]) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 8a173fae8d018d501806abfa3c473cbf
function pipeline.attach(p_pipeline text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8fb531b65be8ec9b3dd4efdf13fddedf
function pipeline.attempts_of_submissions(p_items pipeline.work[]) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6e1d6c709867b31c164cd14af030cf08
function pipeline.backoff_seconds(p_backoff jsonb, p_retry_count integer) returns double precision language plpgsql volatile set search_path=pg_catalog, pg_temp body d658cb2a24d056a7ea2511e39430d800
function pipeline.batch_of(p_stage pipeline.stages, p_token uuid, p_attempt_ids bigint[], p_entity_ids text[]) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body d2a1e153ce568ccac7cd9b75fcb8a1e2
function pipeline.cancel(p_run bigint) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 9e66fe1a2c04ae878d93f6f72a8dc35b
function pipeline.cancel_attempts(p_run_ids bigint[], p_stage_ids integer[]) returns pipeline.cancelled[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 2317ff4727ca9ac9fc60021bf6f6db4b
function pipeline.check_backoff(p_stage jsonb, p_path text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body a45c2d1c7682dc46706b491ee34ed2b7
function pipeline.check_columns(p_pipeline pipeline.pipelines, p_stages text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 38b0a9137e978cf5caee1915358446bf
function pipeline.check_completion(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body ffa78997f48e23512c093510f252f551
function pipeline.check_condition(p_pipeline text, p_condition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body eeee456a0834f357df2b94af8ce19b77
function pipeline.check_definition(p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body cd5a01565daad74355ef8c8923b5ad20
function pipeline.check_dropped_stages(p_pipeline_id integer, p_definition jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 3362fa24adb15272f8a088ad65f22147
function pipeline.check_invariants() returns TABLE(rule text, run_id bigint, attempt_id bigint, detail text) language sql stable set search_path=pg_catalog, pg_temp body cf2b1c99873638827652d14a6aaafbf3
function pipeline.check_keys(p_stage jsonb, p_path text[], p_known text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body bbc7ecf4f4f3ea8c299becf72cc0cd95
function pipeline.check_moved(p_pipeline text, p_table regclass, p_key text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d354be83205f28c99930f70beb71b54a
function pipeline.check_needs(p_stage jsonb, p_names text[]) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body b87a018ef1ad2cc81f61d9727173a9ed
function pipeline.check_number(p_stage jsonb, p_path text[], p_min numeric, p_max numeric, p_whole boolean DEFAULT false) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 42ac5d432a4263987be25c733af5f8ff
function pipeline.check_retry(p_stage jsonb) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body 4bc6124b40bda363527bfa8692e7b649
function pipeline.check_stage(p_stage jsonb, p_names text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body ccca7fced43b717bd1a9dbd42231b005
function pipeline.check_type(p_stage jsonb, p_path text[], p_type text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body e6567b33afa79ae9fdd788c469a3cd7b
function pipeline.claim(p_stage pipeline.stages, p_worker_id uuid, p_host uuid, p_limit integer, OUT token uuid, OUT attempt_ids bigint[], OUT entity_ids text[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body c8544afa82f6296848ca7cade6e44c36
function pipeline.claim_answer(p_stage pipeline.stages, p_status text, p_reason text, p_batch json, p_ring integer[], p_items jsonb) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body b4dcdc63c065ee3917a68afa8278329b
function pipeline.claim_next(p_stage pipeline.stages, p_worker pipeline.workers, p_seq integer, p_limit integer, p_done record) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 2eff3f9ff51aab318511f7b51ade4298
function pipeline.complete(p_stage_id integer, p_items pipeline.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b83c3a61cc2d21bbdee6f3fa5c67a84c
function pipeline.define(p_definition jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body bb7acae060e9afc3a437ee766a696bca
function pipeline.delete_runs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 57bb7b3fe34bab634493f87d2dbfde60
function pipeline.detach_old(p_pipeline pipeline.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fc7e9054794cfda23ac0765002b6ba08
function pipeline.doctor() returns TABLE(what text, ok boolean, detail text) language plpgsql stable set search_path=pg_catalog, pg_temp body 15272ae2935a01129ad8536937bee54e
function pipeline.drop_claims(p_worker_id uuid) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 53bd2a2ddb03cb81f0798b5ef88d4e75
function pipeline.enqueue_open(p_run_ids bigint[], p_stage_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 14f80270f5c3594a19d02b81169835f3
function pipeline.enqueue_stage(p_run_ids bigint[], p_stage_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 7746e586d5dbcff11a13c2dc9d81685f
function pipeline.fail(p_stage_id integer, p_items pipeline.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b690b689da347fc7ff798c76cc217bfc
function pipeline.fault_of(p_pipeline text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body e799ba68a50d12c3f0446bad9a645891
function pipeline.finish_runs(p_stage_id integer, p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body a8970883b6d3cf9c153096db8504f94d
function pipeline.followers_with_work(p_stage_id integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7cb6985fb8019d888821442211f86247
function pipeline.forget(p_pipeline_id integer, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 8e07445b7ce15be0de021cf403d04ff2
function pipeline.graph_of(p_definition jsonb) returns jsonb language sql immutable set search_path=pg_catalog, pg_temp body c6c610b04676110b3246da297c76e4c4
function pipeline.has_columns(p_pipeline pipeline.pipelines, p_stage text) returns boolean language sql stable set search_path=pg_catalog, pg_temp body f9e2ffb6b1295b917ffd5da99f7254af
function pipeline.has_ready_work(p_stage_id integer) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 53d12ab6e26b529d7ec7d6d6b99e163a
function pipeline.hold_runs(p_run_ids bigint[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 759d432128799283257e475f33fd2db7
function pipeline.intake_body(p_pipeline pipeline.pipelines, p_from text, p_was text) returns text language sql stable set search_path=pg_catalog, pg_temp body bf289db6ef494c475ffbcc12d71e3e0d
function pipeline.intake_branch(p_pipeline pipeline.pipelines, p_stage text, p_ancestors text[], p_dependents text[], p_from text, p_was text) returns text language sql immutable set search_path=pg_catalog, pg_temp body ffe2c1d4d2fa3cec0e6cc29436853272
function pipeline.is_latest_run(p_run_id bigint) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 94820aa21c26dec04d03d4c15357cc43
function pipeline.items_of(p_items json) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body c26548733b120fac97cc049c517845f2
function pipeline.judge(p_items pipeline.work[], p_locked bigint[]) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 7a07d0079b044962ad295e908fd2fd0e
function pipeline.late_attempts(p_items pipeline.work[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 3dd0f387be9747127462163a81e4da03
function pipeline.leads__deleted() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 1a68572532c8a4c44bb66c0e3e1df9ab
function pipeline.leads__intake() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 98c3d955ccb0c3a311c7f675e6f1a43f
function pipeline.leads__key() returns trigger language plpgsql volatile security definer set search_path=pg_catalog, pg_temp body 6d858b0d2efbe0ff23c3c3ed80800f1b
function pipeline.leads__lock(p_ids text[], p_wait boolean DEFAULT false) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 321cbaf9a75e47d06ab90efe33a1f303
function pipeline.leads__queued(p_stage text, p_dependents text[], p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f243cb70b6a0519904449f186df2d668
function pipeline.leads__rows(p_ids text[]) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body cd5ad79ca11949293b6e3161f477bdfe
function pipeline.leads__settle(p_stage text, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 85b22a4dfde6a9938a0d9554b9fcfc46
function pipeline.leads__started(p_stage text, p_now timestamp with time zone, p_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body aa5de06b27f34b363d10c62f417a427b
function pipeline.live_workers(p_stage_id integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 298943072a33e95dd5db25b6233da258
function pipeline.lock_attempts(p_attempt_ids bigint[]) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 44dd094939b209156621c9b46b46586a
function pipeline.lock_entities(p_pipeline_id integer, p_ids text[], p_wait boolean) returns text[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 887f9efbc37b49b98b6bc1fc7e2d69cd
function pipeline.mark_late(p_items pipeline.work[], p_late bigint[]) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 36b0ff4e58198b315cfcb95eb8e9f03a
function pipeline.must_stay(p_worker pipeline.workers) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body f3f39272d04b77b1bc93885a624ffb76
function pipeline.new_runs(p_pipeline_id integer, p_entity_ids text[], p_stage_id integer) returns bigint[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 62c5a26ea45b232d13395defc6fdb665
function pipeline.now() returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 29396b4a64060706b0495e01ebaeb830
function pipeline.order_stages(p_stages jsonb) returns text[] language plpgsql immutable set search_path=pg_catalog, pg_temp body 2e40cf11aa477cdb402e5d7d78a341f0
function pipeline.parse_items(p_items json, p_key text) returns pipeline.work[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 6d1ce50995f44e4c67e996441e30f246
function pipeline.post(p_function text, p_body jsonb) returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp body 194d1aa5de92ea0007218866d0ca428f
function pipeline.project(p_stage_id integer, p_changes pipeline.change[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d0a073f45328af3b07d8808368ca3019
function pipeline.project_cancelled(p_cancelled pipeline.cancelled[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body d9ab1997372496e2cde8ee9cd15fa332
function pipeline.project_queued(p_pipeline_id integer, p_stage_id integer, p_dependents integer[], p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body f0f47875d96f32f148be840f12c63b62
function pipeline.project_started(p_pipeline pipeline.pipelines, p_stage text, p_entity_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 325c9ab8d01d7e19e40f4dce85212c2a
function pipeline.prune() returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body bdcc4d1ee423b1b8f12781d00e5b1193
function pipeline.queue_stage(p_pipeline_id integer, p_stage_id integer, p_entity_ids text[], p_dirty_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body edf2482f70d71239e22638a713957f37
function pipeline.queued_assignments(p_stage text) returns text language sql immutable set search_path=pg_catalog, pg_temp body 602cd1eba1b7b8dc2f259956c764dcd3
function pipeline.record_items(p_items pipeline.work[], OUT verdicts jsonb, OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body e311ac7c941ebb3078869787da3c3490
function pipeline.refuse_value(p_stage jsonb, p_path text[], p_wanted text, p_hint text) returns void language plpgsql immutable set search_path=pg_catalog, pg_temp body d772d62313003835c5b9f2b255f554e4
function pipeline.release(p_stage_id integer, p_items pipeline.work[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body beeae495e5c08c8b84a50dc10ae5d713
function pipeline.repeat_answer(p_stage pipeline.stages, p_worker pipeline.workers, p_done record) returns json language plpgsql volatile set search_path=pg_catalog, pg_temp body 0831beaf00dd7f95150959f43da2ca28
function pipeline.replay(p_pipeline text, p_condition jsonb DEFAULT '{}'::jsonb, p_dry_run boolean DEFAULT true) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body ef9bb774bebe6c554630b20f0e01e39b
function pipeline.report(p_level text, p_code text, p_message text, p_detail jsonb DEFAULT '{}'::jsonb) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 61482481db143e471f5a7a397a3ec320
function pipeline.retry(p_run bigint, p_stage text DEFAULT NULL::text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body ceac915e2804d12dafdd5c0ef490b201
function pipeline.retry_due(p_stage_id integer, p_error jsonb, p_retry_count integer) returns timestamp with time zone language plpgsql volatile set search_path=pg_catalog, pg_temp body 21be035349a5d8d2361361257b63e84c
function pipeline.retry_runs(p_run_ids bigint[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body ac9203ed76c5199950264273a6a3d039
function pipeline.ring(p_stage_ids integer[]) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 87f5a3baf233845224e47e6c197e2384
function pipeline.ring_list(p_stage_ids integer[]) returns jsonb language plpgsql stable set search_path=pg_catalog, pg_temp body 666abae1e071baa30dc8c054c4f5f2fc
function pipeline.ring_polls() returns boolean language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 658b1874b5ac202b081d142dec18aa19
function pipeline.rows_of_entities(p_pipeline_id integer, p_ids text[]) returns json[] language plpgsql volatile set search_path=pg_catalog, pg_temp body b1202df10f2c59e7ccd1f913181a4b4b
function pipeline.save_stages(p_pipeline_id integer, p_definition jsonb) returns void language sql volatile set search_path=pg_catalog, pg_temp body a7f06302fb1e9d528c375bf02f807dc4
function pipeline.save_version(p_pipeline_id integer, p_definition jsonb) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body d263815678043ea715a788f1eb8f8948
function pipeline.schedule_polls() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 6130abcc6fbe5051fa1aa4f86b779ecb
function pipeline.setting(p_name text) returns text language plpgsql stable set search_path=pg_catalog, pg_temp body cd8b66affba8cfc8696cb5363d7a3f93
function pipeline.settle(p_items pipeline.work[], OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body bcdd6ee4adce1e31f4159e7ae7f4362e
function pipeline.settle_branch(p_pipeline pipeline.pipelines, p_stage_id integer, p_stage text) returns text language sql stable set search_path=pg_catalog, pg_temp body cfc3a48847f3e54193e165cf9ee7d769
function pipeline.settle_guarded(p_items pipeline.work[], OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body ce0349ce3a0b8bce2e7278bf73fabf0d
function pipeline.settle_unprojected(p_items pipeline.work[], OUT items pipeline.work[], OUT ready integer[]) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body 99ecea80fd927654168c773883bf81e3
function pipeline.show_beside(p_pipeline_id integer, p_stage_id integer, p_run_ids bigint[]) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body c944fb1d9e3bb9bca2c266b952e15187
function pipeline.stage_columns(p_stage text) returns text[] language sql immutable set search_path=pg_catalog, pg_temp body ebed5ade3830a8b5ae5e17092d29df3a
function pipeline.stage_columns_ddl(p_table text, p_stage text) returns text language sql immutable set search_path=pg_catalog, pg_temp body c9851bc506de3f3d1c6a14a7ada72fdb
function pipeline.stage_named(p_pipeline text, p_stage text) returns pipeline.stages language plpgsql stable set search_path=pg_catalog, pg_temp body a05df4893b272aa57d74353581bb4fc5
function pipeline.stage_open(p_stage pipeline.stages) returns boolean language plpgsql stable set search_path=pg_catalog, pg_temp body 144da1a2477e7b80dcbac43acc97cef8
function pipeline.stale_reason(p_state pipeline.attempt_state, p_error jsonb) returns text language sql immutable set search_path=pg_catalog, pg_temp body 6fefd4b75f97746dde295c46c8eb54d2
function pipeline.start(p_pipeline text, p_entity_id text, p_stage text DEFAULT NULL::text) returns bigint language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 78556c1726124426ff86fbd7a30d8f4d
function pipeline.start_over(p_run_ids bigint[], p_stage_id integer) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e0b3ec6fbe4f8caf11d254f8b32e4383
function pipeline.storable_item(p_item json) returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp body 7e9ecb4b49fe53b4e8f7aa6bb8056993
function pipeline.sweep() returns jsonb language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 2e696724582949f6a2ae7e4e38287c1a
function pipeline.sweep_deadlines(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body 5c0b87da771b544867253b10c293ffd1
function pipeline.sweep_leases(p_pipeline_id integer, p_limit integer) returns integer language plpgsql volatile set search_path=pg_catalog, pg_temp body c2bd222225129a3aaf2d6198bc78b520
function pipeline.sweep_pipeline(p_pipeline_id integer, OUT leases integer, OUT deadlines integer, OUT rung integer) returns record language plpgsql volatile set search_path=pg_catalog, pg_temp body d63f1f318ff58279f3084a9920a9a6c0
function pipeline.take_in(p_pipeline_id integer, p_stage text, p_status text, p_entity_ids text[], p_dirty_ids text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 6437091a927ea4cc11d3cd2abd7e3976
function pipeline.take_over(p_run_ids bigint[], p_keep integer[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 8df3d820b0dcc133e97c8cb20cae9a3e
function pipeline.take_rings(p_stage_ids integer[], p_scaling_out integer DEFAULT NULL::integer) returns integer[] language plpgsql volatile set search_path=pg_catalog, pg_temp body 10e217c2589702b4d50aab5eed634337
function pipeline.timeline(p_run bigint) returns TABLE(attempt_id bigint, stage text, number integer, state pipeline.attempt_state, parent_id bigint, retry_count integer, queued_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone, took interval, service text, job_id text, error_code text, error_message text, usage jsonb, superseded boolean) language sql stable set search_path=pg_catalog, pg_temp body 542577a9f2422749eb5e129a20d9c161
function pipeline.wait(p_stage_id integer, p_items pipeline.work[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 76aa065374afe804ec355f9e1885cae5
function pipeline.write_common_functions(p_pipeline pipeline.pipelines, p_key_type text, p_engine_columns text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 5cfd2e912ef31d8eca0ceaec38c3481d
function pipeline.write_dispatch() returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body e8135481f5f9c65688a12e4ef21834ee
function pipeline.write_entities(p_pipeline_id integer, p_how text, p_stage text, p_changes pipeline.change[], p_ids text[], p_dependents text[]) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body 756b87dbe67d8fa009d3132e735a7a65
function pipeline.write_intake(p_pipeline pipeline.pipelines) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body be679ce839332cdf8d4681493dd565af
function pipeline.write_projection(p_pipeline pipeline.pipelines, p_key_type text) returns void language plpgsql volatile set search_path=pg_catalog, pg_temp body fe0c2389682d92e35f83bae31ad3882c
function public.pipeline_claim(p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq integer, p_limit integer) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 20cf29c5f2863c9d2d59c7a055abed7f
  grant execute to service_role
function public.pipeline_complete(p_worker uuid, p_seq integer, p_items json, p_limit integer) returns json language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 9f275d74721fa94a35e05bc9df24c9d5
  grant execute to service_role
function public.pipeline_leave(p_worker uuid, p_hand_over boolean DEFAULT false) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 3777b84812051077e189d04e7ab41948
  grant execute to service_role
function public.pipeline_poll(p_limit integer, p_poll_ms integer DEFAULT NULL::integer) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 5553add127f76162746d749caddd11c6
  grant execute to service_role
function public.pipeline_renew(p_worker uuid, p_attempts bigint[]) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body edf754adfe45845bca8d163d6beb08ca
  grant execute to service_role
function public.pipeline_resume(p_items json) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body 1d84b5f5074f1de61e3006951d079ba6
  grant execute to service_role
function public.pipeline_ring(p_stages jsonb) returns jsonb language plpgsql volatile security definer set search_path=pg_catalog, pg_temp, enable_seqscan=off, enable_mergejoin=off, enable_hashjoin=off, enable_memoize=off, jit=off, plan_cache_mode=force_generic_plan body c30f6ca6b6e01d857b2d8959daec1671
  grant execute to service_role
schedule millrace-poll "2 seconds" select pipeline.ring_polls()
schedule millrace-prune "17 3 * * *" select pipeline.prune()
schedule millrace-sweep "10 seconds" select pipeline.sweep()
