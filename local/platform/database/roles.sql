-- The roles of a hosted Supabase project. Run once, as the superuser supabase_admin, in the database `postgres`.
-- `postgres` owns the database but is no superuser, so that a migration which needs more than hosted Supabase
-- grants fails here as it would fail there.

create role postgres login createrole createdb replication bypassrls password 'postgres';
create role anon nologin noinherit;
create role authenticated nologin noinherit;
create role service_role nologin noinherit bypassrls;
create role authenticator login noinherit password 'postgres';
create role supabase_auth_admin login noinherit createrole password 'postgres';
create role supabase_functions_admin login noinherit createrole password 'postgres';
create role supabase_realtime_admin nologin noinherit;
create role dashboard_user nologin createrole createdb replication;
create role supabase_storage_admin login noinherit createrole password 'postgres';
-- Roles of the platform's own services, which grants of projects name.
create role pgbouncer nologin;
create role supabase_read_only_user nologin bypassrls;
create role supabase_replication_admin nologin replication;
create role supabase_etl_admin nologin replication;
create role supabase_privileged_role nologin;

grant anon, authenticated, service_role to authenticator;
grant anon, authenticated, service_role to supabase_storage_admin;
grant anon, authenticated, service_role to postgres with admin option;
grant authenticator to postgres with admin option;
grant pg_monitor, pg_read_all_data, pg_signal_backend to postgres with admin option;
grant pg_read_all_data to supabase_read_only_user;

-- Hosted lets postgres set these parameters, for a session, a role or the database, by an extension
-- of its own. Hosted, as this stand-in, refuses any other setting with a prefix, such as
-- app.settings.x: permission denied to set parameter.
grant set on parameter
  session_replication_role, deadlock_timeout, log_lock_waits, log_min_duration_statement,
  log_min_messages, log_parameter_max_length, log_replication_commands, log_statement,
  log_temp_files, track_functions, track_io_timing, wal_compression
to postgres;
grant set on parameter
  auto_explain.log_analyze, auto_explain.log_min_duration, auto_explain.log_nested_statements,
  pg_net.batch_size, pg_net.ttl, pg_stat_statements.max, pg_stat_statements.track,
  pgaudit.log, pgaudit.log_catalog, pgaudit.log_level, pgaudit.log_parameter, pgaudit.role,
  plan_filter.statement_cost_limit, safeupdate.enabled
to postgres;
grant set on parameter
  pgrst.app_settings, pgrst.db_aggregates_enabled, pgrst.db_anon_role, pgrst.db_extra_search_path,
  pgrst.db_hoisted_tx_settings, pgrst.db_max_rows, pgrst.db_plan_enabled, pgrst.db_pre_request,
  pgrst.db_prepared_statements, pgrst.db_root_spec, pgrst.db_schemas, pgrst.db_timezone_enabled,
  pgrst.db_tx_end, pgrst.jwt_aud, pgrst.jwt_role_claim_key, pgrst.jwt_secret,
  pgrst.jwt_secret_is_base64, pgrst.openapi_mode,
  pgrst.openapi_security_active, pgrst.openapi_server_proxy_uri, pgrst.server_cors_allowed_origins,
  pgrst.server_timing_enabled, pgrst.server_trace_header
to postgres;

alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';
alter role supabase_auth_admin set search_path = auth;
alter role supabase_storage_admin set search_path = storage;
alter role supabase_admin set search_path = "$user", public, auth, extensions;
alter role postgres set search_path = "$user", public, extensions;
