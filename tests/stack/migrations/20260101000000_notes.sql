create table public.notes (
  id bigint primary key generated always as identity,
  account_id uuid,
  text text not null
);
alter table public.notes enable row level security;
create policy own_notes on public.notes to authenticated using (account_id = (auth.jwt() ->> 'account_id')::uuid);
revoke all on public.notes from anon, authenticated, service_role;
grant select on public.notes to authenticated;
grant select, insert on public.notes to service_role;
insert into public.notes (text) values ('from the migration');

create function public.who() returns text
language sql
as $$ select current_user::text $$;

create function public.project_secrets() returns jsonb
language sql
as $$ select jsonb_object_agg(name, decrypted_secret) from vault.decrypted_secrets $$;
revoke all on function public.project_secrets() from public, anon, authenticated, service_role;
grant execute on function public.project_secrets() to service_role;
