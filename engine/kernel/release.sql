-- The release, and who speaks which contract.
--
-- A level is one state of the engine: its tables and its functions. A contract is what the engine
-- and the runtime say to each other: the functions of the Data API, their arguments and answers,
-- and what a wake-up holds. Its number rises only where an older side would misunderstand a newer
-- one. An engine speaks its own contract and the one before, so that the database is upgraded first
-- and the functions are deployed after it, with nothing to wait for in between.

-- Tells which contracts the engine speaks, the newest first: its own, and the one before where
-- there is one.
create function millrace.contracts() returns text[]
language plpgsql stable
as $$
begin
  return array['2', '1'];
end
$$;

-- Tells which release of Millrace this database has. The build writes level and release.
create function millrace.engine(out level int, out release text, out contracts int[])
language plpgsql stable
as $$
begin
  level := 0;
  release := '0.0.0';
  contracts := millrace.contracts();
end
$$;
comment on function millrace.engine() is
  'Which Millrace this database has: its level, its release, and the contracts that it speaks, the '
  'newest first.';

-- Answers a call of a runtime that speaks another contract: HTTP 426 and why; null where the call
-- may go on. Every function that the runtime calls asks it first, so it costs microseconds. It does
-- not raise, or what it writes into the log, for doctor() to see at once, would go with the call. A
-- call without the header comes from no runtime.
create function millrace.refuse_contract() returns jsonb
language plpgsql volatile
as $$
declare
  -- A fifth of what parsing the headers costs. In a value, PostgREST would escape these quotes.
  v_contract text := split_part(
    split_part(current_setting('request.headers', true), '"x-millrace-contract":"', 2), '"', 1);
  v_message text;
  v_remedy text;
begin
  if coalesce(v_contract, '') = '' or v_contract = any (millrace.contracts()) then
    return null;
  end if;
  select
    format('these functions speak contract %s, and the engine %s (level %s, release %s)',
      left(v_contract, 20), array_to_string(e.contracts, ' and '), e.level, e.release),
    case
      when v_contract ~ '^[0-9]{1,9}$' and v_contract::int > e.contracts[1]
        then 'Upgrade the database to the release of these functions: apply its migrations '
          '(supabase db push).'
      else format('Deploy the functions of release %s (supabase functions deploy).', e.release)
    end
  into v_message, v_remedy
  from millrace.engine() e;
  -- PostgREST opens no transaction that writes for a function that only reads.
  if current_setting('transaction_read_only') = 'off' then
    perform millrace.report('error', 'contract_refused', v_message || ': ' || v_remedy,
      jsonb_build_object('contract', left(v_contract, 20)));
  end if;
  perform set_config('response.status', '426', true);
  return jsonb_build_object(
    'code', 'PT426', 'message', v_message, 'hint', v_remedy, 'details', null);
end
$$;
