-- Settings, the release and its contract
--
-- A level is one state of the engine. A contract is the form of the calls between the engine and
-- the runtime. An engine speaks the contract before too, since the database is upgraded before the
-- functions.

-- Reads a setting: Vault's millrace_<name>, else millrace.settings, else null.
create function millrace.setting(p_name text) returns text
stable
as $$
declare
  v_value text;

if to_regclass('vault.decrypted_secrets') is not null then
  -- Dynamic: a plain Postgres has no Vault.
  execute 'select decrypted_secret from vault.decrypted_secrets where name = $1'
    into v_value using 'millrace_' || p_name;
end if;
return coalesce(v_value, (
  select s.value from millrace.settings s where s.name = p_name));
$$;

-- Reads the setting batch_bytes. Deleted, it counts as its default.
create function millrace.batch_bytes() returns bigint
stable
as $$
return coalesce(
  (select s.value::bigint from millrace.settings s where s.name = 'batch_bytes'), 12582912);
$$;

-- Tells this database's level, its release and the contracts that it speaks, the newest first.
create function millrace.engine(out level int, out release text, out contracts int[])
stable
as $$
level := 0;
release := '0.0.0';
contracts := '{2,1}';
$$;

-- Answers a runtime that speaks another contract with HTTP 426; null where the call may go on. Does
-- not raise, or its line in the log would go with the call.
create function millrace.refuse_contract() returns jsonb
as $$
declare
  -- A fifth of the cost of parsing the headers.
  v_contract text := left(split_part(split_part(
    current_setting('request.headers', true), '"x-millrace-contract":"', 2), '"', 1), 20);
  v_message text;
  v_remedy text;

if coalesce(v_contract, '') = '' or v_contract = any (
    (millrace.engine()).contracts::text[]) then
  return null;
end if;
select
  format('these functions speak contract %s, and the engine %s (level %s, release %s)',
    v_contract, array_to_string(e.contracts, ' and '), e.level, e.release),
  case
    when v_contract ~ '^[0-9]{1,9}$' and v_contract::int > e.contracts[1]
      then 'Upgrade the database to the release of these functions: apply its migrations '
        '(supabase db push).'
    else format('Deploy the functions of release %s (supabase functions deploy).', e.release)
  end
into v_message, v_remedy
from millrace.engine() e;
-- PostgREST opens a read-only transaction for a function that only reads.
if current_setting('transaction_read_only') = 'off' then
  perform millrace.report('error', 'contract_refused', v_message || ': ' || v_remedy,
    jsonb_build_object('contract', v_contract));
end if;
perform set_config('response.status', '426', true);
return jsonb_build_object(
  'code', 'PT426', 'message', v_message, 'hint', v_remedy, 'details', null);
$$;
