-- Returns who calls an operators' function, with role and rights. A token's user has the rights
-- that millrace.operators gives to its sub. A secret key and the engine's owner have all rights.
-- The function reads the setting `role`, since current_user is the owner in a function with its
-- owner's rights.
create function millrace.caller() returns millrace.caller
as $$
  v_role text := coalesce(nullif(current_setting('role', true), 'none'), session_user);
  v_caller millrace.caller;

if v_role in ('anon', 'authenticated') then
  v_caller.key := 'user';
  v_caller.subject := nullif(
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', '');
  select o.role, o.pipelines, o.payloads
  into v_caller.role, v_caller.pipelines, v_caller.payloads
  from millrace.operators o
  where o.subject = v_caller.subject and v_role = 'authenticated';
  return v_caller;
end if;
v_caller.subject := nullif(current_setting('millrace.actor', true), '');
v_caller.key := case when v_role = 'service_role' then 'secret' else 'sql' end;
if v_role = 'service_role' or exists (
    select from pg_namespace n
    where n.nspname = 'millrace' and pg_has_role(v_role, n.nspowner, 'member')) then
  v_caller.role := 'operator';
  v_caller.payloads := true;
end if;
return v_caller;
$$;
