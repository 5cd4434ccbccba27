// Projects as strangers have them: their configuration, migrations, seeds and functions, written as people and their tools write them.
import { dumpedSchema } from './dumped-schema.ts';

export interface ForeignProject {
  name: string;
  /** Texts by path. */
  files: Record<string, string>;
  /** The folder that holds `supabase/`, where that is not the top, in which packages are installed. */
  root?: string;
  /** The program that installs the packages (default: npm). */
  installer?: 'pnpm';
  /** The words of `millrace add`: a pipeline with one stage over a table of the project's own. */
  add: string[];
  /** The condition by which one row of the seeds is found, which is carried through. */
  where: string;
  /** A statement about the project's own objects, and what it answers at the end. */
  kept: [statement: string, answer: unknown];
  /** The text that the project's function `greet` answers. */
  greets: string;
}

/** A function of the project's own, which shares a file with others. */
const greet = (words: string) => ({
  'supabase/functions/_shared/cors.ts': "export const corsHeaders = { 'Access-Control-Allow-Origin': '*' };\n",
  'supabase/functions/greet/index.ts': `import { corsHeaders } from '../_shared/cors.ts';

Deno.serve((req) => {
  if (req.method === 'OPTIONS') return new Response('ok', { headers: corsHeaders });
  return new Response(JSON.stringify(${JSON.stringify(words)}), { headers: { ...corsHeaders, 'Content-Type': 'application/json' } });
});
`,
});

/** As the CLI wrote it in 2023, with comments that nobody took out. */
const config15 = `# A string used to distinguish different Supabase projects on the same host. Defaults to the working
# directory name when running \`supabase init\`.
project_id = "shop-floor"

[api]
enabled = true
port = 54321
# Schemas to expose in your API.
schemas = ["public", "storage", "graphql_public"]
extra_search_path = ["public", "extensions"]
max_rows = 1000

[db]
port = 54322
shadow_port = 54320
major_version = 15

[db.pooler]
enabled = false
pool_mode = "transaction"

[realtime]
enabled = true

[studio]
enabled = true
port = 54323
api_url = "http://localhost"

[inbucket]
enabled = true
port = 54324

[storage]
enabled = true
file_size_limit = "50MiB"

[auth]
enabled = true
site_url = "http://localhost:3000"
additional_redirect_urls = ["https://localhost:3000"]
jwt_expiry = 3600
enable_signup = true

[auth.email]
enable_signup = true
double_confirm_changes = true
enable_confirmations = false

[auth.external.github]
enabled = true
client_id = "env(GITHUB_CLIENT_ID)"
secret = "env(GITHUB_SECRET)"

[functions.greet]
verify_jwt = false
import_map = "./functions/import_map.json"
`;

const onPostgres15: ForeignProject = {
  name: 'Postgres 15',
  files: {
    'package.json': '{ "name": "shop-floor", "version": "0.1.0", "private": true }\n',
    'supabase/config.toml': config15,
    ...greet('Good morning'),
    'supabase/functions/import_map.json': '{ "imports": { "zod": "npm:zod@4.6.7" } }\n',
    'supabase/migrations/20230412093000_init.sql': `create extension if not exists "uuid-ossp" with schema extensions;
create extension if not exists moddatetime schema extensions;

create type order_status as enum ('draft', 'placed', 'shipped');

create table orders (
  id uuid default uuid_generate_v4() primary key,
  user_id uuid references auth.users on delete cascade,
  status order_status not null default 'draft',
  note text,
  created_at timestamptz default now(),
  updated_at timestamptz default now()
);
alter table orders enable row level security;
create policy "Users see their orders." on orders for select using (auth.uid() = user_id);

create trigger handle_updated_at before update on orders for each row execute procedure moddatetime (updated_at);
`,
    'supabase/migrations/20230502170512_profiles.sql': `create table profiles (id uuid references auth.users primary key, full_name text);
alter table profiles enable row level security;
create function public.handle_new_user() returns trigger as $$
begin
  insert into public.profiles (id, full_name) values (new.id, new.raw_user_meta_data->>'full_name');
  return new;
end;
$$ language plpgsql security definer;
create trigger on_auth_user_created after insert on auth.users for each row execute procedure public.handle_new_user();
`,
    'supabase/seed.sql': "insert into orders (note, status) values ('Two chairs', 'placed');\n",
  },
  add: ['orders', 'price', '--table', 'public.orders'],
  where: "note = 'Two chairs'",
  kept: ['select updated_at > created_at from public.orders', true],
  greets: 'Good morning',
};

