-- Vault's SQL surface without libsodium: secrets lie encrypted in vault.secrets and are read through
-- vault.decrypted_secrets. The key is a row beside them; on hosted it lies outside the database.
-- The script of the extension supabase_vault (extensions.ts), run by the superuser that owns the
-- stand-ins.

grant usage on schema vault to postgres with grant option;
grant usage on schema vault to service_role;

create table vault._key (key bytea not null);
insert into vault._key values (extensions.gen_random_bytes(32));

create table vault.secrets (
  id uuid primary key default gen_random_uuid(),
  name text,
  description text not null default '',
  secret text not null,
  key_id uuid,
  nonce bytea default extensions.gen_random_bytes(16),
  created_at timestamptz not null default current_timestamp,
  updated_at timestamptz not null default current_timestamp
);
create unique index secrets_name_idx on vault.secrets (name) where name is not null;

create function vault._encrypt(p_secret text, p_nonce bytea) returns text
language sql security definer
set search_path = ''
as $$
  select encode(extensions.encrypt_iv(convert_to(p_secret, 'utf8'), key, p_nonce, 'aes'), 'base64') from vault._key
$$;

create function vault._decrypt(p_secret text, p_nonce bytea) returns text
language sql stable security definer
set search_path = ''
as $$
  select convert_from(extensions.decrypt_iv(decode(p_secret, 'base64'), key, p_nonce, 'aes'), 'utf8') from vault._key
$$;

create view vault.decrypted_secrets as
select id, name, description, secret, vault._decrypt(secret, nonce) as decrypted_secret,
       key_id, nonce, created_at, updated_at
  from vault.secrets;

create function vault.create_secret(
  new_secret text,
  new_name text default null,
  new_description text default '',
  new_key_id uuid default null
) returns uuid
language plpgsql security definer
set search_path = ''
as $$
declare
  v_nonce bytea := extensions.gen_random_bytes(16);
  v_id uuid;
begin
  insert into vault.secrets (name, description, secret, nonce)
  values (new_name, new_description, vault._encrypt(new_secret, v_nonce), v_nonce)
  returning id into v_id;
  return v_id;
end
$$;

create function vault.update_secret(
  secret_id uuid,
  new_secret text default null,
  new_name text default null,
  new_description text default null,
  new_key_id uuid default null
) returns void
language plpgsql security definer
set search_path = ''
as $$
begin
  update vault.secrets s
     set secret = coalesce(vault._encrypt(new_secret, s.nonce), s.secret),
         name = coalesce(new_name, s.name),
         description = coalesce(new_description, s.description),
         updated_at = now()
   where s.id = secret_id;
end
$$;

revoke execute on all functions in schema vault from public;
grant execute on function vault._decrypt(text, bytea) to postgres, service_role;
grant execute on function vault.create_secret(text, text, text, uuid) to postgres with grant option;
grant execute on function vault.create_secret(text, text, text, uuid) to service_role;
grant execute on function vault.update_secret(uuid, text, text, text, uuid) to postgres with grant option;
grant execute on function vault.update_secret(uuid, text, text, text, uuid) to service_role;
grant select, references, delete, truncate on vault.secrets, vault.decrypted_secrets to postgres with grant option;
grant select, delete on vault.secrets, vault.decrypted_secrets to service_role;
