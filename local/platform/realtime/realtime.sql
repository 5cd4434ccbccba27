-- Realtime's SQL surface: the publication, and what broadcasts from the database, which server.ts
-- sends on. Run by the superuser that owns the stand-ins.

create publication supabase_realtime;
alter publication supabase_realtime owner to postgres;

create schema realtime authorization supabase_realtime_admin;
grant usage on schema realtime to postgres, anon, authenticated, service_role;

create table realtime.messages (
  topic text not null,
  extension text not null,
  payload jsonb,
  event text,
  private boolean default false,
  updated_at timestamp not null default now(),
  inserted_at timestamp not null default now(),
  id uuid not null default gen_random_uuid(),
  primary key (id, inserted_at)
) partition by range (inserted_at);
-- The real one makes a partition a day.
create table realtime.messages_all partition of realtime.messages default;

alter table realtime.messages enable row level security;
alter table realtime.messages owner to supabase_realtime_admin;
alter table realtime.messages_all owner to supabase_realtime_admin;
grant select, insert, update on realtime.messages to postgres, anon, authenticated, service_role;

create type realtime.action as enum ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'ERROR');
create type realtime.equality_op as enum ('eq', 'neq', 'lt', 'lte', 'gt', 'gte', 'in');
create type realtime.user_defined_filter as (column_name text, op realtime.equality_op, value text);
create function realtime.to_regrole(role_name text) returns regrole
language sql immutable
as $$
  select role_name::regrole
$$;
create table realtime.subscription (
  id bigint generated always as identity primary key,
  subscription_id uuid not null,
  entity regclass not null,
  filters realtime.user_defined_filter[] not null default '{}',
  claims jsonb not null,
  claims_role regrole not null generated always as (realtime.to_regrole(claims ->> 'role')) stored,
  created_at timestamp not null default timezone('utc', now()),
  action_filter text default '*'
);
create table realtime.schema_migrations (version bigint primary key, inserted_at timestamp(0));
alter table realtime.subscription owner to supabase_realtime_admin;
alter table realtime.schema_migrations owner to supabase_realtime_admin;
grant all on realtime.subscription to postgres;
grant select on realtime.subscription, realtime.schema_migrations
  to anon, authenticated, service_role;

create function realtime.topic() returns text
language sql stable
as $$
  select nullif(current_setting('realtime.topic', true), '')
$$;

create function realtime.send(
  payload jsonb, event text, topic text, private boolean default true
) returns void
language plpgsql
as $$
declare
  v_id uuid := gen_random_uuid();
begin
  perform set_config('realtime.topic', topic, true);
  insert into realtime.messages (id, payload, event, topic, private, extension)
  values (v_id, jsonb_build_object('id', v_id) || payload, event, topic, private, 'broadcast');
exception
  when others then
    raise warning 'ErrorSendingBroadcastMessage: %', sqlerrm;
end
$$;

create function realtime.broadcast_changes(
  topic_name text, event_name text, operation text, table_name text, table_schema text,
  new record, old record, level text default 'ROW'
) returns void
language plpgsql
as $$
begin
  if level = 'STATEMENT' then
    raise exception 'function can only be triggered for each row, not for each statement';
  end if;
  perform realtime.send(
    jsonb_build_object(
      'old_record', old, 'record', new, 'operation', operation,
      'table', table_name, 'schema', table_schema),
    event_name, topic_name);
end
$$;

-- On hosted, postgres owns no table of this schema and may still write policies for them: see
-- storage.sql, whose guard holds it back here too.
grant supabase_realtime_admin to postgres;

-- The real server reads new messages by logical replication. Here it is notified.
create function realtime.announce_message() returns trigger
language plpgsql
as $$
begin
  perform pg_notify('realtime_messages', new.id::text);
  return null;
end
$$;
create trigger announce after insert on realtime.messages_all
  for each row execute function realtime.announce_message();