/** As the CLI writes it today, cut to what differs from its defaults. */
const config17 = `project_id = "inbox"

[api]
enabled = true
port = 54321
schemas = ["public", "graphql_public"]
extra_search_path = ["public", "extensions"]
max_rows = 1000

[api.tls]
enabled = false

[db]
port = 54322
shadow_port = 54320
health_timeout = "2m"
major_version = 17

[db.migrations]
enabled = true
schema_paths = []

[db.seed]
enabled = true
sql_paths = ["./seeds/*.sql"]

[db.network_restrictions]
enabled = false

[auth]
site_url = "http://127.0.0.1:3000"

[auth.rate_limit]
email_sent = 2

[edge_runtime]
enabled = true
policy = "per_worker"
inspector_port = 8083
deno_version = 2

[functions.greet]
enabled = true
verify_jwt = false
import_map = "./functions/greet/deno.json"
entrypoint = "./functions/greet/index.ts"
`;

const onPostgres17: ForeignProject = {
  name: 'Postgres 17',
  files: {
    'package.json': '{ "name": "inbox", "private": true, "type": "module" }\n',
    'tsconfig.json':
      '{ "compilerOptions": { "strict": true, "noEmit": true }, "exclude": ["node_modules", "supabase/functions"] }\n',
    'supabase/config.toml': config17,
    ...greet('Hello'),
    'supabase/functions/greet/deno.json': '{ "imports": {} }\n',
    'supabase/functions/greet/.npmrc': '',
    'supabase/migrations/20251104081530_messages.sql': `create table public.messages (
  id bigint generated by default as identity primary key,
  body text not null check (length(body) < 10000),
  room text not null default 'lobby',
  embedding real[],
  search tsvector generated always as (to_tsvector('english', body)) stored
);
create index on public.messages using gin (search);
alter table public.messages enable row level security;
grant select, insert on public.messages to authenticated;
create policy "members read" on public.messages for select to authenticated using ((select auth.uid()) is not null);
alter publication supabase_realtime add table public.messages;

create function public.broadcast_message() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  perform realtime.broadcast_changes('room:' || new.room, tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
  return null;
end $$;
create trigger broadcast after insert or update on public.messages for each row execute function public.broadcast_message();

create policy "members hear" on realtime.messages for select to authenticated using (true);
select cron.schedule('forget', '0 3 * * *', $$delete from public.messages where room = 'lobby' and id < 0$$);
`,
    'supabase/seeds/01_messages.sql': "insert into public.messages (body) values ('Is anybody there?');\n",
  },
  add: ['messages', 'classify'],
  where: "room = 'lobby'",
  kept: ["select count(*)::int from cron.job where jobname = 'forget'", 1],
  greets: 'Hello',
};

