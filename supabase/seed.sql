-- Sample leads for `supabase start` and `supabase db reset`, none of them started. When wake-ups and the settings
-- of the functions are set up (see docs/deploying.md), start them with:  update leads set scrape_status = 'queued';
-- One of them names a host that does not exist, to show what a failure looks like.
insert into public.leads (id, email, company_url, account_id) values
  ('00000000-0000-4000-8000-000000000101', 'office@supabase.example', 'https://supabase.com', '00000000-0000-4000-8000-000000000001'),
  ('00000000-0000-4000-8000-000000000102', 'office@postgresql.example', 'https://www.postgresql.org', '00000000-0000-4000-8000-000000000001'),
  ('00000000-0000-4000-8000-000000000103', 'office@nowhere.example', 'https://no-such-company.invalid', '00000000-0000-4000-8000-000000000001')
on conflict (id) do nothing;
