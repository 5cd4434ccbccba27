-- Returns the actor for the history: the person of a token, else the role of the session. The
-- setting millrace.actor overrides both, but only for service_role and the table's owner, since any
-- session can set it.
create function millrace.actor(p_table regclass) returns text
stable
as $$
  v_role text := coalesce(nullif(current_setting('role', true), 'none'), session_user);
  v_given text := nullif(current_setting('millrace.actor', true), '');
  v_claims jsonb;

if v_given is not null and (v_role = 'service_role' or exists (
    select from pg_class c
    where c.oid = p_table and pg_has_role(v_role, c.relowner, 'member'))) then
  return case when v_given ~ '^[a-z]+:' then v_given else 'user:' || v_given end;
end if;
if v_role in ('authenticated', 'anon', 'service_role') then
  v_claims := auth.jwt();
end if;
return 'user:' || coalesce(nullif(v_claims #>> '{app_metadata,name}', ''),
  nullif(v_claims ->> 'email', ''), nullif(v_claims ->> 'sub', ''), v_role);
$$;