const monorepo: ForeignProject = {
  name: 'a monorepo',
  root: 'packages/database',
  files: {
    'package.json': '{ "name": "acme", "private": true, "workspaces": ["apps/*", "packages/*"] }\n',
    'turbo.json': '{ "tasks": { "build": { "dependsOn": ["^build"] } } }\n',
    'apps/web/package.json':
      '{ "name": "@acme/web", "version": "0.0.0", "private": true, "dependencies": { "@acme/database": "*" } }\n',
    'packages/database/package.json':
      '{ "name": "@acme/database", "version": "0.0.0", "private": true, "type": "module" }\n',
    'packages/database/tsconfig.json': '{ "extends": "../../tsconfig.json", "include": ["src"] }\n',
    'tsconfig.json': '{ "compilerOptions": { "strict": true, "noEmit": true } }\n',
    ...below('packages/database', {
      'supabase/config.toml':
        'project_id = "acme"\n\n[db]\nmajor_version = 17\n\n[functions.greet]\nverify_jwt = false\n',
      ...greet('Welcome'),
      'supabase/functions/deno.json': '{ "imports": { "@shared/": "./_shared/" } }\n',
      'supabase/migrations/20240801120000_accounts.sql': `create table if not exists public.accounts (
  id uuid primary key default gen_random_uuid(),
  name varchar(255) not null
);
create table public.invoices (
  account_id uuid not null references public.accounts on delete cascade,
  invoice_no int generated always as identity primary key,
  total_cents bigint not null,
  "billedTo" text
);
alter table public.invoices enable row level security;
create function public.has_role(account_id uuid) returns boolean language sql stable security definer set search_path = ''
as $$ select exists (select 1 from public.accounts a where a.id = has_role.account_id) $$;
create policy invoices_read on public.invoices for select to authenticated using (public.has_role(account_id));
`,
      'supabase/seed.sql': `insert into public.accounts (id, name) values ('8a3c9f7e-1f5b-4b0e-9a55-0a1c6a0e7d11', 'Acme');
insert into public.invoices (account_id, total_cents, "billedTo") values ('8a3c9f7e-1f5b-4b0e-9a55-0a1c6a0e7d11', 129900, 'Wile E.');
`,
    }),
  },
  add: ['invoices', 'check_vat', '--key', 'invoice_no'],
  where: '"billedTo" = \'Wile E.\'',
  kept: ['select name from public.accounts', 'Acme'],
  greets: 'Welcome',
};

/** Files of a package. */
function below(folder: string, files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]));
}

const declared = {
  documents: `create table "public"."documents" (
    "id" uuid not null default gen_random_uuid(),
    "title" text not null,
    "kind" document_kind not null default 'note'::document_kind
);
`,
  kinds: `create type "public"."document_kind" as enum ('note', 'contract');\n`,
};

const declarative: ForeignProject = {
  name: 'declarative schemas',
  files: {
    'package.json': '{ "name": "paperwork", "private": true }\n',
    'supabase/config.toml':
      'project_id = "paperwork"\n\n[db]\nmajor_version = 17\n\n[db.migrations]\nschema_paths = ["./schemas/types.sql", "./schemas/*.sql"]\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('Sign here'),
    'supabase/schemas/types.sql': declared.kinds,
    'supabase/schemas/documents.sql': declared.documents,
    // As \`supabase db diff\` writes it.
    'supabase/migrations/20250610101112_documents.sql': `${declared.kinds}
${declared.documents}
alter table "public"."documents" enable row level security;

CREATE UNIQUE INDEX documents_pkey ON public.documents USING btree (id);

alter table "public"."documents" add constraint "documents_pkey" PRIMARY KEY using index "documents_pkey";

create or replace view "public"."contracts" with (security_invoker = on) as  SELECT documents.id,
    documents.title
   FROM documents
  WHERE (documents.kind = 'contract'::document_kind);

grant select on table "public"."documents" to "authenticated";

create policy "documents_read"
on "public"."documents"
as permissive
for select
to authenticated
using (true);
`,
    'supabase/seed.sql': "insert into public.documents (title, kind) values ('Lease', 'contract');\n",
  },
  add: ['documents', 'summarise', '--table', 'public.documents'],
  where: "kind = 'contract'",
  kept: ['select title from public.contracts', 'Lease'],
  greets: 'Sign here',
};

const dumped: ForeignProject = {
  name: 'a dump with pg_graphql',
  files: {
    'package.json': '{ "name": "tracker", "private": true }\n',
    'supabase/config.toml':
      'project_id = "tracker"\n\n[db]\nmajor_version = 17\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('Ahoy'),
    'supabase/migrations/20250220140509_remote_schema.sql': dumpedSchema,
    // The next pull, which names what the platform itself did.
    'supabase/migrations/20250601080000_remote_schema.sql': `drop extension if exists "pg_net";

create extension if not exists "pg_net" with schema "extensions";

alter table "public"."issues" alter column "severity" set default 3;
`,
    'supabase/seed.sql': `SET session_replication_role = replica;
INSERT INTO "public"."issues" ("id", "title", "severity") VALUES (7, 'Crash at noon', 1);
SELECT pg_catalog.setval('"public"."issues_id_seq"', 7, true);
RESET ALL;
`,
  },
  add: ['issues', 'triage'],
  where: 'severity = 1',
  kept: ['select public.open_issues()::int', 1],
  greets: 'Ahoy',
};

