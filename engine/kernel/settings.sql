-- Settings, the release and its contract
--
-- A level is the number of a state of the engine. A contract is the number of a form of the calls
-- between engine and runtime. An engine also speaks the contract before its own, since the database
-- is upgraded before the functions.

-- Returns a setting: the Vault secret millrace_<name>, else the row of millrace.settings, else
-- null.
create function millrace.setting(p_name text) returns text
stable
as $$
  v_value text;

if to_regclass('vault.decrypted_secrets') is not null then
  -- A plain Postgres has no Vault, and static SQL over its view would not be planned there.
  execute 'select decrypted_secret from vault.decrypted_secrets where name = $1'
    into v_value using 'millrace_' || p_name;
end if;
return coalesce(v_value, (
  select s.value from millrace.settings s where s.name = p_name));
$$;

-- Returns the setting batch_bytes, or its default where the row was deleted.
create function millrace.batch_bytes() returns bigint
stable
as $$
return coalesce(
  (select s.value::bigint from millrace.settings s where s.name = 'batch_bytes'), 12582912);
$$;

-- Returns this database's level, its release, and the contracts that it speaks, the newest first.
create function millrace.engine(out level int, out release text, out contracts int[])
stable
as $$
level := 0;
release := '0.0.0';
contracts := '{2,1}';
$$;

-- Returns the error with HTTP status 426 for a runtime that speaks another contract; null where the
-- call may go on. Writes the refusal into millrace.log. An exception would roll that row back.
create function millrace.refuse_contract() returns jsonb
as $$
  -- Cutting the header out of the text costs a fifth of parsing all headers.
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
