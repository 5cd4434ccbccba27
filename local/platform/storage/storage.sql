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

create function storage.operation() returns text
language sql stable
as $$
  select nullif(current_setting('storage.operation', true), '')
$$;

create function storage.get_size_by_bucket() returns table (size bigint, bucket_id text)
language sql stable
as $$
  select coalesce(sum((o.metadata ->> 'size')::bigint), 0)::bigint, o.bucket_id
    from storage.objects o
   group by o.bucket_id
$$;

-- Inserts such an object and takes it back, so that a role that may not insert it gets the error.
create function storage.can_insert_object(
  bucketid text, name text, owner uuid, metadata jsonb
) returns void
language plpgsql
as $$
begin
  insert into storage.objects (bucket_id, name, owner, metadata)
  values (bucketid, name, owner, metadata);
  raise sqlstate 'PT200' using message = 'ROLLBACK';
exception
  when sqlstate 'PT200' then
    null;
end
$$;

-- The files and folders at a level of a bucket; folders have no id.
create function storage.search(
  prefix text, bucketname text, limits int default 100, levels int default 1, offsets int default 0,
  search text default '', sortcolumn text default 'name', sortorder text default 'asc'
) returns table (
  name text, id uuid, updated_at timestamptz, created_at timestamptz, last_accessed_at timestamptz,
  metadata jsonb
)
language plpgsql stable
as $$
begin
  return query execute format(
    $sql$
    select * from (
      select distinct on (o.path_tokens[$1])
        o.path_tokens[$1] as name, case when f.is_file then o.id end as id,
        case when f.is_file then o.updated_at end as updated_at,
        case when f.is_file then o.created_at end as created_at,
        case when f.is_file then o.last_accessed_at end as last_accessed_at,
        case when f.is_file then o.metadata end as metadata
        from storage.objects o, lateral (select array_length(o.path_tokens, 1) = $1 as is_file) f
       where o.bucket_id = $2 and o.name ilike $3 || $4 || '%%'
         and array_length(o.path_tokens, 1) >= $1
       order by o.path_tokens[$1], f.is_file
    ) found
     order by (id is null) desc, %I %s
     limit $5 offset $6
    $sql$,
    case when sortcolumn in ('name', 'updated_at', 'created_at', 'last_accessed_at')
      then sortcolumn else 'name' end,
    case when lower(sortorder) = 'desc' then 'desc' else 'asc' end)
    using levels, bucketname, prefix, search, limits, offsets;
end
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

-- The tables of what server.ts does not do: uploads in parts, and the platform's own notes.
create table storage.s3_multipart_uploads (
  id text primary key,
  in_progress_size bigint not null default 0,
  upload_signature text not null,
  bucket_id text not null references storage.buckets (id),
  key text collate "C" not null,
  version text not null,
  owner_id text,
  created_at timestamptz not null default now(),
  user_metadata jsonb
);
create table storage.s3_multipart_uploads_parts (
  id uuid primary key default gen_random_uuid(),
  upload_id text not null references storage.s3_multipart_uploads (id) on delete cascade,
  size bigint not null default 0,
  part_number int not null,
  bucket_id text not null references storage.buckets (id),
  key text collate "C" not null,
  etag text not null,
  owner_id text,
  version text not null,
  created_at timestamptz not null default now()
);
create table storage.migrations (
  id int primary key,
  name varchar(100) unique not null,
  hash varchar(40) not null,
  executed_at timestamp default current_timestamp
);
alter table storage.s3_multipart_uploads enable row level security;
alter table storage.s3_multipart_uploads_parts enable row level security;
alter table storage.migrations enable row level security;

alter table storage.buckets owner to supabase_storage_admin;
alter table storage.objects owner to supabase_storage_admin;
alter table storage.s3_multipart_uploads owner to supabase_storage_admin;
alter table storage.s3_multipart_uploads_parts owner to supabase_storage_admin;
alter table storage.migrations owner to supabase_storage_admin;
grant all on storage.buckets, storage.objects to postgres with grant option;
grant all on storage.buckets, storage.objects to anon, authenticated, service_role;
grant select on storage.s3_multipart_uploads, storage.s3_multipart_uploads_parts
  to postgres, anon, authenticated;
grant all on storage.s3_multipart_uploads, storage.s3_multipart_uploads_parts to service_role;

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
    select * from pg_event_trigger_ddl_commands()
    where schema_name in ('auth', 'storage', 'realtime')
      or object_identity ~ ' on (auth|storage|realtime)\.'
  loop
    -- The schema realtime takes no triggers either, since July 2026.
    if v_command.command_tag not in ('CREATE POLICY', 'ALTER POLICY', 'CREATE TRIGGER')
      or v_command.command_tag = 'CREATE TRIGGER' and v_command.object_identity ~ ' on realtime\.' then
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
    where schema_name in ('auth', 'storage', 'realtime') and original
  loop
    if v_object.object_type not in ('policy', 'trigger') then
      raise insufficient_privilege using message = format('must be owner of %s', v_object.object_identity);
    end if;
  end loop;
end
$$;
create event trigger guard_storage_drops on sql_drop execute function storage.guard_drops();