const secondFactors: ForeignProject = {
  name: 'policies over second factors',
  files: {
    'package.json': '{ "name": "vaulted", "private": true }\n',
    'supabase/config.toml':
      'project_id = "vaulted"\n\n[db]\nmajor_version = 17\n\n[auth.mfa.totp]\nenroll_enabled = true\nverify_enabled = true\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('Who is there?'),
    'supabase/migrations/20241015090000_secrets.sql': `create table public.secrets (
  id bigserial primary key,
  owner uuid references auth.users,
  label text unique
);
alter table public.secrets enable row level security;
alter table public.secrets force row level security;

create policy "Owners read" on public.secrets for select to authenticated using (owner = (select auth.uid()));
create policy "Second factor where there is one" on public.secrets as restrictive to authenticated using (
  array[(select auth.jwt()->>'aal')] <@ (
    select case when count(id) > 0 then array['aal2'] else array['aal1', 'aal2'] end
    from auth.mfa_factors where ((select auth.uid()) = user_id) and status = 'verified'
  )
);

create function public.is_aal2() returns boolean language sql stable as $$ select coalesce(auth.jwt()->>'aal', '') = 'aal2' $$;
create function public.sign_ins(since timestamptz) returns bigint language sql security definer set search_path = '' as
  $$ select count(*) from auth.audit_log_entries e where e.created_at > since and e.payload->>'action' = 'login' $$;
create view public.enrolled with (security_invoker) as
  select f.user_id, f.factor_type, c.created_at from auth.mfa_factors f left join auth.mfa_challenges c on c.factor_id = f.id;
`,
    'supabase/seed.sql': `insert into auth.users (id, email) values ('0e1d9f1c-7b55-4c0f-8a4a-2f6d1c1b7f10', 'a@example.com');
insert into public.secrets (owner, label) values ('0e1d9f1c-7b55-4c0f-8a4a-2f6d1c1b7f10', 'router');
`,
  },
  add: ['secrets', 'rotate', '--table', 'public.secrets'],
  where: "label = 'router'",
  kept: ["select public.sign_ins('-infinity')::int", 0],
  greets: 'Who is there?',
};

const apiSettings: ForeignProject = {
  name: 'settings of the Data API',
  files: {
    'package.json': '{ "name": "gateway", "private": true }\n',
    'supabase/config.toml':
      'project_id = "gateway"\n\n[api]\nschemas = ["api", "public"]\nextra_search_path = ["extensions"]\nmax_rows = 100\n\n[db]\nmajor_version = 17\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('Next, please'),
    'supabase/migrations/20250303111500_api.sql': `create schema api;
grant usage on schema api to anon, authenticated, service_role;
create table public.visits (id uuid primary key default gen_random_uuid(), page text);
alter table public.visits enable row level security;
create view api.visits with (security_invoker = true) as select id, page from public.visits;
grant select on api.visits to service_role;

-- A limit for strangers, asked before each request.
create function public.check_request() returns void language plpgsql security definer set search_path = '' as $$
begin
  if coalesce(current_setting('request.headers', true)::json->>'x-forbidden', '') <> '' then
    raise sqlstate 'PGRST' using message = '{"code":"429","message":"Slow down"}', detail = '{"status":429,"headers":{}}';
  end if;
end $$;
alter role authenticator set pgrst.db_pre_request = 'public.check_request';
alter role authenticator set pgrst.db_schemas = 'api, public';
alter role authenticator set pgrst.db_aggregates_enabled = 'true';
alter role authenticator set statement_timeout = '15s';
notify pgrst, 'reload config';
notify pgrst, 'reload schema';
`,
    'supabase/seed.sql': "insert into public.visits (page) values ('/start');\n",
  },
  add: ['visits', 'locate', '--table', 'public.visits'],
  where: "page = '/start'",
  kept: ['select page from api.visits', '/start'],
  greets: 'Next, please',
};

