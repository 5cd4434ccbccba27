-- Storage's SQL surface: the tables that migrations insert buckets into and write row-level policies for. The
-- stand-in's server keeps its rows here too; contents lie in files, named by an object's version.
-- Run by the superuser that owns the stand-ins.

create schema storage authorization supabase_storage_admin;
grant usage on schema storage to postgres with grant option;
grant usage on schema storage to anon, authenticated, service_role;

create type storage.buckettype as enum ('STANDARD', 'ANALYTICS', 'VECTOR');

create table storage.buckets (
  id text primary key,
  name text not null,
  owner uuid,
  created_at timestamptz default now(),
  updated_at timestamptz default now(),
  public boolean default false,
  avif_autodetection boolean default false,
  file_size_limit bigint,
  allowed_mime_types text[],
  owner_id text,
  type storage.buckettype not null default 'STANDARD',
  constraint buckets_name_length check (length(name) <= 100)
);
create unique index bname on storage.buckets (name);

create table storage.objects (
  id uuid primary key default gen_random_uuid(),
  bucket_id text,
  name text,
  owner uuid,
  created_at timestamptz default now(),
  updated_at timestamptz default now(),
  last_accessed_at timestamptz default now(),
  metadata jsonb,
  path_tokens text[] generated always as (string_to_array(name, '/')) stored,
  version text,
  owner_id text,
  user_metadata jsonb,
  constraint "objects_bucketId_fkey" foreign key (bucket_id) references storage.buckets (id)
);
create unique index bucketid_objname on storage.objects (bucket_id, name);

alter table storage.buckets enable row level security;
alter table storage.objects enable row level security;

create function storage.foldername(name text) returns text[]
language sql immutable
as $$
  select (string_to_array(name, '/'))[1 : array_length(string_to_array(name, '/'), 1) - 1]
$$;

create function storage.filename(name text) returns text
language sql immutable
as $$
  select (string_to_array(name, '/'))[array_length(string_to_array(name, '/'), 1)]
$$;

create function storage.extension(name text) returns text
language sql immutable
as $$
  select reverse(split_part(reverse(storage.filename(name)), '.', 1))
$$;

create function storage.protect_delete() returns trigger
language plpgsql
as $$
begin
  if coalesce(current_setting('storage.allow_delete_query', true), '') <> 'true' then
    raise insufficient_privilege using
      message = 'Direct deletion from storage tables is not allowed. Use the Storage API instead.',
      hint = 'A row deleted here would leave its content behind.';
  end if;
  return null;
end
$$;
create trigger protect_buckets_delete before delete on storage.buckets
  for each statement execute function storage.protect_delete();
create trigger protect_objects_delete before delete on storage.objects
  for each statement execute function storage.protect_delete();

alter table storage.buckets owner to supabase_storage_admin;
alter table storage.objects owner to supabase_storage_admin;
grant all on storage.buckets, storage.objects to postgres with grant option;
grant all on storage.buckets, storage.objects to anon, authenticated, service_role;

-- On hosted, postgres owns neither table and may still write policies for them. Here it is a member of the owner,
-- and held back from what it could not do there.
grant supabase_storage_admin to postgres;

create function storage.guard_definitions() returns event_trigger
language plpgsql
as $$
declare
  v_command record;
begin
  if current_user <> 'postgres' then
    return;
  end if;
  for v_command in
    select * from pg_event_trigger_ddl_commands() where schema_name in ('storage', 'realtime')
  loop
    if v_command.command_tag not in ('CREATE POLICY', 'ALTER POLICY', 'CREATE TRIGGER') then
      raise insufficient_privilege using message = format('must be owner of %s', v_command.object_identity);
    end if;
  end loop;
end
$$;
create event trigger guard_storage_definitions on ddl_command_end execute function storage.guard_definitions();

create function storage.guard_drops() returns event_trigger
language plpgsql
as $$
declare
  v_object record;
begin
  if current_user <> 'postgres' then
    return;
  end if;
  for v_object in
    select * from pg_event_trigger_dropped_objects()
    where schema_name in ('storage', 'realtime') and original
  loop
    if v_object.object_type not in ('policy', 'trigger') then
      raise insufficient_privilege using message = format('must be owner of %s', v_object.object_identity);
    end if;
  end loop;
end
$$;
create event trigger guard_storage_drops on sql_drop execute function storage.guard_drops();
