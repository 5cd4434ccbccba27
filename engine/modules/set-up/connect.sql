-- Writes the address of the project's functions and the wake-up secret into Vault, or into
-- millrace.settings where there is no Vault. Then calls set_up() and wakes the function millrace.
-- Returns {wake_up}, the id by which millrace_wake_answer() tells how the function answered.
-- p_once: changes nothing in a database that has an address, and returns null.
create function public.millrace_connect(p_project_url text, p_wake_secret text,
  p_once boolean default false)
set plan = free
as $$
  v_secret record;

-- A function's first request registers the project, and /connect may do so at the same time. Both
-- calls would insert the secrets.
perform pg_advisory_xact_lock(hashtext('millrace.connect'));
if p_once and millrace.setting('project_url') is not null then
  return null;
end if;
if coalesce(p_project_url, '') !~ '^https?://[^/]' then
  raise exception 'MR002: p_project_url is %, but must be an address with http:// or https://',
    coalesce(quote_literal(p_project_url), 'null')
    using hint = 'Send the function''s own SUPABASE_URL.';
elsif length(coalesce(p_wake_secret, '')) < 16 then
  raise exception 'MR002: p_wake_secret has fewer than 16 characters'
    using hint = 'Lengthen or remove MILLRACE_WAKE_SECRET.';
end if;
perform millrace.set_up();
for v_secret in
  values ('project_url', rtrim(p_project_url, '/')), ('wake_secret', p_wake_secret)
loop
  if to_regclass('vault.secrets') is null then
    insert into millrace.settings (name, value)
    values (v_secret.column1, v_secret.column2)
    on conflict (name) do update
    set value = excluded.value;
    continue;
  end if;
  -- Dynamic SQL, since a plain Postgres has no Vault and could not plan the call.
  execute 'select coalesce((
      select vault.update_secret(s.id, $2)::text from vault.secrets s where s.name = $1),
    vault.create_secret($2, $1)::text)'
    using 'millrace_' || v_secret.column1, v_secret.column2;
end loop;
perform millrace.post('millrace/poll', '{}');
return jsonb_build_object('wake_up', (
  select max(p.request_id)
  from millrace.posts p
  where p.posted_at = transaction_timestamp()));
$$;