const longHistory: ForeignProject = {
  name: 'three hundred migrations',
  files: {
    'package.json': '{ "name": "ledger", "private": true }\n',
    'supabase/config.toml':
      'project_id = "ledger"\n\n[db]\nmajor_version = 17\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('Once more'),
    'supabase/migrations/20220101000000_entries.sql':
      'create table public.bookings (id serial primary key, memo text);\nalter table public.bookings rename to entries;\n',
    ...Object.fromEntries(
      Array.from({ length: 299 }, (_, at) => {
        const day = new Date(Date.UTC(2022, 1, 1 + at * 4)).toISOString().replace(/\D/g, '').slice(0, 8);
        const stamp = `${day}${String(90000 + at).padStart(6, '0')}`;
        const text =
          at % 3 === 0
            ? `alter table public.entries add column if not exists field_${at} text;\n`
            : at % 3 === 1
              ? `create index if not exists entries_${at} on public.entries (field_${at - 1});\n`
              : `alter table public.entries drop column field_${at - 2};\n`;
        return [`supabase/migrations/${stamp}_step_${at}.sql`, text];
      }),
    ),
    'supabase/seed.sql': "insert into public.entries (memo) values ('Opening balance');\n",
  },
  add: ['ledger', 'reconcile', '--table', 'public.entries'],
  where: "memo = 'Opening balance'",
  kept: ["select count(*)::int from pg_indexes where indexname like 'entries\\_%'", 1],
  greets: 'Once more',
};

const withComments: ForeignProject = {
  name: 'config.jsonc',
  files: {
    'package.json': '{ "name": "notes", "private": true, "type": "commonjs" }\n',
    'supabase/config.jsonc': `{
  // The CLI's schema has the rest.
  "$schema": "https://supabase.com/schemas/config.json",
  "project_id": "notes",
  "api": { "schemas": ["public"] },
  "db": {
    "major_version": 17,
    "seed": { "enabled": true, "sql_paths": ["./seed.sql"] },
    "vault": { "mail_key": "env(MAIL_KEY)" }, /* read by a trigger */
  },
  "functions": {
    "greet": { "verify_jwt": false }, // Anybody may ask.
  },
}
`,
    'supabase/.env': 'MAIL_KEY=of-the-project\n',
    ...greet('Dear reader'),
    'supabase/functions/greet/deno.jsonc': '{\n  // Nothing yet.\n  "imports": {},\n}\n',
    'supabase/migrations/20260110101010_notes.sql': `create table public.notes (slug text primary key, body text);
create function public.mail_key() returns text language sql security definer set search_path = '' as
  $$ select decrypted_secret from vault.decrypted_secrets where name = 'mail_key' $$;
revoke execute on function public.mail_key from public, anon, authenticated;
`,
    'supabase/seed.sql': "insert into public.notes values ('first', 'A note');\n",
  },
  add: ['notes', 'index_text', '--key', 'slug'],
  where: "slug = 'first'",
  kept: ['select public.mail_key()', 'of-the-project'],
  greets: 'Dear reader',
};

const installedByPnpm: ForeignProject = {
  name: 'pnpm',
  installer: 'pnpm',
  files: {
    'package.json': '{ "name": "fleet", "private": true, "type": "module", "scripts": { "test": "vitest run" } }\n',
    'pnpm-workspace.yaml': 'packages:\n  - .\n',
    'supabase/config.toml':
      'project_id = "fleet"\n\n[db]\nmajor_version = 17\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('All aboard'),
    // As Prisma names things.
    'supabase/migrations/20250909090909_init.sql': `CREATE TABLE "trips" (
    "id" TEXT NOT NULL,
    "driverName" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "trips_pkey" PRIMARY KEY ("id")
);
`,
    'supabase/seed.sql': 'INSERT INTO "trips" ("id", "driverName") VALUES (\'cm1x\', \'Ada\');\n',
  },
  add: ['trips', 'plan'],
  where: '"driverName" = \'Ada\'',
  kept: ['select count(*)::int from public.trips', 1],
  greets: 'All aboard',
};

