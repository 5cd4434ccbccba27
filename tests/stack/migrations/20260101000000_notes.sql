create table public.notes (
  id bigint primary key generated always as identity,
  account_id uuid,
  text text not null
);
alter table public.notes enable row level security;
create policy own_notes on public.notes to authenticated using (account_id = (auth.jwt() ->> 'account_id')::uuid);
insert into public.notes (text) values ('from the migration');