const eventTriggers: ForeignProject = {
  name: 'event triggers',
  files: {
    'package.json': '{ "name": "guarded", "private": true }\n',
    'supabase/config.toml':
      'project_id = "guarded"\n\n[db]\nmajor_version = 17\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('Halt'),
    'supabase/migrations/20250101080000_guards.sql': `-- Every new table of public has row level security.
create function public.enable_rls() returns event_trigger language plpgsql security definer set search_path = pg_catalog as $$
declare
  made record;
begin
  for made in select * from pg_event_trigger_ddl_commands()
    where command_tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') and object_type in ('table', 'partitioned table')
  loop
    if made.schema_name = 'public' then execute format('alter table if exists %s enable row level security', made.object_identity); end if;
  end loop;
end $$;
create event trigger ensure_rls on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
  execute function public.enable_rls();

-- The Data API hears of each change.
create function public.pgrst_watch() returns event_trigger language plpgsql as $$ begin notify pgrst, 'reload schema'; end $$;
create event trigger pgrst_watch on ddl_command_end execute procedure public.pgrst_watch();

-- A journal of what was changed, and of what is gone.
create table public.ddl_journal (at timestamptz default clock_timestamp(), tag text, object text);
create function public.note_ddl() returns event_trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into public.ddl_journal (tag, object) select command_tag, object_identity from pg_catalog.pg_event_trigger_ddl_commands();
end $$;
create event trigger note_ddl on ddl_command_end execute function public.note_ddl();
create function public.note_drops() returns event_trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into public.ddl_journal (tag, object) select tg_tag, object_identity from pg_catalog.pg_event_trigger_dropped_objects();
end $$;
create event trigger note_drops on sql_drop execute function public.note_drops();

create table public.alarms (id bigint primary key generated always as identity, sensor text);
`,
    'supabase/seed.sql': "insert into public.alarms (sensor) values ('north api');\n",
  },
  add: ['alarms', 'assess'],
  where: "sensor = 'north api'",
  kept: ["select relrowsecurity from pg_class where oid = 'public.alarms'::regclass", true],
  greets: 'Halt',
};

const ownSchema: ForeignProject = {
  name: 'a schema of its own',
  files: {
    'package.json': '{ "name": "clinic", "private": true }\n',
    'supabase/config.toml':
      'project_id = "clinic"\n\n[api]\nschemas = ["public", "clinic"]\n\n[db]\nmajor_version = 17\n\n[functions.greet]\nverify_jwt = false\n',
    ...greet('Take a seat'),
    'supabase/roles.sql': "create role reception nologin;\nalter role authenticated set statement_timeout = '10s';\n",
    'supabase/migrations/20250515151515_clinic.sql': `create schema if not exists clinic;
comment on schema clinic is 'Everything of the clinic';
grant usage on schema clinic to authenticated, service_role, reception;
alter default privileges in schema clinic grant select on tables to reception;
set search_path to clinic, public, extensions;

create domain email as extensions.citext check (value ~ '@');
create table patients (patient_id uuid primary key default gen_random_uuid(), mail email);
create table visits (
  visit_id uuid primary key default gen_random_uuid(),
  patient_id uuid references patients,
  day date not null,
  exclude using gist (patient_id with =, day with =)
);
alter table visits enable row level security;
create policy reception_reads on visits for select to reception using (true);
`,
    'supabase/migrations/20250515151500_extensions.sql': `create extension if not exists citext with schema extensions;
create extension if not exists btree_gist with schema extensions;
`,
    'supabase/seed.sql': `insert into clinic.patients (mail) values ('Jo@example.com');
insert into clinic.visits (patient_id, day) select patient_id, '2025-06-01' from clinic.patients;
`,
  },
  add: ['visits', 'remind', '--table', 'clinic.visits', '--key', 'visit_id'],
  where: "day = '2025-06-01'",
  kept: ["select count(*)::int from clinic.patients where mail = 'jo@example.com'", 1],
  greets: 'Take a seat',
};

export const foreignProjects: ForeignProject[] = [
  onPostgres15,
  onPostgres17,
  monorepo,
  declarative,
  dumped,
  secondFactors,
  apiSettings,
  longHistory,
  withComments,
  installedByPnpm,
  eventTriggers,
  ownSchema,
];
